"""PostgreSQL whose tables are distributed (Citus): a key has one shard, and a statement asks one of them.

Whoever names a user or a group, or the store itself, is named by ``SET LOCAL``, which the coordinator passes on to the
shards; a setting of the connection, or `set_config`, stays with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from reactor_memory.database.operations import Values
from reactor_memory.database.statements import ByGroup

PASS_ON = {"citus.propagate_set_commands": "local"}
"""A setting under which the coordinator passes ``SET LOCAL`` on to the shards of a transaction."""

KEEP_PLANS = {"plan_cache_mode": "force_generic_plan"}
"""Over partitions PostgreSQL takes the plan of any value for too dear, as it counts all of them, and so makes one for
each call, at three times the cost; the kept one opens the partition of its key alone. Nodes of Citus have plain tables,
and its coordinator plans by values.
"""

HOW_PLACED = """
SELECT to_regclass('pg_dist_partition') IS NOT NULL,
       EXISTS (SELECT FROM pg_class WHERE oid = to_regclass('messages') AND relkind = 'p')
"""
"""Whether the database has the catalogue of Citus, and whether its tables are partitions of one server. Where it has
Citus and the tables are not distributed yet, each group is asked for itself without need."""


def passed_on(settings: Mapping[str, str]) -> str:
    """What names in all shards whom a statement has named on the coordinator."""
    return "; ".join(f"SET LOCAL reactor_memory.{name} = {_literal(value)}" for name, value in settings.items())


def _literal(text: str) -> str:
    """Whatever `standard_conforming_strings` says."""
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"E'{escaped}'"


def values_by_group(values: Values, by_group: ByGroup) -> Sequence[dict[str, Any]]:
    """The values of a statement about several groups, apart for each of them."""
    groups: dict[str, list[list[Any]]] = {}
    for each in msgspec.json.decode(values[by_group.parameter], type=list[list[Any]]):
        groups.setdefault(each[by_group.place], []).append(each)
    return [
        {**values, by_group.parameter: msgspec.json.encode(own).decode(), "group_ids": [group_id], "group_id": group_id}
        for group_id, own in groups.items()
    ]
