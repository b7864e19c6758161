"""A plug-in's store that is no database: the log works, and what needs a database says so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from reactor_memory.errors import ConfigurationError
from reactor_memory.features.search.models import MessageSearch
from reactor_memory.features.sharing.principals import Grant, Principal
from reactor_memory.models import Message
from reactor_memory.server.api_keys import KeyRing, new_key
from reactor_memory.server.idempotency import AnsweredRequests, KeyedRequest
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.plugins import WITHOUT_DATABASE
from reactor_memory.wiring.service_container import ServiceContainer, open_service_container
from reactor_memory.wiring.stores import conditions_of
from tests.doubles.plugged_store import PLAIN, plug_in_plain_store
from tests.scenes.tables import each_row

pytestmark = pytest.mark.anyio

ANN = Principal(user_id="ann")
REFUSAL = "store.url: plain:// keeps the log and summaries only"


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in_plain_store(monkeypatch)


async def find_key(container: ServiceContainer) -> object:
    text = new_key("bot", Grant(), now=1).text
    return await KeyRing(container.database(), clock=container.clock()).find(text)


async def repeat_request(container: ServiceContainer) -> object:
    requests = AnsweredRequests(database=container.database(), access=container.access(), clock=container.clock())

    async def deed(request_key: str | None) -> None:
        raise AssertionError

    return await requests.once("k", KeyedRequest(principal=ANN, operation=("x",)), deed, str)


@each_row(
    "use",
    [
        lambda container: container.conversations().create(ANN),
        lambda container: container.conversations().list(ANN),
        lambda container: container.shared_messages().list_for_user(ANN, "s"),
        lambda container: container.sharing().members(ANN, "s"),
        lambda container: container.response_streams().list(ANN, "s"),
        lambda container: container.message_search().search(MessageSearch(text="cat", user_id="ann")),
        find_key,
        repeat_request,
    ],
)
async def test_what_needs_a_database_refuses(use: Callable[[ServiceContainer], Awaitable[object]]) -> None:
    async with open_service_container(Settings(store={"url": PLAIN})) as container:
        with pytest.raises(ConfigurationError, match=REFUSAL):
            await use(container)


async def test_the_log_works_and_nothing_is_streamed() -> None:
    async with open_service_container(Settings(store={"url": PLAIN})) as container:
        await container.conversation_manager().save_history("s", [Message.user("a cat")], user_id="ann")
        loaded = await container.conversation_manager().load_history("s", user_id="ann")
        assert [message.content for message in loaded.messages] == ["a cat"]
        assert container.response_store() is None


async def test_search_that_is_switched_on_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match=r"search\.enabled: needs a database"):
        async with open_service_container(Settings(store={"url": PLAIN}, search={"enabled": True})):
            raise AssertionError


def test_the_conditions_say_what_is_missing() -> None:
    bindings = conditions_of(Settings(store={"url": PLAIN})).bindings
    told = [(each.plugin, each.selected, each.reason) for each in bindings if each.plug_point == "database"]
    assert ("plain", False, WITHOUT_DATABASE) in told
    assert [reason for plugin, _, reason in told if plugin != "plain"] == ["from reactor-memory"] * 4
