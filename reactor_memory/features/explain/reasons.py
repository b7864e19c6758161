"""What became of messages, facts and lines, in words."""

from __future__ import annotations

from reactor_memory.core.context.blocks import Part
from reactor_memory.core.context.draft import Freshness
from reactor_memory.core.context.report import Compaction, MessageReason, Reason
from reactor_memory.features.explain.explanation import FactReason, LineReason

REASONS: dict[Reason, str] = {
    "protected": "protected",
    "fits": "there was room",
    "over_budget": "no room left in the budget",
    "low_value": "worth less than the lines that were kept",
    "orphan_result": "a result whose call is not there",
    "open_call": "a call whose result is not there",
    "open_reasoning": "reasoning that lost what came with it",
    "posted_summary": "an agent's summary, told as memory",
    "cleared": "an old result of the turn that goes on, shown as a stub",
    "folded": "an old step of the turn that goes on, told by a line of its log",
    "too_long": "its text was cut",
}


def compaction_in_words(compaction: Compaction) -> str:
    """What was done to a turn that outgrew its room, since when, and what it saves."""
    shown = f"{compaction.cleared:,} shown as stubs, {compaction.cut:,} cut"
    folded = f"{compaction.folded:,} folded into {compaction.lines:,} lines of a log"
    since = f"; the last of {compaction.batches:,} times before message {compaction.since:,} of the turn"
    return f"compacted: {shown}, {folded}{since if compaction.batches else ''}"


FRESHNESS: dict[Freshness, str] = {
    "fresh": "memory is up to date",
    "stale": "memory is behind, an older summary is shown",
    "catching_up": "memory is catching up in the background",
    "failed": "making a summary failed",
    "empty": "the summary says nothing",
    "history": "no memory, the history was given",
}
MESSAGE_REASONS: dict[MessageReason, str] = {
    **REASONS,
    "remembered": "left the window; memory shows lines made from it",
    "summarized": "left the window; memory covers it, and no line that is shown was made from it",
    "superseded": "a newer system message of its name stands in its place",
    "unread": "not in memory and too old for the window",
    "withdrawn": "was taken back",
    "unknown": "the context does not speak of it",
}
LINE_REASONS: dict[LineReason, str] = {
    **REASONS,
    "below_floor": "ranked too low when the window last moved",
}
NO_ROOM: dict[Part, str] = {
    "facts": "no room when the window last moved",
    "narrative": "no room beside all facts",
}
FACT_REASONS: dict[FactReason, str] = {
    "shown": "in memory",
    "pinned": "pinned",
    "verbatim": "its message is shown as it was said",
    "unverified": "its value does not stand in its message",
    "superseded": "a later fact holds in its place",
    "retracted": "dropped: a person retracted or muted it",
    "no_memory": "the context shows no memory",
    "after_memory": "newer than the memory, and the window has no room for its message",
    "not_in_working_set": "no room among the facts that memory is made from (summary.max_fact_tokens)",
    "repeated": "says nothing that other facts do not",
    "below_floor": "its line ranked too low when the window last moved",
    "over_budget": "no room for its line when the window last moved",
    "low_value": "its line is worth less than those that were kept",
}
