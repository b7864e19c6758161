"""How the tiers become a context: the compressed part, the condensed part, and every message that neither covers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from reactor_memory.core.context.blocks import Block, BlockRole, Frame, block_text
from reactor_memory.core.context.draft import Draft, Freshness
from reactor_memory.core.context.selection import first_seq_of, newest
from reactor_memory.core.context.strategy import Plan, PlanRequest
from reactor_memory.database.database import Database
from reactor_memory.database.operations import Row
from reactor_memory.errors import StoreReadOnlyError
from reactor_memory.features.facts.prose import render_narrative
from reactor_memory.features.tiers import operations as range_summaries
from reactor_memory.features.tiers.classification import COMPRESSED
from reactor_memory.features.tiers.plan import covered_until, uncovered
from reactor_memory.models import Message, Value
from reactor_memory.models.block_lines import BlockLine
from reactor_memory.models.ledger import RangeSummary
from reactor_memory.models.requests import ContextQuery, ContextRows
from reactor_memory.text.caches import memo

if TYPE_CHECKING:
    from reactor_memory.core.ports import ContextSource

log = logging.getLogger(__name__)

COMPRESSED_HEADER = "Conversation History (compressed):"
CONDENSED_HEADER = "Conversation History (condensed):"

MOST_PARTS = 256
"""Parts that are remembered as they are shown (2 MB): between two steps they are the same in every turn, and to render
and count them takes ten times as long as the rest of a load.
"""


class Placement(Value, frozen=True, kw_only=True):
    """The roles in which the two parts stand before the messages."""

    compressed: BlockRole = "system"
    condensed: BlockRole = "assistant"


class Progressive:
    """`Strategy`: what was compressed, what was condensed, and the other messages verbatim.

    The texts are data: line by line made harmless, below a header. In a tight budget the condensed part gives way to
    the compressed one, the older line before the newer; the window keeps its share, as in every strategy.
    """

    reads_summaries = False
    reads_ranges = True

    def __init__(self, placement: Placement | None = None) -> None:
        placement = placement or Placement()
        self._frames = (
            Frame(part="compressed", header=COMPRESSED_HEADER, role=placement.compressed, rank=3),
            Frame(part="condensed", header=CONDENSED_HEADER, role=placement.condensed, rank=1),
        )

    def __call__(self, request: PlanRequest) -> Plan:
        live = request.rows.ranges
        window = _window(request, live)
        unread = tuple(_gaps(request, live, window))
        draft = Draft(
            strategy="progressive",
            session_id=request.session_id,
            blocks=tuple(self._blocks(request, live)),
            window=tuple(window),
            unread=unread,
            covered_seq=covered_until(live),
            freshness=_freshness(live, unread),
        )
        return Plan(draft=draft, wants_older=bool(unread) and request.limits.window_growth == "messages")

    def _blocks(self, request: PlanRequest, live: Sequence[RangeSummary]) -> Iterator[Block]:
        for frame, is_compressed in zip(self._frames, (True, False), strict=True):
            lines, tokens = _rendered(_summary_text(live, compressed=is_compressed), frame, request.count_text)
            if lines:
                yield Block(frame=frame, lines=lines, tokens=tokens + request.limits.overhead)


class RangedContextSource:
    """A `ContextSource` that reads the live summaries of ranges, too.

    They are read after the messages: what was summarised meanwhile is then shown once, as its summary.
    """

    def __init__(self, source: ContextSource, database: Database) -> None:
        self._source = source
        self._database = database

    async def read_context(self, query: ContextQuery) -> ContextRows:
        rows = await self._source.read_context(query)
        if rows.session is None:
            return rows
        branch = rows.session.branch
        found = await self._database.read(range_summaries.read_of_load, branch)
        if found.damaged:
            await self._undo(query.session_id, found.damaged)
            rows = replace(await self._source.read_context(query), damaged=(*rows.damaged, "tiers"))
            found = await self._database.read(range_summaries.read_of_load, branch)
        return replace(rows, ranges=found.live, leading=found.leading or rows.leading)

    async def _undo(self, session_id: str, damaged: Sequence[tuple[str, Row]]) -> None:
        log.warning("tiers are damaged and made again", extra={"session_id": session_id})
        with suppress(StoreReadOnlyError):
            await self._database.write(range_summaries.undo_damaged, damaged)


def _window(request: PlanRequest, live: Sequence[RangeSummary]) -> Sequence[Message]:
    """The messages in view that no summary covers. Where older ones were not read, it begins at a turn border."""
    window = uncovered(request.rows.messages, live)
    if first_seq_of(window, 0) > covered_until(live) + 1:
        return newest(window, len(window))
    return window


def _gaps(request: PlanRequest, live: Sequence[RangeSummary], window: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """What before the window has no summary. Inside the window only what was taken back is missing."""
    last = request.rows.session.last_seq if request.rows.session else 0
    first = first_seq_of(window, last + 1)
    covered = 0
    for summary in live:
        if covered + 1 < min(summary.start_seq, first):
            yield covered + 1, min(summary.start_seq, first) - 1
        covered = max(covered, summary.end_seq)
    if covered + 1 < first:
        yield covered + 1, first - 1


def _freshness(live: Sequence[RangeSummary], unread: Sequence[tuple[int, int]]) -> Freshness:
    if not live:
        return "none"
    return "stale" if unread else "fresh"


def _summary_text(live: Sequence[RangeSummary], *, compressed: bool) -> str:
    """The texts of one part. A summary that another service made stands with the condensed ones."""
    return "\n".join(summary.text for summary in live if (summary.kind == COMPRESSED) == compressed)


class _Rendered(NamedTuple):
    """The lines of a part, and what all of them cost below their header."""

    lines: tuple[BlockLine, ...]
    tokens: int


@memo(maxsize=MOST_PARTS)
def _rendered(text: str, frame: Frame, count: Callable[[str], int]) -> _Rendered:
    lines = render_narrative(text, count=count)
    return _Rendered(lines, count(block_text(frame, [line.text for line in lines])))
