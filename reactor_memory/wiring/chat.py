"""How the chat is wired."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from reactor_memory.errors import ConfigurationError
from reactor_memory.features.chat.chat_model import ChatModel
from reactor_memory.wiring.selection import is_progressive
from reactor_memory.wiring.settings import Settings

if TYPE_CHECKING:
    from reactor_memory.core.ports import BackgroundWork, SummaryStore
    from reactor_memory.database.database import Database
    from reactor_memory.features.chat.hierarchical_summaries import ChatSummaries, HierarchyOptions
    from reactor_memory.features.facts.facts import Facts
    from reactor_memory.features.pins.pins import Pins
    from reactor_memory.features.tiers.progressive_tiers import ProgressiveTiers


def echo_chat_model(settings: Settings) -> ChatModel:
    from reactor_memory.features.chat.echo import EchoModel

    return EchoModel()


def gemini_chat_model(settings: Settings) -> ChatModel:
    from reactor_memory.features.chat.gemini import GeminiChatModel

    asked = chat_endpoint(settings, "gemini")
    model = asked.model or type(settings.summary).model_fields["llm_model"].default
    return GeminiChatModel(model, asked.api_key, base_url=asked.base_url, timeout_seconds=settings.chat.timeout_seconds)


def openai_chat_model(settings: Settings) -> ChatModel:
    from reactor_memory.features.chat.openai import OpenAIChatModel

    asked = chat_endpoint(settings, "openai")
    if asked.model is None:
        raise ConfigurationError("chat.model", "must name a model of the server")
    return OpenAIChatModel(
        asked.model, asked.api_key, base_url=asked.base_url, timeout_seconds=settings.chat.timeout_seconds
    )


def automatic_chat_model(settings: Settings) -> ChatModel:
    """The provider of the summaries, if the settings say enough of it, else nobody: nothing leaves the machine."""
    asked = chat_endpoint(settings, settings.summary.provider)
    if settings.summary.provider == "gemini" and asked.api_key:
        return gemini_chat_model(settings)
    if settings.summary.provider == "openai" and asked.model and (asked.api_key or asked.base_url):
        return openai_chat_model(settings)
    return echo_chat_model(settings)


class ChatEndpoint(NamedTuple):
    """A model and the way to it."""

    model: str | None
    api_key: str | None
    base_url: str | None


def chat_endpoint(settings: Settings, provider: str) -> ChatEndpoint:
    """What the chat leaves open is taken from the summaries, if these ask the same provider; their key goes to their
    address and to no other.
    """
    chat, summary = settings.chat, settings.summary
    alike = summary.provider == provider
    named = summary.llm_model if alike and "llm_model" in summary.model_fields_set else None
    base_url = chat.base_url or (summary.base_url if alike else None)
    api_key = chat.api_key or (summary.api_key if alike and base_url == summary.base_url else None)
    return ChatEndpoint(chat.model or named, api_key.get_secret_value() if api_key else None, base_url)


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
