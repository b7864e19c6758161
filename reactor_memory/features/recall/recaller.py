"""From a question to what comes back for it: ask the index, decide, read what was chosen.

Nothing is read for a message that neither asks nor names an identifier. A fault of the index costs what it would have
found, never the load.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

import anyio
import anyio.to_thread
from msgspec.structs import replace

from reactor_memory.core.context.blocks import Block, block_text
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.draft import Draft, with_block
from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.core.context.newest_turns import kept_start
from reactor_memory.core.context.selection import first_seq_of
from reactor_memory.core.context.standing import with_damage
from reactor_memory.core.context.withheld import Withheld
from reactor_memory.features.recall.choice import (
    CLIFF,
    RECALLED,
    answering_first,
    answering_then_first,
    needed,
    recalled_lines,
    tokens_of,
)
from reactor_memory.features.recall.memory_lines import answering_lines, in_order
from reactor_memory.features.recall.passages import passages_of
from reactor_memory.features.recall.question import (
    FIRES,
    IN_WORDS,
    Question,
    Verdict,
    holds_enough,
    is_worth_moving,
    question_of,
    verdict,
    words_to_find,
)
from reactor_memory.features.recall.ranking import found_among, joined, rarities, scored
from reactor_memory.features.recall.room import (
    DEFAULT_CLIFF,
    HAD_SHARE,
    Room,
    chosen_hits,
    filled,
    is_shown,
    room_beside,
    room_of,
    shown_whole,
    window_of,
)
from reactor_memory.features.redaction import redacted, unredacted
from reactor_memory.models import Message, SearchHit, Session, Value
from reactor_memory.models.block_lines import BlockLine
from reactor_memory.models.index_requests import IndexAnswer, IndexHit, RecallQuery
from reactor_memory.models.seq_ranges import Ranges, is_within, joined_ranges, overlaps
from reactor_memory.text.analyzer import beginnings

if TYPE_CHECKING:
    from reactor_memory.core.ports import MessageStore, RecallIndex, Redactor
    from reactor_memory.core.sources import Views
    from reactor_memory.features.facts.amendments import Amendments

log = logging.getLogger(__name__)

DIRECT_MESSAGES = 2_000
"""How many messages that are not indexed yet are searched without the index: the newest."""

IN_THREAD_MESSAGES = 100
IN_THREAD_CHARACTERS = 30_000
"""From so many on they are searched in a thread: other loads go on meanwhile."""

MOST_FOUND, LEAST_FOUND, TOKENS_OF_FOUND = 200, 60, 60
"""How much of what an index finds is looked at: about twice the passages that the budget holds."""

MOST_PASSED_OVER = 32
"""An index is told of so many withheld runs of messages: each costs it a look-up for each word. Of more, the passages
are left out of what it finds.
"""

MOST_CHOICES = 3
"""What leaves a context for what comes back is chosen among, too, and then something else may leave: so many times."""

BY_QUERY = "recall: brought back for the query"


class RecallOptions(Value, frozen=True, kw_only=True):
    """What recall may take, and how long.

    `share`: of what memory leaves of the budget, where a message asked; `query_share`: where the caller asks, and
    memory comes down to `query_memory_share` of the budget for it. `default`: whether messages are looked at
    (``question``), always searched for (``always``), or never (``off``). `overhead` is what a message costs beside its
    own tokens. A load waits `seconds` for what is recalled, half of it for what is near in meaning, and a third of it
    for the embedder: words are there already.
    """

    default: Literal["off", "question", "always"] = "question"
    share: float = 0.75
    query_share: float = 0.9
    query_memory_share: float = 0.25
    overhead: int = 4
    seconds: float = 3.0


class Choice(NamedTuple):
    """The passages that come back, best first, why, or why none, and what they may take; and the lines of memory."""

    hits: Sequence[IndexHit]
    why: str
    room: Room = Room(0, 0, 0)
    lines: Sequence[BlockLine] = ()


class Had(NamedTuple):
    """What the context shows without a question: the messages that it shows whole, and the blocks of its memory."""

    seqs: frozenset[int]
    blocks: Sequence[Block]


class Left(NamedTuple):
    """What leaves a context for what comes back: messages of its window, in this load for good or for this one context,
    and lines of memory that answer.
    """

    messages: Sequence[Message] = ()
    gone: frozenset[int] = frozenset()
    lines: Sequence[BlockLine] = ()


class Recaller:
    """Adds to a draft what answers the question of a load."""

    def __init__(
        self,
        *,
        index: RecallIndex,
        amendments: Amendments,
        messages: MessageStore,
        counter: MessageCounter,
        redactor: Redactor,
        options: RecallOptions,
    ) -> None:
        self._index = index
        self._amendments = amendments
        self._messages = messages
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
        views: Views,
    ) -> Draft:
        """`draft`, or where its window has to give way the moved one, with what answers `query`, or without one (None)
        what `current` asks and the draft does not show; the same draft if there is nothing. Raises nothing.
        """
        question = question_of(query, current, self._options.default)
        return draft if question is None else await self.recall(question, session, user_id, draft, views)

    async def recall(
        self, question: Question, session: Session, user_id: str | None, draft: Draft, views: Views
    ) -> Draft:
        """`draft` with what was recalled, or the one whose window moved for it."""
        try:
            with anyio.fail_after(self._options.seconds):
                context = await views.context(draft)
                withheld = await self._amendments.read_withheld(session.branch)
                limit = _limit_of(context.report.budget)
                findings = await self._findings(question, session, user_id, draft, withheld, limit=limit)
                bring = partial(self._with_chosen, question, findings, session, user_id, withheld)
                had = Had(shown_whole(context), draft.blocks_at("memory"))
                base, left = _told_of(findings, draft), Left()
                choice = self._chosen(question, findings, draft, context, had, left)
                recalled = await bring(base, choice)
                if recalled.window_gives and not question.is_explicit:
                    moved = await views.moved(recalled.window_gives)
                    if moved is not None:
                        base, context = _told_of(findings, moved), await views.context(moved)
                        lines = answering_lines(had.blocks, context, findings)
                        left = Left(_left_by(draft, moved, withheld), lines=lines)
                        choice = self._chosen(question, findings, base, context, had, left)
                        recalled = await bring(base, choice)
                for _ in range(MOST_CHOICES):
                    again = await _left_for(recalled, context, had, left, findings, views)
                    chosen = self._chosen(question, findings, base, context, had, again) if again != left else choice
                    if chosen == choice:
                        break
                    left, choice, recalled = again, chosen, await bring(base, chosen)
                return recalled
        except Exception as error:  # an index is anybody's code, and a load does without it
            log.warning("nothing recalled", extra={"session_id": session.session_id, "reason": type(error).__name__})
            return draft

    async def search(self, text: str, session: Session, user_id: str | None, *, limit: int) -> tuple[SearchHit, ...]:
        """The passages that answer `text`, best first. Raises `StoreError` and `RedactionError`."""
        nothing = Draft(strategy="search", session_id=session.session_id)
        question = Question(text=text, words=words_to_find(text), is_explicit=True)
        withheld = await self._amendments.read_withheld(session.branch)
        findings = await self._findings(question, session, user_id, nothing, withheld, limit=limit)
        best = [hit for hit in findings.found if hit.passage.terms or hit.similarity][:limit]
        ranges = joined_ranges(needed(best))
        messages = await self._messages.read_ranges(session.session_id, user_id, ranges) if ranges else ()
        lines = [(hit, tellable(recalled_lines([hit], messages), withheld)) for hit in best]
        return tuple(
            SearchHit(seq=hit.passage.seq, end_seq=hit.passage.end_seq, score=hit.score, text=line[0].text)
            for hit, line in lines
            if line
        )

    def _chosen(
        self,
        question: Question,
        findings: IndexAnswer,
        draft: Draft,
        context: Context,
        had: Had,
        left: Left,
    ) -> Choice:
        """What comes back beside `context`. Messages that are gone for it count as hidden; lines of memory that answer
        come first, and of the messages that left already, so many come back as there is room for.
        """
        shown = shown_whole(context)
        why, may_take = BY_QUERY, True
        if question.is_explicit:
            may_take = holds_enough(findings.found, rarities(findings))
        elif self._options.default != "always":
            decided, may_take = decide(question, findings, rarities(findings), shown, texts_of(context, draft))
            why = IN_WORDS[decided]
            if decided not in FIRES:
                return Choice((), why)
        room = self._room(question, context, may_take=may_take)
        cliff = CLIFF if question.is_explicit else DEFAULT_CLIFF
        beside = room_beside(room, left.lines)
        hits = chosen_hits(
            findings.found,
            shown - left.gone,
            context,
            beside,
            cliff=cliff,
            count=self._cost,
            had=had.seqs,
            had_share=cliff if question.is_explicit else HAD_SHARE,
        )
        hits = filled(hits, findings.found, left.messages, shown, beside)
        if not hits and not left.lines:
            return Choice((), IN_WORDS["nothing found" if may_take else "no room"], room)
        return Choice(hits, why, room, left.lines)

    async def _with_chosen(
        self,
        question: Question,
        findings: IndexAnswer,
        session: Session,
        user_id: str | None,
        withheld: Withheld,
        draft: Draft,
        choice: Choice,
    ) -> Draft:
        if not choice.hits and not choice.lines:
            return with_remark(draft, choice.why)
        messages = await self._messages.read_ranges(session.session_id, user_id, joined_ranges(needed(choice.hits)))
        if is_short(messages):
            lines, tokens = self._written(choice, messages, withheld)
        else:
            lines, tokens = await anyio.to_thread.run_sync(self._written, choice, messages, withheld)
        if not lines:
            return with_remark(draft, IN_WORDS["nothing found"])
        for block in draft.blocks_at("memory") if question.is_explicit or choice.room.memory else ():
            worth = answering_first if question.is_explicit else answering_then_first
            draft = with_block(draft, worth(block, rarities(findings)))
        draft = with_block(draft, Block(frame=RECALLED, lines=lines, tokens=tokens))
        window_gives = max(0, tokens - choice.room.free)
        return with_remark(replace(draft, memory_gives=choice.room.memory, window_gives=window_gives), choice.why)

    def _written(
        self, choice: Choice, messages: Sequence[Message], withheld: Withheld
    ) -> tuple[tuple[BlockLine, ...], int]:
        """The lines, and what their block costs as a message. What was to fit into the free room does so."""
        hits, room = choice.hits, choice.room
        about = tokens_of(hits) + sum(line.tokens for line in choice.lines)
        most = room.free if about <= room.free else room.most
        while True:
            lines = in_order(tellable(recalled_lines(hits, messages), withheld), choice.lines)
            text = block_text(RECALLED, [line.text for line in lines])
            tokens = self._counter.of_text(text) + self._options.overhead
            if tokens <= most or len(hits) <= 1:
                return lines, tokens
            hits = hits[:-1]

    def _room(self, question: Question, context: Context, *, may_take: bool) -> Room:
        """What recall may take: a share of what the memory and the current turn leave, beside the newest turns."""
        report, budget = context.report, context.report.budget
        places = {frame.part: frame.place for frame in report.frames}
        memory = sum(tokens for part, tokens in report.tokens.items() if places.get(part) == "memory")
        window = window_of(context)
        newest = sum(map(self._cost, window[kept_start(window, len(window), budget, self._cost) :]))
        others = report.total_tokens - memory - report.tokens.get("window", 0)
        options = self._options
        return room_of(
            budget=budget,
            free=budget - report.total_tokens,
            memory=memory,
            spare=max(0, memory - int(options.query_memory_share * budget)),
            newest=newest,
            others=others,
            share=options.query_share if question.is_explicit else options.share,
            is_explicit=question.is_explicit,
            may_take=may_take,
        )

    async def _findings(
        self,
        question: Question,
        session: Session,
        user_id: str | None,
        draft: Draft,
        withheld: Withheld,
        *,
        limit: int,
    ) -> IndexAnswer:
        passed_over = withheld.ranges
        query = RecallQuery(
            session_id=session.session_id,
            branch=session.branch,
            text=question.text,
            words=tuple(word.terms for word in question.words),
            begun={word.terms[0]: beginnings(word) for word in question.words} if question.is_explicit else {},
            limit=limit,
            withheld=passed_over if len(passed_over) <= MOST_PASSED_OVER else withheld.cleared,
        )
        indexed = without(await self._index.search(query), passed_over)
        rest = await self._not_indexed(session, user_id, draft, indexed.indexed_until)
        rest = [message for message in rest if not is_within(message.seq or 0, passed_over)] if passed_over else rest
        if not rest:
            return indexed
        if self._redactor is unredacted and is_short(rest):
            return scored(joined(indexed, _searched(rest, query, unredacted)))
        # A redactor may take longer than a load waits
        found = await anyio.to_thread.run_sync(_searched, rest, query, self._redactor, abandon_on_cancel=True)
        return scored(joined(indexed, found))

    async def _not_indexed(self, session: Session, user_id: str | None, draft: Draft, after: int) -> Sequence[Message]:
        """The messages that the index does not hold yet: those of the window are there, older ones are read."""
        window = [message for message in draft.window if (message.seq or 0) > after]
        start = first_seq_of(draft.window, session.last_seq + 1)
        if after >= start - 1:
            return window
        older = await self._messages.read(
            session.session_id, user_id, after=after, until=start - 1, last=DIRECT_MESSAGES
        )
        return (*older, *window)

    def _cost(self, message: Message) -> int:
        return self._counter.of(message) + self._options.overhead


def _limit_of(budget: int) -> int:
    return min(MOST_FOUND, max(LEAST_FOUND, budget // TOKENS_OF_FOUND))


def without(answer: IndexAnswer, withheld: Ranges) -> IndexAnswer:
    """The answer without passages of these messages, which not every index passes over."""
    if not withheld:
        return answer
    found = [hit for hit in answer.found if not overlaps((hit.passage.seq, hit.passage.end_seq), withheld)]
    return replace(answer, found=tuple(found))


def tellable(lines: Sequence[BlockLine], withheld: Withheld) -> tuple[BlockLine, ...]:
    """The lines that repeat nothing of what is withheld; their heads are not what was said."""
    said = ((line, line.text.partition("] ")[2]) for line in lines)
    return tuple(line for line, text in said if not withheld.is_said(text, line.source_seqs[0], line.source_seqs[-1]))


def _told_of(findings: IndexAnswer, draft: Draft) -> Draft:
    return with_damage(draft, "recall index") if findings.is_damaged else draft


def with_remark(draft: Draft, remark: str) -> Draft:
    return replace(draft, remarks=(*draft.remarks, remark))


def _left_by(draft: Draft, moved: Draft, withheld: Withheld) -> Sequence[Message]:
    """The messages of the window of `draft` that the `moved` one begins behind, without what is withheld."""
    start = first_seq_of(moved.window, 0)
    left = [message for message in draft.window if (message.seq or 0) < start]
    return [message for message in left if not is_within(message.seq or 0, withheld.ranges)]


async def _left_for(
    recalled: Draft, context: Context, had: Had, left: Left, findings: IndexAnswer, views: Views
) -> Left:
    """What leaves the context for what comes back: how much, only its context tells."""
    if not recalled.window_gives and not recalled.memory_gives:
        return left
    now = await views.context(recalled)
    gone = shown_whole(context) - shown_whole(now)
    return left._replace(gone=gone | left.gone, lines=answering_lines(had.blocks, now, findings))


def texts_of(context: Context, draft: Draft) -> Iterator[str]:
    yield from (line.text for block in draft.blocks_at("memory") for line in block.lines)
    for message, part in zip(context.messages, context.report.parts, strict=True):
        if part != "current":
            yield message.content
            yield from (str(call.arguments) for call in message.tool_calls)


class Decision(NamedTuple):
    """The verdict of the gate, and whether the window may give way for what comes back."""

    verdict: Verdict
    may_take: bool = False


def decide(
    question: Question,
    findings: IndexAnswer,
    weights: Mapping[str, float],
    shown: frozenset[int],
    texts: Iterable[str],
) -> Decision:
    """Whether the gate lets anything back. The messages `shown` are shown as they are, among the `texts`."""
    hidden: list[IndexHit] = []
    visible: list[IndexHit] = []
    for hit in findings.found:
        (visible if is_shown(hit, shown) else hidden).append(hit)
    decided = verdict(
        asks=question.asks,
        named=question.named,
        hidden=hidden,
        visible=visible,
        shown=texts,
        weights=weights,
        asked=question.asked,
        is_fresh=question.is_fresh,
    )
    return Decision(decided, decided == "identifier" or is_worth_moving(hidden, visible, weights))


def is_short(messages: Sequence[Message]) -> bool:
    """Whether reading them is quick enough for the thread of the event loop."""
    return len(messages) < IN_THREAD_MESSAGES and sum(len(each.content) for each in messages) < IN_THREAD_CHARACTERS


def _searched(messages: Sequence[Message], query: RecallQuery, redactor: Redactor) -> IndexAnswer:
    clean = None if redactor is unredacted else redacted(messages, redactor)
    return found_among(passages_of(messages, clean), query)
