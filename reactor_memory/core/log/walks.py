"""Through all groups a page at a time: no statement reads everything, and where tables are distributed, each asks one
shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from reactor_memory.core.log.rows import to_json
from reactor_memory.database.operations import Query, Row, Steps

PAGE = 500


def list_groups(*, after: str = "", owner_id: str | None = None, limit: int = PAGE) -> Steps[tuple[str, ...]]:
    """The ids of groups behind `after`, in their order, deleted ones included: all, or those of one owner."""
    rows = yield Query("list_groups", {"owner_id": owner_id, "after": after, "limit": limit})
    return tuple(row[0] for row in rows)


def of_groups(statement: str, values: Mapping[str, Any], group_ids: Iterable[str]) -> Steps[Sequence[Row]]:
    """What a statement ``-- by group: groups[0]`` tells of these groups."""
    found = list(group_ids)
    groups = {"groups": to_json([[each] for each in found]) or "[]", "group_ids": found}
    return (yield Query(statement, {**values, **groups}))


def of_all_groups(statement: str, values: Mapping[str, Any] | None = None) -> Steps[list[Row]]:
    """What it tells of each page of groups; the first one holds the group "" of the database itself."""
    rows = list((yield from of_groups(statement, values or {}, [""])))
    after = ""
    while page := (yield from list_groups(after=after)):
        rows += yield from of_groups(statement, values or {}, page)
        after = page[-1]
    return rows


def summed(rows: Iterable[Row]) -> Iterator[int]:
    """The sum of each column."""
    return (sum(column) for column in zip(*rows, strict=True))
