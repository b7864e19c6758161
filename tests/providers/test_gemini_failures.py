"""Statuses, finish reasons and wishes to be left alone, as Gemini states them."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.providers.failures import status_failure
from reactor_memory.providers.gemini_failures import finish_failure, retry_info_seconds
from tests.scenes.tables import each_row

DATE = "Sat, 21 Nov 2026 10:00:00 GMT"


def retry_info(delay: Any) -> dict[str, Any]:
    return {"error": {"details": [{"@type": "other"}, {"retryDelay": delay}]}}


@each_row(
    ("headers", "body", "seconds"),
    [
        ({}, {}, None),
        ({"retry-after": "30"}, {}, 30.0),
        ({"retry-after": " 1.5 "}, {}, 1.5),
        ({"retry-after": "Sat, 21 Nov 2026 10:01:30 GMT", "date": DATE}, {}, 90.0),
        ({"retry-after": "Sat, 21 Nov 2026 09:00:00 GMT", "date": DATE}, {}, 0.0),
        ({"retry-after": "Sat, 21 Nov 2026 10:01:30 GMT"}, {}, None),
        ({"retry-after": "Sat, 21 Nov 2026 10:01:30", "date": DATE}, {}, None),
        ({"retry-after": "soon"}, {}, None),
        ({"retry-after": "-5"}, {}, None),
        ({"retry-after": "nan"}, {}, None),
        ({"retry-after": "9" * 400}, {}, None),
        ({}, retry_info("17s"), 17.0),
        ({}, retry_info("0.25s"), 0.25),
        ({"retry-after": "30"}, retry_info("17s"), 30.0),
        ({}, retry_info(17), None),
        ({}, retry_info("1e9s"), None),
        ({}, {"error": "text"}, None),
        ({}, {"error": {"details": {"retryDelay": "17s"}}}, None),
        ({}, [], None),
        ({}, None, None),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], body: object, seconds: float | None):
    failure = status_failure(429, headers, stated_seconds=retry_info_seconds(body))
    assert failure.retry_after_seconds == seconds


@given(st.integers(min_value=0, max_value=999).filter(lambda status: status != 200))
def test_every_status_is_a_failure(status: int):
    failure = status_failure(status, {"retry-after": "5"})
    assert failure.retryable == (failure.reason in {"rate_limited", "timeout", "unavailable"})
    assert failure.retry_after_seconds == (5.0 if failure.retryable else None)


@each_row(
    ("finish_reason", "reason"),
    [
        ("STOP", None),
        ("FINISH_REASON_UNSPECIFIED", None),
        ("MAX_TOKENS", "truncated"),
        ("MALFORMED_RESPONSE", "malformed"),
        ("SAFETY", "refused"),
        ("PROHIBITED_CONTENT", "refused"),
        ("SOMETHING_NEW", "refused"),
    ],
)
def test_how_an_answer_ended(finish_reason: str, reason: str | None):
    failure = finish_failure(finish_reason)
    assert (failure.reason if failure else None) == reason
