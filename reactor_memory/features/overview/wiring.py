"""How the overview is wired, and what keeps the settings of an agent with the store."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from reactor_memory.database.database import Database

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock
    from reactor_memory.features.overview.agent_settings import SettingsKeeper
    from reactor_memory.features.overview.overview import Overview
    from reactor_memory.settings.settings import Settings


def overview(**parts: Any) -> Overview:
    from reactor_memory.features.overview.overview import Overview

    return Overview(**parts)


def settings_keeper_of(settings: Settings, in_database: str, database: Database, clock: Clock) -> SettingsKeeper | None:
    """What keeps the settings, if they are to be kept."""
    if not settings.store.keep_settings or in_database == "off":
        return None
    from reactor_memory.features.overview.agent_settings import SettingsKeeper
    from reactor_memory.settings.agent_settings import kept_of

    return SettingsKeeper(database=database, clock=clock, given=partial(kept_of, settings))
