"""How facts and summaries are wired."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from reactor_memory.background.growth_hints import GrowthHints
from reactor_memory.background.kinds import Kind
from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.core.context.strategy import Strategy
from reactor_memory.core.log.summary_store import SqlSummaryStore
from reactor_memory.database.database import Database
from reactor_memory.errors import ConfigurationError, StoreCorruptError
from reactor_memory.models.requests import SUMMARIZE
from reactor_memory.providers.asked_models import (
    ANSWER_SECONDS,
    GEMINI_MODEL,
    key_of,
    named_model,
    new_breaker,
    of_model,
)
from reactor_memory.providers.breaker import CircuitBreaker
from reactor_memory.tokens.wiring import counter_of

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock, LedgerFold, MessageStore, Redactor, Summarizer, SummaryStore
    from reactor_memory.features.facts.amendments import NoAmendments, SqlAmendments
    from reactor_memory.features.facts.extractor import Extractor
    from reactor_memory.features.facts.facts import Facts
    from reactor_memory.features.facts.fold import SummaryFold
    from reactor_memory.features.facts.jobs import FullJob, LedgerJob, SummaryJob
    from reactor_memory.features.facts.mending import Step
    from reactor_memory.features.facts.provider_guard import ProviderGuard
    from reactor_memory.features.facts.spending_caps import SpendingCaps
    from reactor_memory.features.facts.summarizers.language_model import ModelClient
    from reactor_memory.settings.sections import ModelSettings
    from reactor_memory.settings.settings import Settings


def extractive_summarizer(settings: Settings) -> Summarizer:
    from reactor_memory.features.facts.summarizers.extractive import ExtractiveSummarizer

    return ExtractiveSummarizer(settings.summary.tool_roles)


def gemini_summarizer(settings: Settings) -> Summarizer:
    from reactor_memory.providers.gemini_client import GeminiClient

    asked = settings.model(settings.summary.provider)
    model = asked.model or GEMINI_MODEL
    with of_model(settings.summary.provider):
        client = GeminiClient(model, key_of(asked) or "", **_asking(asked))
    return _summarizer_that_asks(client, f"gemini:{model}", settings)


def openai_summarizer(settings: Settings) -> Summarizer:
    from reactor_memory.providers.openai_client import OpenAIClient

    asked = settings.model(settings.summary.provider)
    with of_model(settings.summary.provider):
        model = named_model(asked)
        client = OpenAIClient(model, key_of(asked), response_format=asked.response_format, **_asking(asked))
    return _summarizer_that_asks(client, f"openai:{model}", settings)


def _asking(asked: ModelSettings) -> dict[str, Any]:
    return {
        "base_url": asked.base_url,
        "timeout_seconds": asked.timeout_seconds or ANSWER_SECONDS,
        "max_output_tokens": asked.max_output_tokens,
        "service_tier": asked.service_tier,
    }


def _summarizer_that_asks(client: ModelClient, name: str, settings: Settings) -> Summarizer:
    """In ``full`` mode the model reads the messages themselves and gives all facts anew."""
    from reactor_memory.features.facts.summarizers.language_model import LanguageModelSummarizer

    model = LanguageModelSummarizer(
        name,
        client,
        counter=counter_of(settings),
        max_narrative_tokens=settings.summary.max_narrative_tokens,
        max_input_tokens=settings.model(settings.summary.provider).max_input_tokens,
    )
    if settings.summary.mode == "full":
        from reactor_memory.features.facts.summarizers.supplemented import SupplementedSummarizer

        return SupplementedSummarizer(model, extractive_summarizer(settings))
    from reactor_memory.features.facts.summarizers.editing import EditingSummarizer

    return EditingSummarizer(model, extractive_summarizer(settings))


def hierarchical_strategy(settings: Settings) -> Strategy:
    if not settings.summary.enabled:
        raise ConfigurationError("history.strategy", "hierarchical needs summary.enabled: true")
    from reactor_memory.features.facts.hierarchical import Hierarchical

    return Hierarchical()


def spending_caps_of(database: Database, clock: Clock, settings: Settings) -> SpendingCaps:
    from reactor_memory.features.facts.spending_caps import SpendingCaps

    summary = settings.summary
    return SpendingCaps(
        database=database,
        clock=clock,
        max_tokens_per_session=summary.max_tokens_per_session,
        max_tokens_per_day=summary.max_tokens_per_day,
        max_tokens_of_user=settings.quotas.max_summary_tokens_per_day,
    )


def provider_guard_of(
    redactor: Redactor, caps: SpendingCaps, breaker: CircuitBreaker, settings: Settings
) -> ProviderGuard:
    from reactor_memory.features.facts.provider_guard import ProviderGuard

    asked = settings.model(settings.summary.provider)
    seconds = asked.timeout_seconds or ANSWER_SECONDS
    return ProviderGuard(redactor=redactor, caps=caps, breaker=breaker, timeout_seconds=seconds)


def own_guard_of(redactor: Redactor, caps: SpendingCaps, settings: Settings) -> ProviderGuard:
    """The guard of a provider that is asked by nobody else, so that only its own failures count."""
    return provider_guard_of(redactor, caps, new_breaker(), settings.asking(settings.chat_memory.summarizer))


def fold_of(counter: MessageCounter, settings: Settings) -> SummaryFold:
    from reactor_memory.features.facts.fold import SummaryFold

    summary = settings.summary
    return SummaryFold(
        max_fact_tokens=summary.max_fact_tokens,
        max_narrative_tokens=summary.max_narrative_tokens,
        count=counter.of_text,
    )


def ledger_job_of(settings: Settings, **parts: Any) -> LedgerJob:
    from reactor_memory.features.facts.jobs import LedgerJob

    return LedgerJob(
        **parts,
        trigger_message_count=settings.summary.trigger_message_count,
        segment_message_count=settings.summary.segment_message_count,
        question_message_count=question_message_count(settings),
        lease_microseconds=settings.background.lease_microseconds,
    )


def question_message_count(settings: Settings) -> int:
    """How many messages a model is asked about together. 0: the offline reader, or the summarizer of a plug-in, reads
    each segment as it comes.
    """
    summary = settings.summary
    is_model = summary.provider in ("gemini", "openai", *settings.models)
    return summary.question_message_count if is_model else 0


def full_job_of(settings: Settings, **parts: Any) -> FullJob:
    from reactor_memory.features.facts.jobs import FullJob

    return FullJob(
        **parts,
        trigger_message_count=settings.summary.trigger_message_count,
        recent_message_count=settings.summary.recent_message_count,
    )


def sql_amendments(*args: Any, **parts: Any) -> SqlAmendments:
    from reactor_memory.features.facts.amendments import SqlAmendments

    return SqlAmendments(*args, **parts)


def no_amendments(*args: Any, **parts: Any) -> NoAmendments:
    from reactor_memory.features.facts.amendments import NoAmendments

    return NoAmendments(*args, **parts)


def extractor(*args: Any, **parts: Any) -> Extractor:
    from reactor_memory.features.facts.extractor import Extractor

    return Extractor(*args, **parts)


def facts(*args: Any, **parts: Any) -> Facts:
    from reactor_memory.features.facts.facts import Facts

    return Facts(*args, **parts)


def sql_summary_store(database: Database) -> SqlSummaryStore:
    """What is made of the log in this database."""
    return SqlSummaryStore(database, _operations)


def _operations() -> ModuleType:
    from reactor_memory.features.facts import operations

    return operations


def refold_of(fold: Callable[[], SummaryFold]) -> LedgerFold:
    """The fold of a whole ledger, made when something has to be folded."""
    return lambda ledger: fold().whole(ledger)


def summary_work(
    settings: Settings,
    job: Callable[[], SummaryJob],
    *,
    in_database: bool,
    summaries: SummaryStore,
    messages: MessageStore,
    database: Database,
    clock: Clock,
) -> Kind | None:
    """None where no summaries are made. What does the work is made when there is some."""
    summary = settings.summary
    if not summary.enabled:
        return None
    summarize: Step = lambda lease: job().step(lease)  # noqa: E731
    if in_database:
        from reactor_memory.features.facts.mending import mended

        summarize = mended(summarize, messages=messages, database=database, clock=clock)
    every = summary.segment_message_count if summary.mode == "ledger" else 1
    hints = GrowthHints(summarize, covered_in(summaries), trigger=summary.trigger_message_count, every=every)
    return Kind(
        name=SUMMARIZE,
        step=hints.step,
        reached=hints.reached,
        wants=hints.wants,
        forget=hints.forget,
        concurrency=settings.background.max_concurrent_sessions,
    )


def covered_in(summaries: SummaryStore) -> Callable[[str], Awaitable[int]]:
    """How far the summary of a session covers it; not at all if it cannot be read, and has to be made again."""

    async def covered(session_id: str) -> int:
        try:
            head = await summaries.get_summary_head(session_id)
        except StoreCorruptError:
            return 0
        return head.covered_seq if head else 0

    return covered
