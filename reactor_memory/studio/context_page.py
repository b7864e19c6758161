"""The page of a context: what the model gets, or got, and what that is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
from litestar import Request, Response, get
from litestar.di import NamedDependency
from litestar.params import FromQuery

from reactor_memory import forms
from reactor_memory.core.context.blocks import Part
from reactor_memory.core.context.report import ContextReport
from reactor_memory.evaluation.markup import Markup, tag
from reactor_memory.features.explain.reasons import FRESHNESS, REASONS, compaction_in_words
from reactor_memory.features.replay.replayer import Replay
from reactor_memory.models import Message, Session
from reactor_memory.studio.studio import Studio
from reactor_memory.studio.unfinished_turn import RunningTurn, context_of, running_turn

Form: TypeAlias = Literal["parts", "openai", "openai_responses", "anthropic", "gemini"]
Beside: TypeAlias = Literal["nothing", "take_last", "before"]

FORMS: Mapping[str, str] = {
    "parts": "messages, part by part",
    "openai": "JSON for OpenAI (chat completions)",
    "openai_responses": "JSON for OpenAI (responses)",
    "anthropic": "JSON for Anthropic",
    "gemini": "JSON for Gemini",
}
BESIDE: Mapping[str, str] = {
    "nothing": "nothing",
    "take_last": "what take-last would give",
    "before": "what changed since the turn before",
}
MOST = 10_000_000
"""Of the slider, in tokens."""

NOT_ASKED = "recall: not asked, the message is no question and names no identifier"
BAR = 1000
_HEAD_LINES = 2
"""With which every block of memory begins: its title, and that it is data."""


class Line(NamedTuple):
    """A line of a block, and the messages that it was made from. `is_new`: the context of the turn before has no such
    line.
    """

    text: str
    sources: Sequence[int]
    is_new: bool


class Entry(NamedTuple):
    """A message of the context. `is_cached`: the context of the turn before begins with the very same messages."""

    part: Part
    message: Message
    seq: int | None
    lines: Sequence[Line]
    is_cached: bool
    is_new: bool


class View(NamedTuple):
    """A context, of now or of the past, as the page shows it."""

    messages: Sequence[Message]
    parts: Sequence[Part]
    seqs: Sequence[int | None]
    budget: int | None
    blocks: frozenset[Part] = frozenset()
    report: ContextReport | None = None
    replay: Replay | None = None


@get("/context")
async def context_page(
    request: Request[Any, Any, Any],
    studio: NamedDependency[Studio],
    id: FromQuery[str],  # noqa: A002 (the name in the address)
    message: FromQuery[str] = "",
    budget: FromQuery[int | None] = None,
    turn: FromQuery[int | None] = None,
    form: FromQuery[Form] = "parts",
    beside: FromQuery[Beside] = "nothing",
) -> Response[str]:
    """The context for `message` in `budget` tokens, or with which message `turn` was answered. Stores nothing."""
    session = await studio.session(id)
    last = await studio.budget_of(session.session_id, None)
    turns = await _turns_around(studio, session, turn)
    running = await running_turn(studio, session) if turn is None and not message else None
    view = await _view(studio, session, message, last if budget is None else budget, turn, running)
    before = await _before(studio, session, turns["before"], view) if beside == "before" else None
    counter = studio.memory.container.message_counter()
    overhead = view.report.overhead if view.report else 0
    tokens = view.report.tokens if view.report else _tokens(view, counter.of, overhead)
    values: dict[str, Any] = {
        "session": session,
        "message": message,
        "budget": view.budget,
        "last_budget": last,
        "turn": turn,
        "turns": turns,
        "form": form,
        "beside": beside,
        "view": view,
        "total": sum(tokens.values()),
        "tokens": tokens,
        "bar": bar(tokens, view.budget or sum(tokens.values())),
        "shown": list(entries(view, before)),
        "gone": list(gone(view, before)) if before else [],
        "cached": cached_prefix(view.messages, before.messages) if before else 0,
        "json": as_json(view, form),
        "left_out": list(left_out(view.report)) if view.report else [],
        "freshness": _freshness(view.report),
        "notes": (*_of_running(running, view.report), *(notes(view.report, message) if view.report else ())),
        "taken": await _take_last(studio, session, view) if beside == "take_last" else None,
    }
    part = "context" if request.headers.get("x-fragment") == "context" else None
    return await studio.pages.show("context.html", part=part, forms=FORMS, besides=BESIDE, most=MOST, **values)


async def _view(
    studio: Studio, session: Session, message: str, budget: int | None, turn: int | None, running: RunningTurn | None
) -> View:
    found, owner = session.session_id, session.owner_id
    if turn is not None:
        replay = await studio.memory.replay(found, seq=turn, user_id=owner, budget=budget)
        return View(replay.messages, replay.parts, replay.seqs, replay.budget, replay.blocks, replay=replay)
    if running is not None:
        context = await context_of(studio, session, running, budget)
    else:
        context = await studio.memory.preview(
            found, user_id=owner, message=message or None, budget=budget, on_overflow="drop_memory"
        )
    report = context.report
    return View(context.messages, report.parts, report.seqs, report.budget, report.blocks, report=report)


def _of_running(running: RunningTurn | None, report: ContextReport | None) -> tuple[str, ...]:
    if running is None or report is None:
        return ()
    return (f"this is for the next step of the turn of message {running.first_seq}", *running.in_words(report))


async def _turns_around(studio: Studio, session: Session, turn: int | None) -> dict[str, int | None]:
    """The message of the user before `turn`, or the newest; and the one after it."""
    read, found, owner = studio.memory.read_messages, session.session_id, session.owner_id
    before = await read(found, user_id=owner, until=session.last_seq if turn is None else turn - 1, last=50)
    after = () if turn is None else await read(found, user_id=owner, after=turn, limit=50)
    said = [message.seq for message in before if message.role == "user"]
    next_said = [message.seq for message in after if message.role == "user"]
    return {"before": said[-1] if said else None, "after": next_said[0] if next_said else None}


async def _before(studio: Studio, session: Session, seq: int | None, view: View) -> Replay | None:
    if seq is None:
        return None
    return await studio.memory.replay(session.session_id, seq=seq, user_id=session.owner_id, budget=view.budget)


def notes(report: ContextReport, message: str) -> tuple[str, ...]:
    """What the report remarks, and why the message brought nothing back where that was not even tried."""
    is_told = not message.strip() or any(remark.startswith("recall") for remark in report.remarks)
    return report.remarks if is_told else (*report.remarks, NOT_ASKED)


def _freshness(report: ContextReport | None) -> str:
    if report is None:
        return ""
    return "no memory" if report.freshness == "none" else FRESHNESS[report.freshness]


def _tokens(view: View, count: Any, overhead: int) -> dict[Part, int]:
    found: dict[Part, int] = {}
    for part, message in zip(view.parts, view.messages, strict=True):
        found[part] = found.get(part, 0) + count(message) + overhead
    return found


# -- what is shown ----------------------------------------------------------------------------------------------------


def bar(tokens: Mapping[Part, int], budget: int) -> Markup:
    """The tokens of each part of the budget, as one bar. Its names are in the table beside it."""
    whole = max(budget, sum(tokens.values()), 1)
    pieces, x = [tag("rect", x=0, y=0, width=BAR, height=24, class_="rest")], 0.0
    for part, count in tokens.items():
        width = BAR * count / whole
        title = tag("title", f"{part}: {count:,} tokens")
        pieces.append(tag("rect", title, x=f"{x:.1f}", y=0, width=f"{width:.1f}", height=24, class_=f"part-{part}"))
        x += width
    told = ", ".join(f"{part} {count:,}" for part, count in tokens.items())
    label = f"{sum(tokens.values()):,} of {budget:,} tokens: {told}"
    return tag(
        "svg", *pieces, viewBox=f"0 0 {BAR} 24", preserveAspectRatio="none", role="img", aria_label=label, class_="bar"
    )


def entries(view: View, before: Replay | None) -> Iterator[Entry]:
    """Each message with its lines and their sources, beside the context of the turn `before`."""
    cached = cached_prefix(view.messages, before.messages) if before else 0
    known = {line for message in before.messages for line in message.content.split("\n")} if before else None
    contents = {message.content for message in before.messages} if before else None
    sources = dict(view.report.sources) if view.report else {}
    for number, (part, message, seq) in enumerate(zip(view.parts, view.messages, view.seqs, strict=True)):
        kept = _kept_sources(view.report, part, sources)
        lines = list(_lines(message, kept, known)) if part in view.blocks else []
        is_new = contents is not None and not lines and message.content not in contents
        yield Entry(part, message, seq, lines, number < cached, is_new)


def _kept_sources(report: ContextReport | None, part: Part, sources: Mapping[Part, Any]) -> Sequence[Sequence[int]]:
    if report is None or part not in sources:
        return ()
    return [line.sources for line in report.lines() if line.part == part and line.kept]


def _lines(message: Message, sources: Sequence[Sequence[int]], known: set[str] | None) -> Iterator[Line]:
    for number, text in enumerate(message.content.split("\n")):
        position = number - _HEAD_LINES
        made_from = sources[position] if 0 <= position < len(sources) else ()
        yield Line(text, made_from, known is not None and text not in known)


def cached_prefix(messages: Sequence[Message], before: Sequence[Message]) -> int:
    """How many messages both begin with: what a provider's cache can serve again."""
    for number, (one, other) in enumerate(zip(messages, before, strict=False)):
        if (one.role, one.content, one.tool_calls, one.parts) != (
            other.role,
            other.content,
            other.tool_calls,
            other.parts,
        ):
            return number
    return min(len(messages), len(before))


def gone(view: View, before: Replay) -> Iterator[str]:
    """The lines of memory that the context of the turn before had, and this one has not."""
    have = {line for message in view.messages for line in message.content.split("\n")}
    for part, message in zip(before.parts, before.messages, strict=True):
        if part in before.blocks:
            yield from (line for line in message.content.split("\n") if line not in have)


def as_json(view: View, form: Form) -> str | None:
    """What a provider's interface takes; None where parts are shown."""
    if form == "parts":
        return None
    value = getattr(forms, f"to_{form}")(list(view.messages))
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def left_out(report: ContextReport) -> Iterator[tuple[str, str, str, int | None]]:
    """Part, which of it, why, and how many tokens it would take."""
    for entry in (*report.dropped, *report.clamped):
        unit = "line" if entry.part in report.blocks else "message"
        first = entry.first + (entry.by == "position")
        which = f"{unit} {first:,}" if entry.count == 1 else f"{unit}s {first:,} to {first + entry.count - 1:,}"
        yield entry.part, which, REASONS[entry.reason], entry.tokens
    if report.compaction is not None:
        yield "current", "the turn", compaction_in_words(report.compaction), report.compaction.saved_tokens
    for first, last in report.unread:
        yield "log", f"messages {first:,} to {last:,}", "not in memory and too old for the window", None
    behind = min(report.covered_seq, (report.window_start_seq or 1) - 1)
    if behind > 0:
        yield "log", f"messages 1 to {behind:,}", "left the window; memory covers them", None


async def _take_last(studio: Studio, session: Session, view: View) -> Sequence[Message]:
    until = session.last_seq if view.replay is None else view.replay.seq - 1
    messages = await studio.memory.read_messages(
        session.session_id, user_id=session.owner_id, until=until, last=1000, archived=False
    )
    budget = view.budget or 0
    return take_last(messages, budget, studio.memory.container.message_counter().of)


def take_last(messages: Sequence[Message], budget: int, count: Any) -> Sequence[Message]:
    """The newest messages that fit, from the first one of the user among them on."""
    used, start = 0, len(messages)
    while start and (used := used + count(messages[start - 1])) <= budget:
        start -= 1
    first = next((at for at in range(start, len(messages)) if messages[at].role == "user"), len(messages))
    return messages[first:]
