"""What OpenTelemetry is told: every load, save, summary and recall, and nothing of what was said or by whom."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from dependency_injector import providers
from opentelemetry import trace
from opentelemetry.metrics import _internal
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from reactor_memory import Container, Message, SessionOwnershipError, Settings, ToolCall, open_container, sync
from reactor_memory.errors import IdempotencyConflictError, MissingExtraError, SummarizationError
from reactor_memory.models.ledger import Extraction, Usage
from reactor_memory.testing import ScriptedCondenser, ScriptedSummarizer
from tests.acceptance.scenes import extract, memory, talk

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
ON = Settings(store={"url": "memory://"}, telemetry={"enabled": True})


class Watcher:
    """The providers of this process, and what they are told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._spans = InMemorySpanExporter()
        self._metrics = InMemoryMetricReader(
            preferred_temporality=dict.fromkeys((Counter, Histogram), AggregationTemporality.DELTA)
        )
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        # A process may set its providers once only, and other tests are in the same process
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", tracers)
        monkeypatch.setattr(_internal, "_METER_PROVIDER", MeterProvider([self._metrics]))

    def forget(self) -> None:
        self._spans.clear()
        self._metrics.get_metrics_data()

    def spans(self, name: str = "") -> list[ReadableSpan]:
        found = self._spans.get_finished_spans()
        return [span for span in found if span.name.startswith(f"gen_ai.memory.{name}")]

    def everything(self) -> str:
        """All that would be sent."""
        return "\n".join([*(span.to_json() for span in self.spans()), self._told().to_json()])

    def points(self) -> dict[str, list[tuple[Mapping[str, Any], Any]]]:
        """Attributes and value (of a histogram, its count and sum) of each point, by the name of its metric."""
        data = self._told()
        if data is None:
            return {}
        found = [
            metric for resource in data.resource_metrics for scope in resource.scope_metrics for metric in scope.metrics
        ]
        return {
            metric.name: [
                (dict(point.attributes or {}), getattr(point, "value", None) or (point.count, point.sum))  # type: ignore[union-attr]
                for point in metric.data.data_points
            ]
            for metric in found
        }

    def _told(self) -> Any:
        return self._metrics.get_metrics_data()


@pytest.fixture
def watcher(monkeypatch: pytest.MonkeyPatch) -> Watcher:
    return Watcher(monkeypatch)


def attributes_of(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def found_with_usage(messages: Any) -> Extraction:
    found = extract(messages)
    return Extraction(facts=found.facts, narrative=found.narrative, usage=Usage(tokens_read=70, tokens_written=7))


@asynccontextmanager
async def observed(summarizer: ScriptedSummarizer | None = None) -> AsyncGenerator[Container]:
    summarizer = summarizer or ScriptedSummarizer(default=found_with_usage)
    async with memory(summarizer, telemetry={"enabled": True}) as container:
        yield container


@pytest.mark.parametrize("own", [False, True])
async def test_texts_of_tiers_and_of_chat_memory_are_summaries_too(watcher: Watcher, own: bool) -> None:
    settings: dict[str, Any] = {
        "history": {"strategy": "progressive"},
        "tiers": {"recent_count": 4, "auto_summarize": False},
        "chat_memory": {"strategy": "summarize", "summarize_every_n": 4}
        | ({"summarizer": "extractive"} if own else {}),
        "telemetry": {"enabled": True},
    }
    async with memory(ScriptedCondenser(), summary={"enabled": False}, **settings) as container:
        await container.conversation_manager().save_history("tiers", talk(12), user_id="u")
        await container.tiers().summarize("tiers", user_id="u")
        await container.chat_memory().add_messages("chat", talk(4), user_id="u")
    spans = [attributes_of(span) for span in watcher.spans("summarize")]
    assert [(each["gen_ai.conversation.id"], each["gen_ai.memory.messages"]) for each in spans] == [
        ("tiers", 8),
        ("chat", 4),
    ]
    assert spans[0]["gen_ai.usage.input_tokens"] == 10
    told = watcher.everything()
    assert "A-00" not in told
    assert '"u"' not in told
    assert "gen_ai.memory.summary.tokens" in told


async def test_a_turn_is_a_load_and_two_saves(watcher: Watcher) -> None:
    """Of the question before the model is asked, and of the answer."""
    async with observed() as container:
        manager = container.conversation_manager()
        await manager.save_history("s", talk(2), user_id="u")
        watcher.forget()
        async with manager.turn("s", Message.user("and now"), user_id="u") as turn:
            turn.answer("this")
        tokens = turn.context.report.total_tokens
    load, *saves = watcher.spans()
    assert [each.name for each in (load, *saves)] == ["gen_ai.memory.load", *["gen_ai.memory.save"] * 2]
    assert attributes_of(load) == {
        "gen_ai.operation.name": "load_memory",
        "gen_ai.conversation.id": "s",
        "gen_ai.memory.strategy": "take_last",
        "gen_ai.memory.freshness": "none",
        "gen_ai.memory.messages": 2,
    }
    saved = [attributes_of(save) for save in saves]
    assert [(each["gen_ai.memory.messages"], each["gen_ai.memory.replayed"]) for each in saved] == [(1, False)] * 2
    points = watcher.points()
    names = {"gen_ai.operation.name": "load_memory"}, {"gen_ai.operation.name": "save_memory"}
    assert points["gen_ai.memory.operations"] == [(names[0], 1), (names[1], 2)]
    assert [name for name, _ in points["gen_ai.memory.operation.duration"]] == [*names]
    assert points["gen_ai.memory.context.tokens"] == [({}, (1, tokens))]
    assert points["gen_ai.memory.saved.messages"] == [({}, 2)]
    assert points["gen_ai.memory.saved.tokens"] == [({}, sum(each["gen_ai.memory.tokens"] for each in saved))]


async def test_every_context_that_is_given_out_counts_once(watcher: Watcher) -> None:
    async with observed() as container:
        manager = container.conversation_manager()
        given = [
            await manager.load_history("s", message=Message.user("hi")),
            await manager.load_history("s", history=[Message.user("hello there")]),
        ]
    total = sum(context.report.total_tokens for context in given)
    assert watcher.points()["gen_ai.memory.context.tokens"] == [({}, (2, total))]


async def test_a_repeated_save_stores_nothing(watcher: Watcher) -> None:
    async with observed() as container:
        manager = container.conversation_manager()
        for _ in range(2):
            await manager.save_history("s", talk(2), idempotency_key="k")
    assert [attributes_of(span)["gen_ai.memory.replayed"] for span in watcher.spans("save")] == [False, True]
    assert watcher.points()["gen_ai.memory.saved.messages"] == [({}, 2)]


async def test_summaries_say_what_they_cost(watcher: Watcher) -> None:
    async with observed() as container:
        manager = container.conversation_manager()
        await manager.save_history("s", talk(40))
        await manager.drain()
    spans = watcher.spans("summarize")
    assert len(spans) > 1
    for span in spans:
        attributes = attributes_of(span)
        assert (attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]) == (70, 7)
        assert attributes["gen_ai.memory.messages"] >= attributes["gen_ai.memory.facts"] > 0
    assert watcher.points()["gen_ai.memory.summary.tokens"] == [
        ({"gen_ai.token.type": "input"}, 70 * len(spans)),
        ({"gen_ai.token.type": "output"}, 7 * len(spans)),
    ]


async def test_recall_is_part_of_its_load(watcher: Watcher) -> None:
    async with observed() as container:
        manager = container.conversation_manager()
        await manager.save_history("s", talk(60))
        await manager.drain()
        watcher.forget()
        context = await manager.load_history("s", message=Message.user("hm"), query="A-0003", budget=300)
        assert context.report.total_tokens > 0
    (recall,), (load,) = watcher.spans("recall"), watcher.spans("load")
    assert recall.parent == load.context
    recalled = attributes_of(recall)["gen_ai.memory.passages"]
    assert recalled > 0
    points = watcher.points()
    assert points["gen_ai.memory.recalled.passages"] == [({}, recalled)]
    assert points["gen_ai.memory.context.tokens"] == [({}, (1, context.report.total_tokens))]


async def test_of_errors_only_the_type_is_recorded(watcher: Watcher) -> None:
    async with observed() as container:
        manager = container.conversation_manager()
        await manager.save_history("s", talk(2), user_id="u")
        watcher.forget()
        with pytest.raises(SessionOwnershipError):
            await manager.load_history("s", user_id="other")
    (span,) = watcher.spans()
    assert attributes_of(span)["error.type"] == "SessionOwnershipError"
    assert (span.status.status_code, span.status.description, span.events) == (StatusCode.ERROR, None, ())
    name = {"gen_ai.operation.name": "load_memory", "error.type": "SessionOwnershipError"}
    assert watcher.points()["gen_ai.memory.operations"] == [(name, 1)]


SECRETS = ("secret-text", "secret-user", "secret-value", "secret-key", "secret-query", "secret-agent", "secret-call")


async def test_nothing_of_the_content_and_no_user_is_recorded(watcher: Watcher) -> None:
    """Texts, arguments, results, names, values of facts, keys, queries and users, also where something fails."""

    def fail(messages: Any) -> Extraction:
        raise SummarizationError("malformed", f"the answer was {messages[0].content}")

    summarizer = ScriptedSummarizer([found_with_usage, fail], default=found_with_usage)
    async with observed(summarizer) as container:
        manager = container.conversation_manager()
        call = ToolCall(id="secret-call", name="secret-call", arguments={"secret-key": "secret-value"})
        batch = [
            Message.user("secret-text", name="secret-user", author_id="secret-user", metadata={"secret-key": 1}),
            Message.assistant("secret-text", tool_calls=[call]),
            Message.tool("secret-value", tool_call_id="secret-call"),
            Message.assistant("my order number is secret-value"),
        ]
        for number in range(12):
            key = f"secret-key {number}"
            await manager.save_history(
                "s", batch, user_id="secret-user", idempotency_key=key, agent_name="secret-agent"
            )
        with pytest.raises(IdempotencyConflictError):
            await manager.save_history("s", batch[:1], user_id="secret-user", idempotency_key="secret-key 1")
        await manager.drain()
        ask = Message.user("secret-text secret-value?")
        await manager.load_history("s", user_id="secret-user", message=ask, query="secret-query", system="secret-text")
        with pytest.raises(SessionOwnershipError):
            await manager.load_history("s", user_id="secret-user-2")
        with pytest.raises(ValueError, match="secret-text"):
            async with manager.turn("s", ask, user_id="secret-user"):
                raise ValueError("secret-text")
    for operation in ("load", "save", "summarize", "recall"):
        assert watcher.spans(operation)
    assert any(span.status.status_code is StatusCode.ERROR for span in watcher.spans("summarize"))
    told = watcher.everything()
    assert "gen_ai.memory.operations" in told
    assert [secret for secret in SECRETS if secret in told] == []


def test_synchronous_code_is_observed_in_its_own_span(watcher: Watcher) -> None:
    tracer = trace.get_tracer("script")
    with sync.open_memory(ON) as memory, tracer.start_as_current_span("script") as script:
        memory.save_history("s", talk(2))
    (span,) = watcher.spans("save")
    assert span.parent is not None
    assert span.parent.span_id == script.get_span_context().span_id


async def test_it_is_off_unless_it_is_switched_on(watcher: Watcher) -> None:
    async with memory(ScriptedSummarizer()) as container:
        await container.conversation_manager().save_history("s", talk(2))
    assert watcher.spans() == []
    assert watcher.points() == {}


@pytest.mark.slow
def test_nothing_is_imported_while_it_is_off() -> None:
    script = (
        "import asyncio, sys\n"
        "from reactor_memory import Message, Settings, open_container\n"
        "async def main():\n"
        "    async with open_container(Settings(store={'url': 'memory://'})) as container:\n"
        "        await container.conversation_manager().save_history('s', [Message.user('hi')])\n"
        "asyncio.run(main())\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


async def test_an_overridden_part_stays_overridden() -> None:
    loader = object()

    def configure(container: Container) -> None:
        container.context_loader.override(providers.Object(loader))  # pyright: ignore[reportUnknownMemberType]

    async with open_container(ON, configure=configure) as made:
        assert made.context_loader() is loader


async def test_without_the_package_the_setting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, "reactor_memory.wiring.telemetry", raising=False)
    monkeypatch.delattr("reactor_memory.wiring.telemetry", raising=False)
    with pytest.raises(MissingExtraError, match=r"telemetry.enabled: needs the package opentelemetry-api.*\[otel\]"):
        async with open_container(ON):
            pass
