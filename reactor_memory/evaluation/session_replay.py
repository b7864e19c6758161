"""Sessions replayed turn by turn through the real manager: a context before each turn, and those at the end.

One replay of a session serves every budget: what a load leaves behind belongs to its budget. Background work is drained
before anything is measured, so that the numbers do not depend on how fast it is.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

import anyio
import msgspec

from reactor_memory.core.context.context import Context
from reactor_memory.errors import SessionNotFoundError
from reactor_memory.evaluation.metering import usage_of
from reactor_memory.evaluation.metrics import TextCount, ratio
from reactor_memory.evaluation.pricing import cost_of_summaries, cost_of_turns, prices_of
from reactor_memory.evaluation.probes import Probe
from reactor_memory.evaluation.sessions import LabelledSession, split_turns
from reactor_memory.evaluation.tally import Measures, Tally
from reactor_memory.models import Message
from reactor_memory.models.ledger import Usage
from reactor_memory.providers.asked_models import summarizing_model
from reactor_memory.settings.sections import Price
from reactor_memory.wiring.container import Container

Questions: TypeAlias = Literal["message", "query", "off"]
"""``message``: turns recall as by default, and each probe's question is the message to come of a context of its own, as
a user asks it. ``query``: the question is the query of that context, too. ``off``: nothing is recalled, and one context
answers for all probes.
"""

Advance: TypeAlias = Callable[[int], None]
"""Told how many messages were replayed since the last call."""


class Case(NamedTuple):
    """What a tally is kept for. `budget` None: without one."""

    budget: int | None
    questions: Questions


class FinalContext(NamedTuple):
    """A context in which probes were looked for. `probe` is the one that was asked, None: all of the session's."""

    session: str
    case: Case
    probe: Probe | None
    context: Context


class Outcome(Measures, frozen=True, kw_only=True):
    """The numbers of one case. `read_amplification` is what the summarizer was given to read, by the tokens of the
    sessions. `cost` is what replaying the file once costs at the prices of the settings: a context and an answer for
    each turn, and `summary_cost` for the summarizer. What concerns the summarizer is shared by the budgets.
    """

    budget: int | None
    questions: Questions
    read_amplification: float | None
    cost: float
    summary_cost: float
    summary_usage: Usage


async def replay_sessions(
    container: Container,
    sessions: Iterable[LabelledSession],
    budgets: Sequence[int | None],
    questions: Questions,
    *,
    user_id: str | None = None,
    advance: Advance = lambda _: None,
    keep: Callable[[FinalContext], None] = lambda _: None,
) -> list[Outcome]:
    """Replay every session once and measure all budgets. The container must be metered and new.

    What is saved is deleted again. `keep` is given every final context as soon as it is there.
    """
    count = TextCount(container.message_counter())
    tallies = {Case(budget, questions): Tally(count) for budget in budgets}
    tokens = 0
    await _warm_up(container)
    for session in sessions:
        if session.messages:
            await _Replay(container, session, tallies, user_id=user_id, keep=keep).run(advance)
            tokens += sum(map(count.of, session.messages))
    settings = container.settings()
    prices = prices_of(settings.prices, summarizer_model=summarizing_model(settings))
    return [_outcome(case, tally, usage_of(container), tokens, prices) for case, tally in tallies.items()]


def _outcome(case: Case, tally: Tally, usage: Usage, tokens: int, prices: tuple[Price, Price]) -> Outcome:
    measures, summary_cost = tally.measures(), cost_of_summaries(usage, prices[1])
    return Outcome(
        **case._asdict(),
        **msgspec.structs.asdict(measures),
        read_amplification=ratio(usage.tokens_read, tokens),
        cost=cost_of_turns(measures.traffic, prices[0]) + summary_cost,
        summary_cost=summary_cost,
        summary_usage=usage,
    )


async def _warm_up(container: Container) -> None:
    """The first load of a process waits for the tokenizer; no later one does."""
    await container.conversation_manager().load_history(f"eval-{uuid.uuid4()}", message=Message.user("?"), query="")


class _Replay:
    """One session, under an id that no other session has."""

    def __init__(
        self,
        container: Container,
        session: LabelledSession,
        tallies: dict[Case, Tally],
        *,
        user_id: str | None,
        keep: Callable[[FinalContext], None],
    ) -> None:
        self._manager = container.conversation_manager()
        self._clock = container.clock()
        self._session = session
        self._session_id = f"eval-{uuid.uuid4()}"
        self._tallies = tallies
        self._user_id = user_id
        self._keep = keep

    async def run(self, advance: Advance) -> None:
        """Replay it, and leave nothing of it in the store, however that ends."""
        try:
            await self._replay(advance)
        finally:
            with anyio.CancelScope(shield=True), contextlib.suppress(SessionNotFoundError):
                await self._manager.delete(self._session_id, user_id=self._user_id)

    async def _replay(self, advance: Advance) -> None:
        numbered = [msgspec.structs.replace(each, seq=seq) for seq, each in enumerate(self._session.messages, start=1)]
        for tally in self._tallies.values():
            tally.begin_session(numbered)
        for turn in split_turns(self._session.messages):
            await self._measure_turn(turn[0])
            await self._manager.save_history(self._session_id, turn, user_id=self._user_id)
            await self._manager.drain()
            self._add_answer(turn)
            advance(len(turn))
        for case, tally in self._tallies.items():
            await self._look_for_probes(case, tally)

    async def _measure_turn(self, first: Message) -> None:
        """The contexts that a turn begins with, if it begins with a user message."""
        if first.role == "user":
            for case, tally in self._tallies.items():
                query = "" if case.questions == "off" else None
                tally.add_turn(*await self._load(case.budget, first, query))

    def _add_answer(self, turn: Sequence[Message]) -> None:
        if turn[0].role == "user":
            for tally in self._tallies.values():
                tally.add_answer(turn)

    async def _look_for_probes(self, case: Case, tally: Tally) -> None:
        if case.questions == "off":
            context, microseconds = await self._load(case.budget, None, "")
            tally.add(context, microseconds)
            self._look_for(self._session.probes, None, context, case, tally)
            if case.budget is not None:  # one token less: a budget for which nothing was laid out yet
                tally.add_anew((await self._load(case.budget - 1, None, ""))[0])
            return
        for probe in self._session.probes:
            query = probe.question if case.questions == "query" else None
            context, microseconds = await self._load(case.budget, Message.user(probe.question), query)
            tally.add(context, microseconds)
            self._look_for([probe], probe, context, case, tally)

    def _look_for(
        self, probes: Sequence[Probe], asked: Probe | None, context: Context, case: Case, tally: Tally
    ) -> None:
        tally.look_for(probes, context, self._session.messages)
        self._keep(FinalContext(self._session.name, case, asked, context))

    async def _load(self, budget: int | None, message: Message | None, query: str | None) -> tuple[Context, int]:
        """A context, and how long it took in microseconds."""
        start = self._clock()
        context = await self._manager.load_history(
            self._session_id, user_id=self._user_id, message=message, budget=budget, query=query
        )
        return context, self._clock() - start
