"""The two calls of a turn as a middleware, for pipelines that are made of such functions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from reactor_memory.memory import Memory
from reactor_memory.models import Message, Value


class ModelCall(Value, frozen=True, kw_only=True):
    """What goes through the pipeline. `messages` is filled in for the model."""

    session_id: str
    message: Message
    user_id: str | None = None
    agent_name: str | None = None
    messages: tuple[Message, ...] = ()


CallNext = Callable[[ModelCall], Awaitable[Message]]


def memory_middleware(
    memory: Memory, *, budget: int | None = None, system: str | None = None
) -> Callable[[ModelCall, CallNext], Awaitable[Message]]:
    """A function ``(call, call_next) -> answer`` that gives the model its memory and saves the turn.

    If `call_next` raises, the user message alone is saved and the exception goes on.
    """

    async def remember(call: ModelCall, call_next: CallNext) -> Message:
        async with memory.turn(
            call.session_id,
            call.message,
            user_id=call.user_id,
            agent_name=call.agent_name,
            budget=budget,
            system=system,
        ) as turn:
            known = ModelCall(
                session_id=call.session_id,
                message=call.message,
                user_id=call.user_id,
                agent_name=call.agent_name,
                messages=tuple(turn.messages()),
            )
            answer = await call_next(known)
            turn.answer(answer)
        return answer

    return remember
