"""What keeps a container whole: a part is replaced for everybody, or not at all."""

from __future__ import annotations

from typing import Any, NoReturn, cast

from dependency_injector import containers, providers
from dependency_injector.providers import is_provider

from reactor_memory.errors import ConfigurationError


class PartsContainer(containers.DynamicContainer):
    """Parts that are replaced by `override`, as long as the container is not opened.

    From then on parts hold each other, so a part that takes the place of another would be seen by some and not by
    others. Assigning a part, at any time, would do the same. Both are a `ConfigurationError`.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if is_provider(value) and name in self.__dict__.get("providers", ()):
            refuse(name, "is assigned", f"call container.{name}.override(...)")
        super().__setattr__(name, value)

    def seal(self) -> None:
        """Let nothing be replaced from now on."""
        for name, provider in self.providers.items():
            self.__dict__[name] = OpenedPart(name, provider)

    def reset_override(self) -> None:
        self._require_unsealed()
        super().reset_override()

    def reset_last_overriding(self) -> None:
        self._require_unsealed()
        super().reset_last_overriding()

    def _require_unsealed(self) -> None:
        for name, provider in self.__dict__.items():
            if isinstance(provider, OpenedPart):
                provider.refuse(name)


class OpenedPart(providers.Provider[Any]):
    """A part of an opened container: it is given to whoever asks, and nothing takes its place."""

    def __init__(self, name: str, provider: Any) -> None:
        super().__init__()
        self._name = name
        self._part = provider

    def _provide(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._part(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._part, name)

    def refuse(self, *_: object) -> NoReturn:
        refuse(self._name, "is overridden after opening", "do it in configure=, which is called before")

    override = reset_override = reset_last_overriding = cast("Any", refuse)


def refuse(name: str, deed: str, remedy: str) -> NoReturn:
    raise ConfigurationError(f"container.{name}", f"{deed}, which would reach some parts and not others: {remedy}")
