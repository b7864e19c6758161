"""How Gemini says that something went wrong, in the words of `SummarizationError`."""

from __future__ import annotations

from typing import Any, cast

from reactor_memory.errors import SummarizationError
from reactor_memory.providers.failures import refusal, seconds_of, truncation

_TRUNCATED = frozenset({"MAX_TOKENS", "CONTINUATION"})
_FINISHED = frozenset({"STOP", "FINISH_REASON_UNSPECIFIED"})


def finish_failure(finish_reason: str) -> SummarizationError | None:
    """The failure that a finish reason stands for; None if the answer is complete."""
    if finish_reason in _FINISHED:
        return None
    if finish_reason in _TRUNCATED:
        return truncation()
    if finish_reason.startswith("MALFORMED"):
        return SummarizationError("malformed", "the model could not form an answer")
    return refusal()


def retry_info_seconds(body: object) -> float | None:
    """``error.details[].retryDelay`` of google.rpc.RetryInfo, such as ``"17s"``."""
    for detail in _items(_field(_field(body, "error"), "details")):
        delay = _field(detail, "retryDelay")
        if isinstance(delay, str) and (seconds := seconds_of(delay)) is not None:
            return seconds
    return None


def _field(value: object, name: str) -> object:
    return cast(dict[str, Any], value).get(name) if isinstance(value, dict) else None


def _items(value: object) -> list[object]:
    return cast(list[object], value) if isinstance(value, list) else []
