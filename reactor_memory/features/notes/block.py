"""The notes of an agent as a memory block."""

from __future__ import annotations

from collections.abc import Callable

from reactor_memory.core.context.blocks import NOTES_HEADER, block_text
from reactor_memory.features.facts.rendering import render_notes
from reactor_memory.models import BlockLine, Value
from reactor_memory.text.caches import memo

REMEMBERED_TEXTS = 256
"""Notes change rarely, and every turn shows them: what was made of so many texts is kept."""

PLANNED_SHARE = 0.25
"""A strategy leaves room for notes of at most this share of the budget. Longer ones take what is left over."""


class NotesBlock(Value, frozen=True, kw_only=True):
    """All lines, and what the block costs as a message, overhead included."""

    lines: tuple[BlockLine, ...] = ()
    tokens: int = 0

    def planned(self, budget: int) -> int:
        """The tokens that a strategy leaves to the notes."""
        return min(self.tokens, int(PLANNED_SHARE * budget))


class NotesRenderer:
    """Makes blocks of notes; `overhead` is tokens a message."""

    def __init__(self, *, count_text: Callable[[str], int], overhead: int) -> None:
        self._count_text = count_text
        self._overhead = overhead
        self._block_of = memo(REMEMBERED_TEXTS)(self._made)

    def __call__(self, text: str) -> NotesBlock:
        """The block of a Markdown text."""
        return self._block_of(text)

    def _made(self, text: str) -> NotesBlock:
        lines = render_notes(text, count=self._count_text)
        if not lines:
            return NotesBlock()
        whole = block_text(NOTES_HEADER, [line.text for line in lines])
        return NotesBlock(lines=lines, tokens=self._count_text(whole) + self._overhead)
