"""The demonstration as a newcomer reads it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from reactor_memory.cli.context_view import context_value, messages_view
from reactor_memory.cli.demo_run import Demonstration, Detail
from reactor_memory.cli.tables import count, heading, moment, table
from reactor_memory.core.context.blocks import Part
from reactor_memory.core.context.context import Context
from reactor_memory.models import JsonObject
from reactor_memory.text.documents import page
from reactor_memory.text.printable import printable

SHOWN_DETAILS = 12


def demo_value(shown: Demonstration) -> JsonObject:
    """The demonstration for programs."""
    return {
        "session_id": shown.session_id,
        "messages": len(shown.messages),
        "tokens": shown.tokens,
        "pace_microseconds": shown.pace,
        "context": context_value(shown.ours),
        "take_last": context_value(shown.take_last),
        "details": [_detail_value(detail) for detail in shown.details],
        "rescued": len(shown.rescued),
        "refuted": len(shown.refuted),
    }


def demo_view(shown: Demonstration) -> RenderableType:
    parts: list[RenderableType] = [
        Text("A long conversation in a small context", style="bold"),
        Text(),
        _steps(shown),
        Text(),
        heading("what the model gets"),
        *messages_view(shown.ours),
        Text(),
        heading("next to take-last under the same budget"),
        _comparison(shown),
        *_rescued(shown),
        Text(),
        Rule(style="dim"),
        *_closing(shown),
    ]
    return Group(*parts)


def _detail_value(detail: Detail) -> JsonObject:
    return {
        "question": detail.probe.question,
        "answer": _answer(detail),
        "said_at": [position + 1 for position in detail.probe.evidence],
        "shown_as": detail.shown_as,
        "in_take_last": detail.in_take_last,
    }


def _answer(detail: Detail) -> str:
    return detail.probe.canonical or detail.probe.value[0]


def _steps(shown: Demonstration) -> RenderableType:
    pace, report = shown.pace, shown.ours.report
    steps = table("", "", "")
    steps.show_header = False
    saved = f"session {printable(shown.session_id)}: {count(len(shown.messages), 'message')}, {_period(shown)}"
    steps.add_row("1 saved", f"{saved}, {count(shown.tokens, 'token')}", _seconds(pace.saving))
    found = f"{count(pace.segments, 'segment')}, {count(pace.facts, 'fact')}; each message read once, offline"
    steps.add_row("2 summarized", f"in the background: {found}", _seconds(pace.catching_up))
    size = f"{report.total_tokens:,} of {count(report.budget, 'token')}"
    steps.add_row("3 loaded", f"the context of the next turn: {size}", _seconds(pace.loading))
    return steps


def _period(shown: Demonstration) -> str:
    days = [moment(at).partition(" ")[0] for at in (shown.messages[i].created_at for i in (0, -1)) if at is not None]
    return " to ".join(dict.fromkeys(days))


def _seconds(microseconds: int) -> str:
    return f"{microseconds / 1e6:.1f} s" if microseconds >= 50_000 else f"{microseconds / 1e3:.0f} ms"


def _comparison(shown: Demonstration) -> Table:
    made = table("", "reactor-memory", "take-last", right=("reactor-memory", "take-last"))
    for part in ("facts", "narrative", "window"):
        made.add_row(part, *(_tokens(context, part) for context in (shown.ours, shown.take_last)))
    made.add_row("total", *(count(each.report.total_tokens, "token") for each in (shown.ours, shown.take_last)))
    made.add_row("goes back to message", *(_oldest(each) for each in (shown.ours, shown.take_last)))
    if shown.details:
        ours, theirs = _kept(shown)
        made.add_row(Text("details kept", style="bold"), Text(ours, style="bold green"), Text(theirs, style="bold red"))
    return made


def _tokens(context: Context, part: Part) -> str:
    tokens = context.report.tokens.get(part, 0)
    return count(tokens, "token") if tokens else "–"


def _oldest(context: Context) -> str:
    """The oldest message that stands behind anything in the context."""
    if context.report.covered_seq and context.report.tokens.get("facts"):
        return "1"
    return f"{context.report.window_start_seq or 0:,}"


def _kept(shown: Demonstration) -> tuple[str, str]:
    ours = sum(detail.shown_as is not None for detail in shown.details)
    theirs = sum(detail.in_take_last for detail in shown.details)
    return f"{ours} of {len(shown.details)}", f"{theirs} of {len(shown.details)}"


def _rescued(shown: Demonstration) -> Iterator[RenderableType]:
    rescued = shown.rescued
    if not shown.details:
        yield Text(f"\nthe session has no probes, so no details were looked for ({page('formats')})", style="dim")
        return
    yield Text()
    yield heading(f"rescued: {count(len(rescued), 'detail')} that take-last has lost")
    made = table("detail", "answer", "said at", "in our context", right=("said at",))
    for detail in rescued[:SHOWN_DETAILS]:
        said = ", ".join(f"{position + 1}" for position in detail.probe.evidence[-1:])
        line = Text(printable(" ".join((detail.shown_as or "").split())), no_wrap=True, overflow="ellipsis")
        made.add_row(printable(detail.probe.question), Text(printable(_answer(detail)), style="green"), said, line)
    yield made
    if len(rescued) > SHOWN_DETAILS:
        yield Text(f"… and {len(rescued) - SHOWN_DETAILS} more (all of them: --json)", style="dim")
    yield _verdict(shown)


def _verdict(shown: Demonstration) -> Text:
    if shown.refuted:
        return Text(f"not true: {len(shown.refuted)} of them are in take-last's context after all", style="bold red")
    return Text(f"verified: none of the {len(shown.rescued)} is in take-last's context", style="green")


def _closing(shown: Demonstration) -> Iterator[RenderableType]:
    ratio = shown.ours.report.total_tokens / max(shown.tokens, 1)
    kept = " Details kept: {} (take-last: {}).".format(*_kept(shown)) if shown.details else ""
    size = f"{count(shown.tokens, 'token')} of conversation in {shown.ours.report.total_tokens:,} ({ratio:.0%})."
    yield Text(size + kept, style="bold")
    yield Text()
    next_steps = table("", "")
    next_steps.show_header = False
    next_steps.add_row(
        f"reactor-memory demo --budget {max(1, shown.ours.report.budget // 2)}", "the same in half of it"
    )
    next_steps.add_row("reactor-memory demo FILE", f"your own conversation ({page('formats')})")
    next_steps.add_row("reactor-memory demo --store demo.db", "keep the database, for context, facts, show ...")
    yield next_steps
    yield Text("\nBefore each fact stand the messages that it was made from. Follow the first one:")
