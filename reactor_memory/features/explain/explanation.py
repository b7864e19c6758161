"""Why a context is as it is: what became of every message, fact and line of memory that could be in it. Pure.

A report answers for what was offered to the context. Here the ledger is asked, too: what competed for the memory when
the window last moved, and what never did.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from reactor_memory.core.context.blocks import Block, Part
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.draft import Draft
from reactor_memory.core.context.report import LineFate, MessageFate, Reason
from reactor_memory.features.facts.frames import FACTS, NARRATIVE
from reactor_memory.features.facts.line_choice import Rank, rank
from reactor_memory.features.facts.plain_text import plain, plain_quotation, plain_value
from reactor_memory.features.facts.prose import render_narrative
from reactor_memory.features.facts.rendering import render_facts, render_lines
from reactor_memory.models import Value
from reactor_memory.models.block_lines import BlockLine, lines_text
from reactor_memory.models.ledger import Fact, PostedSummary, Segment

LineReason: TypeAlias = (
    Reason | Literal["below_floor"]  # dropped when the window last moved: its rank is below the one that lines needed
)

FactReason: TypeAlias = Literal[
    "shown",  # kept: a line of memory was made from it
    "pinned",  # kept: a pin shows it
    "verbatim",  # kept: its message is shown as it was said
    "unverified",  # dropped: its value was not found in its message
    "superseded",  # dropped: a later fact, or what a person said of it, holds in its place
    "retracted",  # dropped: a person retracted or muted it
    "no_memory",  # dropped: the context shows no memory
    "after_memory",  # dropped: newer than the memory, and the window has no room for its message
    "not_in_working_set",  # dropped: no room among the facts that memory is made from
    "repeated",  # dropped: it says nothing that the other facts about the same thing do not
    "below_floor",  # dropped: its line was worth less than those that were kept when the window last moved
    "over_budget",  # dropped: no room for its line when the window last moved
    "low_value",  # dropped: in this context, its line is worth less than those that were kept
]


class Line(Value, frozen=True, kw_only=True):
    """A line that competed for memory, and what became of it.

    `number` counts the lines that the part shows, from 1 (None: it is not shown). `sources` are the messages that it
    was made from, if they are known. `rank` is its value and its newest source.
    """

    part: Part
    text: str
    kept: bool
    reason: LineReason
    number: int | None = None
    sources: tuple[int, ...] = ()
    rank: Rank = (0.0, 0)


class FactFate(Value, frozen=True, kw_only=True):
    """What became of one fact of the ledger.

    `line` is the line that shows it, or the one that would. `successor` is the fact that holds in its place by now;
    a line that shows the older one stays until the window moves. `quote` is what its message says, around the value.
    """

    fact: Fact
    kept: bool
    reason: FactReason
    line: Line | None = None
    successor: Fact | None = None
    quote: str = ""


class Explanation(Value, frozen=True, kw_only=True):
    """A context, and one answer for each message of the session, fact of its ledger, and line that competed.

    `floor` is the rank that a line of facts needed when the window last moved.
    """

    context: Context
    messages: tuple[MessageFate, ...] = ()
    facts: tuple[FactFate, ...] = ()
    lines: tuple[Line, ...] = ()
    floor: Rank = (0.0, 0)


class Evidence(Value, frozen=True, kw_only=True):
    """What log and ledger say of a session.

    `seqs` are the messages to explain, `in_view` those of them that were not taken back. `facts` are to be explained;
    `competing` are the facts, `narrative` the text that the memory of the context was made from. `successors` and
    `quotes` are by fact, where there is one. `retracted` are those that a person took back. `posted` rules the
    narrative.
    """

    seqs: Sequence[int]
    in_view: frozenset[int]
    facts: Sequence[Fact]
    competing: Sequence[Fact]
    successors: dict[Fact, Fact]
    quotes: dict[Fact, str]
    narrative: str = ""
    segments: Sequence[Segment] = ()
    posted: PostedSummary | None = None
    retracted: Collection[Fact] = ()


_LINE_REASONS: dict[LineReason, FactReason] = {
    "below_floor": "below_floor",
    "over_budget": "over_budget",
    "low_value": "low_value",
}


class _Memory(NamedTuple):
    """The lines of memory, and the one for each fact that competed for it."""

    lines: Sequence[Line]
    of_fact: dict[Fact, Line]


def explain(context: Context, draft: Draft, evidence: Evidence) -> Explanation:
    """One answer for everything in `evidence`. `context` was made of `draft`."""
    memory = _memory(context, draft, evidence)
    return Explanation(
        context=context,
        messages=tuple(_in_view(each, evidence) for each in context.report.why_each(evidence.seqs)),
        facts=tuple(map(_Judge(context, draft, evidence, memory.of_fact).fate, evidence.facts)),
        lines=(*memory.lines, *_narrative_lines(context, draft, evidence)),
        floor=draft.floor,
    )


def about_message(explanation: Explanation, seq: int) -> Explanation:
    """The part of an explanation that is about one message: its facts, and the lines made from it."""
    return replace(
        explanation,
        messages=tuple(each for each in explanation.messages if each.seq == seq),
        facts=tuple(each for each in explanation.facts if each.fact.source_seq == seq),
        lines=tuple(line for line in explanation.lines if seq in line.sources),
    )


def about_facts(explanation: Explanation) -> Explanation:
    """The lines cut down to those of the facts that are explained."""
    lines = {each.line for each in explanation.facts if each.line}
    return replace(explanation, lines=tuple(line for line in explanation.lines if line in lines))


def _in_view(fate: MessageFate, evidence: Evidence) -> MessageFate:
    gone = fate.outcome == "dropped" and fate.seq not in evidence.in_view
    return replace(fate, reason="withdrawn") if gone else fate


# -- lines ------------------------------------------------------------------------------------------------------------


def _memory(context: Context, draft: Draft, evidence: Evidence) -> _Memory:
    """The lines that were offered to the context, then those that were left out when the window last moved. A fact
    whose line is not shown may be shown by one that was recalled.
    """
    shown = draft.block(FACTS.part)
    offered = _offered(shown, context) if shown else []
    lines = {(line.text, line.sources): line for line in offered}
    of_fact: dict[Fact, Line] = {}
    competing = (fact for fact in evidence.competing if fact.source_seq < draft.memory_before_seq)
    for text, facts in render_lines(competing, count=len):
        line = lines.setdefault((text.text, text.source_seqs), _left_out(text, draft.floor))
        of_fact.update(dict.fromkeys(facts, line))
    recalled = [line for block in draft.blocks_at("last") for line in _offered(block, context)]
    for fact, line in _recalled([*offered, *recalled], evidence):
        if line.kept and not (fact in of_fact and of_fact[fact].kept):
            of_fact[fact] = line
    return _Memory((*lines.values(), *recalled), of_fact)


def _recalled(lines: Sequence[Line], evidence: Evidence) -> Iterator[tuple[Fact, Line]]:
    """The facts that stand in lines that were recalled: from a message of the line, which holds their value."""
    for fact in evidence.facts if lines else ():
        for line in lines:
            if fact.verified and fact.source_seq in line.sources and _stands_in(fact, line.text):
                yield fact, line


def _stands_in(fact: Fact, line: str) -> bool:
    return any(shown(fact.value) in line for shown in (plain_value, plain_quotation))


def _offered(block: Block, context: Context) -> list[Line]:
    fates = (fate for fate in context.report.lines() if fate.part == block.frame.part)
    return [_line(fate, text) for fate, text in zip(fates, block.lines, strict=True)]


def _line(fate: LineFate, text: BlockLine) -> Line:
    return Line(
        part=fate.part,
        text=text.text,
        kept=fate.kept,
        reason=fate.reason,
        number=fate.number,
        sources=fate.sources,
        rank=rank(text),
    )


def _left_out(text: BlockLine, floor: Rank) -> Line:
    reason = "below_floor" if rank(text) < floor else "over_budget"
    return Line(part=FACTS.part, text=text.text, kept=False, reason=reason, sources=text.source_seqs, rank=rank(text))


def _narrative_lines(context: Context, draft: Draft, evidence: Evidence) -> Iterator[Line]:
    """The prose of memory with the segments that it tells of. Of a line, older sentences may have been left out."""
    offered = [
        line
        for block in draft.blocks_at("memory")
        if block.frame.part != FACTS.part
        for line in _offered(block, context)
    ]
    shown = {line.text for line in offered}
    told = render_narrative(evidence.narrative if draft.memory_before_seq else "", count=len)
    left_out = [replace(_left_out(text, (0.0, 0)), part=NARRATIVE.part) for text in told if text.text not in shown]
    for line in (*left_out, *offered):
        yield replace(line, sources=_sources_of(line.text, evidence))


def _sources_of(line: str, evidence: Evidence) -> tuple[int, ...]:
    """The messages of the newest segment whose narrative ends like `line`, or else the posted summary that says so."""
    posted, said = evidence.posted, line.removeprefix("about ")
    for segment in reversed(evidence.segments):
        told = plain(" ".join(segment.narrative.split()))
        if told and told.endswith(said) and (posted is None or segment.end_seq > posted.until_seq):
            return tuple(range(segment.start_seq, segment.end_seq + 1))
    return (posted.seq,) if posted and said in plain(posted.text) else ()


# -- facts ------------------------------------------------------------------------------------------------------------


class _Judge:
    """Answers for facts."""

    def __init__(self, context: Context, draft: Draft, evidence: Evidence, lines: dict[Fact, Line]) -> None:
        self._evidence = evidence
        self._lines = lines
        self._before = draft.memory_before_seq
        self._competing = frozenset(evidence.competing)
        self._verbatim = frozenset(context.report.seqs)
        self._stated = set(_stated_facts(context, draft))

    def fate(self, fact: Fact) -> FactFate:
        presence = self._presence(fact)
        return FactFate(
            fact=fact,
            kept=presence is not None,
            reason=presence or self._absence(fact),
            line=self._lines.get(fact),
            successor=self._evidence.successors.get(fact),
            quote=self._evidence.quotes.get(fact, ""),
        )

    def _presence(self, fact: Fact) -> FactReason | None:
        if not fact.verified:
            return None
        line = self._lines.get(fact)
        if line and line.kept:
            return "shown"
        if self._is_pinned(fact):
            return "pinned"
        return "verbatim" if fact.source_seq in self._verbatim and not fact.amended else None

    def _is_pinned(self, fact: Fact) -> bool:
        if all(source != fact.source_seq for source, _ in self._stated):
            return False
        text = lines_text([line.text for line in render_facts([fact], count=len)])
        return (fact.source_seq, text) in self._stated

    def _absence(self, fact: Fact) -> FactReason:
        if not fact.verified:
            return "unverified"
        if fact in self._evidence.successors:
            return "superseded"
        if fact in self._evidence.retracted:
            return "retracted"
        if not self._before:
            return "no_memory"
        if fact.source_seq >= self._before:
            return "after_memory"
        if fact not in self._competing:
            return "not_in_working_set"
        line = self._lines.get(fact)
        return _LINE_REASONS[line.reason] if line else "repeated"


def _stated_facts(context: Context, draft: Draft) -> Iterator[tuple[int, str]]:
    """The facts that stand verbatim in the context: the message of each, and its lines below header and notice. What
    was kept first is given up first.
    """
    for verbatim in draft.verbatim:
        gone = len(verbatim.messages) - context.report.parts.count(verbatim.part)
        for message, source in zip(verbatim.messages[gone:], verbatim.sources[gone:], strict=True):
            if message.seq is None:
                yield source, message.content.split("\n", 2)[-1]
