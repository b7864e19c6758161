"""How the settings of whoever looks into a store differ from those that the agent kept with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reactor_memory.models import Value
from reactor_memory.wiring.agent_settings import ASKING_OTHERS, decides, deciding, default_values
from reactor_memory.wiring.settings import Settings


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
    agents = default_values() | dict(kept)
    return tuple(
        SettingDifference(key=key, agent=agents[key], here=value, origin=origin)
        for key, value, origin in deciding(settings)
        if value != agents[key]
    )
