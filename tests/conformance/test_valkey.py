"""The Redis backend keeps the promises of every store of responses, on a real Valkey, a node of a cluster."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis import Redis

from reactor_memory import Message, Settings
from reactor_memory.features.responses.models import Response, ResponseStore
from reactor_memory.features.responses.redis_store import RedisResponses
from reactor_memory.wiring.service_container import ServiceContainer, open_service_container
from tests.conformance.suites.responses import (
    KEEP,
    ResponseStoreConformance,
    add,
    ending,
    pieces,
    standing,
    start,
)
from tests.scenes.valkey_server import valkey_server

pytestmark = pytest.mark.anyio


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
async def responses(valkey_url: str) -> AsyncIterator[RedisResponses]:
    responses = RedisResponses(valkey_url, keep_microseconds=KEEP)
    await responses.open()
    yield responses
    await responses.close()


class TestValkeyResponses(ResponseStoreConformance):
    pass


class TestWithTheLogElsewhere:
    """What is deleted or erased in the log is gone from Valkey, too."""

    @pytest.fixture
    async def container(self, valkey_url: str, tmp_path: Path) -> AsyncIterator[ServiceContainer]:
        streams = {"backend": "redis", "redis_url": valkey_url}
        async with open_service_container(
            Settings(store={"url": f"sqlite:///{tmp_path}/log.db"}, streams=streams)
        ) as container:
            yield container

    async def answered(self, container: ServiceContainer, session_id: str) -> tuple[ResponseStore, Response]:
        """A session whose second message a finished response became."""
        manager, store = container.conversation_manager(), container.response_store()
        await manager.save_history(session_id, [Message.user("q"), Message.assistant("a")], user_id="ann")
        message_id = (await container.message_store().read(session_id, "ann"))[1].message_id
        started = await start(store, session_id)
        await add(store, started, "a")
        ended = await store.finish_response(ending(started, message_id=message_id))
        assert ended is not None
        return store, ended

    async def test_a_deleted_session(self, container: ServiceContainer) -> None:
        store, response = await self.answered(container, "deleted")
        await container.conversation_manager().delete("deleted", user_id="ann")
        assert await standing(store, response) is None
        assert await pieces(store, response) == []

    async def test_an_erased_message(self, container: ServiceContainer) -> None:
        store, response = await self.answered(container, "erased")
        await container.erasure().erase("erased", seq=1, user_id="ann")
        assert await standing(store, response) == response
        await container.erasure().erase("erased", seq=2, user_id="ann")
        assert await standing(store, response) is None
        assert await pieces(store, response) == []

    async def test_all_messages_take_a_running_response_along(self, container: ServiceContainer) -> None:
        store, _ = await self.answered(container, "emptied")
        running = await start(store, "emptied", "running")
        await add(store, running, "what was never bound to a message")
        await container.erasure().erase("emptied", seq=2, user_id="ann")
        assert await pieces(store, running) == [(1, "what was never bound to a message")]
        await container.erasure().erase("emptied", seq=1, user_id="ann")
        assert await standing(store, running) is None
        assert await pieces(store, running) == []

    async def test_a_withdrawn_message(self, container: ServiceContainer) -> None:
        store, response = await self.answered(container, "withdrawn")
        await container.erasure().withdraw("withdrawn", user_id="ann")
        assert await standing(store, response) is None
        assert await pieces(store, response) == []

    async def test_an_erased_user(self, container: ServiceContainer) -> None:
        store, response = await self.answered(container, "of ann")
        await container.erasure().erase_user("ann")
        assert await standing(store, response) is None

    async def test_a_pruned_session(self, container: ServiceContainer) -> None:
        store, response = await self.answered(container, "pruned")
        assert (await container.pruner().prune(older_than_seconds=0)).session_ids == ("pruned",)
        assert await standing(store, response) is None
