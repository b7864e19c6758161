"""From a question to what comes back for it: ask the index, read what it found, choose.

Nothing is read for a message that names nothing outside its context. A fault of the index costs what it would have
found, never the load.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from msgspec.structs import replace

from reactor_memory.core.context.blocks import Block, Frame
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.draft import Draft, EarlierTurns, with_block
from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.core.context.newest_turns import kept_start
from reactor_memory.features.facts.merge import fold
from reactor_memory.features.facts.rendering import render_facts
from reactor_memory.features.recall.choice import Recalled, VisibleContext, choose, query_terms, wanted
from reactor_memory.features.recall.entries import attributed, message_entries, searchable
from reactor_memory.features.recall.gate import Name, known, names, outside
from reactor_memory.features.recall.ranking import Postings, joined, scored
from reactor_memory.features.redaction import redacted, unredacted
from reactor_memory.models import LARGEST, Message, SearchHit, Session, Value
from reactor_memory.models.index_requests import IndexAnswer, RecallQuery
from reactor_memory.models.ledger import Fact
from reactor_memory.models.seq_ranges import joined_ranges

if TYPE_CHECKING:
    from reactor_memory.core.ports import MessageStore, RecallIndex, Redactor, SummaryStore

log = logging.getLogger(__name__)

DIRECT_MESSAGES = 2_000
"""How many messages that are not indexed yet are searched without the index: the newest."""

IN_THREAD_MESSAGES = 100
IN_THREAD_CHARACTERS = 100_000
"""From so many on they are searched, and the best chosen, in a thread: other loads go on meanwhile."""

FOUND = 200
"""How much of what an index finds is looked at."""

RECALLED_TURNS = "recalled"
RECALLED_FACTS = Frame(part="recalled_facts", header="Recalled Conversation Facts:", place="last")


class RecallOptions(Value, frozen=True, kw_only=True):
    """`share` of the budget is the most that recall takes. `overhead` is what a message costs beside its own tokens.

    A load waits `seconds` for what is recalled, half of it for what is near in meaning, and a third of it for the
    embedder: words are there already.
    """

    share: float = 0.9
    overhead: int = 4
    seconds: float = 3.0


class Question(Value, frozen=True, kw_only=True):
    """What to look for. `unknown` is None for an explicit query, else the names that the context does not show."""

    text: str
    named: tuple[Name, ...]
    unknown: tuple[Name, ...] | None = None


class Recaller:
    """Adds to a draft what answers the question of a load."""

    def __init__(
        self,
        *,
        index: RecallIndex,
        messages: MessageStore,
        summaries: SummaryStore,
        counter: MessageCounter,
        redactor: Redactor,
        options: RecallOptions,
    ) -> None:
        self._index = index
        self._messages = messages
        self._summaries = summaries
        self._counter = counter
        self._redactor = redactor
        self._options = options

    async def added(
        self,
        query: str | None,
        current: Sequence[Message],
        session: Session,
        user_id: str | None,
        draft: Draft,
        context: Callable[[Sequence[Message]], Awaitable[Context]],
    ) -> Draft:
        """As `Recall.added`."""
        question = question_of(query, current, draft)
        if question is None:
            return draft
        return await self.recall(question, session, user_id, draft, await context(current))

    async def recall(
        self, question: Question, session: Session, user_id: str | None, draft: Draft, context: Context
    ) -> Draft:
        """`draft` with what was recalled. `context` is what it looks like without."""
        most = int(self._options.share * context.report.budget)
        room = min(most, room_in(context, count=self._cost, with_memory=question.unknown is None))
        shown = visible_in(context, draft, room, count=self._cost)
        try:
            with anyio.fail_after(self._options.seconds):
                recalled = await self._recalled(question, session, user_id, draft, shown, room)
        except Exception as error:  # an index is anybody's code, and a load does without it
            log.warning("nothing recalled", extra={"session_id": session.session_id, "reason": type(error).__name__})
            return draft
        return with_recalled(draft, recalled, memory_room=room if question.unknown is None else 0)

    async def search(self, text: str, session: Session, user_id: str | None, *, limit: int) -> tuple[SearchHit, ...]:
        """The messages and the facts that answer `text`, best first. Raises `StoreError` and `RedactionError`."""
        nothing = Draft(strategy="search", session_id=session.session_id)
        findings = await self._findings(Question(text=text, named=names(text)), session, user_id, nothing, limit)
        best = findings.found[:limit]
        seqs = [(found.seq, found.seq) for found in best if not found.anchor]
        anchors = [found.anchor for found in best if found.anchor]
        messages = await self._messages.read_ranges(session.session_id, user_id, seqs) if seqs else ()
        facts = await self._summaries.read_facts_about(session.session_id, session.branch, anchors) if anchors else ()
        texts = {("", message.seq): searchable(message) for message in messages}
        shown_of = _texts_of(anchors, facts)
        texts |= {(found.anchor, found.seq): shown_of[found.anchor] for found in best if found.anchor}
        return tuple(
            SearchHit(seq=found.seq, anchor=found.anchor, score=found.score, text=shown)
            for found in best
            if (shown := texts.get((found.anchor, found.seq)))
        )

    async def _recalled(
        self,
        question: Question,
        session: Session,
        user_id: str | None,
        draft: Draft,
        shown: VisibleContext,
        room: int,
    ) -> Recalled:
        findings = await self._findings(question, session, user_id, draft)
        if question.unknown is not None and not known(question.unknown, findings, before=shown.start):
            return Recalled()
        turns, anchors = wanted(findings, question.named, shown, room)
        facts = await self._summaries.read_facts_about(session.session_id, session.branch, anchors) if anchors else ()
        messages = await self._messages.read_ranges(session.session_id, user_id, joined_ranges(turns)) if turns else ()
        best = partial(
            choose,
            findings,
            question.named,
            shown,
            fold(facts),
            messages,
            room,
            count=self._cost,
            count_text=self._counter.of_text,
        )
        is_short = len(facts) < IN_THREAD_MESSAGES and _is_short([*shown.window, *messages])
        return best() if is_short else await anyio.to_thread.run_sync(best, abandon_on_cancel=True)

    async def _findings(
        self, question: Question, session: Session, user_id: str | None, draft: Draft, limit: int = FOUND
    ) -> IndexAnswer:
        query = RecallQuery(
            session_id=session.session_id,
            branch=session.branch,
            text=question.text,
            terms=query_terms(question.text, question.named),
            limit=limit,
        )
        indexed = await self._index.search(query)
        rest = await self._not_indexed(session, user_id, draft, indexed.indexed_until)
        if not rest:
            return indexed
        is_short = _is_short(rest)
        if is_short and self._redactor is unredacted:
            return scored(joined(indexed, _searched(rest, query, unredacted)))
        # A redactor may take longer than a load waits
        found = await anyio.to_thread.run_sync(_searched, rest, query, self._redactor, abandon_on_cancel=True)
        return scored(joined(indexed, found))

    async def _not_indexed(self, session: Session, user_id: str | None, draft: Draft, after: int) -> Sequence[Message]:
        """The messages that the index does not hold yet: those of the window are there, older ones are read."""
        window = [message for message in draft.window if (message.seq or 0) > after]
        start = (draft.window[0].seq or 1) if draft.window else session.last_seq + 1
        if after >= start - 1:
            return window
        older = await self._messages.read(
            session.session_id, user_id, after=after, until=start - 1, last=DIRECT_MESSAGES
        )
        return (*older, *window)

    def _cost(self, message: Message) -> int:
        return self._counter.of(message) + self._options.overhead


def question_of(query: str | None, current: Sequence[Message], draft: Draft) -> Question | None:
    """What a load asks for: its explicit `query`; without one (None) what the current message names and `draft` does
    not show; None if there is nothing to ask.
    """
    if query is not None:
        return Question(text=query, named=names(query)) if query.strip() else None
    text = "\n".join(message.content for message in current if message.role == "user")
    named = names(text)
    unknown = outside(named, _texts(draft)) if named else ()
    return Question(text=text, named=named, unknown=unknown) if unknown else None


def _texts(draft: Draft) -> Iterator[str]:
    yield from (line.text for block in draft.blocks_at("memory") for line in block.lines)
    yield from (message.content for verbatim in draft.verbatim for message in verbatim.messages)
    yield from map(attributed, draft.window)


def room_in(context: Context, *, count: Callable[[Message], int], with_memory: bool) -> int:
    """What of the budget nothing needs but the window before its newest turns and, `with_memory`, the memory."""
    giving = {frame.part for frame in context.report.frames if with_memory and frame.place == "memory"}
    taken = sum(tokens for part, tokens in context.report.tokens.items() if part != "window" and part not in giving)
    window, budget = window_of(context), context.report.budget
    return max(0, budget - taken - sum(map(count, window[kept_start(window, len(window), budget, count) :])))


def window_of(context: Context) -> list[Message]:
    return [message for message, part in zip(context.messages, context.report.parts, strict=True) if part == "window"]


def visible_in(context: Context, draft: Draft, room: int, *, count: Callable[[Message], int]) -> VisibleContext:
    """What `context` shows, and from where on its window would stay if recall took `room` tokens."""
    window = window_of(context)
    excess = room - (context.report.budget - context.report.total_tokens)
    safe = 0
    while safe < len(window) and (excess > 0 or window[safe].role != "user"):
        excess -= count(window[safe])
        safe += 1
    kept = window[kept_start(window, len(window), context.report.budget, count) :]
    newest = (kept[0].seq or 0) if kept else LARGEST
    first_safe = min(newest, (window[safe].seq or 0) if safe < len(window) else LARGEST)
    lines = frozenset(line.text for block in draft.blocks_at("memory") for line in block.lines)
    return VisibleContext(lines=lines, window=tuple(window), first_safe=first_safe)


def with_recalled(draft: Draft, recalled: Recalled, *, memory_room: int) -> Draft:
    """The draft with what came back, for which memory gives up `memory_room` tokens: of lines that do not answer."""
    if not recalled.lines and not recalled.messages:
        return draft
    if memory_room:
        for block in draft.blocks_at("memory"):
            draft = with_block(draft, _answering_first(block, recalled))
    if recalled.lines:
        draft = with_block(draft, Block(frame=RECALLED_FACTS, lines=recalled.lines))
    earlier = EarlierTurns(part=RECALLED_TURNS, messages=recalled.messages) if recalled.messages else None
    return replace(draft, earlier=earlier, earlier_room=memory_room)


def _answering_first(block: Block, recalled: Recalled) -> Block:
    """The block with the lines that answer worth more than all others."""
    best = 1.0 + max((line.value for line in block.lines), default=0.0)
    lines = [
        replace(line, value=best + line.value) if line.text in recalled.answering else line for line in block.lines
    ]
    return replace(block, lines=tuple(lines))


def _texts_of(anchors: Iterable[str], facts: Iterable[Fact]) -> dict[str, str]:
    """The lines of each anchor that tell of the facts that hold."""
    about: dict[str, list[Fact]] = {anchor: [] for anchor in anchors}
    for fact in fold(facts):
        if fact.anchor in about:
            about[fact.anchor].append(fact)
    return {anchor: "\n".join(line.text for line in render_facts(told, count=len)) for anchor, told in about.items()}


def _searched(messages: Sequence[Message], query: RecallQuery, redactor: Redactor) -> IndexAnswer:
    postings = Postings()
    postings.add(message_entries(redacted(messages, redactor)))
    last = messages[-1].seq or 0
    found, frequencies = postings.find(query.terms, last=last)
    return IndexAnswer(found=tuple(found), frequencies=frequencies, total=len(messages))


def _is_short(messages: Sequence[Message]) -> bool:
    """Whether reading them is quick enough for the thread of the event loop."""
    return len(messages) < IN_THREAD_MESSAGES and sum(len(each.content) for each in messages) < IN_THREAD_CHARACTERS
