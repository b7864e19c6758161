"""What can be changed, with ``--write``: each act is asked about once more before it is done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, NamedTuple

from litestar import Response, post
from litestar.di import NamedDependency
from litestar.enums import RequestEncodingType
from litestar.params import Body
from litestar.response import Redirect

from reactor_memory.errors import InvalidInputError
from reactor_memory.memory import Memory
from reactor_memory.models import Value
from reactor_memory.studio.rendering import address
from reactor_memory.studio.studio import Studio


class Wanted(Value, frozen=True, kw_only=True):
    """What a form of the session's page sends. An act is about the message `seq`, or the fact `anchor` and `key`."""

    id: str
    act: str
    seq: int | None = None
    anchor: str | None = None
    key: str | None = None
    value: str = ""
    confirmed: bool = False

    @property
    def fact(self) -> tuple[str, str] | None:
        return None if self.anchor is None or self.key is None else (self.anchor, self.key)

    @property
    def named_fact(self) -> tuple[str, str]:
        """Raises `InvalidInputError` without a fact."""
        if self.fact is None:
            raise InvalidInputError("fact", "is needed: give its anchor and key")
        return self.fact


async def _pin(memory: Memory, wanted: Wanted, user_id: str | None) -> None:
    await memory.pins.add(wanted.id, seq=wanted.seq, fact=wanted.fact, user_id=user_id)


async def _unpin(memory: Memory, wanted: Wanted, user_id: str | None) -> None:
    await memory.pins.remove(wanted.id, seq=wanted.seq, fact=wanted.fact, user_id=user_id)


async def _correct(memory: Memory, wanted: Wanted, user_id: str | None) -> None:
    await memory.facts.correct(wanted.id, fact=wanted.named_fact, value=wanted.value, user_id=user_id)


async def _retract(memory: Memory, wanted: Wanted, user_id: str | None) -> None:
    await memory.facts.retract(wanted.id, fact=wanted.named_fact, user_id=user_id)


async def _withdraw(memory: Memory, wanted: Wanted, user_id: str | None) -> None:
    await memory.withdraw(wanted.id, seq=wanted.seq, user_id=user_id)


async def _erase(memory: Memory, wanted: Wanted, user_id: str | None) -> None:
    await memory.erasure.erase(wanted.id, seq=wanted.seq or 0, user_id=user_id)


class Act(NamedTuple):
    """`question` asks before it is done, `done` says it afterwards."""

    do: Callable[[Memory, Wanted, str | None], Awaitable[None]]
    question: str
    done: str


ACTS: Mapping[str, Act] = {
    "pin": Act(_pin, "Pin this, so that every context of the session shows it?", "Pinned."),
    "unpin": Act(_unpin, "Take the pin away?", "The pin is gone."),
    "correct": Act(_correct, "Store this value instead of what was extracted?", "Corrected: the next load shows it."),
    "retract": Act(_retract, "Say that this is no fact, so that no context shows it?", "Retracted."),
    "withdraw": Act(_withdraw, "Take the newest message back, with everything that was made of it?", "Withdrawn."),
    "erase": Act(_erase, "Erase this message, its text and everything that was made of it, for ever?", "Erased."),
}


@post("/session/act")
async def act(
    studio: NamedDependency[Studio], data: Annotated[Wanted, Body(media_type=RequestEncodingType.URL_ENCODED)]
) -> Response[str] | Redirect:
    """Ask first; once it is confirmed, do it and go back to the session."""
    studio.require_writing()
    chosen = ACTS.get(data.act)
    if chosen is None:
        raise InvalidInputError("act", f"must be one of {', '.join(ACTS)}")
    if not data.confirmed:
        return await studio.pages.show("confirm.html", wanted=data, question=chosen.question)
    await chosen.do(studio.memory, data, await studio.owner_of(data.id))
    return Redirect(address("/session", id=data.id, done=chosen.done, show="facts"), status_code=303)
