"""Lines of memory that leave a context for what comes back, and answer: they come back, too. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from reactor_memory.core.context.blocks import Block
from reactor_memory.core.context.context import Context
from reactor_memory.features.facts.quoting.call_lines import ROW
from reactor_memory.features.recall.choice import HEAD_TOKENS
from reactor_memory.features.recall.ranking import matched, rarities
from reactor_memory.features.recall.room import HAD_SHARE
from reactor_memory.models.block_lines import BlockLine
from reactor_memory.models.index_requests import IndexAnswer
from reactor_memory.text.analyzer import terms


def answering_lines(blocks: Iterable[Block], context: Context, findings: IndexAnswer) -> tuple[BlockLine, ...]:
    """The lines of `blocks` that `context` does not show, and that hold about as much of the question as the best of
    what was found, each with its place and heading.
    """
    weights = rarities(findings)
    best = max((matched(hit.passage.terms, weights) for hit in findings.found), default=0.0)
    shown = _shown_lines(context)
    gone = (line for line in _by_themselves(blocks) if line[0].text not in shown)
    held = ((line, head, matched(set(terms(line.text)) & weights.keys(), weights)) for line, head in gone)
    return tuple(
        replace(line, text=f"[{head}] {line.text.removeprefix(ROW)}", tokens=line.tokens + HEAD_TOKENS, value=weight)
        for line, head, weight in held
        if weight and weight >= HAD_SHARE * best
    )


def in_order(lines: Iterable[BlockLine], others: Iterable[BlockLine]) -> tuple[BlockLine, ...]:
    """All of the lines, oldest first."""
    return tuple(sorted([*lines, *others], key=lambda line: line.source_seqs[0]))


def _shown_lines(context: Context) -> frozenset[str]:
    blocks = context.report.blocks
    told = (message for message, part in zip(context.messages, context.report.parts, strict=True) if part in blocks)
    return frozenset(line for message in told for line in message.content.split("\n"))


def _by_themselves(blocks: Iterable[Block]) -> Iterator[tuple[BlockLine, str]]:
    """The lines that tell of messages, with what stands before one that stands by itself: rows have titles, all else
    stands under days.
    """
    for block in blocks:
        heading, is_title = "", False
        for line in block.lines:
            if not line.source_seqs:
                heading, is_title = line.text.rstrip(":"), False
                continue
            is_row = line.text.startswith(ROW)
            is_title = is_title or is_row
            place = f"#{line.source_seqs[0]}"
            yield line, f"{place}, {heading}" if heading and is_title == is_row else place
