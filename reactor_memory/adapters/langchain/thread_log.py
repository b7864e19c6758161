"""The messages of a thread, kept in a session step by step, and as its state has them now.

What the state no longer holds is in no context: the newest messages are withdrawn, others erased. So are those that it
holds with other words, and what followed them; the session goes on with what the state has instead.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Sequence
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
from reactor_memory.models.requests import Appended, step_key
from reactor_memory.models.seq_ranges import joined_ranges
from reactor_memory.models.turns import is_answered

THREAD = "langchain_thread"
"""The key of `Message.metadata` that names the thread a message was kept of."""

RUN = "langchain_run"
"""The key of `Message.metadata` that names the run which a message was kept in."""

MOST_THREADS = 64
"""So many threads a memory knows without reading."""

MOST_AT_ONCE = 500
"""So many messages are stored in one batch."""

LIVE_SECONDS = 60.0
"""A run that did nothing for so long, and did not end, is taken for one that was given up."""

MOST_BESIDE = 64
"""So many runs at most that were beside those of a state are remembered."""

MOST_TRIES = 5
"""So often a step is tried that other runs of its thread come before."""


class Kept(NamedTuple):
    """A message of a thread that the session has since `at`, in microseconds since the epoch. `is_read`: the digest is
    of what was read out of the session.
    """

    id: str
    seq: int
    digest: int
    run: str = ""
    is_read: bool = False
    at: int = 0


class Run:
    """A run of a thread, known by a message that it was given: where the session ended as it began, and which
    runs were `beside` it, in this process or another one.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.began_at: int | None = None
        self.loaded_at: int | None = None
        self.beside: set[str] = set()
        self.has_ended = False
        self.acted_at = monotonic()

    def may_take_back(self, kept: Kept) -> bool:
        """What other runs said since it began is not its own to take back."""
        if kept.run == self.name:
            return True
        return self.beside.isdisjoint((kept.run, kept.id)) and kept.seq <= (self.began_at or 0)

    def begin(self, kept: Sequence[Kept], end: int) -> None:
        """`end`: where the session ends, with what others stored since the state of the run was loaded."""
        since = [each.seq for each in kept if each.run != self.name and each.at > (self.loaded_at or each.at)]
        self.began_at = min([end + 1, *since]) - 1

    @property
    def is_recent(self) -> bool:
        return monotonic() - self.acted_at < LIVE_SECONDS

    @property
    def is_live(self) -> bool:
        return not self.has_ended and self.is_recent


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
        self._is_behind = False
        self._live_elsewhere: list[str] = []
        self._runs: dict[str, Run] = {}
        self._lock = anyio.Lock()

    @property
    def is_live(self) -> bool:
        """Whether a run is under way, or was given up without a word."""
        return any(not run.has_ended for run in self._runs.values())

    async def follow(
        self,
        messages: Sequence[BaseMessage],
        start: int,
        *,
        begins: bool = False,
        alone: bool = False,
        beside: Sequence[str] = (),
        loaded_at: int | None = None,
    ) -> None:
        """Bring the session up to the state of a run, whose messages from `start` on are new. `beside` names the runs
        that the state never held, since they ran at once with its own; with `alone` what others did that is none of its
        past. What was stored after the state was loaded it cannot hold (`loaded_at`, microseconds since the epoch).
        """
        async with self._lock:
            if begins:
                await self._refresh()
            if alone:
                self._runs.clear()
            run = self._run_of(messages, start)
            run.beside.update(beside)
            run.loaded_at = loaded_at if run.loaded_at is None else run.loaded_at
            try:
                await self._follow(messages, start, run, begins=begins and not alone)
            except BaseException:
                self._kept = None  # what was stored is not known
                raise

    def end(self, messages: Sequence[BaseMessage], start: int) -> None:
        """The run is over, however it ended."""
        self._run_of(messages, start).has_ended = True

    async def beside(self, messages: Sequence[BaseMessage], start: int, before: Sequence[str]) -> list[str]:
        """The runs that the state of this one never held: those `before`, and those that stored something since it
        began.
        """
        async with self._lock:
            await self._refresh()
            run = self._run_of(messages, start)
            kept = await self._read() if self._kept is None else self._kept
            began_at = self._end if run.began_at is None else run.began_at
            since = [each.run for each in kept if each.seq > began_at and each.run not in ("", run.name)]
        return list(dict.fromkeys([*before, *since]))[-MOST_BESIDE:]

    def has_any(self, ids: Container[object]) -> bool:
        """Whether it is known that the session has one of these messages."""
        return any(kept.id in ids for kept in self._kept or ())

    def first_seq(self, message: BaseMessage) -> int | None:
        """Where the session has a message."""
        return next((kept.seq for kept in reversed(self._kept or ()) if kept.id == message.id), None)

    def _run_of(self, messages: Sequence[BaseMessage], start: int) -> Run:
        name = _name_of_run(messages, start)
        run = self._runs.get(name)
        if run is None:
            run = Run(name)
            run.beside.update(other for other, each in self._runs.items() if each.is_live)
            self._runs[name] = run
        run.acted_at = monotonic()
        self._runs = {name: each for name, each in self._runs.items() if each is run or each.is_recent}
        return run

    async def _follow(self, messages: Sequence[BaseMessage], start: int, run: Run, *, begins: bool) -> None:
        for tries in range(1, MOST_TRIES + 1):
            kept = await self._read() if self._kept is None else self._kept
            if run.began_at is None:
                run.begin(kept, self._end)
                run.beside.update(self._live_elsewhere if begins else ())
            again = await self._take_back(kept, messages, start, run)
            known = {each.id for each in self._kept or ()}
            new = [each for at, each in enumerate(messages) if at >= min(start, again) and each.id not in known]
            try:
                await self._append(messages, new, run)
            except IdempotencyConflictError:  # another run of the thread came before
                self._kept = None
                if tries == MOST_TRIES:
                    raise
            else:
                return

    async def _refresh(self) -> None:
        """Forget what was read if others saved since."""
        with suppress(SessionNotFoundError):
            session = await self._memory.get_session(self._session_id, user_id=self._user_id)
            if session.last_seq != self._end or self._is_behind:
                self._kept = None

    async def _read(self) -> list[Kept]:
        """The messages of threads that the session has."""
        kept: list[Kept] = []
        newest: dict[str, Message] = {}
        with suppress(SessionNotFoundError):
            self._end = (await self._memory.get_session(self._session_id, user_id=self._user_id)).last_seq
        async for message in self._memory.stream_messages(self._session_id, user_id=self._user_id):
            message_id = kept_of(message).get("id") if message.metadata.get(THREAD) == self._thread else None
            if isinstance(message_id, str):
                run = str(message.metadata.get(RUN, ""))
                at, digest = message.created_at or 0, _digest(from_message(message))
                kept.append(Kept(message_id, message.seq or 0, digest, run, is_read=True, at=at))
                newest[run] = message
        self._kept, self._is_behind = kept, False
        now = self._memory.container.clock()()
        self._live_elsewhere = [run for run, last in newest.items() if run not in self._runs and _may_go_on(last, now)]
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

    async def _append(self, messages: Sequence[BaseMessage], new: Sequence[BaseMessage], run: Run) -> None:
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
                last_seq = await self._store(run, batch, first_seq, last_seq)
                batch = []
            if isinstance(message, HumanMessage):
                first_seq = last_seq = await self._store(run, [message], 0, last_seq)
            else:
                batch.append(message)
        await self._store(run, batch, first_seq, last_seq)

    async def _store(self, run: Run, batch: Sequence[BaseMessage], first_seq: int, last_seq: int) -> int:
        """Returns where the last message stands."""
        if not batch:
            return last_seq
        converted = [_marked(to_message(message), self._thread, run.name) for message in batch]
        if first_seq:
            appended = await self._save(converted, step_key(first_seq, self._end))
        else:
            appended = await self._begin(batch, converted)
        self._is_behind |= appended.first_seq > self._end + 1
        self._end = max(self._end, appended.last_seq)
        if self._kept is not None:
            known = {each.seq for each in self._kept}
            places, now = enumerate(batch, appended.first_seq), self._memory.container.clock()()
            kept = [Kept(message.id, seq, _digest(message), run.name, at=now) for seq, message in places if message.id]
            self._kept += [each for each in kept if each.seq not in known]
        return appended.last_seq

    async def _begin(self, batch: Sequence[BaseMessage], converted: Sequence[Message]) -> Appended:
        """Store what a run was given, unless another process did. What was taken back before is stored again."""
        key = _key_of(batch)
        with suppress(IdempotencyConflictError):  # another run kept it, or it had other words
            appended = await self._save(converted, key)
            if not appended.replayed:
                return appended
        stands = next((each.seq for each in await self._read() if each.id == batch[0].id), None)
        if stands is not None:
            return Appended(first_seq=stands, last_seq=stands + len(batch) - 1, replayed=True)
        return await self._save(converted, f"{key} after {self._end}")

    async def _save(self, batch: Sequence[Message], key: str) -> Appended:
        return await self._memory.save_history(
            self._session_id, batch, user_id=self._user_id, idempotency_key=key, agent_name=self._agent_name
        )


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

    async def thread_with(
        self, memory: Memory, session_id: str, user_id: str | None, ids: Container[object]
    ) -> str | None:
        """The thread of which the session has one of these messages, the newest."""
        for (session, _, user, thread), log in reversed(self._logs.items()):
            if (session, user) == (session_id, user_id) and log.has_any(ids):
                return thread
        thread = None
        with suppress(SessionNotFoundError):
            async for message in memory.stream_messages(session_id, user_id=user_id):
                if THREAD in message.metadata and kept_of(message).get("id") in ids:
                    thread = str(message.metadata[THREAD])
        return thread

    def is_inside(self, session_id: str, depth: str) -> bool:
        """Whether a graph is called by one that has a run in this session."""
        callers = [caller for (session, caller, *_), log in self._logs.items() if session == session_id and log.is_live]
        return any(depth != caller and (not caller or depth.startswith(f"{caller}|")) for caller in callers)


_LOGS: WeakKeyDictionary[Memory, ThreadLogs] = WeakKeyDictionary()


def logs_of(memory: Memory) -> ThreadLogs:
    """One for all middlewares of a memory."""
    return _LOGS.setdefault(memory, ThreadLogs())


def _name_of_run(messages: Sequence[BaseMessage], start: int) -> str:
    """The id of the newest message that the run was given; before it may stand what runs at once with it were given."""
    given = start
    while given + 1 < len(messages) and isinstance(messages[given + 1], HumanMessage):
        given += 1
    return messages[given].id or "" if given < len(messages) else ""


def _marked(message: Message, thread: str, run: str) -> Message:
    return replace(message, metadata={**message.metadata, THREAD: thread, RUN: run})


def _may_go_on(newest: Message, now: int) -> bool:
    """Whether a run of another process may be under way, by the newest message of it."""
    return not is_answered([newest]) and now - (newest.created_at or 0) < LIVE_SECONDS * 1_000_000


def _is_same(kept: Kept, message: BaseMessage) -> bool:
    return kept.digest == _digest(from_message(to_message(message)) if kept.is_read else message)


def _digest(message: BaseMessage) -> int:
    """Of what was said and called: what a framework notes beside it may change."""
    content = message.content if isinstance(message.content, str) else _sorted(message.content)
    calls = [(call["id"], call["name"], call["args"]) for call in getattr(message, "tool_calls", ())]
    return hash((message.type, content, _sorted(calls) if calls else "", getattr(message, "tool_call_id", None)))


def _sorted(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _key_of(batch: Iterable[BaseMessage]) -> str:
    ids = "\0".join(message.id or "" for message in batch)
    return f"langchain {blake2b(ids.encode(), digest_size=24).hexdigest()}"
