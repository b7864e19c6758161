"""Messages and facts that every context of a session shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from reactor_memory.core.context.message_counter import MessageCounter, in_thread_if_long
from reactor_memory.core.validation import check_session_id
from reactor_memory.database.database import Database
from reactor_memory.database.deadlines import in_time
from reactor_memory.errors import SessionNotFoundError
from reactor_memory.features.facts.amendment_fold import amended
from reactor_memory.features.facts.corrector import AfterCorrection, nothing_follows
from reactor_memory.features.facts.merge import fold
from reactor_memory.features.facts.session_ledger import ledger_of
from reactor_memory.features.facts.targets import checked_target
from reactor_memory.features.pins import operations
from reactor_memory.features.pins.agent_notes import note_text, target_of
from reactor_memory.features.pins.placement import (
    check_pinnable,
    fact_text,
    find_pin,
    not_in_view,
    pinnable_facts,
    place_pin,
)
from reactor_memory.features.pins.verbatim_pins import text_hash
from reactor_memory.models import Pin, PinTarget, Role, Session

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock, MessageStore, SummaryStore


class PinWriter:
    """Makes pins of what messages and facts say now, and keeps them."""

    def __init__(
        self,
        *,
        database: Database,
        messages: MessageStore,
        summaries: SummaryStore,
        counter: MessageCounter,
        clock: Clock,
        max_pins: int,
        max_tokens: int,
    ) -> None:
        self._database = database
        self._messages = messages
        self._summaries = summaries
        self._counter = counter
        self._clock = clock
        self._max_pins = max_pins
        self._max_tokens = max_tokens

    async def pin(self, session_id: str, user_id: str | None, target: PinTarget) -> Pin:
        if isinstance(target, int):
            return await self._put(session_id, user_id, await self._of_message(session_id, user_id, target))
        return await self._put(
            session_id, user_id, await self._of_fact(await self._session(session_id, user_id), target)
        )

    async def note(self, session_id: str, user_id: str | None, key: str, text: str) -> Pin:
        newest = await self._messages.read(session_id, user_id, last=1)
        if not newest:
            raise SessionNotFoundError(session_id)
        new = await self._new(note_text(key, text), seq=newest[0].seq or 0, fact=target_of(key))
        return await self._put(session_id, user_id, new)

    async def before_correction(
        self, session: Session, user_id: str | None, fact: tuple[str, str], value: str
    ) -> AfterCorrection:
        """As `CorrectionHook`: a pin of the fact has to have room for the value, and says it from then on."""
        pins = await self._database.read(operations.read_pins, session.session_id, user_id)
        if find_pin(pins, fact) is None:
            return nothing_follows
        corrected = await self._of_fact(session, fact, value)
        place_pin(pins, corrected, max_pins=self._max_pins, max_pin_tokens=self._max_tokens)

        async def follow() -> None:
            await self._put(session.session_id, user_id, await self._of_fact(session, fact))

        return follow

    async def _put(self, session_id: str, user_id: str | None, pin: Pin) -> Pin:
        return await self._database.write(
            operations.pin, session_id, user_id, pin, max_pins=self._max_pins, max_pin_tokens=self._max_tokens
        )

    async def _session(self, session_id: str, user_id: str | None) -> Session:
        session = await self._messages.get_session(session_id, user_id)
        if session is None:
            raise SessionNotFoundError(session_id)
        return session

    async def _of_message(self, session_id: str, user_id: str | None, seq: int) -> Pin:
        found = await self._messages.read(session_id, user_id, after=seq - 1, until=seq)
        if not found:
            await self._session(session_id, user_id)
            raise not_in_view(seq)
        check_pinnable(found[0])
        return await self._new(found[0].content, seq=seq, role=found[0].role)

    async def _of_fact(self, session: Session, target: tuple[str, str], value: str | None = None) -> Pin:
        """A pin of the fact as it stands now, or with this value."""
        ledger = await ledger_of(self._summaries, session)
        fact = fold(pinnable_facts(amended(ledger.facts, ledger.corrections), *target))[-1]
        if value is not None:
            fact = replace(fact, value=value)
        return await self._new(fact_text(fact), seq=fact.source_seq, fact=target)

    async def _new(self, text: str, *, seq: int, role: Role = "system", fact: tuple[str, str] | None = None) -> Pin:
        return Pin(
            seq=seq,
            fact=fact,
            role=role,
            text=text,
            sha256=text_hash(text),
            token_count=await in_thread_if_long(len(text), lambda: self._counter.of_text(text)),
            tokenizer=self._counter.name,
            created_at=self._clock(),
        )


class Pins:
    """Messages and facts that every context of a session shows.

    Each call has one deadline, ``store.timeout_seconds``. `user_id` is who asks; who is not the owner gets a
    `SessionOwnershipError`.
    """

    def __init__(self, *, database: Database, writer: PinWriter, timeout_seconds: float) -> None:
        self._database = database
        self._writer = writer
        self.timeout_seconds = timeout_seconds

    @in_time
    async def add(
        self,
        session_id: str,
        *,
        seq: int | None = None,
        fact: tuple[str, str] | None = None,
        user_id: str | None = None,
    ) -> Pin:
        """Let every context of the session show a message, or a fact, byte for byte as it is now.

        `seq` is a message of plain text by the user, the model or the system; `fact` the anchor and key of a verified
        fact that no tool said. Pinning the same again changes nothing, unless the fact reads differently by now: then
        its pin does, too. A pin is never given up to a budget, so there may be ``context.max_pins`` of them, of
        ``context.max_pin_tokens`` together (`LimitExceededError`).

        Raises `InvalidInputError` for what cannot be pinned and `SessionNotFoundError` for an unknown session.
        """
        target = checked_target(seq, fact)
        check_session_id(session_id, creating=False)
        return await self._writer.pin(session_id, user_id, target)

    @in_time
    async def remove(
        self,
        session_id: str,
        *,
        seq: int | None = None,
        fact: tuple[str, str] | None = None,
        user_id: str | None = None,
    ) -> bool:
        """Remove the pin of a message or a fact; whether there was one. Pins of forks stay."""
        check_session_id(session_id, creating=False)
        return await self._database.write(operations.unpin, session_id, user_id, checked_target(seq, fact))

    @in_time
    async def note(self, session_id: str, key: str, text: str | None, *, user_id: str | None = None) -> Pin | None:
        """Keep a note of an agent about its own work in a session, such as its plan, in place of the one with this
        `key`; with None, remove that. Every context of the session shows it whole, as a pin.

        It goes when a message is withdrawn or erased that was there when it was written: it may tell of it. Raises
        `InvalidInputError` for a key or a text that cannot be kept, `SessionNotFoundError` before the first message of
        a session, and `LimitExceededError` as `add`.
        """
        check_session_id(session_id, creating=False)
        target = target_of(key)
        if text is not None:
            return await self._writer.note(session_id, user_id, key, text)
        await self._database.write(operations.unpin, session_id, user_id, target)
        return None

    @in_time
    async def list(self, session_id: str, *, user_id: str | None = None) -> tuple[Pin, ...]:
        """The pins of a session in the order in which they were made, which is their order in a context.

        Raises `SessionNotFoundError` for an unknown session.
        """
        check_session_id(session_id, creating=False)
        return await self._database.read(operations.read_pins, session_id, user_id)
