"""A strategy that tells the story so far and shows the newest messages."""

from __future__ import annotations

from msgspec.structs import replace

from reactor_memory.extend import NARRATIVE, Block, Plan, PlanRequest, Settings, render_narrative, take_last


class Storyteller:
    """The narrative of the summary before what take-last shows. The head of the summary is enough for that."""

    reads_summaries = True

    def __init__(self, settings: Settings) -> None:
        """Needs no options."""

    def __call__(self, request: PlanRequest) -> Plan:
        plan, summary = take_last(request, "none"), request.rows.summary
        if summary is None or not plan.draft.unread:
            return plan
        told = render_narrative(summary.narrative, count=request.count_text)
        last = plan.draft.unread[-1][1]
        unread = ((summary.covered_seq + 1, last),) if summary.covered_seq < last else ()
        draft = replace(
            plan.draft,
            strategy="storyteller",
            blocks=(Block(frame=NARRATIVE, lines=told),),
            unread=unread,
            covered_seq=summary.covered_seq,
            freshness="stale" if unread else "fresh",
        )
        return Plan(draft=draft)
