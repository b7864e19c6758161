"""A PostgreSQL server that the tests of a module may stop and end."""

from collections.abc import Iterator

import pytest

from tests.scenes.troubled_databases import OwnServer, own_server


@pytest.fixture(scope="module")
def server() -> Iterator[OwnServer]:
    with own_server() as server:
        yield server
