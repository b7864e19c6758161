"""Every call of the protocols of stores, as one operation on a database each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reactor_memory.database.database import Database
from reactor_memory.memberships import (
    Conversation,
    ConversationsQuery,
    MessagesQuery,
    NewConversation,
    NewFork,
)
from reactor_memory.models import (
    ActiveSession,
    AuditRecord,
    BranchRange,
    Fact,
    FactCorrection,
    IdleGroup,
    Item,
    ItemChange,
    Layout,
    Lease,
    Ledger,
    Membership,
    Message,
    Notes,
    OwnershipTransfer,
    Pin,
    PinTarget,
    PostedSummary,
    RangeSummary,
    Segment,
    Session,
    SessionPage,
    Spending,
    Summary,
    SummaryHead,
    WorkState,
)
from reactor_memory.principals import AnsweredRequest, ApiKey
from reactor_memory.protocols import (
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
    StoredConversation,
    StoredMessage,
    StoredUser,
    StoreHealth,
    Withdrawn,
)
from reactor_memory.responses import Addition, Ending, Piece, Response
from reactor_memory.searching import (
    EMBED_SEARCH,
    INDEX_SEARCH,
    IndexedRange,
    Near,
    NearQuery,
    SearchAnswer,
    SearchBacklog,
    SearchProgress,
    SearchQuery,
)
from reactor_memory.storage import (
    answered_requests,
    api_keys,
    conversations,
    derived,
    erasing,
    health,
    items,
    log,
    meaning,
    memberships,
    postgres_contexts,
    posting,
    range_summaries,
    recall,
    responses,
    search,
    transfer,
    user_rows,
)
from reactor_memory.storage.appends import APPENDS

RECOUNT_PAGE = 500
"""Messages that are counted again in one transaction: appends wait meanwhile."""


class SqlStore:
    """The log, everything derived from it, and what belongs to users, in one database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._read = database.read
        self._write = database.write
        self._note = database.write_relaxed
        self._scan = database.read_long

    async def open(self) -> None:
        await self.database.open()

    async def close(self) -> None:
        await self.database.close()

    async def append(self, request: AppendRequest) -> Appended:
        return await self.database.write_grouped(APPENDS, request)

    async def scrub(self, *, rewrite: bool = False) -> None:
        await health.scrub(self.database, rewrite=rewrite)

    async def check(self) -> StoreHealth:
        return await health.check(self.database)

    # The log

    async def post_summary(self, request: PostRequest, *, refold: Refold) -> Message:
        return await self._write(posting.post_summary, request, refold=refold)

    async def get_session(self, session_id: str, user_id: str | None) -> Session | None:
        return await self._read(log.find, session_id, user_id)

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
        return await self._read(log.read, session_id, user_id, after=after, until=until, last=last, limit=limit)

    async def read_context(self, query: ContextQuery) -> ContextRows:
        if self.database.engine == "postgresql":
            return await postgres_contexts.read_context(self.database, query)
        return await self._read(log.read_context, query)

    async def read_ranges(
        self, session_id: str, user_id: str | None, ranges: Sequence[tuple[int, int]]
    ) -> tuple[Message, ...]:
        return await self._read(log.read_ranges, session_id, user_id, ranges)

    async def read_background(
        self, session_id: str, *, after: int = 0, limit: int = 1000
    ) -> tuple[Session, tuple[Message, ...]]:
        return await self._read(log.read_background, session_id, after=after, limit=limit)

    async def list_sessions(self, user_id: str | None, *, limit: int = 50, cursor: str | None = None) -> SessionPage:
        return await self._read(log.list_sessions, user_id, limit=limit, cursor=cursor)

    async def fork(self, session_id: str, user_id: str | None, *, at_seq: int, fork_id: str, now: int) -> Session:
        return await self._write(log.fork, session_id, user_id, at_seq=at_seq, fork_id=fork_id, now=now)

    async def withdraw(
        self, session_id: str, user_id: str | None, *, seq: int | None, now: int, refold: Refold
    ) -> Withdrawn:
        return await self._write(log.withdraw, session_id, user_id, seq=seq, now=now, refold=refold)

    async def erase(
        self,
        session_id: str,
        user_id: str | None,
        *,
        ranges: Sequence[tuple[int, int]],
        now: int,
        refold: Refold,
    ) -> Erased:
        return await self._write(erasing.erase, session_id, user_id, ranges=ranges, now=now, refold=refold)

    async def pin(self, session_id: str, user_id: str | None, pin: Pin, *, max_pins: int, max_pin_tokens: int) -> Pin:
        return await self._write(log.pin, session_id, user_id, pin, max_pins=max_pins, max_pin_tokens=max_pin_tokens)

    async def unpin(self, session_id: str, user_id: str | None, target: PinTarget) -> bool:
        return await self._write(log.unpin, session_id, user_id, target)

    async def read_pins(self, session_id: str, user_id: str | None) -> tuple[Pin, ...]:
        return await self._read(log.read_pins, session_id, user_id)

    async def delete(self, session_id: str, user_id: str | None, *, now: int, purge: bool) -> tuple[str, ...]:
        return await self._write(log.delete, session_id, user_id, now=now, purge=purge)

    async def purge_deleted(self, *, before: int, limit: int = 100) -> int:
        return await self._write(log.purge_deleted, before=before, limit=limit)

    async def idle_groups(self, *, before: int, after: str = "", limit: int = 100) -> tuple[IdleGroup, ...]:
        return await self._read(log.idle_groups, before=before, after=after, limit=limit)

    async def delete_idle(self, group_id: str, *, before: int, now: int, purge: bool) -> tuple[str, ...]:
        return await self._write(log.delete_idle, group_id, before=before, now=now, purge=purge)

    async def owned_groups(self, user_id: str, *, after: str = "", limit: int = 100) -> tuple[tuple[str, ...], ...]:
        return await self._read(erasing.owned_groups, user_id, after=after, limit=limit)

    async def erase_group(self, group_id: str, user_id: str, *, now: int) -> tuple[str, ...]:
        return await self._write(erasing.erase_group, group_id, user_id, now=now)

    async def forget_user(self, user_id: str, *, now: int) -> int:
        return await self._write(erasing.forget_user, user_id, now=now)

    async def recount(self, tokenizer: str, count: Callable[[Message], int]) -> int:
        rewritten, after = 0, log.BEFORE_ALL
        while after is not None:
            page, after = await self._write(log.recount_page, tokenizer, count, after=after, limit=RECOUNT_PAGE)
            rewritten += page
        for recount in (log.recount_pins, range_summaries.recount_range_summaries):
            while await self._write(recount, tokenizer, count, limit=RECOUNT_PAGE):
                pass
        return rewritten

    # What is derived from it

    async def get_summary(self, session_id: str) -> Summary | None:
        return await self._read(derived.get_summary, session_id)

    async def get_summary_head(self, session_id: str) -> SummaryHead | None:
        return await self._read(derived.get_summary_head, session_id)

    async def get_layout(self, session_id: str, *, budget: int, settings_fingerprint: str) -> Layout | None:
        return await self._read(derived.get_layout, session_id, budget, settings_fingerprint)

    async def put_layout(self, session_id: str, layout: Layout, *, budget: int, settings_fingerprint: str) -> None:
        await self._note(derived.put_layout, session_id, layout, budget, settings_fingerprint)

    async def read_ledger(self, session_id: str, branch: Sequence[BranchRange]) -> Ledger:
        return await self._read(derived.read_ledger, branch)

    async def read_facts_about(
        self, session_id: str, branch: Sequence[BranchRange], anchors: Sequence[str]
    ) -> tuple[Fact, ...]:
        return await self._read(derived.read_facts_about, branch, anchors)

    async def read_corrections(self, session_id: str) -> tuple[FactCorrection, ...]:
        return await self._read(derived.read_corrections, session_id)

    async def put_correction(self, session: Session, correction: FactCorrection, *, now: int, refold: Refold) -> bool:
        return await self._write(derived.put_correction, session, correction, now=now, refold=refold)

    async def read_posted(self, branch: Sequence[BranchRange]) -> PostedSummary | None:
        return await self._read(derived.read_posted, branch)

    async def put_posted(self, session: Session, posted: PostedSummary, *, now: int, refold: Refold) -> None:
        await self._write(derived.put_posted, session, posted, now=now, refold=refold)

    async def mark_outdated(self, session_id: str, *, now: int) -> int:
        return await self._write(derived.mark_outdated, session_id, now=now)

    async def outdated_ranges(self, session_id: str) -> tuple[tuple[int, int], ...]:
        return await self._read(derived.outdated_ranges, session_id)

    async def record_segment(self, lease: Lease, segment: Segment, facts: Sequence[Fact], summary: Summary) -> bool:
        return await self._write(derived.record_segment, lease, segment, facts, summary)

    async def put_summary(self, lease: Lease, summary: Summary) -> bool:
        return await self._write(derived.put_summary, lease, summary)

    async def invalidate(
        self, session_id: str, branches: Sequence[Session], *, seq: int, now: int, refold: Refold
    ) -> None:
        await self._write(derived.lock_and_invalidate, branches, seq=seq, now=now, refold=refold)

    async def forget_messages(self, branches: Sequence[ErasedBranch], *, now: int, refold: Refold) -> None:
        await self._write(derived.lock_and_forget_messages, branches, now=now, refold=refold)

    async def forget(self, session_ids: Sequence[str]) -> None:
        await self._write(derived.forget, session_ids)

    async def add_spending(self, session_id: str, *, day: int, tokens: int) -> None:
        await self._write(derived.add_spending, session_id, day=day, tokens=tokens)

    async def read_spending(self, session_id: str, *, day: int) -> Spending:
        return await self._read(derived.read_spending, session_id, day=day)

    # Summaries of ranges

    async def read_range_summaries(
        self, session_id: str, user_id: str | None, *, live: bool = True
    ) -> tuple[RangeSummary, ...]:
        return await self._read(range_summaries.read_range_summaries, session_id, user_id, live=live)

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
        return await self._read(
            range_summaries.read_originals, session_id, user_id, after=after, until=until, last=last, limit=limit
        )

    async def put_range_summaries(
        self, session_id: str, user_id: str | None, new: Sequence[RangeSummary], *, expected: Sequence[str], now: int
    ) -> bool:
        return await self._write(
            range_summaries.put_range_summaries, session_id, user_id, new, expected=expected, now=now
        )

    async def restore_range_summary(self, session_id: str, user_id: str | None, summary_id: str, *, now: int) -> bool:
        return await self._write(range_summaries.restore_range_summary, session_id, user_id, summary_id, now=now)

    # Recall

    async def indexed_until(self, conversation_id: str) -> int:
        return await self._read(recall.indexed_until, conversation_id)

    async def extend(self, lease: Lease, part: IndexPart) -> bool:
        return await self._note(recall.extend, lease, part)

    async def search(self, query: RecallQuery) -> Findings:
        return await self._read(recall.search, query)

    async def truncate(self, session_ids: Sequence[str], *, seq: int) -> None:
        await self._write(recall.truncate, session_ids, seq=seq)

    # What belongs to a user

    async def get_active(self, user_id: str, agent_name: str) -> ActiveSession | None:
        return await self._read(user_rows.get_active, user_id, agent_name)

    async def get_or_create_active(self, user_id: str, agent_name: str, candidate: str, *, now: int) -> ActiveSession:
        return await self._write(user_rows.get_or_create_active, user_id, agent_name, candidate, now=now)

    async def switch_active(
        self, user_id: str, agent_name: str, *, expected: str | None, new: str | None, now: int
    ) -> ActiveSession | None:
        return await self._write(user_rows.switch_active, user_id, agent_name, expected=expected, new=new, now=now)

    async def touch_active(self, user_id: str, agent_name: str, session_id: str, *, now: int) -> bool:
        return await self._note(user_rows.touch_active, user_id, agent_name, session_id, now=now)

    async def list_active(self, user_id: str) -> tuple[ActiveSession, ...]:
        return await self._read(user_rows.list_active, user_id)

    async def deactivate_active(self, *, before: int) -> int:
        return await self._write(user_rows.deactivate_active, before=before)

    async def read_notes(self, user_id: str, agent_name: str, *, version: int | None = None) -> Notes:
        return await self._read(user_rows.read_notes, user_id, agent_name, version=version)

    async def put_notes(self, notes: Notes) -> bool:
        return await self._write(user_rows.put_notes, notes)

    async def list_notes(self, user_id: str, agent_name: str, *, limit: int = 50) -> tuple[Notes, ...]:
        return await self._read(user_rows.list_notes, user_id, agent_name, limit=limit)

    # Background work

    async def claim(self, session_id: str, kind: str, *, now: int, lease_microseconds: int) -> Lease | None:
        return await self._note(derived.claim, session_id, kind, now=now, lease_microseconds=lease_microseconds)

    async def renew(self, lease: Lease, *, now: int, lease_microseconds: int) -> bool:
        return await self._note(derived.renew, lease, now=now, lease_microseconds=lease_microseconds)

    async def release(
        self,
        lease: Lease,
        *,
        due_at: int | None,
        attempts: int = 0,
        parked: bool = False,
        error: str | None = None,
    ) -> None:
        await self._note(derived.release, lease, due_at=due_at, attempts=attempts, parked=parked, error=error)

    async def due(self, kind: str, *, now: int, limit: int = 100) -> tuple[str, ...]:
        return await self._read(derived.due, kind, now=now, limit=limit)

    async def work_state(self, session_id: str, kind: str) -> WorkState | None:
        return await self._read(derived.work_state, session_id, kind)

    async def list_work(self, kind: str, *, limit: int = 100) -> tuple[WorkState, ...]:
        return await self._read(derived.list_work, kind, limit=limit)

    # What applications keep

    async def read_items(self, user_id: str, keys: Sequence[tuple[str, str]]) -> tuple[Item | None, ...]:
        return await self._read(items.read_items, user_id, keys)

    async def list_items(self, user_id: str, namespace: str, *, limit: int | None = None) -> tuple[Item, ...]:
        return await self._read(items.list_items, user_id, namespace, limit=limit)

    async def list_item_namespaces(self, user_id: str) -> tuple[str, ...]:
        return await self._read(items.list_item_namespaces, user_id)

    async def change_items(self, user_id: str, changes: Sequence[ItemChange], *, now: int) -> None:
        await self._write(items.change_items, user_id, changes, now=now)

    # Conversations that people share

    async def get_conversation(
        self, conversation_id: str, user_id: str | None, *, deleted: bool = False, described: bool = False
    ) -> Conversation | None:
        return await self._read(
            conversations.get_conversation, conversation_id, user_id, deleted=deleted, described=described
        )

    async def list_conversations(self, query: ConversationsQuery) -> tuple[Conversation, ...]:
        return await self._read(conversations.list_conversations, query)

    async def list_group(self, group_id: str, user_id: str | None) -> tuple[Conversation, ...]:
        return await self._read(conversations.list_group, group_id, user_id)

    async def create_conversation(self, new: NewConversation, audit: AuditRecord) -> Conversation:
        return await self._write(conversations.create_conversation, new, audit)

    async def fork_conversation(self, new: NewFork, audit: AuditRecord) -> tuple[Conversation, Appended | None]:
        return await self._write(conversations.fork_conversation, new, audit)

    async def rename_conversation(self, conversation_id: str, title: str | None, audit: AuditRecord) -> bool:
        return await self._write(conversations.rename_conversation, conversation_id, title, audit)

    async def title_conversation(self, conversation_id: str) -> str | None:
        return await self._write(conversations.title_conversation, conversation_id)

    async def delete_conversation(self, conversation_id: str, audit: AuditRecord, *, purge: bool) -> tuple[str, ...]:
        return await self._write(conversations.delete_conversation, conversation_id, audit, purge=purge)

    async def restore_conversation(self, conversation_id: str, audit: AuditRecord) -> tuple[Session, ...] | None:
        return await self._write(conversations.restore_conversation, conversation_id, audit)

    async def read_visible(self, query: MessagesQuery) -> tuple[Message, ...]:
        return await self._read(conversations.read_visible, query)

    async def find_message(self, session: Session, message_id: str) -> Message | None:
        return await self._read(conversations.find_message, session, message_id)

    async def list_memberships(self, group_id: str) -> tuple[Membership, ...]:
        return await self._read(memberships.list_memberships, group_id)

    async def put_membership(self, membership: Membership, audit: AuditRecord, *, creating: bool) -> Membership | None:
        return await self._write(memberships.put_membership, membership, audit, creating=creating)

    async def remove_membership(self, group_id: str, user_id: str, audit: AuditRecord) -> bool:
        return await self._write(memberships.remove_membership, group_id, user_id, audit)

    async def offer_ownership(self, transfer: OwnershipTransfer, audit: AuditRecord) -> OwnershipTransfer:
        return await self._write(memberships.offer_ownership, transfer, audit)

    async def list_transfers(self, user_id: str) -> tuple[OwnershipTransfer, ...]:
        return await self._read(memberships.list_transfers, user_id)

    async def accept_ownership(self, transfer_id: str, user_id: str, audit: AuditRecord) -> OwnershipTransfer | None:
        return await self._write(memberships.accept_ownership, transfer_id, user_id, audit)

    async def decline_ownership(self, transfer_id: str, user_id: str, audit: AuditRecord) -> OwnershipTransfer | None:
        return await self._write(memberships.decline_ownership, transfer_id, user_id, audit)

    async def add_audit(self, record: AuditRecord) -> None:
        await self._write(memberships.add_audit, record)

    async def list_audit(self, group_id: str, *, after: str = "", limit: int = 100) -> tuple[AuditRecord, ...]:
        return await self._read(memberships.list_audit, group_id, after=after, limit=limit)

    # Moving sessions to another store

    async def list_groups(self, *, owner_id: str | None = None, after: str = "", limit: int = 100) -> tuple[str, ...]:
        return await self._read(transfer.list_groups, owner_id, after=after, limit=limit)

    async def export_group(self, group_id: str) -> tuple[StoredConversation, ...]:
        return await self._read(transfer.export_group, group_id)

    async def export_messages(self, conversation_id: str, *, after: int, limit: int) -> tuple[StoredMessage, ...]:
        return await self._read(transfer.export_messages, conversation_id, after=after, limit=limit)

    async def import_conversation(self, stored: StoredConversation) -> bool:
        return await self._write(transfer.import_conversation, stored)

    async def import_messages(self, conversation_id: str, messages: Sequence[StoredMessage]) -> bool:
        return await self._write(transfer.import_messages, conversation_id, messages)

    async def finish_import(self, conversation_id: str, *, due_at: int | None) -> None:
        await self._write(transfer.finish_import, conversation_id, due_at=due_at)

    async def list_users(self, *, after: str = "", limit: int = 100) -> tuple[str, ...]:
        return await self._read(user_rows.list_users, after=after, limit=limit)

    async def export_user(self, user_id: str) -> StoredUser:
        return await self._read(transfer.export_user, user_id)

    async def import_user(self, stored: StoredUser) -> None:
        await self._write(transfer.import_user, stored)

    # Who calls

    async def add_api_key(self, key: ApiKey) -> bool:
        return await self._write(api_keys.add_api_key, key)

    async def find_api_key(self, key_prefix: str) -> ApiKey | None:
        return await self._read(api_keys.find_api_key, key_prefix)

    async def list_api_keys(self) -> tuple[ApiKey, ...]:
        return await self._read(api_keys.list_api_keys)

    async def revoke_api_key(self, key_prefix: str, *, now: int) -> bool:
        return await self._write(api_keys.revoke_api_key, key_prefix, now=now)

    async def claim_request(
        self, request: AnsweredRequest, *, now: int, forget_before: int = 0
    ) -> AnsweredRequest | None:
        return await self._write(answered_requests.claim_request, request, now=now, forget_before=forget_before)

    async def answer_request(self, request: AnsweredRequest) -> None:
        await self._write(answered_requests.answer_request, request)

    async def release_request(self, principal_id: str, request_key: str) -> None:
        await self._write(answered_requests.release_request, principal_id, request_key)

    async def forget_requests(self, *, before: int, limit: int = 1000) -> int:
        return await self._write(answered_requests.forget_requests, before=before, limit=limit)

    # Responses that are being written

    async def start_response(self, response: Response, *, keep_until: int) -> Response:
        return await self._write(responses.start_response, response, keep_until=keep_until)

    async def append_pieces(self, addition: Addition) -> Response | None:
        return await self._note(responses.append_pieces, addition)

    async def finish_response(self, ending: Ending) -> Response | None:
        return await self._write(responses.finish_response, ending)

    async def request_stop(self, conversation_id: str, response_id: str, *, now: int) -> Response | None:
        return await self._write(responses.request_stop, conversation_id, response_id, now=now)

    async def get_response(self, conversation_id: str, response_id: str) -> Response | None:
        return await self._read(responses.get_response, conversation_id, response_id)

    async def list_responses(self, conversation_ids: Sequence[str], *, limit: int) -> tuple[Response, ...]:
        return await self._read(responses.list_responses, conversation_ids, limit=limit)

    async def read_pieces(self, conversation_id: str, response_id: str, *, after: int, limit: int) -> tuple[Piece, ...]:
        return await self._read(responses.read_pieces, conversation_id, response_id, after=after, limit=limit)

    async def forget_responses(self, conversation_ids: Sequence[str]) -> None:
        await self._write(responses.forget_responses, conversation_ids)

    async def forget_answers(self, conversation_ids: Sequence[str], message_ids: Sequence[str]) -> None:
        await self._write(responses.forget_answers, conversation_ids, message_ids)

    async def remove_expired_responses(self, *, now: int, keep_microseconds: int, limit: int = 1000) -> int:
        return await self._write(
            responses.remove_expired_responses, now=now, keep_microseconds=keep_microseconds, limit=limit
        )

    # Search over many conversations

    async def search_messages(self, query: SearchQuery) -> SearchAnswer:
        return await self._scan(search.search_messages, query)

    async def nearest_in_branch(self, query: NearQuery) -> tuple[Near, ...]:
        return await self._scan(meaning.nearest_in_branch, query)

    async def search_progress(self, conversation_id: str) -> SearchProgress | None:
        return await self._read(search.search_progress, conversation_id)

    async def behind_in_words(self, *, after: str, now: int, limit: int) -> tuple[str, ...]:
        return await self._scan(search.behind_in_words, INDEX_SEARCH, after=after, now=now, limit=limit)

    async def behind_in_meanings(self, *, model: str, after: str, now: int, limit: int) -> tuple[str, ...]:
        return await self._scan(search.behind_in_meanings, EMBED_SEARCH, model=model, after=after, now=now, limit=limit)

    async def index_words(self, lease: Lease, part: IndexedRange) -> bool:
        return await self._note(search.index_words, lease, part)

    async def index_meanings(self, lease: Lease, part: IndexedRange, *, model: str) -> bool:
        return await self._note(search.index_meanings, lease, part, model=model)

    async def search_backlog(self, *, model: str | None = None) -> SearchBacklog:
        return await self._scan(search.search_backlog, model)
