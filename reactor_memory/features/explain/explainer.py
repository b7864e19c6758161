"""From a session to an explanation of its context: reads what `reactor_memory.features.explain.explanation` judges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

import anyio.to_thread

from reactor_memory.core.context.context import Context
from reactor_memory.core.context.given_messages import MessageLike, MessagesLike
from reactor_memory.core.load_requests import LoadArguments, LoadRequest, load_request, with_traffic
from reactor_memory.core.loading import ContextLoader, Loaded
from reactor_memory.core.manager import ConversationManager
from reactor_memory.core.validation import MessageLimits
from reactor_memory.errors import InvalidInputError
from reactor_memory.features.explain.explanation import Evidence, Explanation, about_facts, about_message, explain
from reactor_memory.features.facts.amendment_fold import amended, overruled
from reactor_memory.features.facts.merge import successors
from reactor_memory.features.facts.session_ledger import ledger_of
from reactor_memory.features.facts.targets import checked_target
from reactor_memory.features.facts.tracing import MessageView, pages_of
from reactor_memory.features.facts.withheld_facts import texts_without_taken_back
from reactor_memory.models import PinTarget, Session
from reactor_memory.models.ledger import Fact, Ledger, Summary

if TYPE_CHECKING:
    from reactor_memory.core.ports import LedgerFold, MessageStore, Redactor, SummaryStore


class Explainer:
    """Explains the context that a load would give, and changes nothing: no layout is stored."""

    def __init__(
        self,
        *,
        manager: ConversationManager,
        messages: MessageStore,
        summaries: SummaryStore,
        loader: ContextLoader,
        redactor: Redactor,
        refold: LedgerFold,
        limits: MessageLimits,
    ) -> None:
        self._manager = manager
        self._messages = messages
        self._summaries = summaries
        self._loader = loader
        self._redactor = redactor
        self._refold = refold
        self._limits = limits

    async def explain(
        self,
        session_id: str,
        *,
        seq: int | None = None,
        fact: tuple[str, str] | None = None,
        message: MessageLike | None = None,
        **arguments: Unpack[LoadArguments],
    ) -> Explanation:
        """Why the context that `load_history` would give with these arguments is as it is. Stores nothing.

        One answer for each message of the session, each fact of its ledger (superseded and unverified ones, too) and
        each line that competed for memory; with `seq` or `fact` (anchor and key) only for what is about that message or
        fact. It reads the whole ledger, and without `seq` and `fact` every message: for looking into a session, not
        for every turn.

        Raises what `load_history` raises, `SessionNotFoundError`, and `InvalidInputError` for a message or fact that
        is not there.
        """
        if seq is not None and fact is not None:
            raise InvalidInputError("seq", "give either seq or fact, not both")
        target = None if seq is None and fact is None else checked_target(seq, fact)
        request = load_request(session_id, message, arguments, self._limits)
        session = await self._manager.get_session(session_id, user_id=request.user_id)
        if isinstance(target, int) and target > session.last_seq:
            problem = f"message {target} is not in this session, which ends with {session.last_seq}"
            raise InvalidInputError("seq", problem)
        loaded = await self._loader.load(request, keep_layout=False)
        ledger = await ledger_of(self._summaries, session)
        facts = _matching_facts(
            tuple(dict.fromkeys([*ledger.facts, *amended(ledger.facts, ledger.corrections)])), target
        )
        seqs = _matching_messages(facts, target, session)
        view = MessageView(facts, self._redactor)
        async for page in pages_of(self._messages, request.session_id, request.user_id, seqs):
            await anyio.to_thread.run_sync(view.add, page)
        found = await anyio.to_thread.run_sync(self._judge, request, loaded, ledger, facts, seqs, view)
        if isinstance(target, int):
            return about_message(found, target)
        return found if target is None else about_facts(found)

    async def preview(
        self,
        session_id: str,
        *,
        message: MessageLike | None = None,
        traffic: MessagesLike = (),
        **arguments: Unpack[LoadArguments],
    ) -> Context:
        """The context that `load_history` would give with these arguments. Stores nothing: the next load of the agent
        is what it would have been. Raises what `load_history` raises.
        """
        request = load_request(session_id, message, arguments, self._limits)
        if traffic:
            request = with_traffic(request, traffic, self._limits)
        loaded = await self._loader.load(request, keep_layout=False)
        return await self._loader.context(loaded, request.current)

    def _judge(
        self,
        request: LoadRequest,
        loaded: Loaded,
        ledger: Ledger,
        facts: Sequence[Fact],
        seqs: Sequence[int],
        view: MessageView,
    ) -> Explanation:
        told = texts_without_taken_back(ledger)
        memory = self._memory(told, loaded.draft.covered_seq)
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
            segments=told.segments,
            posted=told.posted,
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


def _matching_facts(facts: Sequence[Fact], target: PinTarget | None) -> Sequence[Fact]:
    if target is None:
        return facts
    if isinstance(target, int):
        return [fact for fact in facts if fact.source_seq == target]
    named = [fact for fact in facts if (fact.anchor, fact.key) == target]
    if not named:
        raise InvalidInputError("fact", "no fact has this anchor and key: give them as the list of facts does")
    return named


def _matching_messages(facts: Sequence[Fact], target: PinTarget | None, session: Session) -> Sequence[int]:
    if target is None:
        return range(1, session.last_seq + 1)
    return [target] if isinstance(target, int) else sorted({fact.source_seq for fact in facts})
