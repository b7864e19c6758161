"""Containers are made by steps: what comes of them is what the framework's copy of the class would be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from dependency_injector import providers

from reactor_memory import Settings
from reactor_memory.settings.service_settings import ServiceSettings
from reactor_memory.wiring import container as container_module
from reactor_memory.wiring.container import Container
from reactor_memory.wiring.recipes import recipe_of
from reactor_memory.wiring.service_container import ServiceContainer


def related(graph: Any) -> Iterator[Any]:
    """All providers that those of the container are made of, each once, in the order of their making."""
    seen: set[int] = set()

    def below(provider: Any) -> Iterator[Any]:
        if id(provider) not in seen:
            seen.add(id(provider))
            for each in provider.related:
                yield from below(each)
            yield provider

    for provider in graph.providers.values():
        yield from below(provider)


def described(graph: Any) -> list[Any]:
    """Kinds, what they provide, and of which others they are made."""
    found = list(related(graph))
    places = {id(provider): place for place, provider in enumerate(found)}

    def shown(value: Any) -> Any:
        return ("provider", places[id(value)]) if isinstance(value, providers.Provider) else value

    def parts(provider: Any) -> list[Any]:
        match provider:
            case providers.Dependency():
                return [provider.instance_of, provider.default, provider.parent_name]
            case providers.Selector():
                return [provider.selector, *provider.providers.items()]
            case providers.AttributeGetter():
                return [provider.provides, provider.name]
            case providers.List():
                return list(provider.args)
            case providers.Singleton() | providers.Callable() | providers.Factory():
                return [provider.provides, *provider.args, *provider.kwargs.items()]
            case _:
                return [provider.provides]

    def told(part: Any) -> Any:
        return (part[0], shown(part[1])) if isinstance(part, tuple) else shown(part)

    every = [[type(each), *map(told, parts(each))] for each in found]
    return [every, {name: places[id(provider)] for name, provider in graph.providers.items()}]


GRAPHS = [(Container, Settings()), (ServiceContainer, ServiceSettings())]


@pytest.mark.parametrize(("graph", "settings"), GRAPHS, ids=["memory", "service"])
class TestOurs:
    def test_they_are_what_the_framework_copies(
        self, graph: Any, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert recipe_of(graph) is not None
        made = graph(settings=settings)
        monkeypatch.setattr(container_module, "recipe_of", lambda graph: None)
        copied = graph(settings=settings)
        assert described(made) == described(copied)
        assert (type(made), made.declarative_parent) == (type(copied), copied.declarative_parent)
        assert made.settings() is copied.settings() is settings

    def test_they_share_no_provider(self, graph: Any, settings: Settings) -> None:
        first, second = graph(settings=settings), graph(settings=settings)
        mine, others = ({id(each): each for each in related(made)} for made in (first, second))
        of_class = {id(each): each for each in related(graph)}
        assert not set(mine) & set(others)
        assert not (set(mine) | set(others)) & set(of_class)


class TestOtherClasses:
    def test_what_is_overridden_in_the_class_is_so_in_containers(self) -> None:
        class Own(Container):
            pass

        before = Own(settings=Settings())
        with Own.clock.override(providers.Object(lambda: 7)):
            assert Own(settings=Settings()).clock()() == 7
        assert before.clock()() != 7
        assert Own(settings=Settings()).clock()() != 7

    def test_a_part_that_was_added_is_made(self) -> None:
        class Own(Container):
            pass

        assert not hasattr(Own(settings=Settings()), "more")
        Own.more = providers.Singleton(dict, clock=Own.clock)  # type: ignore[attr-defined]
        own: Any = Own(settings=Settings())
        assert own.more()["clock"] is own.clock()

    @pytest.mark.parametrize(
        "part",
        [
            providers.Resource(dict),
            providers.Singleton(dict, {"shared": []}),
            providers.Factory(dict).add_attributes(name=1),
            providers.ThreadSafeSingleton(dict),
        ],
        ids=["another kind", "a value that would be shared", "attributes", "a kind below"],
    )
    def test_what_only_the_framework_can_copy_is_left_to_it(self, part: Any) -> None:
        own: Any = type("Own", (Container,), {"more": part, "both": providers.Singleton(dict, more=part)})
        assert recipe_of(own) is None
        made = own(settings=Settings())
        assert type(made.more) is type(part)
        assert made.both.kwargs["more"] is made.more
