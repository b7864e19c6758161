"""Fixtures: one PostgreSQL server for a session of tests, a fresh database for each test."""

from collections.abc import Iterator

import pytest

from tests.postgres_server import PostgresServer, running_server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


@pytest.fixture
def postgres_dsn(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of a migrated, empty database."""
    with postgres_server.database() as dsn:
        yield dsn


@pytest.fixture
def empty_postgres_dsn(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of a database without a schema."""
    with postgres_server.database(migrated=False) as dsn:
        yield dsn
