"""The page of a session: what was said, what is left of it, and what was taken from it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from litestar import Request, Response, get
from litestar.di import NamedDependency
from litestar.params import FromQuery

from reactor_memory.core.context.context import Context
from reactor_memory.features.explain.reasons import FACT_REASONS, LINE_REASONS, MESSAGE_REASONS
from reactor_memory.features.facts.tracing import TracedFact
from reactor_memory.features.tiers.operations import read_range_summaries
from reactor_memory.models import Message, Session
from reactor_memory.models.ledger import Fact
from reactor_memory.studio.rendering import called
from reactor_memory.studio.session_list import as_tree, work_in_words
from reactor_memory.studio.studio import Studio
from reactor_memory.studio.unfinished_turn import RunningTurn, context_of, running_turn

PAGE = 200
"""Messages on a page of the timeline: what is read and rendered does not grow with the session."""
FACTS_SHOWN = 300
WHOLE = 200_000
"""Characters of a message that is looked at; the timeline shows fewer."""


class Entry(NamedTuple):
    """A message in the timeline, or a position of which no message is left (None). `states` are words for what became
    of it.
    """

    seq: int
    message: Message | None
    states: tuple[str, ...]


@get("/session")
async def session_page(
    request: Request[Any, Any, Any],
    studio: NamedDependency[Studio],
    id: FromQuery[str],  # noqa: A002 (the name in the address)
    seq: FromQuery[int | None] = None,
    anchor: FromQuery[str | None] = None,
    key: FromQuery[str | None] = None,
    show: FromQuery[str] = "",
    find: FromQuery[str] = "",
    done: FromQuery[str] = "",
    start: FromQuery[int | None] = None,
    window: FromQuery[bool] = False,
) -> Response[str]:
    """A page of the timeline with, beside it, the facts, one fact (`anchor` and `key`), or one message (`seq`).

    `show`: ``facts`` that hold, or ``everything``; without it the page asks for the facts once it is shown. `start`:
    the first message of the page, else it holds the chosen one, else the newest. `window`: mark what the next context
    shows, for which it has to be made; without it the page asks for that, too, once it is shown.
    """
    session = await studio.session(id)
    fact = None if anchor is None or key is None else (anchor, key)
    aside = await _aside(studio, session, seq, fact, show, find)
    chosen = aside["chosen"].seq if aside["chosen"] is not None else seq
    first = start_of(session.last_seq, chosen, start)
    address = {"id": id, "seq": seq, "anchor": anchor, "key": key, "start": first, "show": show, "find": find}
    values: dict[str, Any] = {"session": session, "writes": studio.writes, "find": find, "done": done, **aside}
    values |= {"first": first, "page": PAGE, "window": window, "here": address}
    fragment = request.headers.get("x-fragment")
    if fragment == "aside":
        return await studio.pages.show("session.html", part="aside", **values)
    values |= await _timeline(studio, session, first, window)
    if fragment == "timeline":
        return await studio.pages.show("session.html", part="timeline", **values)
    return await studio.pages.show("session.html", **values, **await _headline(studio, session))


def start_of(last_seq: int, chosen: int | None, start: int | None) -> int:
    """The first position of the page that is asked for."""
    newest = max(last_seq - PAGE + 1, 1)
    if start is not None and (chosen is None or start <= chosen < start + PAGE):
        return min(max(start, 1), max(last_seq, 1))
    return newest if chosen is None or chosen >= newest else max(chosen - PAGE // 4, 1)


async def _timeline(studio: Studio, session: Session, first: int, window: bool) -> dict[str, Any]:
    memory, found, owner = studio.memory, session.session_id, session.owner_id
    last = min(first + PAGE - 1, session.last_seq)
    messages = await memory.read_messages(found, user_id=owner, after=first - 1, until=last, archived=True)
    viewed = await memory.read_messages(found, user_id=owner, after=first - 1, until=last)
    in_view = {message.seq for message in viewed}
    summary = await memory.get_summary(found, user_id=owner)
    covered = summary.covered_seq if summary else 0
    pinned = {pin.seq for pin in await memory.pins.list(found, user_id=owner)}
    shown = window_of(await memory.preview(found, user_id=owner, on_overflow="drop_memory")) if window else ()
    running = await running_turn(studio, session, viewed) if last == session.last_seq else None
    return {
        "running": await _running_in_words(studio, session, running, window),
        "live": running is not None and running.may_go_on(memory.container.clock()()),
        "entries": list(timeline(first, last, messages, in_view, covered, shown, pinned)),
        "last": last,
        "covered": covered,
        "narrative": summary.narrative if summary else "",
        "tiers": await memory.container.database().read(read_range_summaries, found, owner),
    }


async def _running_in_words(studio: Studio, session: Session, running: RunningTurn | None, window: bool) -> list[str]:
    """With the `window`, what was done so that the turn fits, for which its context has to be made."""
    if running is None or not window:
        return list(running.in_words(None)) if running else []
    budget = await studio.budget_of(session.session_id, None)
    return list(running.in_words((await context_of(studio, session, running, budget)).report))


async def _headline(studio: Studio, session: Session) -> dict[str, Any]:
    work = await studio.memory.work_state(session.session_id, user_id=session.owner_id)
    forks = await studio.memory.overview.forks(session.session_id)
    return {"work": work_in_words(work), "forks": list(as_tree(forks))}


def window_of(context: Context) -> Collection[int]:
    """The messages that a context shows as they were said."""
    return {seq for seq in context.report.seqs if seq is not None}


def timeline(
    first: int,
    last: int,
    messages: Sequence[Message],
    in_view: Collection[int | None],
    covered: int,
    window: Collection[int],
    pinned: Collection[int | None] = (),
) -> Iterator[Entry]:
    """An entry for every position from `first` to `last`. Runs of positions without a message are one entry."""
    expected = first
    for message in messages:
        seq = message.seq or 0
        if seq > expected:
            yield Entry(expected, None, (f"to {seq - 1:,}",) if seq - 1 > expected else ())
        states = (
            ("window", seq in window),
            ("archived", seq not in in_view),
            ("in memory", seq <= covered and seq in in_view),
            ("pinned", seq in pinned),
        )
        yield Entry(seq, message, tuple(name for name, holds in states if holds))
        expected = seq + 1
    if last >= expected:
        yield Entry(expected, None, (f"to {last:,}",) if last > expected else ())


async def _aside(
    studio: Studio, session: Session, seq: int | None, fact: tuple[str, str] | None, show: str, find: str
) -> dict[str, Any]:
    """What stands beside the timeline. `chosen` is the message whose words are marked, and `words` are they."""
    nothing = {"about": None, "facts": None, "traced": None, "chosen": None, "words": "", "hidden": 0, "show": show}
    if fact is not None:
        return nothing | await _about_fact(studio, session, fact)
    if seq is not None:
        return nothing | await _about_message(studio, session, seq)
    if show == "everything":
        traced = await studio.memory.facts.trace(session.session_id, user_id=session.owner_id, everything=True)
        gone = [each for each in traced if each.successor or each.retracted or each.muted or not each.fact.verified]
        return nothing | {"traced": [(each, why_gone(each)) for each in gone[:FACTS_SHOWN]]}
    if show == "facts" or find:
        held = await studio.memory.facts.list(session.session_id, user_id=session.owner_id)
        wanted = [each for each in held if holds(each, find)]
        return nothing | {"facts": wanted[:FACTS_SHOWN], "hidden": max(len(wanted) - FACTS_SHOWN, 0)}
    return nothing


def why_gone(traced: TracedFact) -> str:
    """Why a fact does not hold."""
    if traced.retracted or traced.muted:
        return FACT_REASONS["retracted"]
    return FACT_REASONS["superseded" if traced.successor else "unverified"]


def holds(fact: Fact, find: str) -> bool:
    """Whether a fact holds a text, whatever its case."""
    return find.strip().lower() in f"{fact.anchor}\n{fact.key}\n{fact.value}".lower()


async def _about_fact(studio: Studio, session: Session, fact: tuple[str, str]) -> dict[str, Any]:
    found = await studio.memory.explain(session.session_id, fact=fact, user_id=session.owner_id)
    fates = [(fate, FACT_REASONS[fate.reason]) for fate in found.facts]
    holding = next((fate for fate in reversed(found.facts) if fate.successor is None), found.facts[-1])
    chosen = await _message(studio, session, holding.fact.source_seq)
    return {
        "about": "fact",
        "fact": holding.fact,
        "fates": fates,
        "chosen": chosen,
        "words": words_of(chosen, holding.fact),
    }


async def _about_message(studio: Studio, session: Session, seq: int) -> dict[str, Any]:
    found = await studio.memory.explain(session.session_id, seq=seq, user_id=session.owner_id)
    return {
        "about": "message",
        "seq": seq,
        "is_newest": seq == session.last_seq,
        "outcome": [MESSAGE_REASONS[fate.reason] for fate in found.messages],
        "fates": [(fate, FACT_REASONS[fate.reason]) for fate in found.facts],
        "lines": [(line, LINE_REASONS[line.reason]) for line in found.lines],
        "chosen": await _message(studio, session, seq),
        "whole": WHOLE,
    }


async def _message(studio: Studio, session: Session, seq: int) -> Message | None:
    page = await studio.memory.read_messages(
        session.session_id, user_id=session.owner_id, after=seq - 1, until=seq, archived=True
    )
    return page[0] if page else None


def words_of(message: Message | None, fact: Fact) -> str:
    """The words of a message that a fact was taken from, as far as they stand in its text or its calls."""
    if message is None:
        return ""
    words = message.content[slice(*fact.span)]
    if words and words.strip() == fact.value:
        return words
    texts = (message.content, *map(called, message.tool_calls))
    return fact.value if any(fact.value in text for text in texts) else ""
