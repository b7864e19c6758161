"""Each part is asked once for what a memory asks it for: what `doctor --deep` tells."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import isclose, sqrt
from typing import Any, NamedTuple

import anyio
import anyio.to_thread
from msgspec.structs import replace

from reactor_memory.errors import ReactorMemoryError
from reactor_memory.models import Message
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.container import Container

SECONDS = 30
SENTENCES = ("My order number is QX-1042.", "I would like it on Friday.")


class Tried(NamedTuple):
    """What a part answered, or what is wrong with it."""

    plug_point: str
    result: str = ""
    problem: str = ""


def told(error: Exception) -> str:
    """What a person reads of an error. Of one that is not ours the kind alone, as its text may hold anything."""
    return str(error) if isinstance(error, ReactorMemoryError) else f"a part fails with a {type(error).__name__}"


async def tried_parts(settings: Settings) -> tuple[Tried, ...]:
    """Of what the settings select; what is switched off is not asked."""
    container = Container(settings=settings)
    tries: dict[str, Callable[[Container], Awaitable[str]]] = {"token_counter": _counts, "redactor": _redacts}
    if settings.summary.enabled:
        tries["summarizer"] = _summarizes
    if settings.search.enabled:
        tries["embedder"] = _embeds
    return tuple([await _tried(container, plug_point, work) for plug_point, work in tries.items()])


async def _tried(container: Container, plug_point: str, work: Callable[[Container], Awaitable[str]]) -> Tried:
    try:
        with anyio.fail_after(SECONDS):
            return Tried(plug_point, result=await work(container))
    except TimeoutError:
        return Tried(plug_point, problem=f"{plug_point}: no answer within {SECONDS} s")
    except Exception as error:  # a part is anybody's code
        return Tried(plug_point, problem=f"{plug_point}: {told(error)}")


async def _counts(container: Container) -> str:
    count: Any = await anyio.to_thread.run_sync(container.token_counter().count, "order")
    if type(count) is not int or count < 1:
        raise UnfitAnswerError(f"counts {count!r} tokens in a word")
    return f"{count} tokens in a word"


async def _redacts(container: Container) -> str:
    text: Any = await anyio.to_thread.run_sync(container.redactor(), SENTENCES[0])
    if not isinstance(text, str):
        raise UnfitAnswerError(f"makes a {type(text).__name__} of a text")
    return "a text of a text"


async def _summarizes(container: Container) -> str:
    summarizer = container.summarizer()
    messages = [replace(Message.user(text), seq=seq) for seq, text in enumerate(SENTENCES, 1)]
    try:
        found: Any = await summarizer.summarize(messages)
        return f"{len(found.facts)} facts and {len(found.narrative)} characters of narrative in two sentences"
    finally:
        await summarizer.aclose()


async def _embeds(container: Container) -> str:
    embedder = container.embedder()
    if embedder is None:
        return "none"
    try:
        vectors: Any = await embedder.embed(SENTENCES)
        if not all(isclose(sqrt(sum(x * x for x in each)), 1, abs_tol=0.01) or not any(each) for each in vectors):
            raise UnfitAnswerError("gives vectors that are not of length 1")
        return f"two vectors of {embedder.dimensions} dimensions"
    finally:
        await embedder.aclose()


class UnfitAnswerError(ReactorMemoryError):
    """A part answered what its plug point does not allow."""
