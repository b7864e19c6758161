"""What can go wrong between here and a Gemini model, in the words of `SummarizationError`.

Texts of the provider never enter an error: they may quote the conversation or the key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, cast

from reactor_memory.errors import SummarizationError

_SECONDS = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s?")
_TRUNCATED = frozenset({"MAX_TOKENS", "CONTINUATION"})
_FINISHED = frozenset({"STOP", "FINISH_REASON_UNSPECIFIED"})


def status_failure(status: int, headers: Mapping[str, str], body: object) -> SummarizationError:
    """The failure that an HTTP status other than 200 stands for."""
    reason, retryable = _reason_of(status)
    retry_after = retry_after_seconds(headers, body) if retryable else None
    problem = f"the provider answered with status {status}"
    return SummarizationError(reason, problem, retryable=retryable, retry_after_seconds=retry_after)


def finish_failure(finish_reason: str) -> SummarizationError | None:
    """The failure that a finish reason stands for; None if the answer is complete."""
    if finish_reason in _FINISHED:
        return None
    if finish_reason in _TRUNCATED:
        return SummarizationError("truncated", "the answer ended before it was complete")
    if finish_reason.startswith("MALFORMED"):
        return SummarizationError("malformed", "the model could not form an answer")
    return refusal()


def refusal() -> SummarizationError:
    return SummarizationError("refused", "the provider blocked the conversation or the answer", retryable=False)


def retry_after_seconds(headers: Mapping[str, str], body: object) -> float | None:
    """How long the provider wants to be left alone: the header ``Retry-After``, else ``RetryInfo`` in the body.

    A date in the header is read against the provider's own ``Date``, not against a clock of this machine.
    """
    stated = headers.get("retry-after", "").strip()
    if not stated:
        return _retry_info(body)
    seconds = _seconds(stated)
    return _seconds_until(stated, headers.get("date", "")) if seconds is None else seconds


def _reason_of(status: int) -> tuple[str, bool]:
    if status == 429:
        return "rate_limited", True
    if status in (408, 504):
        return "timeout", True
    if status >= 500:
        return "unavailable", True
    return "rejected", False


def _seconds(text: str) -> float | None:
    match = _SECONDS.fullmatch(text)
    return float(match.group(1)) if match else None


def _seconds_until(date: str, now: str) -> float | None:
    try:
        return max(0.0, (parsedate_to_datetime(date) - parsedate_to_datetime(now)).total_seconds())
    except (ValueError, TypeError):
        return None


def _retry_info(body: object) -> float | None:
    """``error.details[].retryDelay`` of google.rpc.RetryInfo, such as ``"17s"``."""
    for detail in _items(_field(_field(body, "error"), "details")):
        delay = _field(detail, "retryDelay")
        if isinstance(delay, str) and (seconds := _seconds(delay)) is not None:
            return seconds
    return None


def _field(value: object, name: str) -> object:
    return cast(dict[str, Any], value).get(name) if isinstance(value, dict) else None


def _items(value: object) -> list[object]:
    return cast(list[object], value) if isinstance(value, list) else []
