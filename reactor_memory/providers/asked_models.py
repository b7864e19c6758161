"""How the models that the settings name are asked."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from reactor_memory.errors import ConfigurationError
from reactor_memory.providers.breaker import CircuitBreaker

if TYPE_CHECKING:
    from reactor_memory.settings.sections import ModelSettings
    from reactor_memory.settings.settings import Settings

GEMINI_MODEL = "gemini-3.5-flash-lite"
"""What is asked of Gemini where the settings name no model: a current lightweight one."""

ANSWER_SECONDS = 60.0
"""How long an answer may take, all questions about one segment together; in a chat, each piece of it."""

VECTOR_SECONDS = 10.0

FAILURES, OPEN_SECONDS = 5, 30.0
"""After so many failures in a row a provider is left alone for so long, then tried once."""


def new_breaker() -> CircuitBreaker:
    return CircuitBreaker(failures=FAILURES, open_seconds=OPEN_SECONDS, monotonic=time.monotonic)


def key_of(asked: ModelSettings) -> str | None:
    return asked.api_key.get_secret_value() if asked.api_key else None


def named_model(asked: ModelSettings) -> str:
    """Raises `ConfigurationError` where no model is named and the provider has none that would be right."""
    if asked.model is None:
        raise ConfigurationError("model", "must name a model of the server")
    return asked.model


def summarizing_model(settings: Settings) -> str:
    """The model by whose price summaries are counted, also where they are made offline."""
    return settings.model(settings.summary.provider).model or GEMINI_MODEL


@contextmanager
def of_model(name: str) -> Generator[None]:
    """What is wrong with an argument of a provider is said of the setting that it comes from."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(f"models.{name}.{error.key}", error.problem) from None
