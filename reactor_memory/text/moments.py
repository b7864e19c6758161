"""Moments as the log keeps them. One without a time zone is in UTC, wherever the machine stands, unless the caller says
where its clock hung.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def moment_of(microseconds: int) -> datetime | None:
    """The moment, in UTC, of microseconds since 1970; None where no calendar has one: a log keeps any number."""
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return None


def aware(moment: datetime, timezone: tzinfo = UTC) -> datetime:
    """The moment with its own time zone, or with `timezone` if it has none."""
    return moment if moment.utcoffset() is not None else moment.replace(tzinfo=timezone)


def microseconds_of(moment: datetime, timezone: tzinfo = UTC) -> int:
    """Microseconds since 1970 in UTC."""
    return (aware(moment, timezone) - _EPOCH) // _MICROSECOND
