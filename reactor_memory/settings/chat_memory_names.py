"""Other names of the settings of the chat memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from reactor_memory.errors import ConfigurationError

_BOOL = TypeAdapter(bool)

_NAMES = {
    "type": "strategy",
    "summarizeeveryn": "summarize_every_n",
    "summarizeeverynmessages": "summarize_every_n",
    "skillid": "summarizer",
    "summarizationskillid": "summarizer",
    "onhookerror": "on_hook_error",
    "deletesummarizedmessages": "retention",
}
"""Other names of settings of the chat memory, without underscores and in lower case."""


def by_name(given: Mapping[str, Any]) -> dict[str, Any]:
    """`given` by the names of the settings. `ConfigurationError` for a setting that has a value under two names."""
    values: dict[str, Any] = {}
    for key, value in _below_strategy(given):
        squeezed = key.replace("_", "").lower()
        name = _NAMES.get(squeezed, key)
        if name in values:
            raise ConfigurationError(f"chat_memory.{key}", f"is another name of {name}: give one of the two")
        values[name] = _retention(key, value) if squeezed == "deletesummarizedmessages" else value
    if values.get("strategy") == "none":
        values["strategy"] = "noop"
    return values


def _below_strategy(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in given.items():
        if key == "strategy" and isinstance(value, dict):
            yield from cast("dict[str, Any]", value).items()
        else:
            yield key, value


def _retention(key: str, is_deleting: Any) -> str:
    try:
        return "delete" if _BOOL.validate_python(is_deleting) else "keep"
    except ValidationError:
        raise ConfigurationError(f"chat_memory.{key}", "must be true or false") from None
