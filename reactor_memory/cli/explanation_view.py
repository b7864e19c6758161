"""An explanation as a person reads it: for every message, fact and line what became of it, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from reactor_memory.cli.tables import count, heading, message_values, message_view, spans, table
from reactor_memory.core.context.blocks import Part
from reactor_memory.core.context.report import MessageFate, MessageReason
from reactor_memory.features.explain.explanation import Explanation, FactFate, FactReason, Line
from reactor_memory.features.explain.reasons import FACT_REASONS, LINE_REASONS, MESSAGE_REASONS, NO_ROOM
from reactor_memory.models import JsonObject, Message
from reactor_memory.text.printable import printable


def explanation_value(found: Explanation, messages: Sequence[Message] = ()) -> JsonObject:
    """The explanation for programs, with the `messages` that were asked about."""
    report = found.context.report
    return {
        "session_id": report.session_id,
        "strategy": report.strategy,
        "freshness": report.freshness,
        "budget": report.budget,
        "floor": found.floor,
        "source": message_values(messages),
        "messages": found.messages,
        "facts": found.facts,
        "lines": found.lines,
    }


def explanation_view(found: Explanation, messages: Sequence[Message] = ()) -> RenderableType:
    report = found.context.report
    title = Text.assemble(
        ("Why", "bold"),
        f" the context of {printable(report.session_id)} in {count(report.budget, 'token')} is as it is",
    )
    parts: list[RenderableType] = [title]
    parts += [message_view(message) for message in messages]
    parts += [Text(), heading("messages"), _messages(found.messages)]
    for reason, facts in _by_reason(found.facts):
        parts += [Text(), heading(f"{count(len(facts), 'fact')}: {FACT_REASONS[reason]}"), _facts(facts)]
    if found.lines:
        parts += [Text(), heading("lines of memory"), _lines(found)]
    return Group(*parts)


def _messages(fates: Sequence[MessageFate]) -> Table:
    made = table("messages", "outcome", "where", "why")
    alike: dict[tuple[str, MessageReason, tuple[Part, ...]], list[int]] = {}
    for fate in fates:
        alike.setdefault((fate.outcome, fate.reason, fate.parts), []).append(fate.seq)
    for (outcome, reason, parts), seqs in alike.items():
        made.add_row(spans(seqs), _outcome(outcome), ", ".join(parts), MESSAGE_REASONS[reason])
    return made


def _by_reason(fates: Iterable[FactFate]) -> Iterator[tuple[FactReason, Sequence[FactFate]]]:
    found: dict[FactReason, list[FactFate]] = {}
    for fate in fates:
        found.setdefault(fate.reason, []).append(fate)
    return ((reason, found[reason]) for reason in FACT_REASONS if reason in found)


def _facts(fates: Sequence[FactFate]) -> Table:
    made = table("message", "fact", "said by", "as it was said", "line", right=("message", "line"))
    for fate in fates:
        fact = fate.fact
        named = printable(f"{fact.anchor}, {fact.key}: {fact.value}{fact.mark}")
        quoted = Text(printable(fate.quote), no_wrap=True, overflow="ellipsis")
        made.add_row(str(fact.source_seq), named, fact.said_by, quoted, _where(fate))
    return made


def _where(fate: FactFate) -> str:
    if fate.kept:
        return str(fate.line.number or "") if fate.line else ""
    if fate.successor is not None:
        return f"see {fate.successor.source_seq}"
    return _rank(fate.line) if fate.line else ""


def _lines(found: Explanation) -> RenderableType:
    made = table("line", "made from", "text", "why", right=("line",))
    for line in found.lines:
        text = Text(printable(line.text), no_wrap=True, overflow="ellipsis")
        number = f"{line.part} {line.number}" if line.number else ""
        made.add_row(number, spans(line.sources), text, _why(line))
    if not any(line.reason == "below_floor" for line in found.lines):
        return made
    return Group(made, Text(f"lines of facts needed rank {found.floor[0]:.2f} at {found.floor[1]}", style="dim"))


def _why(line: Line) -> str:
    if line.reason == "over_budget" and line.part in NO_ROOM:
        return NO_ROOM[line.part]
    return LINE_REASONS[line.reason] + (f", {_rank(line)}" if line.reason == "below_floor" else "")


def _rank(line: Line) -> str:
    return f"rank {line.rank[0]:.2f} at {line.rank[1]}"


def _outcome(outcome: str) -> Text:
    return Text(outcome, style="yellow" if outcome == "dropped" else "green")
