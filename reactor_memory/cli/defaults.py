"""Where a command decides otherwise than the library, unless a setting is given: what, and why."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from reactor_memory.cli.invocation import Invocation

log = logging.getLogger(__name__)


class Default(NamedTuple):
    """A value, and the reason for which it is another one than the library's."""

    value: Any
    reason: str


Defaults = Mapping[str, Default]
"""By the key of the setting."""

_SHARED = "one caller must not fill the database of all"

SERVICE: dict[str, Default] = {
    "store.inline_loads": Default("never", "a disk that hangs holds up the request that reads it, not all of them"),
    "store.delete_grace_days": Default(30, "people can restore what they deleted by mistake"),
    "search.enabled": Default(True, "the interface has a search over all conversations of a user"),
    "quotas.max_conversations": Default(10_000, _SHARED),
    "quotas.max_forks": Default(10_000, _SHARED),
    "quotas.max_members": Default(10_000, _SHARED),
    "quotas.max_stored_bytes": Default(4 * 1024**3, _SHARED),
    "quotas.max_summary_tokens_per_day": Default(2_000_000, _SHARED),
}
CHAT_SERVER: Defaults = SERVICE | {"notes.enabled": Default(True, "what an agent noted about a user is in its prompt")}
WORKER: Defaults = {"store.delete_grace_days": Default(30, "serve can restore for so long what was deleted")}
STUDIO: Defaults = {"context.record": Default("turns", "each turn of a chat can be shown as the model saw it")}


def unless_set(invocation: Invocation, defaults: Defaults) -> dict[str, Any]:
    """Those of the `defaults` of which neither the environment nor a file says anything."""
    unset = {each.key for each in invocation.settings().origins() if each.origin == "default"}
    return {key: default.value for key, default in defaults.items() if key in unset}


def log_differences(invocation: Invocation, defaults: Defaults) -> None:
    """A line for each default that counts here, and is not the library's."""
    for key, value in unless_set(invocation, defaults).items():
        reason = defaults[key].reason
        log.info("a default of this command", extra={"setting": key, "value": value, "reason": reason})


def sections(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The values by section, as `Settings` takes them."""
    found: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        section, _, name = key.partition(".")
        found.setdefault(section, {})[name] = value
    return found
