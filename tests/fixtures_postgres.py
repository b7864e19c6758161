"""Fixtures: one PostgreSQL server and one migrated database for a session of tests."""

from collections.abc import Iterator

import pytest

from tests.postgres_server import PostgresServer, empty, running_server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


@pytest.fixture(scope="session")
def _migrated_dsn(postgres_server: PostgresServer) -> Iterator[str]:
    with postgres_server.database(migrated=True) as dsn:
        yield dsn


@pytest.fixture
def postgres_dsn(_migrated_dsn: str) -> str:
    """The address of a migrated, empty database."""
    empty(_migrated_dsn)
    return _migrated_dsn


@pytest.fixture
def empty_postgres_dsn(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of a database without a schema, for this test alone."""
    with postgres_server.database(migrated=False) as dsn:
        yield dsn
