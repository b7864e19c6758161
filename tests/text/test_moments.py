"""A moment without a time zone is the same on every machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from reactor_memory.text.moments import aware, microseconds_of

NOON = datetime(2025, 7, 1, 12, 0, 0, 123456)  # noqa: DTZ001 - the point of the test
IN_UTC = 1_751_371_200_123_456
HOUR = 3_600_000_000


@pytest.fixture(params=["Asia/Tokyo", "America/New_York", "UTC"], autouse=True)
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In a zone that must not matter."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (NOON, IN_UTC),
        (NOON.replace(tzinfo=UTC), IN_UTC),
        (NOON.replace(tzinfo=timezone(timedelta(hours=2))), IN_UTC - 2 * HOUR),
        (datetime(1969, 12, 31, 23, 59, 59, 999999), -1),  # noqa: DTZ001
        (datetime.max, 253_402_300_799_999_999),  # noqa: DTZ901
    ],
)
def test_without_a_zone_it_is_in_utc(moment: datetime, expected: int):
    assert microseconds_of(moment) == expected


def test_the_caller_says_where_the_clock_hung():
    berlin = ZoneInfo("Europe/Berlin")
    assert microseconds_of(NOON, berlin) == IN_UTC - 2 * HOUR
    assert microseconds_of(NOON.replace(month=1), berlin) - microseconds_of(NOON.replace(month=1)) == -HOUR
    assert microseconds_of(NOON.replace(tzinfo=UTC), berlin) == IN_UTC
    assert aware(NOON).isoformat() == "2025-07-01T12:00:00.123456+00:00"
