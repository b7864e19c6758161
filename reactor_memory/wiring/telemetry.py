"""OpenTelemetry: spans and metrics of loads, saves, summaries and recall, for whatever providers the process set up.

With ``telemetry.enabled`` the container makes these parts instead of those that they extend; else nothing of this is
imported. Nothing of the content is recorded, and no user: only numbers, names of parts, the id of the session (on
spans), and of errors the name of the type. Names are those of the semantic conventions for generative AI where these
have one.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import Any

from dependency_injector import providers
from opentelemetry import metrics, trace
from opentelemetry.trace import Span, StatusCode

from reactor_memory.core.context.context import Context
from reactor_memory.core.context.draft import Draft
from reactor_memory.core.load_requests import LoadRequest
from reactor_memory.core.loading import ContextLoader, Loaded
from reactor_memory.core.manager import ConversationManager
from reactor_memory.core.sources import Views
from reactor_memory.features.facts.extractor import Extracted, Extractor
from reactor_memory.features.facts.talk import Talk
from reactor_memory.features.recall.question import Question
from reactor_memory.features.recall.recaller import Recaller
from reactor_memory.features.tiers.plan import Writing
from reactor_memory.features.tiers.writer import TierWriter
from reactor_memory.models import Message, Session
from reactor_memory.models.ledger import NOTHING_KNOWN, Condensed, Known, Usage
from reactor_memory.models.requests import Appended, AppendRequest
from reactor_memory.version import __version__
from reactor_memory.wiring.container import Container

CONVERSATION_ID = "gen_ai.conversation.id"
OPERATION_NAME = "gen_ai.operation.name"
TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105 - the name of an attribute
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
ERROR_TYPE = "error.type"

_CONTEXT_TOKENS = [50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000]
_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]


class Telemetry:
    """The instruments, from the providers that are set when it is made or later."""

    def __init__(self) -> None:
        meter = metrics.get_meter("reactor_memory", __version__)
        self._tracer = trace.get_tracer("reactor_memory", __version__)
        self._operations = meter.create_counter(
            "gen_ai.memory.operations", "{operation}", "Loads, saves, summaries and recalls, failed ones too."
        )
        self._duration = meter.create_histogram(
            "gen_ai.memory.operation.duration", "s", "How long they took.", explicit_bucket_boundaries_advisory=_SECONDS
        )
        self.context_tokens = meter.create_histogram(
            "gen_ai.memory.context.tokens",
            "{token}",
            "Tokens of each context that was given out.",
            explicit_bucket_boundaries_advisory=_CONTEXT_TOKENS,
        )
        self.saved_messages = meter.create_counter("gen_ai.memory.saved.messages", "{message}", "Messages stored.")
        self.saved_tokens = meter.create_counter("gen_ai.memory.saved.tokens", "{token}", "Tokens of these.")
        self._summary_tokens = meter.create_counter(
            "gen_ai.memory.summary.tokens", "{token}", "Tokens that summarizers read (input) and wrote (output)."
        )
        self.recalled_passages = meter.create_counter(
            "gen_ai.memory.recalled.passages", "{passage}", "Passages that came back."
        )

    @contextmanager
    def operation(self, name: str, session_id: str) -> Generator[Span]:
        """A span, and a count, of what is done in the block."""
        attributes: dict[str, str] = {OPERATION_NAME: f"{name}_memory"}
        started = perf_counter()
        with self._tracer.start_as_current_span(
            f"gen_ai.memory.{name}",
            attributes={**attributes, CONVERSATION_ID: session_id},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except BaseException as error:
                attributes[ERROR_TYPE] = type(error).__name__
                span.set_attribute(ERROR_TYPE, type(error).__name__)
                span.set_status(StatusCode.ERROR)
                raise
            finally:
                self._operations.add(1, attributes)
                self._duration.record(perf_counter() - started, attributes)

    def used(self, span: Span, usage: Usage) -> None:
        """What a summarizer read and wrote."""
        span.set_attribute(INPUT_TOKENS, usage.tokens_read)
        span.set_attribute(OUTPUT_TOKENS, usage.tokens_written)
        self._summary_tokens.add(usage.tokens_read, {TOKEN_TYPE: "input"})
        self._summary_tokens.add(usage.tokens_written, {TOKEN_TYPE: "output"})


class _Observed:
    """A part that tells `Telemetry` what it does."""

    def __init__(self, *args: Any, telemetry: Telemetry, **parts: Any) -> None:
        super().__init__(*args, **parts)
        self._telemetry = telemetry


class ObservedManager(_Observed, ConversationManager):
    """Saves, observed."""

    async def save_batch(self, batch: AppendRequest) -> Appended:
        with self._telemetry.operation("save", batch.session_id) as span:
            appended = await super().save_batch(batch)
            tokens = sum(message.token_count or 0 for message in batch.messages)
            span.set_attribute("gen_ai.memory.messages", len(batch.messages))
            span.set_attribute("gen_ai.memory.tokens", tokens)
            span.set_attribute("gen_ai.memory.replayed", appended.replayed)
        if not appended.replayed:
            self._telemetry.saved_messages.add(len(batch.messages))
            self._telemetry.saved_tokens.add(tokens)
        return appended


class ObservedLoader(_Observed, ContextLoader):
    """Loads, and the contexts that are made of them, observed."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        self._loading: ContextVar[bool] = ContextVar("loading", default=False)

    async def load(self, request: LoadRequest, *, keep_layout: bool = True) -> Loaded:
        token = self._loading.set(True)
        try:
            with self._telemetry.operation("load", request.session_id) as span:
                loaded = await super().load(request, keep_layout=keep_layout)
                draft = loaded.draft
                span.set_attribute("gen_ai.memory.strategy", draft.strategy)
                span.set_attribute("gen_ai.memory.freshness", draft.freshness)
                span.set_attribute("gen_ai.memory.messages", len(draft.window))
                return loaded
        finally:
            self._loading.reset(token)

    async def from_history(self, request: LoadRequest, history: Sequence[Message]) -> Context:
        return self._given_out(await super().from_history(request, history))

    async def context(self, loaded: Loaded, current: Sequence[Message]) -> Context:
        context = await super().context(loaded, current)
        return context if loaded.first is None else self._given_out(context)

    def assemble(self, loaded: Loaded, current: Sequence[Message]) -> Context:
        context = super().assemble(loaded, current)
        return context if self._loading.get() else self._given_out(context)

    def _given_out(self, context: Context) -> Context:
        self._telemetry.context_tokens.record(context.report.total_tokens)
        return context


class ObservedRecaller(_Observed, Recaller):
    """Recall, observed."""

    async def recall(
        self, question: Question, session: Session, user_id: str | None, draft: Draft, views: Views
    ) -> Draft:
        with self._telemetry.operation("recall", session.session_id) as span:
            recalled = await super().recall(question, session, user_id, draft, views)
            passages = sum(len(block.lines) for block in recalled.blocks_at("last"))
            span.set_attribute("gen_ai.memory.passages", passages)
        self._telemetry.recalled_passages.add(passages)
        return recalled


class ObservedExtractor(_Observed, Extractor):
    """Calls of the summarizer, observed."""

    async def extract(
        self,
        session_id: str,
        talk: Talk,
        known: Known = NOTHING_KNOWN,
        *,
        failures: int = 0,
        is_anew: bool = False,
    ) -> Extracted:
        with self._telemetry.operation("summarize", session_id) as span:
            extracted = await super().extract(session_id, talk, known, failures=failures, is_anew=is_anew)
            span.set_attribute("gen_ai.memory.summarizer", extracted.summarizer)
            span.set_attribute("gen_ai.memory.messages", talk.own_count)
            span.set_attribute("gen_ai.memory.facts", len(extracted.extraction.facts))
            self._telemetry.used(span, extracted.extraction.usage)
        return extracted


class ObservedTierWriter(_Observed, TierWriter):
    """The texts of tiers and of the chat memory, observed. What questions cost before one failed is not counted."""

    async def write(self, session_id: str, writing: Writing) -> Condensed:
        with self._telemetry.operation("summarize", session_id) as span:
            written = await super().write(session_id, writing)
            span.set_attribute("gen_ai.memory.messages", writing.message_count)
            span.set_attribute("gen_ai.memory.tier", writing.kind)
            self._telemetry.used(span, written.usage)
        return written


def observe(container: Container) -> None:
    """Let parts that are observed take the place of those that they extend. What a caller overrides is not observed."""
    instruments = Telemetry()
    _extend(container.conversation_manager, ObservedManager, telemetry=instruments)
    _extend(container.context_loader, ObservedLoader, telemetry=instruments)
    _extend(container.recaller, ObservedRecaller, telemetry=instruments)
    _extend(container.extractor, ObservedExtractor, telemetry=instruments)
    for writer in (container.tier_writer, container.own_chat_writer):
        _extend(writer, ObservedTierWriter, telemetry=instruments)


def _extend(part: providers.Singleton[Any], extended: type[Any], **arguments: object) -> None:
    """Make `extended` with these arguments, beside those that the part is made with."""
    part.set_provides(extended)
    part.add_kwargs(**arguments)
