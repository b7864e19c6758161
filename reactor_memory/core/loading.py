"""From a session to a context: plan, bring what answers the question, assemble."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import anyio
import msgspec
from msgspec.structs import replace

from reactor_memory.core import context
from reactor_memory.core.context.budget import assemble
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.draft import ContextLimits, Draft
from reactor_memory.core.context.message_counter import MessageCounter, characters_of, in_thread_if_long
from reactor_memory.core.context.standing import interrupted, readable_by, with_damage, with_standing
from reactor_memory.core.context.strategy import Strategy
from reactor_memory.core.load_requests import LoadArguments, LoadRequest
from reactor_memory.core.planning import LoadingOptions, Planner, tell_damage
from reactor_memory.core.sources import Asked, Brought, Source, Views
from reactor_memory.database.driver_errors import DAMAGE
from reactor_memory.errors import InvalidInputError, StoreError, StoreReadOnlyError
from reactor_memory.models import Message, Session, Value
from reactor_memory.models.requests import ContextRows
from reactor_memory.models.tool_roles import without_hints

if TYPE_CHECKING:
    from reactor_memory.core.context.running_context import RunningContext, ToldTurn
    from reactor_memory.core.log.hot_heads import HotHeads
    from reactor_memory.core.ports import BackgroundWork, ContextSource, MessageStore, SummaryStore
    from reactor_memory.models.block_lines import Layout

log = logging.getLogger(__name__)

MOST_LIMITS = 64
"""The limits of so many budgets are kept: agents ask for a few."""

LAYOUT_SECONDS = 0.25
"""A load waits no longer for a layout to be stored, such as while another process writes to a SQLite file."""


class Loaded(Value, frozen=True, kw_only=True):
    """A draft with its limits: what a context is made of, again and again while a turn goes on. `first` is the one that
    was made already, with the turn so far. `next_seq` is the place in the log of the message to come, `seqs` are those
    of what is stored of the turn; `told` remembers the turn so far. `proof`, if there is one, is that of all that the
    draft was made of.
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
    proof: Any = None


class _Drafted(NamedTuple):
    """What was read, and what may be shown of it before the question. `moves`: its window moved. `is_settled`: see
    `Planned`.
    """

    rows: ContextRows
    brought: Brought
    draft: Draft
    is_cut: bool
    moves: bool
    is_settled: bool = False


class ContextLoader:
    """Plans, lets the sources answer the question, assembles."""

    def __init__(
        self,
        *,
        source: ContextSource,
        messages: MessageStore,
        summaries: SummaryStore,
        background: BackgroundWork,
        strategy: Strategy,
        counter: MessageCounter,
        options: LoadingOptions,
        sources: Sequence[Source] = (),
        heads: HotHeads | None = None,
    ) -> None:
        self._heads = heads
        self.keeps = heads is not None
        self._summaries = summaries
        self._counter = counter
        self._options = options
        self._limits_of = lru_cache(maxsize=MOST_LIMITS)(partial(_limits_of, options))
        self._answering = [each for each in sources if type(each).for_question is not Source.for_question]
        self.planner = Planner(
            source=source,
            messages=messages,
            background=background,
            strategy=strategy,
            sources=sources,
            counter=counter,
            options=options,
        )
        self._told_turns: OrderedDict[Hashable, ToldTurn] = OrderedDict()

    async def again(self, session_id: str, arguments: LoadArguments) -> Context | None:
        """What `keep` kept of a load with these arguments, the user's id among them, if it would be the same now."""
        if self._heads is None or (key := _key_of(session_id, arguments)) is None:
            return None
        kept = await self._heads.again(session_id, key)
        return None if kept is None else kept.given()

    def keep(self, session_id: str, arguments: LoadArguments, loaded: Loaded, made: Context) -> Context:
        """Keep the context of a load without a message. What this gives takes its place."""
        if self._heads is None or loaded.proof is None or (key := _key_of(session_id, arguments)) is None:
            return made
        if not self._heads.is_repeated(session_id, key, loaded.proof):
            return made
        kept = context.kept_context.kept_of(made, loaded.draft)
        if kept is None:
            return made
        self._heads.keep(session_id, key, loaded.proof, kept)
        return kept.given()

    async def load(self, request: LoadRequest, *, keep_layout: bool = True) -> Loaded:
        """The draft for the turn to come. Without `keep_layout`, the next load finds everything as this one did."""
        # a message to come is counted at each step of the load, and of the turn
        counter = self._counter.remembering() if request.current else self._counter
        if request.current or request.system:
            limits, current_tokens = await in_thread_if_long(
                characters_of(request.current, request.system), lambda: self._measured(request, counter)
            )
        else:
            limits, current_tokens = self._limits(request), 0
        drafted = await self.drafted(request, limits, current_tokens, keep_layout=keep_layout)
        session = drafted.rows.session
        loaded = Loaded(
            draft=drafted.draft,
            limits=limits,
            counter=counter,
            system=request.system,
            tools=request.tools,
            next_seq=session.last_seq + 1 if session else 1,
        )
        if session is None:
            return loaded
        if not self._is_answered(request, session, drafted):
            return replace(loaded, proof=drafted.rows.proof) if drafted.is_settled and drafted.rows.proof else loaded
        answering = _Answering(self, loaded, request, drafted, current_tokens, keep_layout)
        draft = await answering.draft(drafted, self._answering)
        return replace(loaded, draft=draft, first=answering.context_made_of(draft))

    def _is_answered(self, request: LoadRequest, session: Session, drafted: _Drafted) -> bool:
        """Whether any source may add something."""
        has_memory, is_cut = self.planner.has_memory, drafted.is_cut
        return any(each.answers(request, session, has_memory=has_memory, is_cut=is_cut) for each in self._answering)

    async def drafted(
        self, request: LoadRequest, limits: ContextLimits, current_tokens: int, *, keep_layout: bool
    ) -> _Drafted:
        rows, brought, plan, is_settled = await self.planner.planned(request, limits, current_tokens)
        if plan.layout is not None and keep_layout and request.before_seq is None:
            await self._keep(request, plan.layout)
        draft = plan.draft
        if rows.leading or rows.standing:
            draft = with_standing(draft, rows)
        if request.reader_id is not None:
            draft = readable_by(request.reader_id, draft)
        for part in rows.damaged:
            draft = with_damage(draft, part)
        is_cut = draft.freshness == "none" and self.planner.is_cut(draft, limits, current_tokens)
        draft = interrupted(draft, rows.session, bool(request.current))
        return _Drafted(rows, brought, draft, is_cut, plan.layout is not None, is_settled)

    async def context(self, loaded: Loaded, current: Sequence[Message]) -> Context:
        """Like `assemble`, where a long turn holds up nobody else; the first of the turn may be there already."""
        if loaded.first is not None:
            return loaded.first
        if not current:
            return self.assemble(loaded, current)
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

    def _limits(self, request: LoadRequest) -> ContextLimits:
        budget = request.budget
        return self._limits_of(self._left_by(request) if budget is None else budget, budget, request.on_overflow)

    def _left_by(self, request: LoadRequest) -> int:
        """Tokens that the system prompt and the tools leave of what the model takes in."""
        if not (request.system or request.tools) and self._options.limits.budget > 0:
            return self._options.limits.budget
        system = self._counter.of_text(request.system) + self._options.limits.overhead if request.system else 0
        tools = sum(self._counter.of_text(msgspec.json.encode(without_hints(tool)).decode()) for tool in request.tools)
        left = self._options.limits.budget - system - tools
        if left <= 0:
            taken = f"takes {system} tokens and the tools {tools}; the model takes in {self._options.limits.budget}"
            raise InvalidInputError("system", f"{taken} (context.max_tokens less the reserved output)")
        return left


def _limits_of(
    options: LoadingOptions, budget: int, asked: int | None, on_overflow: Literal["raise", "drop_memory"]
) -> ContextLimits:
    growth = options.window_growth
    if growth == "auto":
        growth = "messages" if asked is None else "tokens"
    return replace(options.limits, budget=budget, window_growth=growth, on_overflow=on_overflow)


_REPEATABLE = {str, int, type(None)}


def _key_of(session_id: str, arguments: LoadArguments) -> Hashable | None:
    """Equal for the same load; None for one that is not repeated, or that may be refused."""
    if type(session_id) is not str or "system" in arguments or "tools" in arguments:
        return None
    if not set(map(type, arguments.values())) <= _REPEATABLE:
        return None
    return tuple(arguments.items())


class _Answering:
    """The sources answer the question of a load, one after the other.

    No closures: functions that call each other would keep what was read until the collector of cycles finds it.
    """

    __slots__ = ("_current_tokens", "_drafted", "_keep_layout", "_loaded", "_loader", "_made", "_request")

    def __init__(
        self,
        loader: ContextLoader,
        loaded: Loaded,
        request: LoadRequest,
        drafted: _Drafted,
        current_tokens: int,
        keep_layout: bool,
    ) -> None:
        self._loader = loader
        self._loaded = loaded
        self._request = request
        self._drafted = drafted
        self._current_tokens = current_tokens
        self._keep_layout = keep_layout
        self._made: tuple[Draft, Context] | None = None

    async def draft(self, drafted: _Drafted, sources: Sequence[Source]) -> Draft:
        draft, session = drafted.draft, self._drafted.rows.session
        assert session is not None
        has_memory, is_cut = self._loader.planner.has_memory, drafted.is_cut
        for place, source in enumerate(sources):
            if not source.answers(self._request, session, has_memory=has_memory, is_cut=is_cut):
                continue
            views = Views(self._context_of, partial(self._moved, sources[:place]))
            asked = Asked(self._request, session, has_memory, is_cut, views)
            draft = await _answer(source, draft, asked)
        return draft

    def context_made_of(self, draft: Draft) -> Context | None:
        return self._made[1] if self._made is not None and self._made[0] is draft else None

    async def _context_of(self, draft: Draft) -> Context:
        context = await self._loader.context(replace(self._loaded, draft=draft), self._request.current)
        self._made = draft, context
        return context

    async def _moved(self, before: Sequence[Source], less: int) -> Draft | None:
        # the window would give way for this one turn, and be read anew in the next: so it moves now, and stays
        request, limits, tokens = self._request, self._loaded.limits, self._current_tokens
        smaller = replace(limits, budget=max(1, limits.budget - less))
        rows, brought = self._drafted.rows, self._drafted.brought
        if not (await self._loader.planner.decided(request, smaller, rows, brought, tokens, None)).moves:
            return None
        again = await self._loader.drafted(request, smaller, tokens, keep_layout=self._keep_layout)
        return await self.draft(again, before) if again.moves else None


async def _answer(source: Source, draft: Draft, asked: Asked) -> Draft:
    try:
        return await source.for_question(draft, asked)
    except DAMAGE as damage:
        tell_damage(asked.session.session_id, source.name, damage)
        return with_damage(draft, source.name)
