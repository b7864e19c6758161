"""Fixtures: one PostgreSQL server for a session of tests, a database of its own for every test."""

from collections.abc import Iterator

import pytest

from tests.scenes.clusters import make_distributed
from tests.scenes.postgres_server import PostgresServer, running_server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


@pytest.fixture
def postgres_dsn(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of a migrated, empty database for this test alone."""
    with postgres_server.database(migrated=True) as dsn:
        yield dsn


@pytest.fixture(scope="session")
def sharded_server(postgres_server: PostgresServer) -> Iterator[PostgresServer]:
    server = PostgresServer(postgres_server.admin_dsn, make_distributed)
    yield server
    server.drop_all()


@pytest.fixture
def sharded_postgres_dsn(sharded_server: PostgresServer) -> Iterator[str]:
    """As `postgres_dsn`, with tables that are distributed over hash partitions."""
    with sharded_server.database(migrated=True) as dsn:
        yield dsn


@pytest.fixture
def empty_postgres_dsn(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of a database without a schema, for this test alone."""
    with postgres_server.database(migrated=False) as dsn:
        yield dsn


@pytest.fixture
def fenced_postgres_dsn(postgres_server: PostgresServer, postgres_dsn: str) -> Iterator[str]:
    """`postgres_dsn` as a role that is no superuser and owns no table, so that row-level security binds it."""
    with postgres_server.ordinary_role(postgres_dsn) as dsn:
        yield dsn
