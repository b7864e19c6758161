"""Drafts with the blocks that features bring."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from reactor_memory.core.context.blocks import Block, Part
from reactor_memory.core.context.draft import Draft, with_block
from reactor_memory.features.facts.frames import FACTS, NARRATIVE
from reactor_memory.features.pins.verbatim_pins import verbatim_pins
from reactor_memory.features.recall.choice import RECALLED
from reactor_memory.models import Pin, Role
from reactor_memory.models.block_lines import BlockLine


def draft(
    *,
    fact_lines: Sequence[BlockLine] = (),
    fact_tokens: int | None = None,
    narrative: Sequence[BlockLine] = (),
    notes: Block | None = None,
    pins: Sequence[Pin] = (),
    memory_role: Role = "system",
    recalled_lines: Sequence[BlockLine] = (),
    **fields: Any,
) -> Draft:
    """A draft of the strategy hierarchical, unless `fields` name another."""
    made = Draft(**{"strategy": "hierarchical", "session_id": "s", **fields})
    if pins:
        made = replace(made, verbatim=(verbatim_pins(pins, memory_role),))
    for block in _blocks(fact_lines, fact_tokens, narrative, recalled_lines):
        made = with_block(made, block)
    return with_block(made, notes) if notes else made


def _blocks(
    facts: Sequence[BlockLine], facts_tokens: int | None, narrative: Sequence[BlockLine], recalled: Sequence[BlockLine]
) -> Iterator[Block]:
    if facts:
        yield Block(frame=FACTS, lines=facts, tokens=facts_tokens)
    if narrative:
        yield Block(frame=NARRATIVE, lines=narrative)
    if recalled:
        yield Block(frame=RECALLED, lines=recalled)


def lines_in(made: Draft, part: Part = FACTS.part) -> Sequence[BlockLine]:
    """The lines of a block of the draft."""
    block = made.block(part)
    return block.lines if block else ()
