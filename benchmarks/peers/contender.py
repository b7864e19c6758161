"""What every library that is measured here can be asked to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

Store: TypeAlias = Literal["sqlite", "postgres"]

Ability: TypeAlias = Literal["append", "last", "trimmed"]

EVERYTHING: frozenset[Ability] = frozenset({"append", "last", "trimmed"})


class Said(NamedTuple):
    """A message: who said it (``user`` or ``assistant``), and what."""

    role: str
    text: str


Turn: TypeAlias = tuple[Said, Said]


class Contender(Protocol):
    """A library with one store behind it, as a program in production would hold it.

    `setting` and `durability` are for people: which of its documented ways is used, and what a crash of the machine
    leaves of a turn that was acknowledged. Loads return messages in the form in which the library hands them out;
    `text_of` looks inside and is never timed.
    """

    name: str
    setting: str
    durability: str
    abilities: frozenset[Ability]

    async def prepare(self) -> None:
        """Make the schema in an empty database. Called once, before `open`."""
        ...

    async def open(self) -> None:
        """Everything a process does before its first load."""
        ...

    async def close(self) -> None: ...

    async def fill(self, session: str, messages: Sequence[Said]) -> None:
        """Put a new conversation into the store, as if it had been held turn by turn."""
        ...

    async def append_turn(self, session: str, turn: Turn) -> None:
        """Keep what the user said and the answer, durably."""
        ...

    async def load_last(self, session: str, count: int) -> Sequence[Any]:
        """The newest `count` messages, oldest first."""
        ...

    async def load_trimmed(self, session: str, count: int, budget: int) -> Sequence[Any]:
        """The newest of the last `count` messages that fit into `budget` tokens, oldest first."""
        ...

    def text_of(self, message: Any) -> str: ...


MakeContender: TypeAlias = Callable[[str], Contender]
"""Takes the path of a SQLite file or the address of a PostgreSQL database."""
