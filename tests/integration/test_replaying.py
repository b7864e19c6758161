"""Replays on a real database: the same input gives the same bytes, however fast the background work is."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import pytest
from dependency_injector import providers

from reactor_memory.container import Container, open_memory
from reactor_memory.errors import SummarizationError
from reactor_memory.evaluation.probes import Probe
from reactor_memory.evaluation.reading import meter
from reactor_memory.evaluation.replay import FinalContext, Outcome, Questions, replay_sessions
from reactor_memory.evaluation.sessions import LabelledSession
from reactor_memory.evaluation.strategies import STRATEGIES
from reactor_memory.models import Extraction, Fact, Message
from reactor_memory.settings import Settings
from reactor_memory.summarizers.extractive import ExtractiveSummarizer

pytestmark = pytest.mark.anyio

BUDGETS = (150, 600)
SESSION = LabelledSession(
    name="orders",
    messages=tuple(
        message
        for number in range(40)
        for message in (
            Message.user(f"Please book table {number + 100} for {number + 2} people on my name."),
            Message.assistant(f"Table {number + 100} is booked for {number + 2} people, your code is K{number}Z."),
        )
    ),
    probes=tuple(
        Probe(question=f"What is the code of table {n + 100}?", anchor=(f"table {n + 100}",), value=(f"K{n}Z",))
        for n in (0, 20, 39)
    ),
)


class Dawdling(ExtractiveSummarizer):
    """Takes its time, now more and now less."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = random.Random(seed)

    async def summarize(self, messages: Sequence[Message], *, existing_facts: Sequence[Fact] = ()) -> Extraction:
        await anyio.sleep(self._random.random() / 50)
        return await super().summarize(messages, existing_facts=existing_facts)


@pytest.fixture
def settings_of(tmp_path: Path) -> Callable[[str], Settings]:
    url = f"sqlite:///{tmp_path}/eval.db"
    return lambda strategy: Settings(store={"url": url}, **STRATEGIES[strategy])


async def replayed(
    settings: Settings, questions: Questions, *, seed: int | None = None, kept: list[FinalContext] | None = None
) -> list[Outcome]:
    def configure(container: Container) -> None:
        if seed is not None:
            container.summarizer.override(providers.Object(Dawdling(seed)))
        meter(container)

    keep = [] if kept is None else kept
    async with open_memory(settings, configure=configure) as container:
        outcomes = await replay_sessions(container, [SESSION, SESSION], BUDGETS, questions, keep=keep.append)
        assert (await container.conversation_manager().list_sessions()).sessions == ()
    return outcomes


@pytest.mark.parametrize("questions", ["off", "on"])
async def test_delays_in_the_background_change_no_byte(
    settings_of: Callable[[str], Settings], questions: Questions
) -> None:
    settings = settings_of("hierarchical")
    quick = await replayed(settings, questions)
    slow = await replayed(settings, questions, seed=7)
    assert [outcome.digest for outcome in quick] == [outcome.digest for outcome in slow]
    assert len({outcome.digest for outcome in quick}) == len(BUDGETS)
    assert [outcome.violations for outcome in quick] == [0, 0]


@pytest.mark.postgres
async def test_every_database_gives_the_same_bytes(settings_of: Callable[[str], Settings], postgres_dsn: str) -> None:
    elsewhere = Settings(store={"url": postgres_dsn}, **STRATEGIES["hierarchical"])
    here, there = await replayed(settings_of("hierarchical"), "on"), await replayed(elsewhere, "on")
    assert [outcome.digest for outcome in here] == [outcome.digest for outcome in there]


async def test_every_message_is_read_about_once(settings_of: Callable[[str], Settings]) -> None:
    remembering = await replayed(settings_of("hierarchical"), "off")
    forgetting = await replayed(settings_of("take-last"), "off")
    assert [outcome.read_amplification for outcome in forgetting] == [0, 0]
    for outcome in remembering:
        assert outcome.read_amplification is not None
        assert 0.5 < outcome.read_amplification <= 1


async def test_with_questions_every_probe_has_a_context_of_its_own(settings_of: Callable[[str], Settings]) -> None:
    kept: list[FinalContext] = []
    outcomes = await replayed(settings_of("hierarchical"), "on", kept=kept)
    assert [outcome.probes for outcome in outcomes] == [6, 6]
    assert len(kept) == 2 * len(BUDGETS) * len(SESSION.probes)
    for final in kept:
        assert final.probe is not None
        assert final.context.messages[-1].content == final.probe.question


async def test_take_last_is_limited_by_the_budget_alone_and_full_context_by_nothing(
    settings_of: Callable[[str], Settings],
) -> None:
    kept: list[FinalContext] = []
    await replayed(settings_of("take-last"), "off", kept=kept)
    for final in kept:
        assert final.case.budget is not None
        assert final.case.budget - 40 < final.context.report.total_tokens <= final.case.budget
    async with open_memory(settings_of("full-context"), configure=meter) as container:
        (whole,) = await replay_sessions(container, [SESSION], [None], "off", keep=kept.append)
    assert len(kept[-1].context.messages) == len(SESSION.messages)
    assert (whole.budget, whole.survival, whole.violations) == (None, 1, 0)


async def test_a_summarizer_that_fails_shows(tmp_path: Path) -> None:
    class Failing(ExtractiveSummarizer):
        async def summarize(self, messages: Sequence[Message], *, existing_facts: Sequence[Fact] = ()) -> Extraction:
            raise SummarizationError("refused", "does not want to", retryable=False)

    def configure(container: Container) -> None:
        container.summarizer.override(providers.Object(Failing()))
        meter(container)

    settings = Settings(store={"url": f"sqlite:///{tmp_path}/eval.db"}, **STRATEGIES["hierarchical"])
    async with open_memory(settings, configure=configure) as container:
        (outcome,) = await replay_sessions(container, [SESSION], [200], "off")
    assert outcome.behind > 0
    assert outcome.violations == 0


@pytest.mark.parametrize("fails", ["at the end", "before the first save"])
async def test_a_replay_that_fails_leaves_nothing(
    settings_of: Callable[[str], Settings], monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    if fails == "before the first save":
        monkeypatch.setattr("reactor_memory.evaluation.tally.Tally.add_turn", fail)
    async with open_memory(settings_of("hierarchical"), configure=meter) as container:
        with pytest.raises(ZeroDivisionError):
            await replay_sessions(container, [SESSION], BUDGETS, "off", keep=fail)
        assert (await container.conversation_manager().list_sessions()).sessions == ()


async def test_a_session_without_messages_measures_nothing(settings_of: Callable[[str], Settings]) -> None:
    async with open_memory(settings_of("take-last"), configure=meter) as container:
        (empty,) = await replay_sessions(container, [LabelledSession(name="s", messages=())], [100], "off")
    assert (empty.survival, empty.probes, empty.read_amplification) == (None, 0, None)
