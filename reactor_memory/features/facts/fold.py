"""The fold of the ledger with the limits of the settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from reactor_memory.features.facts.merge import fold_into, refold
from reactor_memory.features.facts.quoting.ready_lines import lines_json
from reactor_memory.models.ledger import Fact, Ledger, Segment, Summary
from reactor_memory.text.caches import memo

MOST_TEXTS = 16_384
"""The tokens of so many texts are remembered: from one segment to the next nearly all lines stay as they were."""


class SummaryFold:
    """Folds ledgers into summaries of at most `max_fact_tokens` and `max_narrative_tokens`."""

    def __init__(self, *, max_fact_tokens: int, max_narrative_tokens: int, count: Callable[[str], int]) -> None:
        self._max_fact_tokens = max_fact_tokens
        self._max_narrative_tokens = max_narrative_tokens
        self._count = memo(maxsize=MOST_TEXTS)(count)

    def whole(self, ledger: Ledger) -> Summary:
        return refold(
            ledger,
            max_fact_tokens=self._max_fact_tokens,
            max_narrative_tokens=self._max_narrative_tokens,
            count=self._count,
        )

    def with_lines(self, summary: Summary) -> Summary:
        """`summary` with the lines of its facts, if the reader that quotes made these: a load has no time for that. Not
        for the event loop.
        """
        return replace(summary, lines_json=lines_json(summary, self._count))

    def add(
        self,
        summary: Summary,
        segment: Segment,
        facts: Sequence[Fact],
        known: Sequence[Fact] = (),
        *,
        earlier: Sequence[Segment] = (),
        posted_until: int = 0,
    ) -> Summary | None:
        """`summary` with one more segment, and those `earlier` than it that it does not cover yet; None if the whole
        ledger has to be folded. For a truncated summary `known` has all facts about the anchors of `facts`; with a
        posted summary `posted_until` is the last message it covers.
        """
        return fold_into(
            summary,
            facts,
            segment,
            earlier=earlier,
            known=known,
            posted_until=posted_until,
            max_fact_tokens=self._max_fact_tokens,
            max_narrative_tokens=self._max_narrative_tokens,
            count=self._count,
        )
