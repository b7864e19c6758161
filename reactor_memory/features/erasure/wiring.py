"""How erasure is wired: what goes elsewhere with messages, and the background work that goes on with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from reactor_memory.background.kinds import Kind
from reactor_memory.models.requests import ERASE, ERASE_USER, FORGET, SCRUB

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock, KeptElsewhere, LedgerFold, RecallIndex, SummaryStore
    from reactor_memory.features.erasure.eraser import Aftermath, Erasure
    from reactor_memory.features.responses.models import ResponseStore
    from reactor_memory.settings.settings import Settings

SCRUB_SECONDS = 20.0
"""How long a scrub that readers hinder is put off at most."""


def aftermath(**parts: Any) -> Aftermath:
    from reactor_memory.features.erasure.eraser import Aftermath

    return Aftermath(**parts)


def erasure(**parts: Any) -> Erasure:
    from reactor_memory.features.erasure.eraser import Erasure

    return Erasure(**parts)


def kept_elsewhere_of(
    summaries: SummaryStore,
    in_database: str,
    index: Callable[[], RecallIndex],
    where_index: str,
    responses: Callable[[], ResponseStore | None],
    where_responses: str,
    refold: LedgerFold,
    clock: Clock,
) -> tuple[KeptElsewhere, ...]:
    """What follows when messages of the log go, because it is not in its database."""
    if in_database == "on" and "elsewhere" not in (where_index, where_responses):
        return ()
    from reactor_memory.features.erasure.kept_elsewhere import IndexElsewhere, ResponsesElsewhere, SummariesElsewhere

    parts: list[KeptElsewhere] = []
    if in_database == "off":
        parts.append(SummariesElsewhere(summaries, refold=refold, clock=clock))
    if where_index == "elsewhere":
        parts.append(IndexElsewhere(index()))
    if where_responses == "elsewhere" and (store := responses()) is not None:
        parts.append(ResponsesElsewhere(store))
    return tuple(parts)


def erasure_work(settings: Settings, aftermath: Callable[[], Aftermath]) -> Iterator[Kind]:
    """In a database. What does it is made when there is some."""
    unparked = partial(Kind, concurrency=settings.background.max_concurrent_sessions, parks=False)
    yield unparked(name=ERASE, step=lambda lease: aftermath().go_on_with_messages(lease))
    yield unparked(name=FORGET, step=lambda lease: aftermath().go_on_with_session(lease))
    yield unparked(name=ERASE_USER, step=lambda lease: aftermath().go_on_with_group(lease))
    yield unparked(
        name=SCRUB, step=lambda lease: aftermath().go_on_with_files(lease), longest_pause_seconds=SCRUB_SECONDS
    )
