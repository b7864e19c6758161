"""Whether an explanation fits the context that it explains, judged by the context's own messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reactor_memory import Context, Fact, Message
from reactor_memory.core.context.report import MessageFate
from reactor_memory.features.explain.explanation import Explanation, FactFate, Line


def explanation_problems(
    explanation: Explanation, *, last_seq: int, in_view: Sequence[Message], ledger: Sequence[Fact]
) -> list[str]:
    """What is wrong, in plain words. `ledger` has every fact, `in_view` the messages that were not taken back."""
    context = explanation.context
    visible = {message.seq for message in in_view}
    checks = (
        _one_each(explanation, last_seq, ledger),
        *(_message_problems(fate, context, visible) for fate in explanation.messages),
        *(_line_problems(line, context) for line in explanation.lines),
        *(_fact_problems(fate, explanation) for fate in explanation.facts),
    )
    return [problem for check in checks for problem in check]


def _one_each(explanation: Explanation, last_seq: int, ledger: Sequence[Fact]) -> Iterator[str]:
    if [fate.seq for fate in explanation.messages] != list(range(1, last_seq + 1)):
        yield "not one outcome for each message"
    if sorted(map(repr, set(ledger))) != sorted(repr(fate.fact) for fate in explanation.facts):
        yield "not one outcome for each fact"
    shown = {part: _shown_lines(explanation.context, part) for part in ("facts", "narrative", "recalled")}
    for part, texts in shown.items():
        kept = sorted((line.number or 0, line.text) for line in explanation.lines if line.part == part and line.kept)
        if [text for _, text in kept] != texts:
            yield f"the lines of {part} are not those of the context"


def _shown_lines(context: Context, part: str) -> list[str]:
    pairs = zip(context.report.parts, context.messages, strict=True)
    return [line for name, message in pairs if name == part for line in message.content.split("\n")[2:]]


def _message_problems(fate: MessageFate, context: Context, visible: set[int | None]) -> Iterator[str]:
    parts = [part for part, shown in zip(context.report.parts, context.messages, strict=True) if shown.seq == fate.seq]
    if list(fate.parts) != parts or (fate.outcome in ("kept", "clamped")) != bool(parts):
        yield f"message {fate.seq} is {fate.outcome}, but stands in {parts}"
    if fate.outcome == "remembered" and not any(line.kept for line in fate.lines):
        yield f"message {fate.seq} is remembered in no line"
    if fate.outcome == "dropped" and any(line.kept for line in fate.lines):
        yield f"message {fate.seq} is dropped, but a line was made from it"
    if (fate.reason == "withdrawn") != (fate.seq not in visible):
        yield f"message {fate.seq} is {fate.reason}"
    if fate.reason == "unknown":
        yield f"message {fate.seq} has no reason"
    covered = fate.seq <= context.report.covered_seq
    unread = any(first <= fate.seq <= last for first, last in context.report.unread)
    if fate.reason == "summarized" and (not covered or unread):
        yield f"message {fate.seq} is called summarized"


def _line_problems(line: Line, context: Context) -> Iterator[str]:
    shown = _shown_lines(context, line.part)
    if line.kept and (line.number is None or shown[line.number - 1 : line.number] != [line.text]):
        yield f"line {line.number} of {line.part} does not stand there"
    if line.kept != (line.reason in ("fits", "protected")):
        yield f"a line of {line.part} is kept: {line.kept}, because: {line.reason}"


def _fact_problems(fate: FactFate, explanation: Explanation) -> Iterator[str]:
    fact, shown = fate.fact, {message.seq for message in explanation.context.messages}
    if fate.kept != (fate.reason in ("shown", "pinned", "verbatim")):
        yield f"a fact is kept: {fate.kept}, because: {fate.reason}"
    if (fate.reason == "unverified") == fact.verified:
        yield f"a fact is {fate.reason}"
    if fate.reason == "superseded" and fate.successor is None:
        yield "a fact is superseded by none"
    if fate.successor and fate.successor.source_seq < fact.source_seq and not _outranks(fate.successor, fact):
        yield "a fact is superseded by an older one"
    if fate.reason == "shown" and not (fate.line and fate.line.kept and fact.source_seq in fate.line.sources):
        yield "a fact is shown in no line that was made from its message"
    if fate.reason == "verbatim" and fact.source_seq not in shown:
        yield "a fact is verbatim, but its message is not shown"
    if not fate.kept and fact.verified and fact.source_seq in shown:
        yield "a fact is dropped, but its message is shown"
    if fate.reason == "below_floor" and not (fate.line and fate.line.rank < explanation.floor):
        yield "a fact is below the floor, but its line is not"
    if fact.verified and fact.value.casefold() not in fate.quote.casefold():
        yield "a quotation does not hold the value of its fact"


def _outranks(one: Fact, other: Fact) -> bool:
    """What the user stated holds against what the model said later."""
    return one.said_by in ("user", "system") and other.said_by in ("assistant", "agent") and other.act != "correction"
