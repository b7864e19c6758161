"""How the chat is wired."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reactor_memory.features.tiers.wiring import is_progressive
from reactor_memory.providers.asked_models import ANSWER_SECONDS, GEMINI_MODEL, key_of, named_model, of_model

if TYPE_CHECKING:
    from reactor_memory.core.ports import BackgroundWork, SummaryStore
    from reactor_memory.database.database import Database
    from reactor_memory.features.chat.chat_model import ChatModel
    from reactor_memory.features.chat.conversation import Chat
    from reactor_memory.features.chat.hierarchical_summaries import ChatSummaries, HierarchyOptions
    from reactor_memory.features.facts.facts import Facts
    from reactor_memory.features.pins.pins import Pins
    from reactor_memory.features.tiers.progressive_tiers import ProgressiveTiers
    from reactor_memory.settings.settings import Settings


def echo_chat_model(settings: Settings) -> ChatModel:
    from reactor_memory.features.chat.echo import EchoModel

    return EchoModel()


def gemini_chat_model(settings: Settings) -> ChatModel:
    from reactor_memory.features.chat.gemini import GeminiChatModel

    name = chat_model_name(settings)
    asked = settings.model(name)
    with of_model(name):
        return GeminiChatModel(
            asked.model or GEMINI_MODEL,
            key_of(asked),
            base_url=asked.base_url,
            timeout_seconds=asked.timeout_seconds or ANSWER_SECONDS,
        )


def openai_chat_model(settings: Settings) -> ChatModel:
    from reactor_memory.features.chat.openai import OpenAIChatModel

    name = chat_model_name(settings)
    asked = settings.model(name)
    with of_model(name):
        return OpenAIChatModel(
            named_model(asked),
            key_of(asked),
            base_url=asked.base_url,
            timeout_seconds=asked.timeout_seconds or ANSWER_SECONDS,
        )


def chat_model_name(settings: Settings) -> str:
    return settings.summary.provider if settings.chat.provider == "auto" else settings.chat.provider


def automatic_chat_model(settings: Settings) -> ChatModel:
    """The model of the summaries, if the settings say enough of it, else nobody: nothing leaves the machine."""
    asked = settings.model(settings.summary.provider)
    if asked.provider == "gemini" and asked.api_key:
        return gemini_chat_model(settings)
    if asked.provider == "openai" and asked.model and (asked.api_key or asked.base_url):
        return openai_chat_model(settings)
    return echo_chat_model(settings)


def summaries_of(
    settings: Settings,
    *,
    database: Callable[[], Database],
    tiers: Callable[[], ProgressiveTiers],
    facts: Facts,
    pins: Pins,
    summaries: SummaryStore,
    background: BackgroundWork,
) -> ChatSummaries:
    """What the commands of a chat say about summaries."""
    if is_progressive(settings):
        from reactor_memory.features.chat.tiers import TierSummaries

        return TierSummaries(tiers=tiers(), database=database())
    from reactor_memory.features.chat.hierarchical_summaries import HierarchicalSummaries

    return HierarchicalSummaries(
        facts=facts, pins=pins, summaries=summaries, background=background, options=_hierarchy_options(settings)
    )


def _hierarchy_options(settings: Settings) -> HierarchyOptions:
    from reactor_memory.features.chat.hierarchical_summaries import HierarchyOptions

    summary = settings.summary
    return HierarchyOptions(
        enabled=summary.enabled,
        trigger_message_count=summary.trigger_message_count,
        recent_message_count=summary.recent_message_count,
        segment_message_count=summary.segment_message_count if summary.mode == "ledger" else None,
        summarizer=summary.provider,
    )


def chat(*args: Any, **parts: Any) -> Chat:
    from reactor_memory.features.chat.conversation import Chat

    return Chat(*args, **parts)
