"""Replays on a real database: the same input gives the same bytes, however fast the background work is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from dependency_injector import providers

from reactor_memory.errors import SummarizationError
from reactor_memory.evaluation import rolling
from reactor_memory.evaluation.delays import delay
from reactor_memory.evaluation.metering import meter
from reactor_memory.evaluation.probes import Probe
from reactor_memory.evaluation.session_replay import FinalContext, Outcome, Questions, replay_sessions
from reactor_memory.evaluation.sessions import LabelledSession
from reactor_memory.evaluation.strategies import ROLLING_SHARE, STRATEGIES, replays_of, sections_of
from reactor_memory.features.facts.summarizers.extractive import ExtractiveSummarizer
from reactor_memory.models import Message
from reactor_memory.models.ledger import NOTHING_KNOWN, Extraction, Known
from reactor_memory.settings.sections import Price, PriceSettings
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.container import Container
from reactor_memory.wiring.opening import open_container

pytestmark = pytest.mark.anyio

BUDGETS = (150, 600)
SESSION = LabelledSession(
    name="orders",
    messages=tuple(
        message
        for number in range(24)
        for message in (
            Message.user(f"Please book table {number + 100} for {number + 2} people on my name."),
            Message.assistant(f"Table {number + 100} is booked for {number + 2} people, your code is K{number}Z."),
        )
    ),
    probes=tuple(
        Probe(question=f"What is the code of table {n + 100}?", anchor=(f"table {n + 100}",), value=(f"K{n}Z",))
        for n in (0, 12, 23)
    ),
)


@pytest.fixture
def settings_of(tmp_path: Path) -> Callable[[str], Settings]:
    url = f"sqlite:///{tmp_path}/eval.db"
    return lambda strategy: Settings(store={"url": url}, **sections_of(strategy, BUDGETS))


async def replayed(
    settings: Settings,
    questions: Questions,
    *,
    budgets: Sequence[int] = BUDGETS,
    seed: int | None = None,
    kept: list[FinalContext] | None = None,
) -> list[Outcome]:
    def configure(container: Container) -> None:
        if settings.history.strategy == "auto":
            rolling.install(container)
        if seed is not None:
            delay(container, seed)
        meter(container)

    keep = [] if kept is None else kept
    async with open_container(settings, configure=configure) as container:
        outcomes = await replay_sessions(container, [SESSION, SESSION], budgets, questions, keep=keep.append)
        assert (await container.conversation_manager().list_sessions()).sessions == ()
    return outcomes


@pytest.mark.slow  # `eval --determinism` replays one session twice in the fast suite
@pytest.mark.parametrize("strategy", ["hierarchical", "full", "rolling"])
@pytest.mark.parametrize("questions", ["query", "message", "off"])
async def test_delays_in_the_background_change_no_byte(
    settings_of: Callable[[str], Settings], questions: Questions, strategy: str
) -> None:
    settings = settings_of(strategy)
    budgets = BUDGETS[: len(replays_of(strategy, BUDGETS)[0])]
    quick = await replayed(settings, questions, budgets=budgets)
    slow = await replayed(settings, questions, budgets=budgets, seed=7)
    assert [outcome.digest for outcome in quick] == [outcome.digest for outcome in slow]
    assert len({outcome.digest for outcome in quick}) == len(budgets)
    assert {outcome.violations for outcome in quick} == {0}


async def test_rolling_summary_stays_in_its_share_and_leaves_no_hole(settings_of: Callable[[str], Settings]) -> None:
    kept: list[FinalContext] = []
    budget = 600
    settings = Settings(store=settings_of("rolling").store, **sections_of("rolling", [budget]))
    (outcome,) = await replayed(settings, "off", budgets=[budget], kept=kept)
    assert (outcome.violations, outcome.behind) == (0, 0)
    assert outcome.read_amplification is not None
    assert outcome.read_amplification > 2, "the summary so far is read again each time"
    for final in kept:
        report = final.context.report
        assert report.strategy == "rolling"
        assert report.freshness == "fresh"
        assert report.unread == ()
        assert report.window_start_seq == report.covered_seq + 1
        assert 0 < report.tokens["narrative"] <= budget * ROLLING_SHARE + rolling.FRAME_TOKENS
        assert report.tokens["window"] > 0


async def test_rolling_summary_is_written_by_the_summarizer_of_the_settings(
    settings_of: Callable[[str], Settings],
) -> None:
    read: list[Sequence[Message]] = []

    class Telling(ExtractiveSummarizer):
        async def summarize(self, messages: Sequence[Message], *, known: Known = NOTHING_KNOWN) -> Extraction:
            read.append(messages)
            return Extraction(narrative=f"They spoke {len(read)} times. " * 100)

    def configure(container: Container) -> None:
        rolling.install(container)
        container.summarizer.override(providers.Object(Telling()))
        meter(container)

    kept: list[FinalContext] = []
    async with open_container(settings_of("rolling"), configure=configure) as container:
        (outcome,) = await replay_sessions(container, [SESSION], BUDGETS[:1], "off", keep=kept.append)
    assert [messages[0].role for messages in read] == ["user", *["summary"] * (len(read) - 1)]
    assert read[1][0].content.startswith("They spoke 1 times.")
    assert f"They spoke {len(read)} times." in kept[0].context.messages[0].content
    assert outcome.violations == 0
    assert {len(line) <= 400 for line in kept[0].context.messages[0].content.splitlines()} == {True}


async def test_the_seeds_way_reads_everything_again_after_every_save(settings_of: Callable[[str], Settings]) -> None:
    outcomes = await replayed(settings_of("full"), "off")
    assert [outcome.violations + outcome.behind for outcome in outcomes] == [0, 0]
    for outcome in outcomes:
        assert outcome.read_amplification is not None
        assert outcome.read_amplification > 10


async def test_a_replay_is_priced_by_the_table_of_the_settings(settings_of: Callable[[str], Settings]) -> None:
    settings = settings_of("hierarchical").model_copy(
        update={"prices": PriceSettings(default=Price(cached_input=1, input=10, output=100))}
    )
    for outcome in await replayed(settings, "off"):
        traffic, usage = outcome.traffic, outcome.summary_usage
        cached, fresh = traffic.cached_tokens, traffic.input_tokens - traffic.cached_tokens
        summaries = usage.tokens_read * 10 + usage.tokens_written * 100
        assert min(cached, fresh, traffic.output_tokens, usage.tokens_written) > 0
        assert outcome.summary_cost == pytest.approx(summaries / 1e6)
        assert outcome.cost == pytest.approx((cached + fresh * 10 + traffic.output_tokens * 100 + summaries) / 1e6)


@pytest.mark.postgres
@pytest.mark.slow
async def test_every_database_gives_the_same_bytes(settings_of: Callable[[str], Settings], postgres_dsn: str) -> None:
    here = await replayed(settings_of("hierarchical"), "query")
    for url in (postgres_dsn, "memory://"):
        there = await replayed(Settings(store={"url": url}, **STRATEGIES["hierarchical"]), "query")
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
    outcomes = await replayed(settings_of("hierarchical"), "query", kept=kept)
    assert [outcome.probes for outcome in outcomes] == [6, 6]
    assert len(kept) == 2 * len(BUDGETS) * len(SESSION.probes)
    for final in kept:
        assert final.probe is not None
        assert final.context.messages[-1].content == final.probe.question


async def test_only_the_budget_limits_take_last_and_nothing_full_context(
    settings_of: Callable[[str], Settings],
) -> None:
    kept: list[FinalContext] = []
    await replayed(settings_of("take-last"), "off", kept=kept)
    for final in kept:
        assert final.case.budget is not None
        assert final.case.budget - 40 < final.context.report.total_tokens <= final.case.budget
    async with open_container(settings_of("full-context"), configure=meter) as container:
        (whole,) = await replay_sessions(container, [SESSION], [None], "off", keep=kept.append)
    assert len(kept[-1].context.messages) == len(SESSION.messages)
    assert (whole.budget, whole.survival, whole.violations) == (None, 1, 0)


@pytest.mark.parametrize(("reason", "is_behind"), [("unavailable", True), ("refused", False)])
async def test_a_summarizer_that_fails_shows_unless_another_reads(
    tmp_path: Path, reason: str, *, is_behind: bool
) -> None:
    class Failing(ExtractiveSummarizer):
        async def summarize(self, messages: Sequence[Message], *, known: Known = NOTHING_KNOWN) -> Extraction:
            raise SummarizationError(reason, "does not want to", retryable=False)

    def configure(container: Container) -> None:
        container.summarizer.override(providers.Object(Failing()))
        meter(container)

    settings = Settings(store={"url": f"sqlite:///{tmp_path}/eval.db"}, **STRATEGIES["hierarchical"])
    async with open_container(settings, configure=configure) as container:
        (outcome,) = await replay_sessions(container, [SESSION], [200], "off")
    assert (outcome.behind > 0) is is_behind
    assert outcome.violations == 0


@pytest.mark.parametrize("fails", ["at the end", "before the first save"])
async def test_a_replay_that_fails_leaves_nothing(
    settings_of: Callable[[str], Settings], monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    if fails == "before the first save":
        monkeypatch.setattr("reactor_memory.evaluation.tally.Tally.add_turn", fail)
    async with open_container(settings_of("hierarchical"), configure=meter) as container:
        with pytest.raises(ZeroDivisionError):
            await replay_sessions(container, [SESSION], BUDGETS, "off", keep=fail)
        assert (await container.conversation_manager().list_sessions()).sessions == ()


async def test_a_session_without_messages_measures_nothing(settings_of: Callable[[str], Settings]) -> None:
    async with open_container(settings_of("take-last"), configure=meter) as container:
        (empty,) = await replay_sessions(container, [LabelledSession(name="s", messages=())], [100], "off")
    assert (empty.survival, empty.probes, empty.read_amplification) == (None, 0, None)
