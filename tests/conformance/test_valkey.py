"""The Redis backend keeps the promises of every store of responses, on a real Valkey, a node of a cluster."""

from collections.abc import AsyncIterator, Iterator

import pytest
from redis import Redis

from reactor_memory.streams.redis_responses import RedisResponses
from reactor_memory.testing import ResponseStoreConformance
from reactor_memory.testing.responses import KEEP
from tests.valkey_server import valkey_server


@pytest.fixture(scope="module")
def valkey_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A node with all the slots of a cluster refuses every step whose keys belong to several."""
    with valkey_server(tmp_path_factory.mktemp("valkey"), **{"cluster-enabled": "yes"}) as server:
        with Redis.from_url(server.connection_url, decode_responses=True) as client:
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            while client.cluster("info")["cluster_state"] != "ok":
                pass
        yield server.connection_url


@pytest.fixture
async def store(valkey_url: str) -> AsyncIterator[RedisResponses]:
    store = RedisResponses(valkey_url, keep_microseconds=KEEP)
    await store.open()
    yield store
    await store.close()


class TestValkeyResponses(ResponseStoreConformance):
    pass
