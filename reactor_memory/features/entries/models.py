"""A text that stands in contexts: what a feature keeps of one, whatever its kind."""

from __future__ import annotations

from typing import TypeAlias

from reactor_memory.models import JsonObject, Value

Kind: TypeAlias = str
"""Which feature reads an entry: ``notes``, ``pin``, ``posted``, ``range``, or one of its own."""

DERIVED: tuple[Kind, ...] = ("range",)
"""Kinds that are made again from their messages where they are damaged."""


class Entry(Value, frozen=True, kw_only=True):
    """A text, or a reference to a message that has it, of a session or of a user.

    `name` tells it from others of its kind, `version` from what it was before (0 where that is not kept). `place` is
    its place among those of its kind. It was made of the messages `start_seq`..`end_seq` (0: of none), and goes with
    the first of them that goes; `seq` is the message that it quotes or stands in. One with a `state` stands for its
    messages, of which that tells what became: it is found along the branch, where these are. Of one without, a fork
    gets a copy. `replaced_by` names the one that took its place. `details` are those of its kind.
    """

    kind: Kind
    name: str
    version: int = 0
    place: int = 0
    start_seq: int = 0
    end_seq: int = 0
    seq: int | None = None
    role: str | None = None
    author: str | None = None
    state: str | None = None
    replaced_by: str | None = None
    token_count: int | None = None
    tokenizer: str | None = None
    created_at: int = 0
    text: str = ""
    details: JsonObject = {}
