"""What can go wrong between here and any model, in the words of `SummarizationError`.

Texts of the provider never enter an error: they may quote the conversation or the key.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, cast

from reactor_memory.errors import SummarizationError

_SECONDS = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s?")


def status_failure(
    status: int, headers: Mapping[str, str], *, stated_seconds: float | None = None
) -> SummarizationError:
    """The failure that an HTTP status other than 200 stands for. `stated_seconds`: how long the body asks to wait, for
    answers without the header.
    """
    reason, retryable = _reason_of(status)
    header = retry_after_header(headers)
    retry_after = stated_seconds if header is None else header
    problem = f"the provider answered with status {status}"
    return SummarizationError(
        reason, problem, retryable=retryable, retry_after_seconds=retry_after if retryable else None
    )


def transport_failure(error: Exception) -> SummarizationError:
    """The failure that an exception of the transport, or of reading what came, stands for."""
    if isinstance(error, (TimeoutError, *_classes("TimeoutException"))):
        return SummarizationError("timeout", "no answer in time")
    if isinstance(error, (OSError, *_classes("HTTPError"))):
        return SummarizationError("unavailable", f"cannot be reached{_address(error)}, {type(error).__name__}")
    return SummarizationError("malformed", f"the answer cannot be read, {type(error).__name__}")


def _classes(name: str) -> list[type[Exception]]:
    """A class of errors of each HTTP library that is in use: an older google-genai brings another one along."""
    return [getattr(sys.modules[library], name) for library in ("httpx2", "httpx") if library in sys.modules]


def _address(error: Exception) -> str:
    """Where it was looked for, without path, query and login."""
    try:
        url = cast("Any", error).request.url
    except (AttributeError, RuntimeError):  # the transport's, which raises that where there was no request
        return ""
    return f" at {url.scheme}://{url.netloc.decode().rpartition('@')[2]}"


def refusal() -> SummarizationError:
    return SummarizationError("refused", "the provider blocked the conversation or the answer", retryable=False)


def truncation() -> SummarizationError:
    return SummarizationError("truncated", "the answer ended before it was complete")


def retry_after_header(headers: Mapping[str, str]) -> float | None:
    """How long the header ``Retry-After`` asks to be left alone.

    A date in it is read against the provider's own ``Date``, not against a clock of this machine.
    """
    stated = headers.get("retry-after", "").strip()
    if not stated:
        return None
    seconds = seconds_of(stated)
    return _seconds_until(stated, headers.get("date", "")) if seconds is None else seconds


def seconds_of(text: str) -> float | None:
    """``17`` or ``17.5s`` as a number."""
    match = _SECONDS.fullmatch(text)
    return float(match.group(1)) if match else None


def _reason_of(status: int) -> tuple[str, bool]:
    if status == 429:
        return "rate_limited", True
    if status in (408, 504):
        return "timeout", True
    if status >= 500:
        return "unavailable", True
    return "rejected", False


def _seconds_until(date: str, now: str) -> float | None:
    try:
        return max(0.0, (parsedate_to_datetime(date) - parsedate_to_datetime(now)).total_seconds())
    except (ValueError, TypeError):
        return None
