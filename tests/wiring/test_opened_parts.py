"""A part is replaced before a container is opened, for everybody; later it is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from dependency_injector import providers

from reactor_memory import open_memory
from reactor_memory.errors import ConfigurationError
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.container import Container
from reactor_memory.wiring.service_container import ServiceContainer, open_service_container
from tests.scenes.tables import each_row

pytestmark = pytest.mark.anyio

OTHER = providers.Object(object())
AFTER_OPENING = "is overridden after opening, which would reach some parts and not others: do it in configure="


@pytest.mark.parametrize("name", sorted(ServiceContainer.providers))
async def test_no_part_is_overridden_after_opening(opened: Any, name: str) -> None:
    part = getattr(opened, name)
    for replace in (part.override, lambda other: opened.override_providers(**{name: other}), part.reset_override):
        with pytest.raises(ConfigurationError, match=rf"^container\.{name}: {AFTER_OPENING}"):
            replace(OTHER)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def opened() -> Any:
    async with open_service_container(Settings(store={"url": "memory://"})) as container:
        yield container


@each_row(
    "replace",
    [
        lambda container: container.reset_override(),
        lambda container: container.reset_last_overriding(),
        lambda container: container.override(Container(settings=Settings())),
        lambda container: container.clock.reset_last_overriding(),
        lambda container: setattr(container, "clock", OTHER),
        lambda container: container.set_providers(clock=OTHER),
    ],
)
async def test_nor_by_any_other_way(opened: Any, replace: Callable[[Any], object]) -> None:
    with pytest.raises(ConfigurationError, match="which would reach some parts and not others"):
        replace(opened)


async def test_a_part_that_is_assigned_is_refused_before_opening_too() -> None:
    def configure(container: Any) -> None:
        container.summarizer = OTHER

    with pytest.raises(ConfigurationError, match=r"^container\.summarizer: .* call container\.summarizer\.override"):
        async with open_memory("memory://", configure=configure):
            raise AssertionError


async def test_a_part_overridden_before_opening_is_everywhere() -> None:
    class Words:
        name = "words"

        def count(self, text: str) -> int:
            return len(text.split())

    def configure(container: Container) -> None:
        container.token_counter.override(providers.Singleton(Words))

    async with open_memory("memory://", configure=configure) as memory:
        assert memory.container.token_counter() is memory.container.token_counter()
        await memory.save_history("s", "three words here")
        (message,) = await memory.read_messages("s")
        assert (message.token_count, message.tokenizer) == (3, "words")


async def test_parts_of_an_open_container_are_given_on(opened: Any) -> None:
    """Who makes more parts of them is given the parts, and not their providers."""
    made = providers.Singleton(dict, clock=opened.clock, log=opened.message_store.provider)()
    assert made == {"clock": opened.clock(), "log": made["log"]}
    assert made["log"]() is opened.message_store()
