"""What all models behind a network have in common: an answer that comes in pieces, and one kind of error."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TypeVar

import anyio

from reactor_memory.errors import ChatModelError, SummarizationError

T = TypeVar("T")


async def in_time(pieces: AsyncGenerator[T], seconds: float) -> AsyncGenerator[T]:
    """`pieces`, none of which may keep us waiting longer: `TimeoutError`."""
    async with aclosing(pieces):
        while True:
            with anyio.fail_after(seconds):
                try:
                    piece = await anext(pieces)
                except StopAsyncIteration:
                    return
            yield piece


async def or_chat_model_error(
    pieces: AsyncGenerator[str], failure_of: Callable[[Exception], SummarizationError]
) -> AsyncGenerator[str]:
    """`pieces`, with whatever they raise as a `ChatModelError`. `failure_of` turns the errors of a client library into
    `SummarizationError`.
    """
    async with aclosing(pieces):
        failure = None
        try:
            async for piece in pieces:
                yield piece
        except SummarizationError as error:
            failure = error
        except Exception as error:
            failure = failure_of(error)
    # Outside of the handler: what went wrong may quote the conversation, so it must not become the cause.
    if failure is not None:
        raise ChatModelError(failure.reason, failure.problem)
