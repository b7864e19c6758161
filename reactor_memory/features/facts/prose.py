"""A narrative, and the notes of an agent, as the lines of a memory block."""

from __future__ import annotations

from reactor_memory.features.facts.plain_text import plain, unforged, unforged_notes_line
from reactor_memory.features.facts.rendering import Count
from reactor_memory.models.block_lines import BlockLine


def render_narrative(text: str, *, count: Count) -> tuple[BlockLine, ...]:
    """The narrative as lines, one a segment; the older a line, the lower its value."""
    plains = [line for line in map(plain, text.splitlines()) if line]
    return tuple(
        BlockLine(text=line, tokens=count("\n" + line), value=position / len(plains))
        for position, line in enumerate(map(unforged, plains), start=1)
    )


def render_notes(text: str, *, count: Count) -> tuple[BlockLine, ...]:
    """Notes as lines, indented as they are; the later a line, the lower its value."""
    lines = [unforged_notes_line(line) for line in text.splitlines() if plain(line)]
    return tuple(
        BlockLine(text=line, tokens=count("\n" + line), value=1 - position / len(lines))
        for position, line in enumerate(lines)
    )
