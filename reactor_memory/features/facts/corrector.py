"""A person fixes what was extracted: says what a fact really is, or that it is none."""

from __future__ import annotations

from reactor_memory.core.ports import Clock, Refold, SummaryStore
from reactor_memory.core.validation import check_text
from reactor_memory.database.database import Database
from reactor_memory.errors import InvalidInputError
from reactor_memory.features.facts import operations as fact_operations
from reactor_memory.features.facts.amendment_fold import amended
from reactor_memory.features.facts.merge import fold, position
from reactor_memory.models import Fact, FactCorrection, Session

MAX_VALUE_CHARACTERS = 2000


class Corrector:
    """Stores corrections; the fold of the ledger applies them from then on."""

    def __init__(self, *, database: Database, summaries: SummaryStore, refold: Refold, clock: Clock) -> None:
        self._database = database
        self._summaries = summaries
        self._refold = refold
        self._clock = clock

    async def correct(self, session: Session, user_id: str | None, fact: tuple[str, str], value: str | None) -> None:
        """Say what this fact of the session is; None: it is none. Raises `InvalidInputError` for an unknown fact."""
        if value is not None:
            check_value(value)
        ledger = await self._summaries.read_ledger(session.session_id, session.branch)
        known = amended((each for each in ledger.facts if each.verified), ledger.corrections)
        stated = [each for each in known if (each.anchor, each.key) == fact]
        if not stated and await self._is_of_no_ledger(session, fact):
            raise InvalidInputError("fact", "was extracted in full mode: set summary.mode: ledger to correct facts")
        source = source_of(stated)
        now = self._clock()
        correction = FactCorrection(
            anchor=fact[0],
            key=fact[1],
            value=value,
            seq=session.last_seq,
            source_seq=source,
            author_id=user_id,
            created_at=now,
        )
        put = fact_operations.put_correction
        if not await self._database.write(put, session, correction, now=now, refold=self._refold):
            raise unknown_fact()

    async def _is_of_no_ledger(self, session: Session, fact: tuple[str, str]) -> bool:
        """Whether the summary has the fact, which the ledger has not."""
        summary = await self._summaries.get_summary(session.session_id)
        return summary is not None and any((each.anchor, each.key) == fact for each in summary.facts())


def source_of(facts: list[Fact]) -> int:
    """The message that states the fact now."""
    if not facts:
        raise unknown_fact()
    return max(fold(facts), key=position).source_seq


def check_value(value: object) -> None:
    """Raises `InvalidInputError` if the text cannot be the value of a fact."""
    check_text("value", value)
    if not str(value).strip():
        raise InvalidInputError("value", "says nothing; retract the fact if it is none")
    if len(str(value)) > MAX_VALUE_CHARACTERS:
        raise InvalidInputError("value", f"may have {MAX_VALUE_CHARACTERS} characters; say it shorter")


def unknown_fact() -> InvalidInputError:
    return InvalidInputError("fact", "no fact has this anchor and key now: give them as the list of facts does")
