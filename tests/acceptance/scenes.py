"""Short ways to set a scene: settings, a container with a scripted summarizer, conversations."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from dependency_injector import providers

from reactor_memory import Container, ConversationManager, Memory, Message, Settings, open_memory
from reactor_memory.models.ledger import Extraction, Fact
from reactor_memory.settings.service_settings import ServiceSettings
from reactor_memory.testing import ScriptedSummarizer
from reactor_memory.wiring.service_container import ServiceContainer, open_service_container

USER = "alice"


def settings(url: str = "memory://", **sections: Any) -> Settings:
    """Summaries on, back-off short, nothing looked for unasked, everything else as shipped; `sections` on top."""
    return Settings(**_values(url, sections))


def _values(url: str, sections: dict[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {
        "store": {"url": url},
        "summary": {"enabled": True},
        "background": {"backoff_seconds": 0.01, "max_backoff_seconds": 0.02, "poll_seconds": 3600},
        "tokens": {"counter": "estimate"},
    }
    for name, section in sections.items():
        values[name] = {**values.get(name, {}), **section}
    return values


@asynccontextmanager
async def agent_memory(
    summarizer: ScriptedSummarizer, url: str = "memory://", **sections: Any
) -> AsyncGenerator[Memory]:
    """A memory, by its door, whose summarizer is `summarizer`."""
    async with open_memory(settings(url, **sections), configure=summarized_by(summarizer)) as memory:
        yield memory


def summarized_by(summarizer: ScriptedSummarizer) -> Callable[[Container], None]:
    return lambda container: container.summarizer.override(providers.Object(summarizer))


@asynccontextmanager
async def memory(summarizer: ScriptedSummarizer, url: str = "memory://", **sections: Any) -> AsyncGenerator[Container]:
    """The container behind it."""
    async with agent_memory(summarizer, url, **sections) as opened:
        yield opened.container


@asynccontextmanager
async def service_parts(
    summarizer: ScriptedSummarizer, url: str = "memory://", **sections: Any
) -> AsyncGenerator[ServiceContainer]:
    """The container of a service whose summarizer is `summarizer`."""
    chosen = ServiceSettings(**_values(url, sections))
    async with open_service_container(chosen, configure=summarized_by(summarizer)) as container:
        yield container


def talk(messages: int, *, start: int = 1) -> list[Message]:
    """A conversation of user and assistant in turn; every user message states an order number of its own."""
    return [
        Message.user(f"my order number is A-{number:04}") if number % 2 else Message.assistant(f"noted, entry {number}")
        for number in range(start, start + messages)
    ]


def extract(messages: Sequence[Message]) -> Extraction:
    """What a good summarizer finds in `talk`: each order number, and a narrative."""
    facts = tuple(
        Fact(
            anchor=f"order {message.seq}", key="number", value=message.content.split()[-1], source_seq=message.seq or 0
        )
        for message in messages
        if message.role == "user"
    )
    return Extraction(facts=facts, narrative="The customer gave order numbers.", headline="order numbers")


def scripted(**options: Any) -> ScriptedSummarizer:
    return ScriptedSummarizer(default=extract, **options)


async def save(
    memory: Memory | ConversationManager, session_id: str, messages: Sequence[Message], user_id: str = USER
) -> None:
    await memory.save_history(session_id, messages, user_id=user_id)


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.content for message in messages]


def memory_blocks(messages: Sequence[Message]) -> list[Message]:
    """The messages of a context that are not stored ones: the memory blocks."""
    return [message for message in messages if message.seq is None and message.role == "system"]


async def eventually(holds: Callable[[], bool]) -> None:
    """Until it holds: what is waited for is a state that no event announces."""
    with anyio.fail_after(30):
        while not holds():  # noqa: ASYNC110
            await anyio.sleep(0.005)
