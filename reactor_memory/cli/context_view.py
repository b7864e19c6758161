"""A context and its report as a person reads them: what the model sees, what it costs, what was left out and why."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from reactor_memory.cli.tables import NOTHING_YET, block_view, count, heading, message_values, message_view, table
from reactor_memory.core.context.blocks import Part
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.report import ContextReport, ReportEntry
from reactor_memory.features.explain.reasons import FRESHNESS, REASONS, compaction_in_words
from reactor_memory.features.replay.replayer import Replay
from reactor_memory.models import JsonObject
from reactor_memory.text.printable import printable


def context_value(context: Context) -> JsonObject:
    """Messages and report for programs."""
    values = message_values(context.messages)
    parts = context.report.parts
    messages = [{"part": part, **value} for part, value in zip(parts, values, strict=True)]
    return {"messages": messages, "report": context.report}


def context_view(context: Context, missing: str = NOTHING_YET, budget: str = "") -> RenderableType:
    """`missing`: why there is no memory, if there is none. `budget`: where the budget comes from, if nobody gave it."""
    report = context.report
    title = Text.assemble(
        ("Context", "bold"),
        f" of {printable(report.session_id)}: {report.total_tokens:,} of {count(report.budget, 'token')}",
        f" · {report.strategy} · {_freshness(report, missing)}",
    )
    told = [Text(budget, style="dim")] if budget else []
    return Group(title, *told, *messages_view(context), Text(), heading("the report"), *_report(report))


def replay_value(replay: Replay) -> JsonObject:
    """A context of the past for programs."""
    values = message_values(replay.messages)
    messages = [{"part": part, **value} for part, value in zip(replay.parts, values, strict=True)]
    known = ("session_id", "seq", "is_exact", "missing", "digest", "budget", "query", "created_at")
    return {**{name: getattr(replay, name) for name in known}, "messages": messages}


def replay_view(replay: Replay) -> RenderableType:
    title = Text.assemble(("Context", "bold"), f" with which message {replay.seq:,} was answered: ")
    if replay.is_exact:
        title.append(f"byte for byte, SHA-256 {replay.digest[:12]}", style="green")
        return Group(title, *_by_parts(replay))
    title.append("the nearest that can be made", style="yellow")
    return Group(title, *(Text(printable(f"- {each}")) for each in replay.missing), *_by_parts(replay))


def _by_parts(replay: Replay) -> Iterator[RenderableType]:
    before: Part | None = None
    for message, part in zip(replay.messages, replay.parts, strict=True):
        if part != before:
            yield Text()
            yield heading(part)
        yield block_view(message, []) if part in replay.blocks else message_view(message)
        before = part


def _freshness(report: ContextReport, missing: str) -> str:
    return f"no memory ({missing})" if report.freshness == "none" else FRESHNESS[report.freshness]


def messages_view(context: Context) -> Iterator[RenderableType]:
    """The messages, with a line before each part that names it."""
    before: Part | None = None
    for message, part in zip(context.messages, context.report.parts, strict=True):
        if part != before:
            tokens = count(context.report.tokens.get(part, 0), "token")
            yield Text()
            yield heading(f"{part} · {tokens}")
        if part in context.report.blocks:
            yield block_view(
                message, [line.sources for line in context.report.lines() if line.part == part and line.kept]
            )
        else:
            yield message_view(message)
        before = part


def _report(report: ContextReport) -> Iterator[RenderableType]:
    yield _parts(report)
    left_out = table("left out", "which", "tokens", "why", right=("tokens",))
    for entry in (*report.dropped, *report.clamped):
        tokens = "" if entry.tokens is None else f"{entry.tokens:,}"
        left_out.add_row(entry.part, _which(entry, report), tokens, Text(REASONS[entry.reason], style="yellow"))
    for first, last in report.unread:
        left_out.add_row("log", _span("message", first, last), "", Text("not in memory and too old", style="red"))
    behind = min(report.covered_seq, (report.window_start_seq or 1) - 1)
    if behind:
        left_out.add_row("log", _span("message", 1, behind), "", "covered by memory; --why says how far it shows them")
    if left_out.row_count:
        yield Text()
        yield left_out
    if report.compaction is not None:
        saved = count(report.compaction.saved_tokens, "token")
        yield Text(f"note: {compaction_in_words(report.compaction)}; that saves {saved}")
    for note in report.remarks:
        yield Text(printable(f"note: {note}"))


def _parts(report: ContextReport) -> Table:
    made = table("part", "tokens", "offered", "kept", right=("tokens", "offered", "kept"))
    for part, offered in report.offered.items():
        kept = sum(entry.count for entry in report.kept if entry.part == part)
        if offered:
            unit = "line" if part in report.blocks else "message"
            made.add_row(part, f"{report.tokens.get(part, 0):,}", count(offered, unit), f"{kept:,}")
    made.add_row(Text("total", style="bold"), Text(f"{report.total_tokens:,}", style="bold"), "", "")
    return made


def _which(entry: ReportEntry, report: ContextReport) -> str:
    unit = "line" if entry.part in report.blocks else "message"
    if entry.by == "position":
        return _span(unit, entry.first + 1, entry.last + 1)
    return _span(unit, entry.first, entry.last)


def _span(unit: str, first: int, last: int) -> str:
    return f"{unit} {first:,}" if first == last else f"{unit}s {first:,} to {last:,}"
