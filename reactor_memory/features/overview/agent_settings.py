"""The settings that decide what a context shows, kept with the store by the agent that saves to it: whoever looks into
the store later sees what the agent saw.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import anyio
import msgspec

from reactor_memory.database.database import Database
from reactor_memory.database.operations import Query, Steps
from reactor_memory.errors import StoreError, StoreReadOnlyError
from reactor_memory.models import Value

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock

log = logging.getLogger(__name__)

KEEP_SECONDS = 0.25
"""A save waits no longer for the settings to be stored."""


class AgentSettings(Value, frozen=True, kw_only=True):
    """What an agent was given beside the defaults: values by dotted key, as JSON holds them. `kept_at` is when it first
    saved under these settings, in microseconds UTC.
    """

    given: dict[str, Any]
    kept_at: int


class SettingsKeeper:
    """Keeps the settings of this process when it first saves; `given` tells them, and is asked no earlier. The last
    agent with other settings counts.
    """

    def __init__(self, *, database: Database, clock: Clock, given: Callable[[], dict[str, Any]]) -> None:
        self._database = database
        self._clock = clock
        self._given = given
        self._is_done = False

    async def __call__(self) -> None:
        """Store them, unless they are stored. A save does without it rather than fail or wait."""
        if self._is_done:
            return
        self._is_done = True
        kept = AgentSettings(given=self._given(), kept_at=self._clock())
        try:
            with anyio.move_on_after(KEEP_SECONDS):
                await self._database.write_relaxed(keep_settings, kept)
        except StoreReadOnlyError:
            pass
        except StoreError as error:
            log.warning("settings of the agent not stored", extra={"reason": type(error).__name__})


# Operations


def keep_settings(kept: AgentSettings) -> Steps[None]:
    given = msgspec.json.encode(kept.given, order="sorted").decode()
    yield Query("keep_agent_settings", {"given": given, "kept_at": kept.kept_at})


def read_settings() -> Steps[AgentSettings | None]:
    rows = yield Query("agent_settings", {})
    if not rows:
        return None
    given, kept_at = rows[0]
    return msgspec.convert({"given": msgspec.json.decode(str(given)), "kept_at": kept_at}, AgentSettings)
