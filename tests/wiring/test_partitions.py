"""Where tables are distributed, the plan of a statement, kept or made anew, looks into one partition of each."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from reactor_memory.database.postgres_shards import KEEP_PLANS
from reactor_memory.database.statements import PostgresQuery
from reactor_memory.wiring.queries import QUERIES
from tests.scenes.kept_plans import prepare, told
from tests.scenes.tables import each_row
from tests.wiring.routes import placements
from tests.wiring.test_routing import ACROSS, NOT_WHERE_DISTRIBUTED

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.anyio]

WITHOUT_PLAN = re.compile(r"create_(?:distributed|reference)_table|^VACUUM|<#>|pg_advisory|WHERE 0$")
SAMPLES: dict[str, Any] = {"text": "g", "json": "[]", "bool": True, "bytea": b""}
"""Of types; of any other it is a number."""
PARTITION = re.compile(r"_\d+$")
ROUTED = [name for name in QUERIES.postgres if name not in {*ACROSS, *NOT_WHERE_DISTRIBUTED}]


@each_row("name", ROUTED)
async def test_plan_looks_into_one_partition(sharded_postgres_dsn: str, name: str) -> None:
    query = QUERIES.postgres[name].alone or QUERIES.postgres[name]
    if WITHOUT_PLAN.search(query.text):
        return
    for settings in (KEEP_PLANS, {"plan_cache_mode": "force_custom_plan"}):
        connection = await asyncpg.connect(sharded_postgres_dsn, server_settings=settings)
        try:
            partitions = await partitions_of(connection, query)
        finally:
            await connection.close()
        assert all(len(found) == 1 for found in partitions.values()), partitions


async def partitions_of(connection: Any, query: PostgresQuery) -> dict[str, set[str]]:
    """Those that the plan reads or changes, of each table."""
    kinds = (await connection.prepare(query.text)).get_parameters()
    explained = await prepare(connection, query.text, [_sample(each) for each in kinds])
    found: dict[str, set[str]] = defaultdict(set)
    for relation in _relations(await told(connection, explained)):
        table = PARTITION.sub("", relation)
        if table != relation and table in placements():
            found[table].add(relation)
    return found


def _sample(kind: Any) -> Any:
    name = kind.name.removesuffix("[]")
    return SAMPLES.get(name, 1) if name == kind.name else [SAMPLES.get(name, 1)]


def _relations(plan: Any) -> Iterator[str]:
    if isinstance(plan, dict):
        if "Relation Name" in plan:
            yield plan["Relation Name"]
        for each in plan.values():
            yield from _relations(each)
    elif isinstance(plan, list):
        for each in plan:
            yield from _relations(each)


async def test_statement_without_a_key_looks_into_all(sharded_postgres_dsn: str) -> None:
    connection = await asyncpg.connect(sharded_postgres_dsn)
    try:
        everywhere = PostgresQuery("SELECT * FROM messages WHERE conversation_id = $1", ("conversation_id",))
        found = await partitions_of(connection, everywhere)
    finally:
        await connection.close()
    assert len(found["messages"]) == 16
