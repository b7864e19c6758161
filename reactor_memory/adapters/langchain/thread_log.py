"""The messages of a thread, kept in a session step by step, and as its state has them now.

What the state no longer holds is in no context: the newest messages are withdrawn, others erased. So are those that it
holds with other words, and what followed them; the session goes on with what the state has instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b
from time import monotonic
from typing import NamedTuple
from weakref import WeakKeyDictionary

import anyio
from langchain_core.messages import BaseMessage, HumanMessage
from msgspec.structs import replace

from reactor_memory.adapters.langchain.message_conversion import from_message, kept_of, to_message
from reactor_memory.errors import IdempotencyConflictError, InvalidInputError, SessionNotFoundError
from reactor_memory.memory import Memory
from reactor_memory.models import Message
from reactor_memory.models.requests import step_key
from reactor_memory.models.seq_ranges import joined_ranges

THREAD = "langchain_thread"
"""The key of `Message.metadata` that names the thread a message was kept of."""

MOST_THREADS = 64
"""So many threads a memory knows without reading."""

MOST_AT_ONCE = 500
"""So many messages are stored in one batch."""

LIVE_SECONDS = 60.0
"""A run that did nothing for so long, and did not end, is taken for one that was given up."""

MOST_TRIES = 5
"""So often a step is tried that other runs of its thread come before."""


class Kept(NamedTuple):
    """A message of a thread that the session has. `is_read`: the digest is of what was read out of the session."""

    id: str
    seq: int
    digest: int
    is_read: bool = False


class Run:
    """A run of a thread: where the session ended as it began, which runs were `beside` it, and its own messages."""

    def __init__(self, beside: Sequence[Run]) -> None:
        self.began_at: int | None = None
        self.beside = beside
        self.ids: set[str] = set()
        self.has_ended = False
        self.acted_at = monotonic()

    def may_take_back(self, kept: Kept) -> bool:
        """What other runs said since it began is not its own to take back."""
        if any(kept.id in run.ids for run in self.beside):
            return False
        return kept.seq <= (self.began_at or 0) or kept.id in self.ids

    @property
    def is_live(self) -> bool:
        return not self.has_ended and monotonic() - self.acted_at < LIVE_SECONDS


class ThreadLog:
    """One thread in its session."""

    def __init__(
        self, memory: Memory, session_id: str, user_id: str | None, thread: str, agent_name: str | None
    ) -> None:
        self._memory = memory
        self._session_id = session_id
        self._user_id = user_id
        self._thread = thread
        self._agent_name = agent_name
        self._kept: list[Kept] | None = None
        self._end = 0
        self._runs: dict[str, Run] = {}
        self._lock = anyio.Lock()

    @property
    def is_live(self) -> bool:
        """Whether a run is under way, or was given up without a word."""
        return any(not run.has_ended for run in self._runs.values())

    async def follow(self, messages: Sequence[BaseMessage], start: int, *, alone: bool = False) -> None:
        """Bring the session up to the state of a run, whose messages from `start` on are new. `alone`: what other runs
        of the thread did is none of its past.
        """
        async with self._lock:
            if alone:
                self._runs.clear()
            try:
                await self._follow(messages, start, self._run_of(messages, start))
            except BaseException:
                self._kept = None  # what was stored is not known
                raise

    def end(self, messages: Sequence[BaseMessage], start: int) -> None:
        """The run is over, however it ended."""
        run = self._run_of(messages, start)
        run.has_ended, run.beside = True, ()

    def first_seq(self, message: BaseMessage) -> int | None:
        """Where the session has a message."""
        return next((kept.seq for kept in reversed(self._kept or ()) if kept.id == message.id), None)

    def _run_of(self, messages: Sequence[BaseMessage], start: int) -> Run:
        """A run is known by the first message that it was given."""
        name = messages[start].id or "" if start < len(messages) else ""
        run = self._runs.get(name) or Run([each for each in self._runs.values() if each.is_live])
        self._runs[name] = run
        run.acted_at = monotonic()
        run.ids |= {message.id for message in messages[start:] if message.id}
        self._runs = {name: each for name, each in self._runs.items() if each is run or each.is_live}
        return run

    async def _follow(self, messages: Sequence[BaseMessage], start: int, run: Run) -> None:
        for tries in range(1, MOST_TRIES + 1):
            kept = await self._read() if self._kept is None else self._kept
            run.began_at = self._end if run.began_at is None else run.began_at
            again = await self._take_back(kept, messages, start, run)
            known = {each.id for each in self._kept or ()}
            new = [each for at, each in enumerate(messages) if at >= min(start, again) and each.id not in known]
            try:
                await self._append(messages, new)
            except IdempotencyConflictError:  # another run of the thread came before
                self._kept = None
                if tries == MOST_TRIES:
                    raise
            else:
                return

    async def _read(self) -> list[Kept]:
        """The messages of threads that the session has."""
        kept: list[Kept] = []
        with suppress(SessionNotFoundError):
            self._end = (await self._memory.get_session(self._session_id, user_id=self._user_id)).last_seq
        async for message in self._memory.stream_messages(self._session_id, user_id=self._user_id):
            message_id = kept_of(message).get("id") if message.metadata.get(THREAD) == self._thread else None
            if isinstance(message_id, str):
                kept.append(Kept(message_id, message.seq or 0, _digest(from_message(message)), is_read=True))
        self._kept = kept
        return kept

    # -- what the state no longer holds -------------------------------------------------------------------------

    async def _take_back(self, kept: Sequence[Kept], messages: Sequence[BaseMessage], start: int, run: Run) -> int:
        """From where on the messages of the state are to be stored, those included that were stored before."""
        places = {message.id: at for at, message in enumerate(messages) if message.id}
        gone = [each for each in kept if each.id not in places and run.may_take_back(each)]
        changed = [each for each in kept if each.id in places and not _is_same(each, messages[places[each.id]])]
        shown = [places[each.id] for each in kept if each.id in places]
        last = max(shown, default=-1)
        inserted = [at for at in range(start, last) if at not in shown]
        if not gone and not changed and not inserted:
            return start
        first = min([*inserted, *(places[each.id] for each in changed)], default=len(messages))
        moved = [each for each in kept if places.get(each.id, -1) > first]
        await self._remove({each.seq for each in (*gone, *changed, *moved)})
        await self._read()
        return min(first, last + 1)

    async def _remove(self, seqs: set[int]) -> None:
        """The newest are withdrawn, and what stands before others is erased."""
        left = sorted(seqs)
        with suppress(InvalidInputError):  # another message is the newest one
            while left:
                await self._memory.withdraw(self._session_id, user_id=self._user_id, seq=left[-1])
                left.pop()
        if left:
            ranges = joined_ranges([(seq, seq) for seq in left])
            await self._memory.erasure.erase(self._session_id, seq=ranges, user_id=self._user_id)

    # -- what is new --------------------------------------------------------------------------------------------

    async def _append(self, messages: Sequence[BaseMessage], new: Sequence[BaseMessage]) -> None:
        """A user message by itself, what follows it as steps of its turn."""
        kept = self._kept if self._kept is not None else []
        seqs = {each.id: each.seq for each in kept}
        first_seq = last_seq = 0
        batch: list[BaseMessage] = []
        wanted = {id(message) for message in new}
        for message in messages:
            if id(message) not in wanted:
                seq = seqs.get(message.id or "", 0)
                first_seq = seq if isinstance(message, HumanMessage) else first_seq
                last_seq = seq or last_seq
                continue
            if isinstance(message, HumanMessage) or len(batch) == MOST_AT_ONCE:
                last_seq = await self._store(batch, first_seq, last_seq)
                batch = []
            if isinstance(message, HumanMessage):
                first_seq = last_seq = await self._store([message], 0, last_seq)
            else:
                batch.append(message)
        await self._store(batch, first_seq, last_seq)

    async def _store(self, batch: Sequence[BaseMessage], first_seq: int, last_seq: int) -> int:
        """Returns where the last message stands."""
        if not batch:
            return last_seq
        converted = [_marked(to_message(message), self._thread) for message in batch]
        appended = await self._memory.save_history(
            self._session_id,
            converted,
            user_id=self._user_id,
            idempotency_key=step_key(first_seq, self._end) if first_seq else _key_of(batch, self._end),
            agent_name=self._agent_name,
        )
        self._end = max(self._end, appended.last_seq)
        if self._kept is not None:
            places = enumerate(batch, appended.first_seq)
            self._kept += [Kept(message.id, seq, _digest(message)) for seq, message in places if message.id]
        return appended.last_seq


class ThreadLogs:
    """The threads of a memory, the ones used last."""

    def __init__(self) -> None:
        self._logs: dict[tuple[str, str, str | None, str], ThreadLog] = {}

    def of(
        self, memory: Memory, session_id: str, user_id: str | None, thread: str, *, agent_name: str | None, depth: str
    ) -> ThreadLog:
        key = (session_id, depth, user_id, thread)
        log = self._logs.pop(key, None) or ThreadLog(memory, session_id, user_id, thread, agent_name)
        self._logs[key] = log
        while len(self._logs) > MOST_THREADS:
            del self._logs[next(iter(self._logs))]
        return log

    def is_inside(self, session_id: str, depth: str) -> bool:
        """Whether a graph is called by one that has a run in this session."""
        callers = [caller for (session, caller, *_), log in self._logs.items() if session == session_id and log.is_live]
        return any(depth != caller and (not caller or depth.startswith(f"{caller}|")) for caller in callers)


_LOGS: WeakKeyDictionary[Memory, ThreadLogs] = WeakKeyDictionary()


def logs_of(memory: Memory) -> ThreadLogs:
    """One for all middlewares of a memory."""
    return _LOGS.setdefault(memory, ThreadLogs())


def _marked(message: Message, thread: str) -> Message:
    return replace(message, metadata={**message.metadata, THREAD: thread})


def _is_same(kept: Kept, message: BaseMessage) -> bool:
    return kept.digest == _digest(from_message(to_message(message)) if kept.is_read else message)


def _digest(message: BaseMessage) -> int:
    """Of what was said and called: what a framework notes beside it may change."""
    content = message.content if isinstance(message.content, str) else _sorted(message.content)
    calls = [(call["id"], call["name"], call["args"]) for call in getattr(message, "tool_calls", ())]
    return hash((message.type, content, _sorted(calls) if calls else "", getattr(message, "tool_call_id", None)))


def _sorted(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _key_of(batch: Iterable[BaseMessage], last_seq: int) -> str:
    ids = "\0".join(message.id or "" for message in batch)
    return f"langchain {blake2b(ids.encode(), digest_size=24).hexdigest()} after {last_seq}"
