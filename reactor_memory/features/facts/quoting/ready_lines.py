"""Lines that are written in the background, once for all budgets: loads choose among them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from importlib import import_module

import msgspec

from reactor_memory.features.facts.quoting.record_keys import is_quoting
from reactor_memory.features.facts.working_state import is_state
from reactor_memory.models.block_lines import BlockLine, ReadyLine, ReadyLines
from reactor_memory.models.ledger import Fact, Summary, checksum_of


def is_quoted(facts: Sequence[Fact]) -> bool:
    """Whether all of the facts are of the reader that quotes, or of the working state."""
    return bool(facts) and all(is_quoting(fact) or is_state(fact) for fact in facts)


def lines_json(summary: Summary, count: Callable[[str], int]) -> str:
    """The lines of the facts of a summary, as `Summary.lines` reads them; empty where other facts are among them."""
    facts = tuple(fact for fact in summary.facts() if fact.verified)
    if not is_quoted(facts):
        return ""
    write = import_module("reactor_memory.features.facts.quoting.quotation_lines").quotation_lines
    lines = tuple(_ready(each.line, each.facts, each.seq) for each in write(facts, count))
    return msgspec.json.encode(ReadyLines(made_from=checksum_of(summary.facts_json), lines=lines)).decode()


def _ready(line: BlockLine, facts: Iterable[Fact], seq: int) -> ReadyLine:
    return ReadyLine(
        text=line.text,
        tokens=line.tokens,
        value=line.value,
        source_seqs=line.source_seqs,
        seq=seq,
        stays=any(fact.amended for fact in facts),
    )


def offered_beside(lines: Iterable[ReadyLine], said: Collection[int]) -> list[BlockLine]:
    """The lines that tell what no message of `said` says."""
    return [each.line for each in lines if each.stays or each.seq not in said]
