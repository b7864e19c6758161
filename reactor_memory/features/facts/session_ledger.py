"""What the ledger holds of a session."""

from __future__ import annotations

from msgspec.structs import replace

from reactor_memory.core.ports import SummaryStore
from reactor_memory.models import Ledger, Session


async def ledger_of(summaries: SummaryStore, session: Session) -> Ledger:
    """The ledger, each fact once; in `full` mode, where there is none, the facts of the summary."""
    ledger = await summaries.read_ledger(session.session_id, session.branch)
    if ledger.segments:
        return replace(ledger, facts=tuple(dict.fromkeys(ledger.facts)))
    summary = await summaries.get_summary(session.session_id)
    return Ledger(facts=summary.facts(), posted=ledger.posted) if summary else ledger
