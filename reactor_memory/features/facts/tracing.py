"""Facts with the words of the messages that state them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

import anyio.to_thread

from reactor_memory.features.facts.amendment_fold import amended, muted, overruled, until
from reactor_memory.features.facts.evidence import evidence_text, quote
from reactor_memory.features.facts.merge import fold, position, successors
from reactor_memory.features.redaction import redacted
from reactor_memory.models import Message, Session, Value
from reactor_memory.models.ledger import Fact, Ledger
from reactor_memory.models.seq_ranges import joined_ranges

if TYPE_CHECKING:
    from reactor_memory.core.ports import MessageStore, Redactor

PAGE = 500


class MessageView:
    """Which messages are in view, and their redacted words around facts. Keeps no message."""

    def __init__(self, facts: Sequence[Fact], redactor: Redactor) -> None:
        self._redactor = redactor
        self.seqs: set[int] = set()
        self.quotes: dict[Fact, str] = {}
        self._facts: dict[int, list[Fact]] = {}
        for fact in facts:
            self._facts.setdefault(fact.source_seq, []).append(fact)

    def add(self, messages: Sequence[Message]) -> None:
        self.seqs.update(message.seq or 0 for message in messages)
        sources = [message for message in messages if message.seq in self._facts]
        for message in redacted(sources, self._redactor):
            text = evidence_text(message)
            self.quotes.update({fact: quote(fact, text) for fact in self._facts[message.seq or 0]})


class TracedFact(Value, frozen=True, kw_only=True):
    """A fact with what its message says around the value (empty if the fact is not verified), and the fact that holds
    in its place, if it does not hold any more. `retracted`: a person said that it is none, or something that it says;
    `muted`: contexts are not to say it. The message of a fact that is `amended` does not state it.
    """

    fact: Fact
    quote: str
    successor: Fact | None = None
    retracted: bool = False
    muted: bool = False


class Tracer:
    """Reads the messages that facts come from."""

    def __init__(self, *, messages: MessageStore, redactor: Redactor) -> None:
        self._messages = messages
        self._redactor = redactor

    async def trace(
        self, session: Session, user_id: str | None, ledger: Ledger, *, as_of_seq: int | None, everything: bool
    ) -> tuple[TracedFact, ...]:
        """The facts of messages up to `as_of_seq`: those that hold, or `everything` in the ledger."""
        said = [fact for fact in ledger.facts if as_of_seq is None or fact.source_seq <= as_of_seq]
        corrections = ledger.corrections if as_of_seq is None else until(ledger.corrections, as_of_seq)
        holding = amended(said, corrections)
        listed = sorted({*said, *holding}, key=position) if everything else fold(holding)
        view = MessageView(listed, self._redactor)
        seqs = sorted({fact.source_seq for fact in listed})
        async for page in pages_of(self._messages, session.session_id, user_id, seqs):
            await anyio.to_thread.run_sync(view.add, page)
        gone, silent = overruled(said, corrections), muted(said, corrections)
        replaced = successors(holding) | gone
        return tuple(
            TracedFact(
                fact=fact,
                quote=view.quotes.get(fact, ""),
                successor=replaced.get(fact),
                retracted=fact in gone and gone[fact] is None and fact not in silent,
                muted=fact in silent,
            )
            for fact in listed
        )


async def pages_of(
    messages: MessageStore, session_id: str, user_id: str | None, seqs: Sequence[int]
) -> AsyncIterator[Sequence[Message]]:
    """The messages `seqs`, in pages where they follow each other."""
    for first, last in joined_ranges((seq, seq) for seq in seqs):
        for after in range(first - 1, last, PAGE):
            until_seq = min(last, after + PAGE)
            yield await messages.read(session_id, user_id, after=after, until=until_seq)
