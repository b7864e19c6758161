"""Logs of tests, read by the reader that quotes."""

from __future__ import annotations

import json
from collections.abc import Sequence

from msgspec.structs import replace

from reactor_memory.features.facts.evidence import verify_facts
from reactor_memory.features.facts.quoting.calls_made import calls_made
from reactor_memory.features.facts.quoting.quotation_lines import quotation_lines
from reactor_memory.features.facts.quoting.statements_said import statements_said
from reactor_memory.models import Message, ToolCall
from reactor_memory.models.ledger import Fact

DAY = 86_400_000_000
START = 1_778_544_000_000_000
"""12 May 2026, a Tuesday."""


def user(text: str, name: str | None = None, **fields: object) -> Message:
    return Message.user(text, name=name, **fields)


def says(text: str) -> Message:
    return Message.assistant(text)


def calls(*made: tuple[str, str, dict[str, object]]) -> Message:
    """One message with calls: the id, the tool and the arguments of each."""
    return Message.assistant(tool_calls=[ToolCall(id=id_, name=tool, arguments=given) for id_, tool, given in made])


def result(value: object, id_: str = "c1", **metadata: object) -> Message:
    return Message.tool(value if isinstance(value, str) else json.dumps(value), tool_call_id=id_, metadata=metadata)


def numbered(messages: Sequence[Message]) -> list[Message]:
    return [replace(message, seq=seq) for seq, message in enumerate(messages, 1)]


def read(messages: Sequence[Message]) -> tuple[Fact, ...]:
    """The verified facts of messages."""
    log = numbered(messages)
    found = verify_facts([*statements_said(log), *calls_made(log)], log)
    return tuple(fact for fact in found if fact.verified)


def lines(*messages: Message) -> list[str]:
    """The lines of memory of a log, without headings."""
    told = quotation_lines(read(messages), len)
    return [each.line.text for each in told if each.line.source_seqs]


def headings(*messages: Message) -> list[str]:
    """The headings of memory of a log."""
    return [each.line.text for each in quotation_lines(read(messages), len) if not each.line.source_seqs]


def one(*messages: Message, about: str) -> str:
    """The only line that holds `about`."""
    (line,) = [line for line in lines(*messages) if about in line]
    return line
