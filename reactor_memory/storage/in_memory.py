"""Log and summaries in the memory of this process: for tests, demos and conversations that need not outlive it.

No operation gives way to another between its first look at the state and its last change, so each is atomic under
asyncio. Checks come before changes, so a refused operation has changed nothing. What goes in and out is copied, so no
caller can change the log.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

import msgspec
from msgspec.structs import replace

from reactor_memory.context.pinning import not_in_view
from reactor_memory.context.ranking import Postings, joined, scored
from reactor_memory.errors import (
    IdempotencyConflictError,
    InvalidInputError,
    SessionDeletedError,
    SessionNotFoundError,
    SessionOwnershipError,
    StoreClosedError,
)
from reactor_memory.ledger.amending import amended, until
from reactor_memory.models import (
    AuditRecord,
    BranchRange,
    Fact,
    FactCorrection,
    IdleGroup,
    JsonObject,
    Layout,
    Lease,
    Ledger,
    Membership,
    Message,
    OwnershipTransfer,
    Pin,
    PinTarget,
    PostedSummary,
    Segment,
    Session,
    SessionPage,
    SessionPreview,
    Spending,
    Summary,
    SummaryHead,
    WorkState,
    is_posted_summary,
)
from reactor_memory.protocols import (
    SUMMARIZE,
    Appended,
    AppendRequest,
    ContextQuery,
    ContextRows,
    Erased,
    ErasedBranch,
    Findings,
    IndexPart,
    PostRequest,
    RecallQuery,
    Refold,
    StoreHealth,
    Withdrawn,
)
from reactor_memory.storage.branches import (
    branch_for_fork,
    group_of,
    indexed_ranges,
    is_fork,
    posted_about,
    ranges_between,
    root_branch,
    ruling,
    segments_of_branch,
)
from reactor_memory.storage.derived import all_gone, overlaps, refolded, retold
from reactor_memory.storage.erasing import parts_to_erase
from reactor_memory.storage.in_memory_items import InMemoryItems
from reactor_memory.storage.in_memory_ranges import InMemoryRanges, Ranges
from reactor_memory.storage.in_memory_transfer import InMemoryTransfer
from reactor_memory.storage.in_memory_user_rows import InMemoryUserRows, UserRows
from reactor_memory.storage.paging import Cursor, decode_cursor, encode_cursor, preview_of
from reactor_memory.storage.pins import find_pin, place_pin, with_count
from reactor_memory.storage.posting import check_until
from reactor_memory.storage.tombstones import branches_showing, tombstone, within


@dataclass
class _Conversation:
    """A session and what is stored under its own id: message `seq` is `messages[seq - first_seq]`. Those in `withdrawn`
    are out of view; erased ones are tombstones, too. `posted` are the summaries that were posted, with what they tell
    of.
    """

    session: Session
    first_seq: int
    messages: list[Message] = field(default_factory=list[Message])
    withdrawn: set[int] = field(default_factory=set[int])
    batches: dict[str, tuple[str, Appended]] = field(default_factory=dict[str, tuple[str, Appended]])
    pins: tuple[Pin, ...] = ()
    posted: dict[int, int] = field(default_factory=dict[int, int])
    ranges: Ranges = field(default_factory=Ranges)
    purged: bool = False
    agent_name: str | None = None
    metadata: JsonObject = field(default_factory=JsonObject)
    memberships: tuple[Membership, ...] = ()
    transfer: OwnershipTransfer | None = None
    audit: tuple[AuditRecord, ...] = ()
    importing: bool = False

    def entomb(self, start_seq: int, end_seq: int) -> int:
        """As `storage.tombstones.entomb`, for the messages of one range."""
        destroyed = 0
        for seq in range(max(start_seq, self.first_seq), min(end_seq, self.session.last_seq) + 1):
            message = self.messages[seq - self.first_seq]
            self.messages[seq - self.first_seq] = buried = tombstone(message)
            destroyed += message is not buried
            self.withdrawn.add(seq)
        for key, (_, appended) in self.batches.items():
            if appended.first_seq <= end_seq and appended.last_seq >= start_seq:
                self.batches[key] = ("", appended)
        return destroyed

    def purge(self) -> None:
        self.messages.clear()
        self.withdrawn.clear()
        self.batches.clear()
        self.pins = ()
        self.posted.clear()
        self.ranges.clear()
        self.session = replace(self.session, title=None)
        self.metadata = {}
        self.memberships = ()
        self.transfer = None
        self.purged = True


@dataclass
class _Derived:
    """What is made from one conversation, by the conversation that owns it. Segments and `anchors` are found by the
    end of the segment.
    """

    segments: dict[int, tuple[Segment, tuple[Fact, ...]]] = field(
        default_factory=dict[int, tuple[Segment, tuple[Fact, ...]]]
    )
    anchors: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    summary: Summary | None = None
    corrections: tuple[FactCorrection, ...] = ()
    layouts: dict[tuple[int, str], Layout] = field(default_factory=dict[tuple[int, str], Layout])
    indexed: tuple[int, int] | None = None
    postings: Postings = field(default_factory=Postings)

    @property
    def head(self) -> SummaryHead | None:
        return None if self.summary is None else self.summary.head

    def store(self, segment: Segment, facts: tuple[Fact, ...]) -> None:
        end = segment.end_seq
        _, replaced = self.segments.get(end, (segment, ()))
        for anchor in {fact.anchor for fact in replaced}:
            self.anchors[anchor].discard(end)
            if not self.anchors[anchor]:
                del self.anchors[anchor]
        self.segments[end] = (segment, facts)
        for fact in facts:
            self.anchors.setdefault(fact.anchor, set()).add(end)

    def facts_about(self, anchors: Collection[str], last_end: float) -> Iterator[Fact]:
        """The verified facts of the segments up to `last_end` with one of these anchors."""
        ends = {end for anchor in anchors for end in self.anchors.get(anchor, ()) if end <= last_end}
        for end in sorted(ends):
            yield from (fact for fact in self.segments[end][1] if fact.verified and fact.anchor in anchors)


@dataclass
class _Work:
    """The state row of background work. `touched`: it was made due while a lease was out."""

    due_at: int | None = None
    lease_until: int = 0
    fence: int = 0
    attempts: int = 0
    parked: bool = False
    last_error: str | None = None
    touched: bool = False

    def make_due(self, now: int) -> None:
        self.due_at = now if self.due_at is None else min(self.due_at, now)
        self.touched = True


@dataclass
class _State:
    conversations: dict[str, _Conversation] = field(default_factory=dict[str, _Conversation])
    derived: defaultdict[str, _Derived] = field(default_factory=lambda: defaultdict[str, _Derived](_Derived))
    work: dict[tuple[str, str], _Work] = field(default_factory=dict[tuple[str, str], _Work])
    spending: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])
    users: UserRows = field(default_factory=UserRows)


class InMemoryStore(InMemoryRanges, InMemoryUserRows, InMemoryItems, InMemoryTransfer):
    """Every kind of store in one object. What it holds lives as long as it does."""

    def __init__(self) -> None:
        self._state = _State()
        self._is_open = False

    async def open(self) -> None:
        self._is_open = True

    async def close(self) -> None:
        self._is_open = False

    @property
    def _data(self) -> _State:
        if not self._is_open:
            raise StoreClosedError
        return self._state

    @property
    def _users(self) -> UserRows:
        return self._data.users

    # The log

    async def append(self, request: AppendRequest) -> Appended:
        conversation = self._find(request.session_id, request.user_id)
        if conversation is None:
            conversation = self._begin(request)
        replayed = _replay(conversation, request)
        return replayed or self._store(conversation, request)

    def _begin(self, request: AppendRequest) -> _Conversation:
        if is_fork(request.session_id):
            raise SessionNotFoundError(request.session_id)
        session = Session(
            session_id=request.session_id,
            group_id=request.session_id,
            owner_id=request.user_id,
            last_seq=0,
            branch=root_branch(request.session_id),
            created_at=request.now,
            updated_at=request.now,
        )
        new = _Conversation(session=session, first_seq=1, agent_name=request.agent_name)
        return self._data.conversations.setdefault(request.session_id, new)

    def _store(self, conversation: _Conversation, request: AppendRequest) -> Appended:
        before = conversation.session.last_seq
        appended = Appended(first_seq=before + 1, last_seq=before + len(request.messages))
        conversation.messages += [
            _copy(replace(message, seq=seq)) for seq, message in enumerate(request.messages, start=before + 1)
        ]
        conversation.session = replace(conversation.session, last_seq=appended.last_seq, updated_at=request.now)
        if request.idempotency_key is not None:
            conversation.batches[request.idempotency_key] = (request.fingerprint, appended)
        every = request.work_every
        if every is not None and appended.last_seq // every > before // every:
            self._work(request.session_id, SUMMARIZE).make_due(request.now)
        return appended

    async def post_summary(self, request: PostRequest, *, refold: Refold) -> Message:
        batch = request.batch
        conversation = self._required(batch.session_id, batch.user_id)
        check_until(request.until_seq, conversation.session.last_seq)
        appended = _replay(conversation, batch) or self._store(conversation, batch)
        seq = appended.last_seq
        if not appended.replayed:
            conversation.posted[seq] = request.until_seq
            title = conversation.session.title if request.title is None else request.title
            conversation.session = replace(conversation.session, title=title)
            posted = PostedSummary(seq=seq, until_seq=request.until_seq)
            await self.put_posted(conversation.session, posted, now=batch.now, refold=refold)
        return _copy(conversation.messages[seq - conversation.first_seq])

    async def get_session(self, session_id: str, user_id: str | None) -> Session | None:
        conversation = self._find(session_id, user_id)
        return None if conversation is None else conversation.session

    async def read(
        self,
        session_id: str,
        user_id: str | None,
        *,
        after: int = 0,
        until: int | None = None,
        last: int | None = None,
        limit: int | None = None,
    ) -> tuple[Message, ...]:
        conversation = self._find(session_id, user_id)
        if conversation is None:
            return ()
        return self._read_along(conversation.session.branch, after, until, last, limit)

    async def read_originals(
        self,
        session_id: str,
        user_id: str | None,
        *,
        after: int = 0,
        until: int | None = None,
        last: int | None = None,
        limit: int | None = None,
    ) -> tuple[Message, ...]:
        branch = self._required(session_id, user_id).session.branch
        return self._read_along(branch, after, until, last, limit, with_archived=True)

    async def read_context(self, query: ContextQuery) -> ContextRows:
        conversation = self._find(query.session_id, query.user_id)
        if conversation is None:
            return ContextRows()
        session = conversation.session
        newest = self._newest_first(session.branch)
        derived = self._derived(session.session_id)
        return ContextRows(
            session=session,
            summary=derived.summary if query.facts else derived.head,
            layout=derived.layouts.get((query.budget, query.settings_fingerprint)),
            messages=tuple(map(_copy, _window(newest, session.last_seq, query)[::-1])),
            pins=conversation.pins,
        )

    async def read_ranges(
        self, session_id: str, user_id: str | None, ranges: Sequence[tuple[int, int]]
    ) -> tuple[Message, ...]:
        conversation = self._find(session_id, user_id)
        if conversation is None:
            return ()
        branch = conversation.session.branch
        messages = chain.from_iterable(self._oldest_first(branch, start - 1, end) for start, end in ranges)
        found = {message.seq or 0: _copy(message) for message in messages}
        return tuple(found[seq] for seq in sorted(found))

    async def read_background(
        self, session_id: str, *, after: int = 0, limit: int = 1000
    ) -> tuple[Session, tuple[Message, ...]]:
        session = self._alive(session_id).session
        return session, self._read_along(session.branch, after, None, None, limit, with_archived=True)

    async def list_sessions(self, user_id: str | None, *, limit: int = 50, cursor: str | None = None) -> SessionPage:
        begin = None if cursor is None else _listing_key(decode_cursor(cursor))
        own = (
            conversation.session
            for conversation in self._data.conversations.values()
            if conversation.session.owner_id == user_id and conversation.session.deleted_at is None
        )
        rest = (session for session in own if begin is None or _listing_key(session) > begin)
        page = heapq.nsmallest(limit + 1, rest, key=_listing_key)
        shown = page[:limit]
        more = len(page) > limit and shown
        return SessionPage(
            sessions=tuple(map(self._preview, shown)),
            next_cursor=encode_cursor(_cursor_at(shown[-1])) if more else None,
        )

    async def fork(self, session_id: str, user_id: str | None, *, at_seq: int, fork_id: str, now: int) -> Session:
        forked = self._required(session_id, user_id)
        parent = forked.session
        if not 1 <= at_seq <= parent.last_seq + 1:
            raise InvalidInputError("at_seq", f"must be from 1 to {parent.last_seq + 1}")
        self._check_fork_id(fork_id, parent.group_id)
        session = Session(
            session_id=fork_id,
            group_id=parent.group_id,
            owner_id=parent.owner_id,
            last_seq=at_seq - 1,
            branch=branch_for_fork(parent, fork_id, at_seq),
            created_at=now,
            updated_at=now,
            forked_from_id=session_id,
            forked_at_seq=at_seq,
        )
        shared = tuple(pin for pin in forked.pins if pin.seq < at_seq)
        corrections = self._derived(session_id).corrections
        self._data.derived[fork_id].corrections = until(corrections, at_seq - 1)
        self._data.conversations[fork_id] = _Conversation(session=session, first_seq=at_seq, pins=shared)
        return session

    async def withdraw(
        self, session_id: str, user_id: str | None, *, seq: int | None, now: int, refold: Refold
    ) -> Withdrawn:
        conversation = self._required(session_id, user_id)
        newest = next(self._newest_first(conversation.session.branch), None)
        position = _withdrawable(conversation, newest, seq)
        message = _copy(conversation.messages[position - conversation.first_seq])
        withdrawn = BranchRange(conversation_id=session_id, start_seq=position, end_seq=position)
        posted = self._take_posted(conversation.session.group_id, [withdrawn])
        told = [part for part in posted if part != withdrawn]
        conversation.withdrawn.add(position)
        holding = self._forget_parts(conversation.session.group_id, (withdrawn, *told))
        for part in told:
            self._data.conversations[part.conversation_id].entomb(part.start_seq, part.start_seq)
        self._forget_messages(holding, now=now, refold=refold, untold=bool(posted))
        conversation.session = replace(conversation.session, updated_at=now)
        branches = tuple(each.session for each in holding if each.session.deleted_at is None)
        return Withdrawn(message=message, conversation_id=session_id, branches=branches)

    async def erase(
        self,
        session_id: str,
        user_id: str | None,
        *,
        ranges: Sequence[tuple[int, int]],
        now: int,
        refold: Refold,
    ) -> Erased:
        conversation = self._required(session_id, user_id)
        group_id, last_seq = conversation.session.group_id, conversation.session.last_seq
        parts = parts_to_erase(conversation.session, ranges)
        posted = self._take_posted(group_id, parts)
        parts = (*parts, *posted)
        branches = self._forget_parts(group_id, parts)
        destroyed = 0
        for part in parts:
            destroyed += self._data.conversations[part.conversation_id].entomb(part.start_seq, part.end_seq or last_seq)
        self._forget_messages(branches, now=now, refold=refold, untold=bool(posted))
        conversation.session = replace(conversation.session, updated_at=max(now, conversation.session.updated_at))
        return Erased(message_count=destroyed, branches=branches)

    def _take_posted(self, group_id: str, parts: Sequence[BranchRange]) -> tuple[BranchRange, ...]:
        """As `storage.derived.take_posted`."""
        group = self._group(group_id)
        posted = [
            (session.session_id, PostedSummary(seq=seq, until_seq=until_seq))
            for session in group
            for seq, until_seq in self._data.conversations[session.session_id].posted.items()
        ]
        gone = posted_about(posted, group, parts)
        for part in gone:
            del self._data.conversations[part.conversation_id].posted[part.start_seq]
        return gone

    def _forget_parts(self, group_id: str, parts: Sequence[BranchRange]) -> tuple[ErasedBranch, ...]:
        """No text of a range and no pin is left of these stored messages; the branches that show them."""
        stored = self._data.conversations
        for part in parts:
            stored[part.conversation_id].ranges.forget(part.start_seq, part.end_seq or part.start_seq)
        branches = branches_showing(self._group(group_id), parts)
        for branch in branches:
            showing = stored[branch.session.session_id]
            showing.pins = tuple(pin for pin in showing.pins if not within(pin.seq, branch.ranges))
        return branches

    async def pin(self, session_id: str, user_id: str | None, pin: Pin, *, max_pins: int, max_pin_tokens: int) -> Pin:
        conversation = self._required(session_id, user_id)
        if next(self._oldest_first(conversation.session.branch, pin.seq - 1, pin.seq), None) is None:
            raise not_in_view(pin.seq)
        placed = place_pin(conversation.pins, pin, max_pins=max_pins, max_pin_tokens=max_pin_tokens)
        others = [each for each in conversation.pins if each.ordinal != placed.ordinal]
        conversation.pins = tuple(sorted([*others, placed], key=lambda each: each.ordinal))
        return placed

    async def unpin(self, session_id: str, user_id: str | None, target: PinTarget) -> bool:
        conversation = self._required(session_id, user_id)
        known = find_pin(conversation.pins, target)
        conversation.pins = tuple(pin for pin in conversation.pins if pin is not known)
        return known is not None

    async def read_pins(self, session_id: str, user_id: str | None) -> tuple[Pin, ...]:
        return self._required(session_id, user_id).pins

    async def delete(self, session_id: str, user_id: str | None, *, now: int, purge: bool) -> tuple[str, ...]:
        conversation = self._data.conversations.get(session_id)
        if conversation is None:
            raise SessionNotFoundError(session_id)
        _check_owner(conversation.session, user_id)
        below = list(self._with_forks_below(session_id))
        went = [each for each in below if each.session.deleted_at is None]
        for each in went:
            each.session = replace(each.session, deleted_at=now)
        if purge:
            self._purge(each for each in below if not each.purged)
        return tuple(each.session.session_id for each in went)

    async def purge_deleted(self, *, before: int, limit: int = 100) -> int:
        waiting = (
            each
            for each in self._data.conversations.values()
            if not each.purged and each.session.deleted_at is not None and each.session.deleted_at < before
        )
        return self._purge(islice(waiting, limit))

    async def idle_groups(self, *, before: int, after: str = "", limit: int = 100) -> tuple[IdleGroup, ...]:
        alive: defaultdict[str, list[_Conversation]] = defaultdict(list[_Conversation])
        for each in self._data.conversations.values():
            if each.session.deleted_at is None and each.session.group_id > after:
                alive[each.session.group_id].append(each)
        groups = (_idle_group(group_id, group) for group_id, group in alive.items())
        idle = (group for group in groups if group.updated_at < before)
        return tuple(heapq.nsmallest(limit, idle, key=lambda group: group.session_id))

    async def delete_idle(self, group_id: str, *, before: int, now: int, purge: bool) -> tuple[str, ...]:
        alive = [session for session in self._group(group_id) if session.deleted_at is None]
        if not alive or max(session.updated_at for session in alive) >= before:
            return ()
        return await self.delete(group_id, alive[0].owner_id, now=now, purge=purge)

    async def owned_groups(self, user_id: str, *, after: str = "", limit: int = 100) -> tuple[tuple[str, ...], ...]:
        owned = (each.session for each in self._data.conversations.values() if each.session.owner_id == user_id)
        roots = heapq.nsmallest(limit, {session.group_id for session in owned if session.group_id > after})
        return tuple(
            (root, *sorted(each.session_id for each in self._group(root) if each.session_id != root)) for root in roots
        )

    async def erase_group(self, group_id: str, user_id: str, *, now: int) -> tuple[str, ...]:
        group = [each for each in self._data.conversations.values() if each.session.group_id == group_id]
        owned = [each for each in group if each.session.owner_id is not None]
        for each in owned:
            _check_owner(each.session, user_id)
        for each in owned:
            deleted_at = now if each.session.deleted_at is None else each.session.deleted_at
            each.session = replace(each.session, deleted_at=deleted_at, owner_id=None)
        self._purge(each for each in owned if not each.purged)
        return tuple(each.session.session_id for each in owned)

    async def scrub(self, *, rewrite: bool = False) -> None:
        """Nothing is written anywhere."""

    async def recount(self, tokenizer: str, count: Callable[[Message], int]) -> int:
        rewritten = 0
        for conversation in self._data.conversations.values():
            for position, message in enumerate(conversation.messages):
                if message.tokenizer != tokenizer:
                    recounted = replace(message, token_count=count(message), tokenizer=tokenizer)
                    conversation.messages[position] = recounted
                    rewritten += 1
            conversation.ranges.recount(tokenizer, count)
            conversation.pins = tuple(
                pin if pin.tokenizer == tokenizer else with_count(pin, tokenizer, count) for pin in conversation.pins
            )
        return rewritten

    async def check(self) -> StoreHealth:
        conversations = self._data.conversations.values()
        return StoreHealth(
            details=(
                ("store", "memory of this process"),
                ("sessions", str(len(conversations))),
                ("messages", str(sum(len(each.messages) for each in conversations))),
            )
        )

    # Summaries

    async def get_summary(self, session_id: str) -> Summary | None:
        return self._derived(session_id).summary

    async def get_summary_head(self, session_id: str) -> SummaryHead | None:
        return self._derived(session_id).head

    async def get_layout(self, session_id: str, *, budget: int, settings_fingerprint: str) -> Layout | None:
        return self._derived(session_id).layouts.get((budget, settings_fingerprint))

    async def put_layout(self, session_id: str, layout: Layout, *, budget: int, settings_fingerprint: str) -> None:
        derived = self._derived(session_id)
        epoch = 0 if derived.summary is None else derived.summary.epoch
        known = derived.layouts.get((budget, settings_fingerprint))
        if not self._lives(session_id) or layout.epoch != epoch or (known and known.seq >= layout.seq):
            return
        self._data.derived[session_id].layouts[budget, settings_fingerprint] = layout

    async def read_ledger(self, session_id: str, branch: Sequence[BranchRange]) -> Ledger:
        corrections = self._derived(session_id).corrections
        return replace(self._ledger(branch), corrections=corrections)

    async def read_facts_about(
        self, session_id: str, branch: Sequence[BranchRange], anchors: Sequence[str]
    ) -> tuple[Fact, ...]:
        found: list[Fact] = []
        next_start = math.inf
        for part in reversed(branch):
            derived = self._derived(part.conversation_id)
            last_end = min(next_start - 1, math.inf if part.end_seq is None else part.end_seq)
            found[:0] = derived.facts_about(anchors, last_end)
            first = next((segment for segment, _ in derived.segments.values() if segment.end_seq <= last_end), None)
            next_start = first.start_seq if first else next_start
        about = [each for each in self._derived(session_id).corrections if each.anchor in anchors]
        return amended(found, about)

    async def read_corrections(self, session_id: str) -> tuple[FactCorrection, ...]:
        return self._derived(session_id).corrections

    def _keep_corrections(self, session_id: str, corrections: tuple[FactCorrection, ...]) -> None:
        self._data.derived[session_id].corrections = corrections

    async def put_correction(self, session: Session, correction: FactCorrection, *, now: int, refold: Refold) -> bool:
        at = correction.source_seq
        source = self._oldest_first(session.branch, at - 1, at, with_archived=True)
        if not self._lives(session.session_id) or next(source, None) is None:
            return False
        derived, conversation = self._data.derived[session.session_id], self._data.conversations[session.session_id]
        last = derived.corrections[-1].ordinal if derived.corrections else 0
        derived.corrections += (replace(correction, ordinal=last + 1),)
        fact = (correction.anchor, correction.key)
        conversation.pins = tuple(pin for pin in conversation.pins if pin.fact != fact)
        self._refold(conversation.session, 0, now, refold)
        return True

    async def read_posted(self, branch: Sequence[BranchRange]) -> PostedSummary | None:
        return self._ruling(branch)

    def _ruling(self, branch: Sequence[BranchRange]) -> PostedSummary | None:
        return ruling(each for part in branch for each in self._posted_in(part))

    def _posted_in(self, part: BranchRange) -> Iterator[PostedSummary]:
        stored = self._data.conversations[part.conversation_id]
        for seq, until_seq in stored.posted.items():
            text = stored.messages[seq - stored.first_seq].content
            if text and (part.end_seq is None or seq <= part.end_seq):
                yield PostedSummary(seq=seq, until_seq=until_seq, text=text)

    async def put_posted(self, session: Session, posted: PostedSummary, *, now: int, refold: Refold) -> None:
        """The log has its text."""
        self._retell(session, now, refold, begin=True)

    async def mark_outdated(self, session_id: str, *, now: int) -> int:
        if not self._lives(session_id):
            return 0
        derived = self._data.derived[session_id]
        fresh = [each for each, _ in derived.segments.values() if not each.stale and not each.outdated]
        for segment in fresh:
            derived.store(replace(segment, outdated=True), derived.segments[segment.end_seq][1])
        self._work(session_id, SUMMARIZE).make_due(now)
        return len(fresh)

    async def outdated_ranges(self, session_id: str) -> tuple[tuple[int, int], ...]:
        segments = self._segments_of([session_id])
        return tuple(sorted((each.start_seq, each.end_seq) for each in segments if each.outdated))

    async def record_segment(self, lease: Lease, segment: Segment, facts: Sequence[Fact], summary: Summary) -> bool:
        known = self._derived(segment.conversation_id).segments.get(segment.end_seq)
        waits = known is not None and (known[0].stale or known[0].outdated)
        if known is not None and not (waits and known[0].start_seq == segment.start_seq):
            return False
        if not await self.put_summary(lease, summary):
            return False
        self._data.derived[segment.conversation_id].store(segment, tuple(facts))
        return True

    async def put_summary(self, lease: Lease, summary: Summary) -> bool:
        stored = self._derived(lease.session_id).summary or Summary()
        follows = summary.version == stored.version + 1 and summary.covered_seq >= stored.covered_seq
        if not (follows and self._holds(lease) and self._lives(lease.session_id)):
            return False
        self._data.derived[lease.session_id].summary = summary
        return True

    async def invalidate(
        self, session_id: str, branches: Sequence[Session], *, seq: int, now: int, refold: Refold
    ) -> None:
        holding = [ErasedBranch(session=branch, ranges=((seq, seq),)) for branch in branches]
        await self.forget_messages(holding, now=now, refold=refold)

    async def forget_messages(self, branches: Sequence[ErasedBranch], *, now: int, refold: Refold) -> None:
        self._forget_messages(branches, now=now, refold=refold)

    def _forget_messages(
        self, branches: Sequence[ErasedBranch], *, now: int, refold: Refold, untold: bool = False
    ) -> None:
        """As `storage.derived.forget_messages`."""
        holding: list[Segment] = []
        uncorrected = False
        for branch in branches:
            owner = branch.session.session_id
            self._truncate(owner, branch.ranges[0][0])
            self._take_leases_away([owner])
            derived = self._data.derived[owner]
            kept = tuple(each for each in derived.corrections if not within(each.source_seq, branch.ranges))
            uncorrected = uncorrected or kept != derived.corrections
            derived.corrections = kept
            holding += (segment for segment in self._segments_of([owner]) if overlaps(segment, branch.ranges))
        for segment in holding:
            blank = replace(segment, source_hash="", narrative="", headline="", stale=True, outdated=False)
            self._data.derived[segment.conversation_id].store(blank, ())
        if not uncorrected and not untold and all_gone(holding, branches):
            return
        for branch in branches:
            self._refold(branch.session, branch.ranges[0][0], now, refold, untold=untold)

    # Recall

    async def indexed_until(self, conversation_id: str) -> int:
        indexed = self._derived(conversation_id).indexed
        return indexed[1] if indexed else 0

    async def extend(self, lease: Lease, part: IndexPart) -> bool:
        if not (self._holds(lease) and self._lives(lease.session_id)):
            return False
        indexed = self._derived(part.conversation_id).indexed
        if indexed and indexed[1] != part.start_seq - 1:
            return False
        derived = self._data.derived[part.conversation_id]
        derived.indexed = (indexed[0] if indexed else part.start_seq, part.end_seq)
        derived.postings.add(part.entries)
        return True

    async def search(self, query: RecallQuery) -> Findings:
        held = {part.conversation_id: self._derived(part.conversation_id) for part in query.branch}
        ranges = {owner: derived.indexed for owner, derived in held.items() if derived.indexed}
        answer = Findings(frequencies=dict.fromkeys(query.terms, 0))
        for part in indexed_ranges(query.branch, ranges):
            end = part.end_seq or 0
            found, frequencies = held[part.conversation_id].postings.find(query.terms, first=part.start_seq, last=end)
            answer = joined(answer, Findings(found=tuple(found), frequencies=frequencies))
            answer = replace(answer, total=end, indexed_until=end)
        best = scored(answer)
        return replace(best, found=best.found[: query.limit])

    async def truncate(self, session_ids: Sequence[str], *, seq: int) -> None:
        for session_id in session_ids:
            self._truncate(session_id, seq)

    def _truncate(self, session_id: str, seq: int) -> None:
        derived = self._derived(session_id)
        if derived.indexed is None or derived.indexed[1] < seq:
            return
        segments = (segment for segment, _ in derived.segments.values())
        start = min((each.start_seq for each in segments if each.start_seq <= seq <= each.end_seq), default=seq)
        first = derived.indexed[0]
        derived.postings = derived.postings.before(start)
        derived.indexed = (first, start - 1) if first < start else None

    async def forget(self, session_ids: Sequence[str]) -> None:
        for session_id in session_ids:
            self._forget(session_id)

    async def add_spending(self, session_id: str, *, day: int, tokens: int) -> None:
        self._data.spending[session_id, day] += tokens

    async def read_spending(self, session_id: str, *, day: int) -> Spending:
        noted = self._data.spending.items()
        return Spending(
            session=sum(tokens for (noted_for, _), tokens in noted if noted_for == session_id),
            day=sum(tokens for (_, noted_on), tokens in noted if noted_on == day),
        )

    # Background work

    async def claim(self, session_id: str, kind: str, *, now: int, lease_microseconds: int) -> Lease | None:
        if not self._lives(session_id) or self._work(session_id, kind).lease_until > now:
            return None
        work = self._work(session_id, kind)
        work.fence += 1
        work.lease_until = now + lease_microseconds
        work.touched = False
        return Lease(
            session_id=session_id,
            kind=kind,
            fence=work.fence,
            lease_until=work.lease_until,
            attempts=work.attempts,
        )

    async def renew(self, lease: Lease, *, now: int, lease_microseconds: int) -> bool:
        work = self._data.work.get((lease.session_id, lease.kind))
        if work is None or work.fence != lease.fence or not work.lease_until:
            return False
        work.lease_until = now + lease_microseconds
        return True

    async def release(
        self,
        lease: Lease,
        *,
        due_at: int | None,
        attempts: int = 0,
        parked: bool = False,
        error: str | None = None,
    ) -> None:
        work = self._data.work.get((lease.session_id, lease.kind))
        if work is None or work.fence != lease.fence:
            return
        if not work.touched:
            work.due_at = due_at
        work.lease_until = 0
        work.attempts, work.parked, work.last_error = attempts, parked, error

    async def due(self, kind: str, *, now: int, limit: int = 100) -> tuple[str, ...]:
        waiting = (
            (work.due_at, session_id)
            for (session_id, of_kind), work in self._data.work.items()
            if of_kind == kind and self._lives(session_id) and not work.parked and work.lease_until <= now
            if work.due_at is not None and work.due_at <= now
        )
        return tuple(session_id for _, session_id in heapq.nsmallest(limit, waiting))

    async def work_state(self, session_id: str, kind: str) -> WorkState | None:
        work = self._data.work.get((session_id, kind))
        return None if work is None else _work_state(session_id, kind, work)

    async def list_work(self, kind: str, *, limit: int = 100) -> tuple[WorkState, ...]:
        troubled = (
            _work_state(session_id, kind, work)
            for (session_id, of_kind), work in self._data.work.items()
            if of_kind == kind and self._lives(session_id) and (work.parked or work.attempts)
        )
        return tuple(islice(troubled, limit))

    # Moving sessions to another store

    def _conversations(self) -> dict[str, _Conversation]:
        return self._data.conversations

    def _place(self, session: Session) -> _Conversation:
        placed = _Conversation(session=session, first_seq=session.branch[-1].start_seq)
        self._data.conversations[session.session_id] = placed
        return placed

    def _make_due(self, session_id: str, now: int) -> None:
        self._work(session_id, SUMMARIZE).make_due(now)

    # Finding sessions

    def _find(self, session_id: str, user_id: str | None) -> _Conversation | None:
        conversation = self._data.conversations.get(session_id)
        if conversation is None:
            return None
        if conversation.session.deleted_at is not None:
            raise SessionDeletedError(session_id)
        _check_owner(conversation.session, user_id)
        return conversation

    def _required(self, session_id: str, user_id: str | None) -> _Conversation:
        conversation = self._find(session_id, user_id)
        if conversation is None:
            raise SessionNotFoundError(session_id)
        return conversation

    def _alive(self, session_id: str) -> _Conversation:
        conversation = self._data.conversations.get(session_id)
        if conversation is None:
            raise SessionNotFoundError(session_id)
        if conversation.session.deleted_at is not None:
            raise SessionDeletedError(session_id)
        return conversation

    def _lives(self, session_id: str) -> bool:
        conversation = self._data.conversations.get(session_id)
        return conversation is not None and conversation.session.deleted_at is None

    def _check_fork_id(self, fork_id: str, group_id: str) -> None:
        if not is_fork(fork_id) or group_of(fork_id) != group_id:
            raise InvalidInputError("fork_id", "must be the id of the group, then ~ and a random part")
        if fork_id in self._data.conversations:
            raise InvalidInputError("fork_id", "is taken; choose another random part")

    def _with_forks_below(self, session_id: str) -> Iterator[_Conversation]:
        """The conversation, then the forks that descend from it (all of the group, if it is the root)."""
        below = {session_id}
        for each in self._data.conversations.values():
            if each.session.session_id in below or each.session.forked_from_id in below:
                below.add(each.session.session_id)
                yield each

    # Reading branches

    def _visible(self, part: BranchRange, last: int | None, *, newest_first: bool) -> Iterator[Message]:
        """The messages of `part` that are in view in a branch that shows its conversation up to `last`."""
        stored = self._data.conversations[part.conversation_id]
        end = stored.session.last_seq if part.end_seq is None else min(part.end_seq, stored.session.last_seq)
        seqs = range(part.start_seq, end + 1)
        for seq in reversed(seqs) if newest_first else seqs:
            if seq not in stored.withdrawn and not stored.ranges.hides(seq, last):
                yield stored.messages[seq - stored.first_seq]

    def _oldest_first(
        self, branch: Sequence[BranchRange], after: int = 0, until: int | None = None, *, with_archived: bool = False
    ) -> Iterator[Message]:
        ends = _hiding(branch, with_archived=with_archived)
        parts = ranges_between(branch, after, until)
        return chain.from_iterable(
            self._visible(part, ends[part.conversation_id], newest_first=False) for part in parts
        )

    def _newest_first(
        self, branch: Sequence[BranchRange], after: int = 0, until: int | None = None, *, with_archived: bool = False
    ) -> Iterator[Message]:
        ends = _hiding(branch, with_archived=with_archived)
        parts = reversed(ranges_between(branch, after, until))
        return chain.from_iterable(self._visible(part, ends[part.conversation_id], newest_first=True) for part in parts)

    def _read_along(
        self,
        branch: Sequence[BranchRange],
        after: int,
        until: int | None,
        last: int | None,
        limit: int | None,
        *,
        with_archived: bool = False,
    ) -> tuple[Message, ...]:
        if last is None:
            oldest = self._oldest_first(branch, after, until, with_archived=with_archived)
            return tuple(map(_copy, islice(oldest, limit)))
        newest = islice(self._newest_first(branch, after, until, with_archived=with_archived), last)
        return tuple(map(_copy, list(newest)[::-1][:limit]))

    def _group(self, group_id: str) -> list[Session]:
        sessions = (each.session for each in self._data.conversations.values())
        return [session for session in sessions if session.group_id == group_id]

    def _ranges_of(self, conversation_id: str) -> Ranges:
        return self._data.conversations[conversation_id].ranges

    def _preview(self, session: Session) -> SessionPreview:
        messages = self._oldest_first(session.branch)
        by_users = (each.content for each in messages if each.role == "user" and each.visibility == "user")
        return SessionPreview(
            session_id=session.session_id,
            title=session.title,
            preview=preview_of(next(by_users, "")),
            last_seq=session.last_seq,
            created_at=session.created_at,
            updated_at=session.updated_at,
        )

    # Derived data

    def _derived(self, session_id: str) -> _Derived:
        return self._data.derived.get(session_id) or _Derived()

    def _segments_of(self, owners: Sequence[str]) -> list[Segment]:
        return [segment for owner in owners for segment, _ in self._derived(owner).segments.values()]

    def _ledger(self, branch: Sequence[BranchRange]) -> Ledger:
        owners = [part.conversation_id for part in branch]
        segments = segments_of_branch(branch, {owner: self._segments_of([owner]) for owner in owners})
        facts = (self._derived(each.conversation_id).segments[each.end_seq][1] for each in segments)
        return Ledger(segments=segments, facts=tuple(chain.from_iterable(facts)), posted=self._ruling(branch))

    def _retell(self, branch: Session, now: int, refold: Refold, *, begin: bool = False) -> None:
        """As `storage.derived.retell`."""
        derived = self._data.derived[branch.session_id]
        if derived.summary is None and not begin:
            return
        ledger = replace(self._ledger(branch.branch), corrections=derived.corrections)
        derived.summary = retold(derived.summary or Summary(), ledger, refold, now)
        derived.layouts.clear()

    def _refold(self, branch: Session, seq: int, now: int, refold: Refold, *, untold: bool = False) -> None:
        derived = self._data.derived[branch.session_id]
        derived.layouts.clear()
        stored = derived.summary
        if stored is None or stored.covered_seq < seq:
            if untold:
                self._retell(branch, now, refold)
            return
        ledger = replace(self._ledger(branch.branch), corrections=derived.corrections)
        derived.summary = refolded(stored, ledger, refold, now)
        self._work(branch.session_id, SUMMARIZE).make_due(now)

    def _purge(self, conversations: Iterator[_Conversation]) -> int:
        chosen = list(conversations)
        for conversation in chosen:
            conversation.purge()
            self._forget(conversation.session.session_id)
        return len(chosen)

    def _forget(self, session_id: str) -> None:
        self._data.derived.pop(session_id, None)
        for key, work in self._data.work.items():
            if key[0] == session_id:
                self._data.work[key] = _Work(fence=work.fence + 1)

    def _take_leases_away(self, session_ids: Sequence[str]) -> None:
        for key, work in self._data.work.items():
            if key[0] in session_ids:
                work.fence += 1
                work.lease_until = 0

    def _work(self, session_id: str, kind: str) -> _Work:
        return self._data.work.setdefault((session_id, kind), _Work())

    def _holds(self, lease: Lease) -> bool:
        work = self._data.work.get((lease.session_id, lease.kind))
        return work is not None and work.fence == lease.fence


def _idle_group(group_id: str, group: Sequence[_Conversation]) -> IdleGroup:
    return IdleGroup(
        session_id=group_id,
        session_count=len(group),
        message_count=sum(len(each.messages) for each in group),
        updated_at=max(each.session.updated_at for each in group),
    )


def _check_owner(session: Session, user_id: str | None) -> None:
    if session.owner_id is not None and session.owner_id != user_id:
        raise SessionOwnershipError(session.session_id)


def _replay(conversation: _Conversation, request: AppendRequest) -> Appended | None:
    """The first answer to this key, if there was one."""
    if request.idempotency_key is None or request.idempotency_key not in conversation.batches:
        return None
    fingerprint, first = conversation.batches[request.idempotency_key]
    if fingerprint and fingerprint != request.fingerprint:
        raise IdempotencyConflictError(request.session_id, request.idempotency_key)
    return replace(first, replayed=True)


def _copy(message: Message) -> Message:
    """The message, sharing nothing that can be changed."""
    if not (message.parts or message.metadata or message.tool_calls):
        return message
    return _MESSAGE.decode(msgspec.json.encode(message))


_MESSAGE = msgspec.json.Decoder(Message)


def _window(newest: Iterator[Message], length: int, query: ContextQuery) -> list[Message]:
    """What a load shows, newest first."""
    if query.trigger_message_count is None or length <= query.trigger_message_count:
        return list(islice(newest, query.last_count))
    window: list[Message] = []
    tokens = 0
    for message in islice(newest, query.max_messages):
        window.append(message)
        tokens += 0 if is_posted_summary(message) else (message.token_count or 0) + query.overhead
        if tokens > query.max_tokens:
            break
    return window


def _hiding(branch: Sequence[BranchRange], *, with_archived: bool) -> Mapping[str, int | None]:
    """Until where summaries of each conversation hide what they archived: the end of its range. 0 hides nothing."""
    return {part.conversation_id: 0 if with_archived else part.end_seq for part in branch}


def _withdrawable(conversation: _Conversation, newest: Message | None, seq: int | None) -> int:
    """The position to withdraw: the newest visible message, if it is the conversation's own and the one asked for."""
    if newest is None or newest.seq is None:
        raise InvalidInputError("seq", "there is no message to withdraw")
    if newest.seq < conversation.first_seq:
        raise InvalidInputError("seq", f"message {newest.seq} is inherited; withdraw it in the session it belongs to")
    if seq is not None and seq != newest.seq:
        raise InvalidInputError("seq", f"only the newest message can be withdrawn, which is {newest.seq}")
    return newest.seq


def _listing_key(row: Session | Cursor) -> tuple[int, str]:
    return -row.updated_at, row.session_id


def _cursor_at(session: Session) -> Cursor:
    return Cursor(updated_at=session.updated_at, session_id=session.session_id)


def _work_state(session_id: str, kind: str, work: _Work) -> WorkState:
    return WorkState(
        session_id=session_id,
        kind=kind,
        due_at=work.due_at,
        lease_until=work.lease_until,
        fence=work.fence,
        attempts=work.attempts,
        parked=work.parked,
        last_error=work.last_error,
    )
