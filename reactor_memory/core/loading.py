"""From a session to a context: read once, decide purely, wait only for what is nearly ready."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from traceback import format_tb
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

import anyio
import anyio.to_thread
import msgspec

from reactor_memory.core import context
from reactor_memory.core.context.blocks import FIRST_SHARE, Block, Verbatim
from reactor_memory.core.context.budget import assemble
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.draft import ContextLimits, Draft, with_block
from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.core.context.strategy import Missing, Plan, PlanRequest, Strategy
from reactor_memory.core.load_requests import LoadRequest
from reactor_memory.database.deadlines import seconds_left
from reactor_memory.database.driver_errors import DAMAGE
from reactor_memory.errors import InvalidInputError, StoreCorruptError, StoreError, StoreReadOnlyError
from reactor_memory.models import Message, SearchHit, Session, Value, is_kept_by_author, is_posted_summary
from reactor_memory.models.requests import ContextQuery, ContextRows
from reactor_memory.models.turns import in_turns, is_traffic, last_turn_start, with_interruptions

if TYPE_CHECKING:
    from reactor_memory.core.context.running_context import RunningContext, ToldTurn
    from reactor_memory.core.ports import BackgroundWork, ContextSource, MessageStore, SummaryStore
    from reactor_memory.models.block_lines import Layout

log = logging.getLogger(__name__)

LAZY_SEGMENTS = 2
"""A load waits for at most this many segments; more would take longer than a turn may."""

COUNT_IN_THREAD_CHARACTERS = 8_000
"""Counting more text than this at once would hold up the event loop for a noticeable time."""

MESSAGES_BEFORE = 10
"""So many messages before the newest ones are read, too: they tell where what came with one reasoning begins."""

MOST_LONG_MESSAGES = 16
"""A load reads on behind so many messages that are each too long for its window: some may not stand in it at all."""

MOST_BEFORE_A_TURN = 500
"""So many messages are read at most before a turn that is stored already."""

LAYOUT_SECONDS = 0.25
"""A load waits no longer for a layout to be stored, such as while another process writes to a SQLite file."""


T = TypeVar("T")


async def in_thread_if_long(characters: int, work: Callable[[], T]) -> T:
    """What `work` returns, which counts the tokens of so many `characters`."""
    return await anyio.to_thread.run_sync(work) if characters > COUNT_IN_THREAD_CHARACTERS else work()


def characters_of(messages: Sequence[Message], system: str | None = None) -> int:
    return sum(len(message.content) for message in messages) + len(system or "")


class LoadingOptions(Value, frozen=True, kw_only=True):
    """`limits` are those of a context without an explicit budget; its `budget` is what the model takes in."""

    limits: ContextLimits
    window_growth: Literal["auto", "messages", "tokens"] = "auto"
    lazy_timeout_seconds: float = 3.0
    settings_fingerprint: str = ""


class Loaded(Value, frozen=True, kw_only=True):
    """A draft with its limits: what a context is made of, again and again while a turn goes on. `first` is the one that
    was made already, with the turn so far. `next_seq` is the place in the log of the message to come, `seqs` are those
    of what is stored of the turn; `told` remembers the turn so far.
    """

    draft: Draft
    limits: ContextLimits
    counter: MessageCounter
    system: str | None = None
    tools: tuple[Any, ...] = ()
    next_seq: int = 1
    seqs: list[int] = []
    told: list[RunningContext] = []
    first: Context | None = None


class Views(NamedTuple):
    """`context` gives the context of a draft with the turn so far; `moved` the draft whose window has given up about so
    many tokens for good, None if it stays where it is.
    """

    context: Callable[[Draft], Awaitable[Context]]
    moved: Callable[[int], Awaitable[Draft | None]]


class Recall(Protocol):
    """Brings back passages that a context does not show. It raises nothing: a load does without it."""

    async def added(
        self,
        query: str | None,
        current: Sequence[Message],
        session: Session,
        user_id: str | None,
        draft: Draft,
        views: Views,
    ) -> Draft:
        """`draft`, or where its window has to give way the moved one, with what answers `query`, or without one (None)
        what `current` asks and the draft does not show; the same draft if there is nothing.
        """
        ...

    async def search(self, text: str, session: Session, user_id: str | None, *, limit: int) -> tuple[SearchHit, ...]:
        """The passages that answer `text`, best first. Raises `StoreError` and `RedactionError`."""
        ...


class BlockSource(Protocol):
    """What a feature adds to contexts, whatever the strategy."""

    async def read(self, request: LoadRequest, rows: ContextRows) -> Block | Verbatim | None:
        """A block with its `tokens`, or what stands verbatim; None if there is nothing to show. `rows` is what was read
        of the log, and names the session if there is one.
        """
        ...


class Brought(Value, frozen=True, kw_only=True):
    """What the features add to a context."""

    blocks: tuple[Block, ...] = ()
    verbatim: tuple[Verbatim, ...] = ()
    damaged: tuple[str, ...] = ()

    @property
    def messages(self) -> list[Message]:
        return [message for verbatim in self.verbatim for message in verbatim.messages]

    def planned(self, budget: int) -> int:
        """The tokens that a strategy leaves to the blocks."""
        return min(sum(block.tokens or 0 for block in self.blocks), int(FIRST_SHARE * budget))

    def added_to(self, draft: Draft) -> Draft:
        for block in self.blocks:
            draft = with_block(draft, block)
        remarks = (*(f"damaged, left out: {each}" for each in self.damaged), *_damages_of(self.verbatim))
        return msgspec.structs.replace(draft, verbatim=self.verbatim, remarks=(*draft.remarks, *remarks))


def _damages_of(verbatim: Sequence[Verbatim]) -> list[str]:
    return [f"damaged, left out: {each}" for part in verbatim for each in part.damaged]


class ContextLoader:
    """Reads, lets the strategy plan, waits for the background work if it is nearly done, recalls, assembles."""

    def __init__(
        self,
        *,
        source: ContextSource,
        messages: MessageStore,
        summaries: SummaryStore,
        background: BackgroundWork,
        strategy: Strategy,
        recall: Callable[[], Recall],
        counter: MessageCounter,
        options: LoadingOptions,
        blocks: Sequence[BlockSource] = (),
        posted: Callable[[Draft, Session], Awaitable[Draft]] | None = None,
    ) -> None:
        self._source = source
        self._messages = messages
        self._summaries = summaries
        self._background = background
        self._strategy = strategy
        self._recall = recall
        self._counter = counter
        self._options = options
        self._blocks = blocks
        self._posted = posted
        self._told_turns: OrderedDict[Hashable, ToldTurn] = OrderedDict()

    async def load(self, request: LoadRequest, *, keep_layout: bool = True) -> Loaded:
        """The draft for the turn to come. Without `keep_layout`, the next load finds everything as this one did."""
        # a message to come is counted at each step of the load, and of the turn
        counter = self._counter.remembering() if request.current else self._counter
        limits, current_tokens = await in_thread_if_long(
            characters_of(request.current, request.system), lambda: self._measured(request, counter)
        )
        rows, brought, draft, _ = await self._drafted(request, limits, current_tokens, keep_layout=keep_layout)
        next_seq = rows.session.last_seq + 1 if rows.session else 1
        loaded = Loaded(
            draft=draft, limits=limits, counter=counter, system=request.system, tools=request.tools, next_seq=next_seq
        )

        async def moved(less: int) -> Draft | None:
            # the window would give way for this one turn, and be read anew in the next: so it moves now, and stays
            smaller = msgspec.structs.replace(limits, budget=max(1, limits.budget - less))
            if not self._decide(request, smaller, rows, brought, current_tokens, None).moves:
                return None
            *_, draft, is_moved = await self._drafted(request, smaller, current_tokens, keep_layout=keep_layout)
            return draft if is_moved else None

        return await self._with_recalled(request, rows.session, loaded, moved)

    async def _drafted(
        self, request: LoadRequest, limits: ContextLimits, current_tokens: int, *, keep_layout: bool
    ) -> tuple[ContextRows, Brought, Draft, bool]:
        """What was read, what may be shown of it without recall, and whether the window moved for it."""
        rows, brought, plan = await self._planned(request, limits, current_tokens)
        if plan.layout is not None and keep_layout and request.before_seq is None:
            await self._keep(request, plan.layout)
        session = rows.session
        draft = _readable_by(request.reader_id, _with_standing(plan.draft, rows))
        for part in rows.damaged:
            draft = _with_remark(draft, part)
        if self._posted and session and (request.summaries == "always" or self._is_cut(draft, limits, current_tokens)):
            draft = await self._posted(draft, session)
        draft = _with_interruptions(draft, session, bool(request.current))
        return rows, brought, draft, plan.layout is not None

    async def context(self, loaded: Loaded, current: Sequence[Message]) -> Context:
        """Like `assemble`, where a long turn holds up nobody else; the first of the turn may be there already."""
        if loaded.first is not None:
            return loaded.first
        characters = characters_of(current, loaded.system)
        return await in_thread_if_long(characters, lambda: self.assemble(loaded, current))

    async def from_history(self, request: LoadRequest, history: Sequence[Message]) -> Context:
        """A context of the caller's own history: nothing is read, only the budget is kept."""
        characters = characters_of(history) + characters_of(request.current, request.system)
        return await in_thread_if_long(characters, lambda: self._trimmed(request, history))

    def _measured(self, request: LoadRequest, counter: MessageCounter) -> tuple[ContextLimits, int]:
        """The limits, and the tokens of the message to come. What follows it in the turn makes room for itself."""
        limits = self._limits(request)
        return limits, sum(counter.of(message) + limits.overhead for message in request.current[:1])

    def _trimmed(self, request: LoadRequest, history: Sequence[Message]) -> Context:
        limits = self._limits(request)
        return context.own_history.trim(
            [*history, *request.current],
            limits.budget,
            count=self._counter.of,
            count_text=self._counter.of_text,
            overhead=limits.overhead,
            tokenizer=self._counter.name,
            session_id=request.session_id,
            system=request.system,
        )

    def assemble(self, loaded: Loaded, current: Sequence[Message]) -> Context:
        """The context of a draft and the turn so far. Stored messages are not tokenized, and those of the turn once."""
        if len(current) > 1 and current[0].role == "user":
            return context.running_context.of_turn(loaded, self._told_turns).of(current)
        return assemble(
            loaded.draft,
            current,
            loaded.limits,
            count=loaded.counter.of,
            count_text=self._counter.of_text,
            tokenizer=self._counter.name,
            system=loaded.system,
        )

    async def _keep(self, request: LoadRequest, layout: Layout) -> None:
        """Store a layout. One is made once in many turns; without it the next context has other bytes and keeps every
        promise. A store that cannot be written keeps none.
        """
        try:
            with anyio.move_on_after(LAYOUT_SECONDS):
                await self._summaries.put_layout(
                    request.session_id,
                    layout,
                    budget=request.budget or 0,
                    settings_fingerprint=self._options.settings_fingerprint,
                )
        except StoreReadOnlyError:
            pass
        except StoreError as error:
            fields = {"session_id": request.session_id, "reason": type(error).__name__}
            log.warning("layout not stored", extra=fields)

    # -- planning -----------------------------------------------------------------------------------------------

    async def _planned(
        self, request: LoadRequest, limits: ContextLimits, current_tokens: int
    ) -> tuple[ContextRows, Brought, Plan]:
        """What is derived and damaged is left out, and made again behind the load. Raises `StoreCorruptError` if the
        messages of the session themselves cannot be read.
        """
        query = self._query(request, limits)
        try:
            return await self._plan(request, limits, current_tokens, query)
        except DAMAGE as damage:
            self._tell(request.session_id, "memory", damage)
        try:
            newly_laid_out = msgspec.structs.replace(query, facts=True)
            rows, brought, plan = await self._plan(request, limits, current_tokens, newly_laid_out)
            return msgspec.structs.replace(rows, damaged=(*rows.damaged, "layout")), brought, plan
        except DAMAGE:
            return await self._without_memory(request, limits, current_tokens, query)

    async def _without_memory(
        self, request: LoadRequest, limits: ContextLimits, current_tokens: int, query: ContextQuery
    ) -> tuple[ContextRows, Brought, Plan]:
        """The newest messages: never less than without a memory."""
        try:
            rows = await self._rows(request, msgspec.structs.replace(query, trigger_message_count=None))
            msgspec.json.decode(msgspec.json.encode((rows.session, rows.messages)), type=_LOG)
        except DAMAGE:
            problem = f"session {request.session_id!r} is damaged; restore a backup"
            raise StoreCorruptError(f"store: {problem}") from None
        if rows.session is not None:
            self._background.messages_saved(request.session_id, rows.session.last_seq)
        brought = await self._brought(request, rows)
        plan = self._decide(request, limits, rows, brought, current_tokens, "failed")
        return rows, brought, msgspec.structs.replace(plan, draft=_with_remark(plan.draft, "memory"), layout=None)

    def _tell(self, session_id: str, part: str, damage: Exception) -> None:
        frames = "".join(format_tb(damage.__traceback__))
        fields = {"session_id": session_id, "part": part, "reason": type(damage).__name__}
        log.warning("what is derived is damaged and left out\n%s", frames, extra=fields)

    async def _plan(
        self, request: LoadRequest, limits: ContextLimits, current_tokens: int, query: ContextQuery
    ) -> tuple[ContextRows, Brought, Plan]:
        rows = await self._rows(request, query)
        brought = await self._brought(request, rows)
        plan = self._decide(request, limits, rows, brought, current_tokens, None)
        if plan.wants_summary:
            rows = await self._rows(request, msgspec.structs.replace(query, facts=True))
            plan = self._decide(request, limits, rows, brought, current_tokens, None)
        if plan.missing is None and not plan.wants_older:
            return rows, brought, plan
        outcome = await self._wait(request.session_id, plan.missing) if plan.missing else None
        query = self._query(request, limits, everything_unsealed=True)
        rows = await self._rows(request, msgspec.structs.replace(query, facts=True))
        return rows, brought, self._decide(request, limits, rows, brought, current_tokens, outcome)

    async def _rows(self, request: LoadRequest, query: ContextQuery) -> ContextRows:
        """What was read of the log, turn by turn; for a turn that is stored already, of the log before it."""
        rows = await self._read_before(request, query)
        return msgspec.structs.replace(rows, messages=in_turns(rows.messages, rows.steps)) if rows.steps else rows

    async def _read_before(self, request: LoadRequest, query: ContextQuery) -> ContextRows:
        rows = await self._source.read_context(query)
        if request.before_seq is None or rows.session is None or rows.session.last_seq < request.before_seq:
            return rows
        until, last = request.before_seq - 1, max(query.last_count, min(query.max_messages, MOST_BEFORE_A_TURN))
        before = await self._messages.read(request.session_id, request.user_id, until=until, last=last) if until else ()
        layout = rows.layout if rows.layout is None or rows.layout.window_start_seq <= until else None
        ranges = [each for each in rows.session.branch if each.start_seq <= until]
        branch = tuple([msgspec.structs.replace(each, end_seq=min(each.end_seq or until, until)) for each in ranges])
        session = msgspec.structs.replace(rows.session, last_seq=until, branch=branch)
        leading, standing = (
            tuple([each for each in kept if (each.seq or 0) <= until]) for kept in (rows.leading, rows.standing)
        )
        return msgspec.structs.replace(
            rows, session=session, messages=before, layout=layout, leading=leading, standing=standing
        )

    def _is_cut(self, draft: Draft, limits: ContextLimits, current_tokens: int) -> bool:
        """Whether a short conversation without memory yet loses messages that a posted summary may cover."""
        if draft.freshness != "none" or not self._strategy.reads_summaries:
            return False
        if not any(map(is_posted_summary, draft.window)):
            return False
        if draft.unread:
            return True
        verbatim = sum(self._cost(each) for part in draft.verbatim for each in part.messages)
        verbatim += sum(map(self._cost, draft.leading))
        blocks = sum(block.tokens or 0 for block in draft.blocks)
        window = sum(self._cost(each) for each in draft.window if not is_posted_summary(each))
        return verbatim + blocks + window + current_tokens > limits.budget

    async def _brought(self, request: LoadRequest, rows: ContextRows) -> Brought:
        """The blocks and messages of the features, read once: after a wait they may be gone."""
        read = [await self._read(source, request, rows) for source in self._blocks]
        return Brought(
            blocks=tuple([each for each in read if isinstance(each, Block)]),
            verbatim=tuple([each for each in read if isinstance(each, Verbatim)]),
            damaged=tuple([each for each in read if isinstance(each, str)]),
        )

    async def _read(
        self, source: BlockSource, request: LoadRequest, rows: ContextRows
    ) -> Block | Verbatim | str | None:
        """The name of a source whose rows are damaged: a context does without."""
        try:
            return await source.read(request, rows)
        except DAMAGE as damage:
            self._tell(request.session_id, type(source).__name__, damage)
            return type(source).__name__

    def _decide(
        self,
        request: LoadRequest,
        limits: ContextLimits,
        rows: ContextRows,
        brought: Brought,
        current_tokens: int,
        outcome: str | None,
    ) -> Plan:
        """Whatever the strategy, a draft has all that the features bring; the strategy shares out what they leave."""
        standing = _standing(rows)
        if not (brought.blocks or brought.verbatim or brought.damaged or standing):
            return self._strategy(self._plan_request(request, limits, rows, current_tokens, outcome))
        left = limits.budget - sum(map(self._cost, (*standing.values(), *brought.messages)))
        left -= brought.planned(limits.budget)
        rows = msgspec.structs.replace(rows, messages=self._without_cost(rows))
        shared = msgspec.structs.replace(limits, budget=max(0, left))
        plan = self._strategy(self._plan_request(request, shared, rows, current_tokens, outcome))
        return msgspec.structs.replace(plan, draft=brought.added_to(plan.draft))

    def _without_cost(self, rows: ContextRows) -> tuple[Message, ...]:
        """The messages of `rows`; for those that always stand, budget has been set aside."""
        standing = _standing(rows)
        free = {
            "content": "",
            "parts": (),
            "token_count": -self._options.limits.overhead,
            "tokenizer": self._counter.name,
        }
        return tuple(
            [msgspec.structs.replace(each, **free) if each.seq in standing else each for each in rows.messages]
        )

    def _plan_request(
        self, request: LoadRequest, limits: ContextLimits, rows: ContextRows, current_tokens: int, outcome: str | None
    ) -> PlanRequest:
        return PlanRequest(
            session_id=request.session_id,
            rows=rows,
            limits=limits,
            count=self._cost,
            count_text=self._counter.of_text,
            tokenizer=self._counter.name,
            current_tokens=current_tokens,
            outcome=outcome,
        )

    async def _wait(self, session_id: str, missing: Missing) -> str:
        if missing.segments > LAZY_SEGMENTS:
            await self._background.ensure(session_id, missing.until_seq, timeout_seconds=0)
            return "catching_up"
        # What is read after the wait needs time, too
        patience = min(self._options.lazy_timeout_seconds, seconds_left() / 2)
        return await self._background.ensure(session_id, missing.until_seq, timeout_seconds=patience)

    def _query(self, request: LoadRequest, limits: ContextLimits, *, everything_unsealed: bool = False) -> ContextQuery:
        by_tokens, has_memory = limits.window_growth == "tokens" or everything_unsealed, self._strategy.reads_summaries
        most = min(limits.budget, limits.max_window_tokens) if by_tokens and has_memory else limits.budget
        trigger = limits.trigger_message_count if has_memory else 0 if by_tokens else None
        last_count = max(limits.take_last_count, limits.trigger_message_count if has_memory else 0)
        return ContextQuery(
            session_id=request.session_id,
            user_id=request.user_id,
            last_count=last_count + MESSAGES_BEFORE,
            trigger_message_count=trigger,
            max_messages=_most_messages(limits, most if by_tokens else None),
            max_tokens=max(most, 1),
            max_message_tokens=max(most // MOST_LONG_MESSAGES, 1),
            overhead=limits.overhead,
            budget=request.budget or 0,
            settings_fingerprint=self._options.settings_fingerprint,
        )

    def _limits(self, request: LoadRequest) -> ContextLimits:
        limits = self._options.limits
        explicit = request.budget is not None
        growth = self._options.window_growth
        if growth == "auto":
            growth = "tokens" if explicit else "messages"
        budget = request.budget if request.budget is not None else self._left_by(request)
        return msgspec.structs.replace(limits, budget=budget, window_growth=growth, on_overflow=request.on_overflow)

    def _left_by(self, request: LoadRequest) -> int:
        """Tokens that the system prompt and the tools leave of what the model takes in."""
        system = self._counter.of_text(request.system) + self._options.limits.overhead if request.system else 0
        tools = sum(self._counter.of_text(msgspec.json.encode(tool).decode()) for tool in request.tools)
        left = self._options.limits.budget - system - tools
        if left <= 0:
            taken = f"takes {system} tokens and the tools {tools}; the model takes in {self._options.limits.budget}"
            raise InvalidInputError("system", f"{taken} (context.max_tokens less the reserved output)")
        return left

    def _cost(self, message: Message) -> int:
        return self._counter.of(message) + self._options.limits.overhead

    async def search(self, text: str, session: Session, user_id: str | None, *, limit: int) -> tuple[SearchHit, ...]:
        """The passages of the session that answer `text`, best first."""
        return await self._recall().search(text, session, user_id, limit=limit)

    # -- recall -------------------------------------------------------------------------------------------------

    async def _with_recalled(
        self,
        request: LoadRequest,
        session: Session | None,
        loaded: Loaded,
        moved: Callable[[int], Awaitable[Draft | None]],
    ) -> Loaded:
        """What was loaded with what answers the query, or what the message to come names and the context does not
        show.
        """
        by_itself = request.query is None and self._strategy.reads_summaries
        if session is None or session.last_seq <= 1 or not (request.query or (by_itself and request.current)):
            return loaded

        made: tuple[Draft, Context] | None = None

        async def context_of(draft: Draft) -> Context:
            nonlocal made
            made = draft, await self.context(msgspec.structs.replace(loaded, draft=draft), request.current)
            return made[1]

        views = Views(context_of, moved)
        try:
            draft = await self._recall().added(
                request.query, request.current, session, request.user_id, loaded.draft, views
            )
        except DAMAGE as damage:
            self._tell(session.session_id, "recall", damage)
            draft = _with_remark(loaded.draft, "recall")
        first = made[1] if made and made[0] is draft else None
        return msgspec.structs.replace(loaded, draft=draft, first=first)


def _with_interruptions(draft: Draft, session: Session | None, has_current: bool) -> Draft:
    """The draft with results for the calls with which turns broke off; a newest turn without an answer is named."""
    if session is None or not draft.window:
        return draft
    last = draft.window[-1]
    if last.seq == session.last_seq and (is_traffic(last) or (has_current and last.role == "user")):
        begins = draft.window[last_turn_start(draft.window)].seq
        remark = f"the turn of message {begins} has no answer: it was interrupted, or goes on"
        draft = msgspec.structs.replace(draft, remarks=(*draft.remarks, remark))
    window = with_interruptions(draft.window, session.last_seq)
    return draft if window is draft.window else msgspec.structs.replace(draft, window=tuple(window))


def _standing(rows: ContextRows) -> dict[int, Message]:
    """The messages that every context shows, by seq."""
    return {message.seq or 0: message for message in (*rows.leading, *rows.standing)}


def _with_standing(draft: Draft, rows: ContextRows) -> Draft:
    """The draft with the system messages that always stand: those that the session begins with, and later ones that the
    window does not show at their place, in front.
    """
    standing = _standing(rows)
    if not standing:
        return draft
    last = rows.leading[-1].seq or 0 if rows.leading else 0
    window = tuple([standing.get(each.seq or 0, each) for each in draft.window if (each.seq or 0) > last])
    at_their_place = {each.seq for each in window}
    leading = tuple([each for seq, each in standing.items() if seq <= last or seq not in at_their_place])
    unread = tuple([(max(first, last + 1), end) for first, end in draft.unread if end > last])
    return msgspec.structs.replace(draft, leading=leading, window=window, unread=unread)


_LOG = tuple[Session | None, tuple[Message, ...]]


def _with_remark(draft: Draft, part: str) -> Draft:
    return msgspec.structs.replace(draft, remarks=(*draft.remarks, f"damaged, left out and made again: {part}"))


def _readable_by(reader_id: str | None, draft: Draft) -> Draft:
    """The draft without the messages that other agents keep for themselves; as it is for a reader of None.

    Where the window begins is decided with them, so that it is the same for all readers.
    """
    if reader_id is None or not any(map(is_kept_by_author, (*draft.leading, *draft.window))):
        return draft
    leading, window = _of_reader(reader_id, draft.leading), _of_reader(reader_id, draft.window)
    hidden = len(draft.window) - len(window)
    remark = (f"messages of the window that other agents keep for themselves: {hidden}",) if hidden else ()
    return msgspec.structs.replace(draft, leading=leading, window=window, remarks=(*draft.remarks, *remark))


def _of_reader(reader_id: str, messages: Sequence[Message]) -> tuple[Message, ...]:
    return tuple(each for each in messages if each.author_id == reader_id or not is_kept_by_author(each))


def _most_messages(limits: ContextLimits, max_tokens: int | None) -> int:
    """By tokens, as many as empty messages would fit. By count, room for a window whose oldest turn is a long one."""
    if max_tokens is not None:
        return max(max_tokens // max(1, limits.overhead), limits.take_last_count)
    return max(limits.trigger_message_count + limits.longest_turn, limits.take_last_count)
