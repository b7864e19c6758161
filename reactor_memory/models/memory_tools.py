"""The tools by which an agent asks its own memory, and those that tell what it is about."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from reactor_memory.models import ToolCall

READING_TOOL: Final = "memory_read"
SEARCHING_TOOL: Final = "memory_search"
NOTE_TOOL: Final = "memory_note"

MEMORY_TOOLS: Final = frozenset({READING_TOOL, SEARCHING_TOOL, NOTE_TOOL, "manage_long_term_memory"})
"""Calls of these are no deeds, and no source of memory."""

_PLAN = re.compile(r"(?:^|[^a-z])(?:plans?|todos?)(?:$|[^a-z])")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


def lasting_key(call: ToolCall) -> str | None:
    """What is told anew by a later call with the same key: a plan, or a note. None of another call."""
    if call.name == NOTE_TOOL:
        return f"note {_given(call).get('key')}"
    return "plan" if _PLAN.search(_HUMP.sub("_", call.name).lower()) else None


def _given(call: ToolCall) -> dict[str, Any]:
    if not isinstance(call.arguments, str):
        return call.arguments
    try:
        return msgspec.json.decode(call.arguments, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return {}
