"""The summarizer that needs no model. Its rules are imported when there is something to summarize."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import anyio.to_thread

from reactor_memory.models import Message
from reactor_memory.models.ledger import NOTHING_KNOWN, Extraction, Known
from reactor_memory.models.tool_roles import NO_ROLES, ToolRoles, folded_name


class ExtractiveSummarizer:
    """A `Summarizer` that keeps the words of people and the calls of tools as they are. Never fails, never leaves the
    machine. It tells no narrative. `tool_roles`: what tools do, by their names; it counts before what messages tell.
    """

    condenser = None

    def __init__(self, tool_roles: ToolRoles = NO_ROLES) -> None:
        self._roles: ToolRoles = {folded_name(name): role for name, role in tool_roles.items()}

    @property
    def name(self) -> str:
        return "extractive"

    @property
    def prompt_version(self) -> str:
        return "2"

    async def summarize(self, messages: Sequence[Message], *, known: Known = NOTHING_KNOWN) -> Extraction:
        """Statements and calls in the order of the messages. Works in a thread."""
        return await anyio.to_thread.run_sync(_read, messages, self._roles)

    async def aclose(self) -> None:
        """Nothing to give back."""


def _read(messages: Sequence[Message], roles: ToolRoles) -> Extraction:
    package = "reactor_memory.features.facts.quoting"
    said = import_module(f"{package}.statements_said").statements_said(messages)
    made = import_module(f"{package}.calls_made").calls_made(messages, roles)
    facts = sorted([*said, *made], key=lambda fact: fact.source_seq)
    return Extraction(facts=tuple(facts))
