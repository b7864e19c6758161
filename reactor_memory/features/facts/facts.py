"""What the messages of a session state: read, traced to their words, extracted anew."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from reactor_memory.core.manager import ConversationManager
from reactor_memory.core.validation import check_position
from reactor_memory.database.deadlines import in_time
from reactor_memory.errors import StoreReadOnlyError
from reactor_memory.features.facts import operations as fact_operations
from reactor_memory.features.facts.amendment_fold import amended, until
from reactor_memory.features.facts.corrector import Corrector
from reactor_memory.features.facts.mending import drop_damaged
from reactor_memory.features.facts.merge import as_of, fold
from reactor_memory.features.facts.mutes import checked_mute, set_mute
from reactor_memory.features.facts.session_ledger import ledger_of
from reactor_memory.features.facts.tracing import TracedFact, Tracer
from reactor_memory.features.facts.withheld_facts import texts_without_taken_back
from reactor_memory.models import Session
from reactor_memory.models.ledger import Category, Fact, Ledger, Segment

if TYPE_CHECKING:
    from reactor_memory.core.ports import BackgroundWork, Redactor


log = logging.getLogger(__name__)


class Facts(Corrector):
    """The facts of sessions. Each call has one deadline, ``store.timeout_seconds``; `user_id` is who asks, and who is
    not the owner gets a `SessionOwnershipError`.
    """

    def __init__(
        self, *, manager: ConversationManager, background: BackgroundWork, redactor: Redactor, **parts: Any
    ) -> None:
        """`parts`: those of the `Corrector`."""
        super().__init__(**parts)
        self._manager = manager
        self._background = background
        self._tracer = Tracer(messages=self._messages, redactor=redactor)

    @in_time
    async def list(
        self,
        session_id: str,
        *,
        user_id: str | None = None,
        as_of_seq: int | None = None,
        cleared: bool = False,
    ) -> tuple[Fact, ...]:
        """The facts that hold, or held when the session was `as_of_seq` messages long. With `cleared` those of messages
        that were cleared, too.
        """
        if as_of_seq is not None:
            check_position("as_of_seq", as_of_seq)
        session = await self._manager.get_session(session_id, user_id=user_id)
        ledger = await (self._whole_ledger(session) if cleared else ledger_of(self._summaries, session))
        await self._made_whole(session, ledger)
        corrections = ledger.corrections if as_of_seq is None else until(ledger.corrections, as_of_seq)
        held = amended(ledger.facts, corrections)
        return fold(held) if as_of_seq is None else as_of(held, as_of_seq)

    @in_time
    async def mute(
        self,
        session_id: str,
        *,
        category: Category | None = None,
        anchor: str | None = None,
        user_id: str | None = None,
    ) -> bool:
        """Let no context of the session say anything about a thing (the anchor of a fact), or anything of a category:
        facts, narrative, recalled passages and texts of tiers, now and after later messages. The log, the window and
        pins keep it, and so does the ledger: `trace` with `everything` gives it. Whether it was not muted before.

        It goes along with forks that begin behind the newest message about the anchor, and ends with `unmute` or when
        that message is erased. Raises `InvalidInputError` for an anchor that no fact has now.
        """
        return await self._set_mute(session_id, user_id, checked_mute(category, anchor), on=True)

    @in_time
    async def unmute(
        self,
        session_id: str,
        *,
        category: Category | None = None,
        anchor: str | None = None,
        user_id: str | None = None,
    ) -> bool:
        """End `mute`, in this session alone; whether it was muted."""
        return await self._set_mute(session_id, user_id, checked_mute(category, anchor), on=False)

    async def _set_mute(self, session_id: str, user_id: str | None, name: tuple[str, str], *, on: bool) -> bool:
        session = await self._manager.get_session(session_id, user_id=user_id)
        return await self._database.write(
            set_mute, session, name, on=on, author_id=user_id, now=self._clock(), refold=self._refold
        )

    @in_time
    async def trace(
        self,
        session_id: str,
        *,
        user_id: str | None = None,
        as_of_seq: int | None = None,
        everything: bool = False,
    ) -> tuple[TracedFact, ...]:
        """`list`, each with the words of its message. With `everything` also the facts that later ones replaced,
        each with the one that holds, and those that were not verified. Reads the messages that facts come from.
        """
        if as_of_seq is not None:
            check_position("as_of_seq", as_of_seq)
        session = await self._manager.get_session(session_id, user_id=user_id)
        ledger = await ledger_of(self._summaries, session)
        await self._made_whole(session, ledger)
        return await self._tracer.trace(session, user_id, ledger, as_of_seq=as_of_seq, everything=everything)

    @in_time
    async def segments(self, session_id: str, *, user_id: str | None = None) -> tuple[Segment, ...]:
        """The segments that were extracted, oldest first, with what each cost."""
        session = await self._manager.get_session(session_id, user_id=user_id)
        return texts_without_taken_back(await self._summaries.read_ledger(session_id, session.branch)).segments

    @in_time
    async def rebuild(self, session_id: str, *, user_id: str | None = None) -> int:
        """Extract the segments that the session owns anew, each once, in the background: after a change of the
        summarizer, of its prompt or of the redactor. How many there are.

        What is known serves until then, segment by segment, and contexts change once, with the last one; cut off, it
        goes on. Segments that a fork inherits are rebuilt in the session that they belong to.
        """
        await self._manager.get_session(session_id, user_id=user_id)
        marked = await self._database.write(fact_operations.mark_outdated, session_id, now=self._clock())
        self._background.request(session_id)
        return marked

    async def _made_whole(self, session: Session, ledger: Ledger) -> None:
        """Facts that cannot be read any more are drawn from the log again, in the background."""
        if ledger.is_damaged:
            log.warning("facts are damaged and extracted again", extra={"session_id": session.session_id})
            with suppress(StoreReadOnlyError):
                await self._database.write(drop_damaged, session.branch, now=self._clock())
                self._background.request(session.session_id)

    async def _whole_ledger(self, session: Session) -> Ledger:
        return await self._database.read(fact_operations.read_ledger, session.branch, cleared_too=True)
