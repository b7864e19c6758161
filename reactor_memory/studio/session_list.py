"""The page of all sessions, and how they hang together as forks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.params import FromQuery

from reactor_memory.evaluation.pricing import cost_of_summaries, prices_of
from reactor_memory.memory import Memory
from reactor_memory.models import Session
from reactor_memory.models.leases import WorkState
from reactor_memory.models.ledger import Usage
from reactor_memory.models.session_pages import SessionPreview
from reactor_memory.providers.asked_models import summarizing_model
from reactor_memory.studio.studio import Studio

T = TypeVar("T", Session, SessionPreview)

PAGE = 50


class Row(NamedTuple):
    """A session in the list. `depth`: how many forks lie between it and its root, of those on the page."""

    session: SessionPreview
    depth: int
    covered_seq: int
    work: str
    usage: Usage
    cost: float


@get("/")
async def sessions(
    studio: NamedDependency[Studio], q: FromQuery[str] = "", cursor: FromQuery[str | None] = None
) -> Response[str]:
    """All sessions of the store, or those whose id, user or title holds `q`."""
    page = await studio.memory.overview.sessions(limit=PAGE, cursor=cursor, text=q.strip() or None)
    rows = [await _row(studio.memory, session, depth) for session, depth in as_tree(page.sessions)]
    return await studio.pages.show("sessions.html", rows=rows, q=q, cursor=cursor, next_cursor=page.next_cursor)


async def _row(memory: Memory, session: SessionPreview, depth: int) -> Row:
    found, owner = session.session_id, session.owner_id
    summary = await memory.get_summary(found, user_id=owner)
    segments = await memory.facts.segments(found, user_id=owner)
    own = [segment.usage for segment in segments if segment.conversation_id == found]
    usage = Usage(
        tokens_read=sum(each.tokens_read for each in own), tokens_written=sum(each.tokens_written for each in own)
    )
    settings = memory.container.settings()
    price = prices_of(settings.prices, summarizer_model=summarizing_model(settings))[1]
    return Row(
        session=session,
        depth=depth,
        covered_seq=summary.covered_seq if summary else 0,
        work=work_in_words(await memory.work_state(found, user_id=owner)),
        usage=usage,
        cost=cost_of_summaries(usage, price),
    )


def work_in_words(work: WorkState | None) -> str:
    """Where the background work of a session stands."""
    if work is None:
        return "none so far"
    if work.parked:
        return f"given up after {work.attempts} attempts: {work.last_error}"
    if work.last_error and work.due_at is not None:
        return f"to be tried again: {work.last_error}"
    return "up to date" if work.due_at is None else "waiting"


def as_tree(found: Sequence[T]) -> Iterator[tuple[T, int]]:
    """Each fork below the session it was made from, if that is there."""
    there = {each.session_id for each in found}
    children: dict[str | None, list[T]] = {}
    for each in found:
        parent = each.forked_from_id
        children.setdefault(parent if parent in there else None, []).append(each)
    waiting = [(each, 0) for each in reversed(children.get(None, []))]
    while waiting:
        each, depth = waiting.pop()
        yield each, depth
        waiting += [(child, depth + 1) for child in reversed(children.get(each.session_id, []))]
