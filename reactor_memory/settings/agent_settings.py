"""Which settings decide what a context shows: what an agent keeps of them with the store, and how others differ."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from reactor_memory.models import Value
from reactor_memory.settings.settings import Settings

_SECTIONS = ("history", "tiers", "chat_memory", "context", "notes", "tokens")
_OF_SUMMARIES = frozenset({
    "summary.enabled",
    "summary.trigger_message_count",
    "summary.recent_message_count",
    "summary.mode",
    "summary.segment_message_count",
    "summary.max_narrative_tokens",
    "summary.max_fact_tokens",
    "summary.memory_role",
})  # fmt: skip
_NOT_OF_CONTEXTS = frozenset({"context.record"})
ASKING_OTHERS = frozenset({"summary.provider", "search.enabled", "search.embedder"})
"""They need keys and extras that whoever looks may not have: a difference is said, and nothing taken over."""


def kept_of(settings: Settings) -> dict[str, Any]:
    """The values beside the defaults that an agent keeps with the store, by dotted key."""
    defaults = default_values()
    return {key: value for key, value in deciding(settings).items() if value != defaults[key]}


@cache
def default_values() -> Mapping[str, Any]:
    """What counts where nothing is set, by dotted key."""
    return MappingProxyType(deciding(Settings.model_construct()))


def deciding(settings: Settings) -> dict[str, Any]:
    """The values of the settings that decide what a context shows, by dotted key."""
    chosen = (*_SECTIONS, "summary", "search")
    sections: dict[str, dict[str, Any]] = settings.model_dump(mode="json", include=set(chosen))
    named = ((f"{section}.{name}", value) for section in chosen for name, value in sections[section].items())
    return {key: value for key, value in named if decides(key)}


def decides(key: str) -> bool:
    """Whether the setting decides what a context shows."""
    section = key.partition(".")[0]
    return key in _OF_SUMMARIES | ASKING_OTHERS or (section in _SECTIONS and key not in _NOT_OF_CONTEXTS)


class SettingDifference(Value, frozen=True, kw_only=True):
    """A setting that decides what a context shows: what the agent has, and what counts here, from which `origin`."""

    key: str
    agent: Any
    here: Any
    origin: str


def takeable(kept: Mapping[str, Any]) -> dict[str, Any]:
    """Of what an agent kept, the values that can be taken over: whoever writes to a store can name no other setting."""
    return {key: value for key, value in kept.items() if decides(key) and key not in ASKING_OTHERS}


def differences(settings: Settings, kept: Mapping[str, Any]) -> tuple[SettingDifference, ...]:
    """What counts under `settings` otherwise than for the agent that `kept` its own."""
    agents: dict[str, Any] = {**default_values(), **kept}
    origins = {each.key: each.origin for each in settings.origins()}
    return tuple(
        SettingDifference(key=key, agent=agents[key], here=value, origin=origins.get(key, "default"))
        for key, value in deciding(settings).items()
        if value != agents[key]
    )
