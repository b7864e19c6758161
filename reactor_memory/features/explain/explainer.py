"""From a session to an explanation of its context: reads what `reactor_memory.features.explain.explanation` judges."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import anyio.to_thread

from reactor_memory.core.loading import ContextLoader, Loaded, LoadRequest
from reactor_memory.core.ports import MessageStore, Redactor, Refold, SummaryStore
from reactor_memory.errors import InvalidInputError
from reactor_memory.features.explain.explanation import Evidence, Explanation, about_facts, about_message, explain
from reactor_memory.features.facts.amendment_fold import amended, overruled
from reactor_memory.features.facts.amendment_fold import until as made_until
from reactor_memory.features.facts.evidence import evidence_text, quote
from reactor_memory.features.facts.merge import fold, position, successors
from reactor_memory.features.facts.session_ledger import ledger_of
from reactor_memory.features.redaction import redacted
from reactor_memory.models import Fact, Ledger, Message, PinTarget, Session, Summary, Value

PAGE = 500


class _View:
    """Which messages are in view, and what they say where facts stand, redacted as it was read. Holds no message."""

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
    in its place, if it does not hold any more. `retracted`: a person said that it is none. The message of a fact that
    is `amended` does not state it.
    """

    fact: Fact
    quote: str
    successor: Fact | None = None
    retracted: bool = False


class Explainer:
    """Explains the context that a load would give, and changes nothing: no layout is stored."""

    def __init__(
        self,
        *,
        messages: MessageStore,
        summaries: SummaryStore,
        loader: ContextLoader,
        redactor: Redactor,
        refold: Refold,
    ) -> None:
        self._messages = messages
        self._summaries = summaries
        self._loader = loader
        self._redactor = redactor
        self._refold = refold

    async def explain(self, request: LoadRequest, session: Session, target: PinTarget | None) -> Explanation:
        """The context of `request` and all that could be in it, or what is about one message or fact of the session."""
        if isinstance(target, int) and target > session.last_seq:
            problem = f"message {target} is not in this session, which ends with {session.last_seq}"
            raise InvalidInputError("seq", problem)
        loaded = await self._loader.load(request, keep_layout=False)
        ledger = await ledger_of(self._summaries, session)
        facts = _asked(tuple(dict.fromkeys([*ledger.facts, *amended(ledger.facts, ledger.corrections)])), target)
        seqs = _messages_asked(facts, target, session)
        view = _View(facts, self._redactor)
        async for page in self._read(request.session_id, request.user_id, seqs):
            await anyio.to_thread.run_sync(view.add, page)
        found = await anyio.to_thread.run_sync(self._judge, request, loaded, ledger, facts, seqs, view)
        if isinstance(target, int):
            return about_message(found, target)
        return found if target is None else about_facts(found)

    async def trace(
        self, session: Session, user_id: str | None, *, until: int | None, everything: bool
    ) -> tuple[TracedFact, ...]:
        """The facts of messages up to `until`: those that hold, or `everything` in the ledger."""
        ledger = await ledger_of(self._summaries, session)
        said = [fact for fact in ledger.facts if until is None or fact.source_seq <= until]
        corrections = ledger.corrections if until is None else made_until(ledger.corrections, until)
        holding = amended(said, corrections)
        listed = sorted({*said, *holding}, key=position) if everything else fold(holding)
        view = _View(listed, self._redactor)
        async for page in self._read(session.session_id, user_id, sorted({fact.source_seq for fact in listed})):
            await anyio.to_thread.run_sync(view.add, page)
        gone = overruled(said, corrections)
        replaced = successors(holding) | gone
        return tuple(
            TracedFact(
                fact=fact,
                quote=view.quotes.get(fact, ""),
                successor=replaced.get(fact),
                retracted=fact in gone and gone[fact] is None,
            )
            for fact in listed
        )

    def _judge(
        self,
        request: LoadRequest,
        loaded: Loaded,
        ledger: Ledger,
        facts: Sequence[Fact],
        seqs: Sequence[int],
        view: _View,
    ) -> Explanation:
        memory = self._memory(ledger, loaded.draft.covered_seq)
        gone = overruled(ledger.facts, ledger.corrections)
        held = {fact: fixed for fact, fixed in gone.items() if fixed is not None}
        evidence = Evidence(
            seqs=seqs,
            in_view=frozenset(view.seqs),
            facts=facts,
            competing=memory.facts(),
            successors=successors(amended(ledger.facts, ledger.corrections)) | held,
            retracted=gone.keys() - held.keys(),
            quotes=view.quotes,
            narrative=memory.narrative,
            segments=ledger.segments,
            posted=ledger.posted,
        )
        return explain(self._loader.assemble(loaded, request.current), loaded.draft, evidence)

    def _memory(self, ledger: Ledger, covered_seq: int) -> Summary:
        """The summary as it was when it covered no more than the memory of the context does."""
        return self._refold(
            Ledger(
                segments=tuple(each for each in ledger.segments if each.end_seq <= covered_seq),
                facts=tuple(fact for fact in ledger.facts if fact.source_seq <= covered_seq),
                corrections=ledger.corrections,
                posted=ledger.posted,
            )
        )

    async def _read(
        self, session_id: str, user_id: str | None, seqs: Sequence[int]
    ) -> AsyncIterator[Sequence[Message]]:
        """The messages `seqs`, in pages where they follow each other."""
        for first, last in _runs(seqs):
            for after in range(first - 1, last, PAGE):
                until = min(last, after + PAGE)
                yield await self._messages.read(session_id, user_id, after=after, until=until)


def _asked(facts: Sequence[Fact], target: PinTarget | None) -> Sequence[Fact]:
    if target is None:
        return facts
    if isinstance(target, int):
        return [fact for fact in facts if fact.source_seq == target]
    named = [fact for fact in facts if (fact.anchor, fact.key) == target]
    if not named:
        raise InvalidInputError("fact", "no fact has this anchor and key: give them as the list of facts does")
    return named


def _messages_asked(facts: Sequence[Fact], target: PinTarget | None, session: Session) -> Sequence[int]:
    if target is None:
        return range(1, session.last_seq + 1)
    return [target] if isinstance(target, int) else sorted({fact.source_seq for fact in facts})


def _runs(seqs: Sequence[int]) -> Sequence[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for seq in seqs:
        if runs and seq == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], seq
        else:
            runs.append((seq, seq))
    return runs
