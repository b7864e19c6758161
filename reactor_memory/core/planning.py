"""From a session to a plan: read once, let sources bring what stands before the window, decide purely, wait only for
what is nearly ready.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from traceback import format_tb
from typing import TYPE_CHECKING, Literal, NamedTuple

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from reactor_memory.core.context.blocks import Block, Verbatim
from reactor_memory.core.context.draft import ContextLimits, Draft
from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.core.context.standing import standing_messages, with_damage
from reactor_memory.core.context.strategy import Missing, Plan, PlanRequest, Strategy
from reactor_memory.core.load_requests import LoadRequest
from reactor_memory.core.sources import NOTHING, Brought, Source
from reactor_memory.database.deadlines import seconds_left
from reactor_memory.database.driver_errors import DAMAGE
from reactor_memory.errors import StoreCorruptError
from reactor_memory.models import Message, Session, Value, is_posted_summary
from reactor_memory.models.requests import ContextQuery, ContextRows
from reactor_memory.models.turns import in_turns

if TYPE_CHECKING:
    from reactor_memory.core.ports import BackgroundWork, ContextSource, MessageStore

log = logging.getLogger(__name__)

LAZY_SEGMENTS = 2
"""A load waits for at most this many segments; more would take longer than a turn may."""

MESSAGES_BEFORE = 10
"""So many messages before the newest ones are read, too, if none of these is of the user: they tell where what came
with one reasoning begins.
"""

MOST_LONG_MESSAGES = 16
"""A load reads on behind so many messages that are each too long for its window: some may not stand in it at all."""


MOST_ON_LOOP = 400
"""Sharing out a budget among 1,600 messages takes 40 to 80 ms."""


class LoadingOptions(Value, frozen=True, kw_only=True):
    """`limits` are those of a context without an explicit budget; its `budget` is what the model takes in."""

    limits: ContextLimits
    window_growth: Literal["auto", "messages", "tokens"] = "auto"
    lazy_timeout_seconds: float = 3.0
    settings_fingerprint: str = ""


_LOG = tuple[Session | None, tuple[Message, ...]]


class Planned(NamedTuple):
    """What was read, what sources brought, and what the strategy made of both. `is_settled`: of nothing but what was
    read, at once, and the next load would find the same.
    """

    rows: ContextRows
    brought: Brought
    plan: Plan
    is_settled: bool = False


class Planner:
    """Reads, lets the sources bring and the strategy plan."""

    def __init__(
        self,
        *,
        source: ContextSource,
        messages: MessageStore,
        background: BackgroundWork,
        strategy: Strategy,
        sources: Sequence[Source],
        counter: MessageCounter,
        options: LoadingOptions,
    ) -> None:
        self._source = source
        self._messages = messages
        self._background = background
        self._strategy = strategy
        self._sources = [each for each in sources if type(each).before_window is not Source.before_window]
        self._counter = counter
        self._options = options

    @property
    def has_memory(self) -> bool:
        return self._strategy.reads_summaries

    async def planned(self, request: LoadRequest, limits: ContextLimits, current_tokens: int) -> Planned:
        """What is derived and damaged is left out, and made again behind the load. Raises `StoreCorruptError` if the
        messages of the session themselves cannot be read.
        """
        query = self._query(request, limits)
        try:
            return await self._plan(request, limits, current_tokens, query)
        except DAMAGE as damage:
            tell_damage(request.session_id, "memory", damage)
        try:
            newly_laid_out = replace(query, facts=True)
            rows, brought, plan, _ = await self._plan(request, limits, current_tokens, newly_laid_out)
            return Planned(replace(rows, damaged=(*rows.damaged, "layout")), brought, plan)
        except DAMAGE:
            return await self._without_memory(request, limits, current_tokens, query)

    async def _without_memory(
        self, request: LoadRequest, limits: ContextLimits, current_tokens: int, query: ContextQuery
    ) -> Planned:
        """The newest messages: never less than without a memory."""
        try:
            rows = await self._rows(request, replace(query, trigger_message_count=None))
            msgspec.json.decode(msgspec.json.encode((rows.session, rows.messages)), type=_LOG)
        except DAMAGE:
            problem = f"session {request.session_id!r} is damaged; restore a backup"
            raise StoreCorruptError(f"store: {problem}") from None
        if rows.session is not None:
            self._background.messages_saved(request.session_id, rows.session.last_seq)
        brought = await self._brought(request, rows, self._standing(rows))
        plan = await self.decided(request, limits, rows, brought, current_tokens, "failed")
        return Planned(rows, brought, replace(plan, draft=with_damage(plan.draft, "memory"), layout=None))

    async def _plan(
        self, request: LoadRequest, limits: ContextLimits, current_tokens: int, query: ContextQuery
    ) -> Planned:
        rows = await self._rows(request, query)
        standing = self._standing(rows)
        brought = await self._brought(request, rows, standing) if standing else NOTHING
        plan = await self.decided(request, limits, rows, brought, current_tokens, None)
        if plan.wants_summary:
            rows = await self._rows(request, replace(query, facts=True))
            plan = await self.decided(request, limits, rows, brought, current_tokens, None)
        if plan.missing is None and not plan.wants_older:
            is_settled = plan.layout is None and not rows.damaged and not standing
            return Planned(rows, brought, plan, is_settled)
        outcome = await self._wait(request.session_id, plan.missing) if plan.missing else None
        query = self._query(request, limits, everything_unsealed=True)
        rows = await self._rows(request, replace(query, facts=True))
        return Planned(rows, brought, await self.decided(request, limits, rows, brought, current_tokens, outcome))

    async def _rows(self, request: LoadRequest, query: ContextQuery) -> ContextRows:
        """What was read of the log, turn by turn; for a turn that is stored already, of the log before it."""
        if request.before_seq is None:
            rows = await self._source.read_context(query)
        else:
            rows = await self._read_before(request, query, request.before_seq)
        return replace(rows, messages=in_turns(rows.messages, rows.steps)) if rows.steps else rows

    async def _read_before(self, request: LoadRequest, query: ContextQuery, before_seq: int) -> ContextRows:
        rows = await self._source.read_context(replace(query, before_seq=before_seq))
        if rows.session is None or rows.session.last_seq < before_seq:
            return rows
        until = before_seq - 1
        layout = rows.layout if rows.layout is None or rows.layout.window_start_seq <= until else None
        ranges = [each for each in rows.session.branch if each.start_seq <= until]
        branch = tuple([replace(each, end_seq=min(each.end_seq or until, until)) for each in ranges])
        session = replace(rows.session, last_seq=until, branch=branch)
        leading, standing = (
            tuple([each for each in kept if (each.seq or 0) <= until]) for kept in (rows.leading, rows.standing)
        )
        rows = replace(rows, session=session, layout=layout, leading=leading, standing=standing)
        if all((each.seq or 0) <= until for each in rows.messages):
            return rows
        last = query.most_before  # a store that does not know of it
        before = await self._messages.read(request.session_id, request.user_id, until=until, last=last) if until else ()
        return replace(rows, messages=before, steps={})

    def is_cut(self, draft: Draft, limits: ContextLimits, current_tokens: int) -> bool:
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

    def _standing(self, rows: ContextRows) -> list[Source]:
        """The sources that may bring something before the window."""
        return [each for each in self._sources if each.stands(rows)]

    async def _brought(self, request: LoadRequest, rows: ContextRows, sources: Sequence[Source]) -> Brought:
        """The blocks and messages of the features, read once: after a wait they may be gone."""
        read = [await self._read(each, request, rows) for each in sources]
        if not any(read):
            return NOTHING
        return Brought(
            blocks=tuple([each for each in read if isinstance(each, Block)]),
            verbatim=tuple([each for each in read if isinstance(each, Verbatim)]),
            damaged=tuple([each for each in read if isinstance(each, str)]),
        )

    async def _read(self, source: Source, request: LoadRequest, rows: ContextRows) -> Block | Verbatim | str | None:
        """The name of a source whose rows are damaged: a context does without."""
        try:
            return await source.before_window(request, rows)
        except DAMAGE as damage:
            tell_damage(request.session_id, source.name, damage)
            return source.name

    async def decided(
        self,
        request: LoadRequest,
        limits: ContextLimits,
        rows: ContextRows,
        brought: Brought,
        current_tokens: int,
        outcome: str | None,
    ) -> Plan:
        """Like `_decide`, where many messages hold up nobody else."""
        if len(rows.messages) <= MOST_ON_LOOP:
            return self._decide(request, limits, rows, brought, current_tokens, outcome)
        return await anyio.to_thread.run_sync(self._decide, request, limits, rows, brought, current_tokens, outcome)

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
        if brought is NOTHING and not rows.leading and not rows.standing:
            return self._strategy(self._plan_request(request, limits, rows, current_tokens, outcome))
        standing = standing_messages(rows)
        left = limits.budget - sum(map(self._cost, (*standing.values(), *brought.messages)))
        left -= brought.planned(limits.budget)
        rows = replace(rows, messages=self._without_cost(rows))
        shared = replace(limits, budget=max(0, left))
        plan = self._strategy(self._plan_request(request, shared, rows, current_tokens, outcome))
        return replace(plan, draft=brought.added_to(plan.draft))

    def _without_cost(self, rows: ContextRows) -> tuple[Message, ...]:
        """The messages of `rows`; for those that always stand, budget has been set aside."""
        standing = standing_messages(rows)
        free = {
            "content": "",
            "parts": (),
            "token_count": -self._options.limits.overhead,
            "tokenizer": self._counter.name,
        }
        return tuple([replace(each, **free) if each.seq in standing else each for each in rows.messages])

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
            last_count=last_count,
            before_count=MESSAGES_BEFORE,
            trigger_message_count=trigger,
            max_messages=_most_messages(limits, most if by_tokens else None),
            max_tokens=max(most, 1),
            max_message_tokens=max(most // MOST_LONG_MESSAGES, 1),
            overhead=limits.overhead,
            budget=request.budget or 0,
            settings_fingerprint=self._options.settings_fingerprint,
        )

    def _cost(self, message: Message) -> int:
        return self._counter.of(message) + self._options.limits.overhead


def tell_damage(session_id: str, part: str, damage: Exception) -> None:
    """Log where the code stood, and no text of the rows."""
    frames = "".join(format_tb(damage.__traceback__))
    fields = {"session_id": session_id, "part": part, "reason": type(damage).__name__}
    log.warning("what is derived is damaged and left out\n%s", frames, extra=fields)


def _most_messages(limits: ContextLimits, max_tokens: int | None) -> int:
    """By tokens, as many as empty messages would fit. By count, room for a window whose oldest turn is a long one."""
    if max_tokens is not None:
        return max(max_tokens // max(1, limits.overhead), limits.take_last_count)
    return max(limits.trigger_message_count + limits.longest_turn, limits.take_last_count)
