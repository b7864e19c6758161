"""A person corrects an extracted fact, or retracts it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from reactor_memory.core.validation import check_session_id, check_text
from reactor_memory.database.database import Database
from reactor_memory.database.deadlines import in_time
from reactor_memory.errors import InvalidInputError, SessionNotFoundError
from reactor_memory.features.facts import operations as fact_operations
from reactor_memory.features.facts.amendment_fold import amended
from reactor_memory.features.facts.merge import fold, position
from reactor_memory.features.facts.targets import checked_fact_name
from reactor_memory.features.facts.working_state import corrected_value
from reactor_memory.models import Session
from reactor_memory.models.ledger import Fact, FactCorrection

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock, LedgerFold, MessageStore, SummaryStore

MAX_VALUE_CHARACTERS = 2000


AfterCorrection: TypeAlias = Callable[[], Awaitable[None]]
"""What is to be done when the correction is stored."""


class CorrectionHook(Protocol):
    """What another feature does when a fact is corrected."""

    async def before_correction(
        self, session: Session, user_id: str | None, fact: tuple[str, str], value: str
    ) -> AfterCorrection:
        """Called before anything is stored: what it raises refuses the correction."""
        ...


async def nothing_follows() -> None:
    """The `AfterCorrection` of a hook that has nothing to do."""


class Corrector:
    """Stores corrections; the fold of the ledger applies them from then on.

    Each call has one deadline, ``store.timeout_seconds``. `user_id` is who asks; who is not the owner gets a
    `SessionOwnershipError`.
    """

    def __init__(
        self,
        *,
        database: Database,
        messages: MessageStore,
        summaries: SummaryStore,
        refold: LedgerFold,
        clock: Clock,
        hooks: Sequence[CorrectionHook],
        timeout_seconds: float,
    ) -> None:
        self._database = database
        self._messages = messages
        self._summaries = summaries
        self._refold = refold
        self._clock = clock
        self._hooks = hooks
        self.timeout_seconds = timeout_seconds

    @in_time
    async def correct(self, session_id: str, *, fact: tuple[str, str], value: str, user_id: str | None = None) -> Fact:
        """Say what a fact (anchor and key) that was extracted really is; how it stands now.

        It holds instead of everything that was said of this fact so far, through re-extraction and in forks made from
        now on, until a later message states another value. The next load shows it, in every context of the session; a
        pin of the fact follows. Messages stay as they were said, in the log and in the window; what is made of them
        does not say the old value any more, as after `retract`.

        Raises `InvalidInputError` for a fact that the session does not have now or that was extracted in ``full`` mode,
        where no ledger can keep the correction, and for an empty value, and `LimitExceededError` for one that the
        pin of the fact has no room for; then nothing was stored.
        """
        session, name = await self._session_with(session_id, user_id, fact)
        check_value(value)
        following = [await hook.before_correction(session, user_id, name, value) for hook in self._hooks]
        await self._put(session, user_id, name, value)
        for follow in following:
            await follow()
        ledger = await self._summaries.read_ledger(session_id, session.branch)
        return next(
            each
            for each in amended(ledger.facts, ledger.corrections)
            if each.amended and (each.anchor, each.key) == name
        )

    @in_time
    async def retract(self, session_id: str, *, fact: tuple[str, str], user_id: str | None = None) -> None:
        """Retract an extracted fact (anchor and key), until a later message states it again.

        Nothing that is made of messages says it: no fact, also not a quotation of its sentence or an answer that
        repeats it, no narrative, recalled passage, posted summary or text of a tier, and no pin of these facts. The log
        and the window keep its messages as they were said, and so do pins of messages.

        Raises `InvalidInputError` for a fact that the session does not have now.
        """
        session, name = await self._session_with(session_id, user_id, fact)
        await self._put(session, user_id, name, None)

    async def _session_with(
        self, session_id: str, user_id: str | None, fact: object
    ) -> tuple[Session, tuple[str, str]]:
        check_session_id(session_id, creating=False)
        session = await self._messages.get_session(session_id, user_id)
        if session is None:
            raise SessionNotFoundError(session_id)
        return session, checked_fact_name(fact)

    async def _put(self, session: Session, user_id: str | None, fact: tuple[str, str], value: str | None) -> None:
        """Store a correction; `value` None retracts the fact."""
        ledger = await self._summaries.read_ledger(session.session_id, session.branch)
        known = amended((each for each in ledger.facts if each.verified), ledger.corrections)
        stated = [each for each in known if (each.anchor, each.key) == fact]
        if not stated and await self._is_of_no_ledger(session, fact):
            raise InvalidInputError("fact", "was extracted in full mode: set summary.mode: ledger to correct facts")
        source = source_of(stated)
        value = None if value is None else corrected_value(stated[-1], value)
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
        """Whether the fact is in the summary and not in the ledger."""
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
