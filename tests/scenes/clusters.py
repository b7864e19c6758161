"""What a Citus cluster is to the store, on one PostgreSQL server: `create_distributed_table` makes a table of hash
partitions out of a table, with its rows, keys, indexes and rules.

So a statement that names its key looks into one partition, as it goes to one shard of a cluster. What a cluster
refuses, and what its nodes tell each other, is not shown by this.
"""

from __future__ import annotations

import asyncpg

from reactor_memory.core.log.placement import distribute
from tests.scenes.stores import postgres_store

PARTITIONS = 16

_CATALOGUE = """
SET allow_system_table_mods = on;
CREATE TABLE pg_catalog.pg_dist_partition
    (logicalrelid regclass PRIMARY KEY, partmethod "char" NOT NULL, partkey text, colocationid int);
CREATE VIEW pg_catalog.citus_tables AS
    SELECT logicalrelid AS table_name, COALESCE(partkey, '<none>') AS distribution_column,
           GREATEST(1, (SELECT count(*) FROM pg_inherits WHERE inhparent = logicalrelid)) AS shard_count
    FROM pg_dist_partition;
GRANT SELECT, INSERT ON pg_catalog.pg_dist_partition TO PUBLIC;
GRANT SELECT ON pg_catalog.citus_tables TO PUBLIC
"""

_REFERENCE = """
CREATE FUNCTION pg_catalog.create_reference_table(table_name regclass) RETURNS void LANGUAGE sql AS
$$ INSERT INTO pg_dist_partition VALUES (table_name, 'n', NULL, 0) $$
"""

_DISTRIBUTED = f"""
CREATE FUNCTION pg_catalog.create_distributed_table(
    table_name regclass, distribution_column text, distribution_type text DEFAULT 'hash',
    colocate_with text DEFAULT 'default', shard_count int DEFAULT {PARTITIONS})
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  own text := table_name::text;
  whole pg_class := (SELECT t FROM pg_class t WHERE oid = table_name);
  rule record;
BEGIN
  IF colocate_with NOT IN ('none', 'default') AND NOT EXISTS (
      SELECT FROM pg_dist_partition WHERE logicalrelid = colocate_with::regclass AND partkey = distribution_column) THEN
    RAISE EXCEPTION 'cannot colocate tables % and %', colocate_with, own;
  END IF;
  EXECUTE format('ALTER TABLE %I RENAME TO old_table', own);
  EXECUTE format('CREATE TABLE %I (LIKE old_table INCLUDING ALL) PARTITION BY HASH (%I)', own, distribution_column);
  FOR place IN 0 .. shard_count - 1 LOOP
    EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS %s, REMAINDER %s)',
                   own || '_' || place, own, shard_count, place);
  END LOOP;
  IF whole.relrowsecurity THEN EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', own); END IF;
  IF whole.relforcerowsecurity THEN EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', own); END IF;
  FOR rule IN SELECT * FROM pg_policies WHERE tablename = 'old_table' LOOP
    EXECUTE format('CREATE POLICY %I ON %I USING (%s)', rule.policyname, own, rule.qual);
  END LOOP;
  EXECUTE format('INSERT INTO %I SELECT * FROM old_table', own);
  DROP TABLE old_table;
  INSERT INTO pg_dist_partition VALUES (own::regclass, 'h', distribution_column, 1);
END $$
"""


async def make_cluster(dsn: str) -> None:
    """In a database of a superuser."""
    connection = await asyncpg.connect(dsn)
    try:
        for statement in (*_CATALOGUE.split(";"), _REFERENCE, _DISTRIBUTED):
            await connection.execute(statement)
    finally:
        await connection.close()


async def distribute_tables(dsn: str) -> None:
    """By the command of the store."""
    store = postgres_store(dsn)
    await store.open()
    try:
        await distribute(store.database)
    finally:
        await store.close()


async def make_distributed(dsn: str) -> None:
    """A migrated database."""
    await make_cluster(dsn)
    await distribute_tables(dsn)
