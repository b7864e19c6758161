"""Moments as the log keeps them. One without a time zone is in UTC, wherever the machine stands, unless the caller says
where its clock hung.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def aware(moment: datetime, timezone: tzinfo = UTC) -> datetime:
    """The moment with its own time zone, or with `timezone` if it has none."""
    return moment if moment.utcoffset() is not None else moment.replace(tzinfo=timezone)


def microseconds_of(moment: datetime, timezone: tzinfo = UTC) -> int:
    """Microseconds since 1970 in UTC."""
    return (aware(moment, timezone) - _EPOCH) // _MICROSECOND
