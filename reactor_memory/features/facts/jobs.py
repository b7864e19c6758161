"""The work on summaries of one session, one step at a time.

A step reads, lets the summarizer extract, and writes once, under the lease it is given. It returns how far the summary
covers the session afterwards, or None when there is nothing to do. Running a step twice changes nothing: the second
write is refused or finds nothing left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import anyio
import anyio.to_thread
import msgspec

from reactor_memory.core.context.withheld import Withheld
from reactor_memory.core.validation import fingerprint
from reactor_memory.errors import StoreCorruptError, SummarizationError
from reactor_memory.features.facts.amendment_fold import amended
from reactor_memory.features.facts.amendments import Amendments
from reactor_memory.features.facts.extractor import Extracted, Extractor, parted
from reactor_memory.features.facts.fold import SummaryFold
from reactor_memory.features.facts.operations import check_whole
from reactor_memory.features.facts.segments import archived_segment, next_segment
from reactor_memory.features.facts.session_ledger import known_of
from reactor_memory.features.facts.talk import Talk, in_talk, said_before
from reactor_memory.features.facts.withheld_facts import facts_without_cleared, ledger_without_cleared, segment_without
from reactor_memory.models import Message, Session
from reactor_memory.models.leases import Lease
from reactor_memory.models.ledger import Fact, Known, Ledger, SealedSegment, Segment, Summary, SummaryHead
from reactor_memory.models.requests import RELEASE_SECONDS, SUMMARIZE, BackgroundRows, LeaseLostError
from reactor_memory.models.seq_ranges import is_within

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock, MessageStore, SummaryStore


AT_ONCE_SECONDS = 0.1
"""Segments that are due are sealed together until so much time has passed: one fold and one write for all of them. What
a model reads takes longer, and is kept segment by segment.
"""

MOST_AT_ONCE = 16

MOST_QUESTIONS_WORTH = 4
"""What waits for a model is read at once up to so many times `question_message_count`: the more in one question, the
less its instruction costs.
"""

MOST_WHOLE = 4096
"""Of so many sessions the version of the summary is remembered that nothing had to be done for."""


class LogIndexer(Protocol):
    """An index of what the summary covers. Its faults do not stop summaries."""

    async def catch_up(self, lease: Lease) -> bool:
        """Index what is covered and not indexed yet; whether there was anything."""
        ...


class SummaryJob(Protocol):
    async def step(self, lease: Lease) -> int | None: ...


class LedgerJob:
    """Seals segments, extracts each once, and folds their facts: no message is extracted twice."""

    def __init__(
        self,
        *,
        messages: MessageStore,
        summaries: SummaryStore,
        amendments: Amendments,
        indexer: LogIndexer,
        extractor: Extractor,
        fold: SummaryFold,
        clock: Clock,
        trigger_message_count: int,
        segment_message_count: int,
        lease_microseconds: int,
        question_message_count: int = 0,
    ) -> None:
        """`question_message_count`: of a model that is asked about so many messages together. The offline reader reads
        each segment first, so that memory has it at once; the first segments of a session wait for no others. 0: each
        segment is a question.
        """
        self._messages = messages
        self._summaries = summaries
        self._amendments = amendments
        self._indexer = indexer
        self._extractor = extractor
        self._fold = fold
        self._clock = clock
        self._trigger = trigger_message_count
        self._segment_message_count = segment_message_count
        self._lease_microseconds = lease_microseconds
        self._question = question_message_count
        self._whole: dict[str, tuple[int, int]] = {}

    async def step(self, lease: Lease) -> int | None:
        """Repair a stale segment, or take over what a fork inherits, or seal the next segment, or extract an outdated
        one anew, or index the sealed.
        """
        covered = await self._step(lease, trigger=self._trigger)
        if covered is None:
            covered = await self._rebuild(lease)
        if covered is None and await self._indexer.catch_up(lease):
            summary = await self._summaries.get_summary_head(lease.session_id)
            return summary.covered_seq if summary else None
        return covered

    async def _step(self, lease: Lease, *, trigger: int, at_once: int = MOST_AT_ONCE) -> int | None:
        summary = await self._summaries.get_summary_head(lease.session_id) or SummaryHead()
        rows, sealable = await self._next_sealable(lease.session_id, summary.covered_seq)
        session, steps = rows.session, rows.steps
        if summary.stale_ranges:
            return await self._repair(lease, session, summary)
        archived_until = (await self._amendments.read_archived(session.branch)).until_seq
        if archived_until <= summary.covered_seq and session.last_seq <= trigger:
            return None
        if archived_until > summary.covered_seq and not sealable:
            archived, steps = await self._archived(session, summary.covered_seq, archived_until)
            sealable = (archived,) if archived else ()
        if inherits_more(session, summary):
            ledger = await self._ledger(session)
            if ledger.covered_seq > summary.covered_seq:
                return await self._put(lease, summary, self._fold.whole(ledger))
        if not sealable:
            return await self._write_lines(lease, summary)
        owner = owner_of(session, sealable[0][-1].seq or 0)
        if owner != session.session_id:
            ledger = await self._sealed_by(owner, session, sealable[0][-1].seq or 0)
            if ledger.covered_seq > summary.covered_seq:
                return await self._put(lease, summary, self._fold.whole(ledger))
        return await self._seal(lease, session, sealable[:at_once], steps)

    async def _write_lines(self, lease: Lease, head: SummaryHead) -> int | None:
        """Write the lines of a summary that has none, when nothing else is due: many segments in a row need one set.
        One that was found whole is not read again.
        """
        if not head.version or self._whole.get(lease.session_id) == (head.epoch, head.version):
            return None
        summary = check_whole(await self._summaries.get_summary(lease.session_id) or Summary())
        if summary.lines() is None:
            written = await anyio.to_thread.run_sync(self._fold.with_lines, summary)
            if written.lines_json:
                return await self._put(lease, summary.head, written)
        self._note_whole(lease.session_id, summary)
        return None

    def _note_whole(self, session_id: str, summary: SummaryHead) -> None:
        if len(self._whole) >= MOST_WHOLE:
            self._whole.clear()
        self._whole[session_id] = (summary.epoch, summary.version)

    async def _next_sealable(
        self, session_id: str, covered_seq: int
    ) -> tuple[BackgroundRows, Sequence[Sequence[Message]]]:
        """The messages of the next due segments; none if no segment is due."""
        limit = self._segment_message_count * MOST_AT_ONCE
        while True:
            rows = await self._messages.read_background(session_id, after=covered_seq, limit=limit)
            found = tuple(due_segments(rows.messages, self._segment_message_count, rows.steps))
            if found or len(rows.messages) < limit:
                return rows, found
            limit *= 2

    async def _archived(
        self, session: Session, covered_seq: int, until_seq: int
    ) -> tuple[Sequence[Message], Mapping[int, int]]:
        """The archived messages that are not sealed yet, and their steps."""
        limit = until_seq - covered_seq
        rows = await self._messages.read_background(session.session_id, after=covered_seq, limit=limit)
        end = archived_segment(rows.messages, until_seq, rows.steps, self._segment_message_count)
        return rows.messages[: end or 0], rows.steps

    async def _seal(
        self, lease: Lease, session: Session, due: Sequence[Sequence[Message]], steps: Mapping[int, int]
    ) -> int:
        before = check_whole(await self._summaries.get_summary(session.session_id) or Summary())
        sealed, fault = await self._sealed(lease, session, before, due, steps)
        # what was said of the session during the extraction must not make it vain
        now = await self._newest(session.session_id, before)
        folded = await self._folded(session, now, sealed)
        end = sealed[-1].segment.end_seq
        is_last = session.last_seq - end < 2 * self._segment_message_count
        if is_last:
            folded = await anyio.to_thread.run_sync(self._fold.with_lines, folded)
        summary = successor(now, folded, self._clock())
        covered = await self._record(lease, sealed, summary)
        if is_last:
            self._note_whole(session.session_id, summary)
        await self._indexer.catch_up(lease)
        if fault is not None:
            raise fault
        return covered

    async def _newest(self, session_id: str, before: Summary) -> Summary:
        """The summary of a session, which is not read again where nobody wrote one since `before`."""
        head = await self._summaries.get_summary_head(session_id) or SummaryHead()
        if (head.version, head.epoch) == (before.version, before.epoch):
            return before
        return await self._summaries.get_summary(session_id) or Summary()

    async def _sealed(
        self,
        lease: Lease,
        session: Session,
        before: Summary,
        due: Sequence[Sequence[Message]],
        steps: Mapping[int, int],
    ) -> tuple[Sequence[SealedSegment], SummarizationError | None]:
        """The first of the due segments, and those after it for which there is time; the fault that ended that, if one
        did.
        """
        found: list[SealedSegment] = []
        facts = list(before.facts())
        until = anyio.current_time() + AT_ONCE_SECONDS
        start = before.covered_seq + 1
        for messages in due:
            try:
                talk = await self._talk(session, messages, steps)
                extracted = await self._read(lease, session, talk, facts)
            except SummarizationError as error:
                if not found:
                    raise
                return found, error
            end = messages[-1].seq or start
            segment = await anyio.to_thread.run_sync(self._segment, session.session_id, start, end, messages, extracted)
            segment = msgspec.structs.replace(segment, waits=self._question > 0)
            found.append(SealedSegment(segment=segment, facts=extracted.extraction.facts))
            facts += extracted.extraction.facts
            start = end + 1
            if anyio.current_time() > until:
                break
        return found, None

    async def _talk(self, session: Session, messages: Sequence[Message], steps: Mapping[int, int]) -> Talk:
        """The messages turn by turn, with what was said before them of the turns that go on in them."""
        begun: list[Message] = []
        for first, until in said_before(messages, steps):
            rows = await self._messages.read_background(session.session_id, after=first - 1, limit=until - first + 1)
            begun += (each for each in rows.messages if (each.seq or 0) <= until)
            steps = {**rows.steps, **steps}
        return in_talk(messages, begun, steps)

    async def _read(self, lease: Lease, session: Session, talk: Talk, facts: Sequence[Fact]) -> Extracted:
        if self._question:
            return await self._extractor.read_offline(talk)
        return await self._extractor.extract(session.session_id, talk, known_of(facts), failures=lease.attempts)

    async def _folded(self, session: Session, summary: Summary, sealed: Sequence[SealedSegment]) -> Summary:
        """`summary` with more segments. A truncated one also needs what the ledger says about the same things.
        What people corrected is folded whole: a correction may be newer than the messages of the segments. So is the
        first segment of a branch that inherits a posted summary.
        """
        shown = await self._visible(session, sealed)
        posted = await self._amendments.read_posted(session.branch)
        if (posted and not summary.version) or await self._amendments.read_corrections(session.session_id):
            return await self._folded_whole(session, shown)
        facts = tuple(fact for each in shown for fact in each.facts)
        anchors = tuple({fact.anchor: None for fact in facts}) if summary.truncated else ()
        known = await self._summaries.read_facts_about(session.session_id, session.branch, anchors) if anchors else ()
        until = posted.until_seq if posted else 0
        *earlier, last = (each.segment for each in shown)
        folded = await anyio.to_thread.run_sync(
            lambda: self._fold.add(summary, last, facts, known, earlier=earlier, posted_until=until)
        )
        return folded or await self._folded_whole(session, shown)

    async def _visible(self, session: Session, sealed: Sequence[SealedSegment]) -> Sequence[SealedSegment]:
        """The segments and their facts without what cleared messages state."""
        cleared = (await self._amendments.read_archived(session.branch)).cleared
        return [
            SealedSegment(
                segment=segment_without(each.segment, Withheld(cleared=cleared)),
                facts=tuple(facts_without_cleared(each.facts, cleared)),
            )
            for each in sealed
        ]

    async def _folded_whole(self, session: Session, sealed: Sequence[SealedSegment]) -> Summary:
        ledger = await self._ledger(session)
        return await anyio.to_thread.run_sync(self._fold.whole, with_segments(ledger, sealed))

    async def _repair(self, lease: Lease, session: Session, summary: SummaryHead) -> int | None:
        ledger = await self._ledger(session)
        stale = next((segment for segment in ledger.segments if segment.stale), None)
        if stale is not None and stale.conversation_id != session.session_id:
            await self._run_owner(stale.conversation_id, lambda covered: False)
            return summary.covered_seq
        start, end = (stale.start_seq, stale.end_seq) if stale else (ledger.covered_seq + 1, summary.covered_seq)
        if start <= end:
            return await self._read_again(lease, session, summary, ledger, [(start, end)])
        return await self._put(lease, summary, self._fold.whole(ledger))

    async def _read_again(
        self,
        lease: Lease,
        session: Session,
        summary: SummaryHead,
        ledger: Ledger,
        ranges: Sequence[tuple[int, int]],
        *,
        is_anew: bool = False,
    ) -> int:
        """Extract segments within what the summary covers, which follow each other, in one question: a stale one, what
        it covered without segments, or what is to be read anew.
        """
        start, end = ranges[0][0], ranges[-1][1]
        rows = await self._messages.read_background(session.session_id, after=start - 1, limit=end - start + 1)
        left = [message for message in rows.messages if (message.seq or 0) <= end]
        talk = await self._talk(session, left, rows.steps)
        told = amended(ledger.facts, ledger.corrections)
        others = [fact for fact in told if not start <= fact.source_seq <= end]
        names = known_of((fact for fact in others if fact.source_seq < start), others)
        extracted = await self._extractor.extract(
            session.session_id, talk, names, failures=lease.attempts, is_anew=is_anew
        )
        sealed = await anyio.to_thread.run_sync(self._segments, session.session_id, ranges, left, extracted)
        shown = with_segments(ledger, await self._visible(session, sealed))
        folded = await anyio.to_thread.run_sync(self._fold.whole, shown)
        return await self._record(lease, sealed, successor(summary, folded, self._clock()))

    async def _rebuild(self, lease: Lease) -> int | None:
        """Extract the oldest outdated segments again; after the last ones, contexts use the new facts. Else those that
        wait for a model: of what it says, contexts have the lines from when their window moves next.
        """
        outdated = await self._amendments.outdated_ranges(lease.session_id)
        waiting = () if outdated or not self._question else await self._amendments.waiting_ranges(lease.session_id)
        asked = together(outdated, self._question) if outdated else asked_now(waiting, self._question)
        summary = await self._summaries.get_summary_head(lease.session_id) if asked else None
        if summary is None:
            return None
        session = (await self._messages.read_background(lease.session_id, limit=1)).session
        ledger = await self._ledger(session)
        is_last = len(asked) == len(outdated)
        renewed = msgspec.structs.replace(summary, epoch=summary.epoch + 1) if is_last else summary
        try:
            return await self._read_again(lease, session, renewed, ledger, asked, is_anew=True)
        except SummarizationError as error:
            if waiting and error.reason == "refused":
                await self._amendments.wait_no_more(lease.session_id, asked[0][0], asked[-1][1])
                return summary.covered_seq
            if error.reason not in ("timeout", "breaker_open"):
                raise
            return None  # what memory has serves until a later question is answered

    async def _sealed_by(self, owner_id: str, session: Session, until_seq: int) -> Ledger:
        """The ledger of the branch, after the owner of inherited messages was told to seal them, under its own lease.

        It does not reach `until_seq` where the owner cuts at another place, behind the fork: then the branch has to
        seal these messages itself.
        """
        await self._run_owner(owner_id, lambda covered: covered >= until_seq)
        return await self._ledger(session)

    async def _run_owner(self, owner_id: str, enough: Callable[[int], bool]) -> None:
        lease = await self._summaries.claim(
            owner_id, SUMMARIZE, now=self._clock(), lease_microseconds=self._lease_microseconds
        )
        if lease is None:
            raise LeaseLostError
        covered, is_done = 0, False
        try:
            summary = await self._summaries.get_summary_head(owner_id)
            covered = summary.covered_seq if summary else 0
            while not is_done and not enough(covered):
                after = await self._step(lease, trigger=0, at_once=1)
                is_done = after is None
                covered = covered if after is None else after
        finally:
            due_at = None if is_done else self._clock()
            with anyio.CancelScope(shield=True), anyio.move_on_after(RELEASE_SECONDS):
                await self._summaries.release(lease, due_at=due_at, attempts=lease.attempts)

    def _segment(
        self, conversation_id: str, start: int, end: int, messages: Sequence[Message], extracted: Extracted
    ) -> Segment:
        extraction = extracted.extraction
        return Segment(
            conversation_id=conversation_id,
            start_seq=start,
            end_seq=end,
            source_hash=fingerprint(messages),
            summarizer=extracted.summarizer,
            prompt_version=extracted.prompt_version,
            narrative=extraction.narrative,
            headline=extraction.headline,
            usage=extraction.usage,
            created_at=self._clock(),
            outdated=extracted.is_provisional,
        )

    def _segments(
        self,
        conversation_id: str,
        ranges: Sequence[tuple[int, int]],
        messages: Sequence[Message],
        extracted: Extracted,
    ) -> list[SealedSegment]:
        """The segments of what was read in one question."""
        parts = parted(extracted, ranges) if len(ranges) > 1 else [extracted]
        sealed: list[SealedSegment] = []
        for (start, end), part in zip(ranges, parts, strict=True):
            own = [each for each in messages if start <= (each.seq or 0) <= end]
            segment = self._segment(conversation_id, start, end, own, part)
            sealed.append(SealedSegment(segment=segment, facts=part.extraction.facts))
        return sealed

    async def _ledger(self, session: Session) -> Ledger:
        """Raises `StoreCorruptError` if something of it cannot be read: without it, a fold would be wrong."""
        ledger = await self._summaries.read_ledger(session.session_id, session.branch)
        if ledger.is_damaged:
            raise StoreCorruptError("store: facts or segments are damaged; they are made again from the log")
        return ledger

    async def _record(self, lease: Lease, sealed: Sequence[SealedSegment], summary: Summary) -> int:
        *earlier, last = sealed
        if not await self._summaries.record_segment(lease, last.segment, last.facts, summary, earlier=earlier):
            raise LeaseLostError
        return summary.covered_seq

    async def _put(self, lease: Lease, previous: SummaryHead, folded: Summary) -> int:
        return await put_successor(self._summaries, lease, successor(previous, folded, self._clock()))


class FullJob:
    """Summaries made anew after every save, from all messages before the window and the facts known so far."""

    def __init__(
        self,
        *,
        messages: MessageStore,
        summaries: SummaryStore,
        amendments: Amendments,
        extractor: Extractor,
        fold: SummaryFold,
        clock: Clock,
        trigger_message_count: int,
        recent_message_count: int,
    ) -> None:
        self._messages = messages
        self._summaries = summaries
        self._amendments = amendments
        self._extractor = extractor
        self._fold = fold
        self._clock = clock
        self._trigger = trigger_message_count
        self._recent = recent_message_count

    async def step(self, lease: Lease) -> int | None:
        """Read everything before the window and replace the summary."""
        session, messages, steps = await self._read_all(lease.session_id)
        cleared = (await self._amendments.read_archived(session.branch)).cleared
        until = session.last_seq - self._recent
        before = [each for each in messages if (each.seq or 0) <= until and not is_within(each.seq or 0, cleared)]
        summary = await self._summaries.get_summary_head(lease.session_id) or SummaryHead()
        done = not summary.stale_ranges and summary.covered_seq >= session.last_seq - self._recent
        if session.last_seq <= self._trigger or done or not before:
            return None
        known = await self._summaries.get_summary(lease.session_id) or Summary()
        extracted = await self._extractor.extract(
            session.session_id, in_talk(before, (), steps), Known(facts=known.facts()), failures=lease.attempts
        )
        extraction = extracted.extraction
        segment = Segment(
            conversation_id=session.session_id,
            start_seq=1,
            end_seq=session.last_seq - self._recent,
            source_hash=fingerprint(before),
            summarizer=extracted.summarizer,
            prompt_version=extracted.prompt_version,
            narrative=extraction.narrative,
            usage=extraction.usage,
        )
        now = await self._summaries.get_summary_head(session.session_id) or SummaryHead()
        ledger = Ledger(
            segments=(segment,),
            facts=extraction.facts,
            corrections=await self._amendments.read_corrections(session.session_id),
            posted=await self._amendments.read_posted(session.branch),
        )
        # what was read holds nothing of what is cleared, and neither does its narrative
        left = msgspec.structs.replace(ledger_without_cleared(ledger, cleared), segments=ledger.segments)
        folded = await anyio.to_thread.run_sync(lambda: self._fold.with_lines(self._fold.whole(left)))
        return await put_successor(self._summaries, lease, successor(now, folded, self._clock()))

    async def _read_all(self, session_id: str) -> tuple[Session, list[Message], dict[int, int]]:
        found: list[Message] = []
        steps: dict[int, int] = {}
        while True:
            after = (found[-1].seq or 0) if found else 0
            rows = await self._messages.read_background(session_id, after=after)
            found.extend(rows.messages)
            steps |= rows.steps
            if not rows.messages or (rows.messages[-1].seq or 0) >= rows.session.last_seq:
                return rows.session, found, steps


def inherits_more(session: Session, summary: SummaryHead) -> bool:
    """A fork may still take over segments that its ancestors sealed."""
    return session.forked_at_seq is not None and summary.covered_seq < session.forked_at_seq - 1


def owner_of(session: Session, seq: int) -> str:
    """The conversation under which message `seq` of the branch is stored."""
    for part in session.branch:
        if part.start_seq <= seq and (part.end_seq is None or seq <= part.end_seq):
            return part.conversation_id
    return session.session_id


def due_segments(
    messages: Sequence[Message], segment_message_count: int, steps: Mapping[int, int]
) -> Iterator[Sequence[Message]]:
    """The messages of each complete segment."""
    while (count := next_segment(messages, segment_message_count, steps)) is not None:
        yield messages[:count]
        messages = messages[count:]


def together(ranges: Sequence[tuple[int, int]], message_count: int) -> Sequence[tuple[int, int]]:
    """The first of `ranges`, and those after it that follow without a gap, `message_count` messages at most."""
    found = list(ranges[:1])
    for start, end in ranges[1:]:
        if start != found[-1][1] + 1 or end - found[0][0] >= message_count:
            break
        found.append((start, end))
    return found


def asked_now(waiting: Sequence[tuple[int, int]], message_count: int) -> Sequence[tuple[int, int]]:
    """What a model is asked about now, of what waits for it: nothing before there is enough for a question, but for the
    beginning of a session.
    """
    if sum(end - start + 1 for start, end in waiting) < message_count and waiting[:1] and waiting[0][0] > 1:
        return ()
    return together(waiting, MOST_QUESTIONS_WORTH * message_count)


def with_segments(ledger: Ledger, sealed: Sequence[SealedSegment]) -> Ledger:
    """The ledger after segments were recorded: one with the same borders is replaced, and so are its facts."""
    new = {each.segment.end_seq: each.segment for each in sealed}
    ranges = [range(each.start_seq, each.end_seq + 1) for each in new.values()]
    others = (fact for fact in ledger.facts if not any(fact.source_seq in each for each in ranges))
    segments = {segment.end_seq: segment for segment in ledger.segments} | new
    return msgspec.structs.replace(
        ledger,
        segments=tuple(segments[end] for end in sorted(segments)),
        facts=(*others, *(fact for each in sealed for fact in each.facts)),
    )


async def put_successor(summaries: SummaryStore, lease: Lease, summary: Summary) -> int:
    """Store a summary without a segment; how far it covers the session."""
    if not await summaries.put_summary(lease, summary):
        raise LeaseLostError
    return summary.covered_seq


def successor(previous: SummaryHead, folded: Summary, now: int) -> Summary:
    """`folded` as the next version of `previous`. Coverage never shrinks."""
    return msgspec.structs.replace(
        folded,
        version=previous.version + 1,
        epoch=previous.epoch,
        covered_seq=max(folded.covered_seq, previous.covered_seq),
        created_at=previous.created_at or now,
        updated_at=now,
    )
