"""Every call of the protocols of stores, as one operation on a database each."""

from __future__ import annotations

from collections.abc import Sequence

from reactor_memory.database.database import Database
from reactor_memory.memberships import (
    Conversation,
    ConversationsQuery,
    MessagesQuery,
    NewConversation,
    NewFork,
)
from reactor_memory.models import (
    AuditRecord,
    Lease,
    Membership,
    Message,
    OwnershipTransfer,
    Session,
)
from reactor_memory.principals import AnsweredRequest, ApiKey
from reactor_memory.protocols import (
    EVER,
    Ahead,
    Appended,
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
    meaning,
    memberships,
    responses,
    search,
)
from reactor_memory.storage.message_store import SqlMessageStore
from reactor_memory.storage.recall_index import SqlRecallIndex
from reactor_memory.storage.summary_store import SqlSummaryStore


class SqlStore(SqlMessageStore):
    """The log, everything derived from it, and what belongs to users, in one database."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.database = database
        self.summaries = SqlSummaryStore(database)
        self.index = SqlRecallIndex(database)
        self._read = database.read
        self._write = database.write
        self._note = database.write_relaxed
        self._scan = database.read_long

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

    async def behind_in_words(self, *, after: str, now: int, limit: int, ahead: Ahead = EVER) -> tuple[str, ...]:
        return await self._scan(search.behind_in_words, INDEX_SEARCH, after=after, now=now, limit=limit, ahead=ahead)

    async def behind_in_meanings(
        self, *, model: str, after: str, now: int, limit: int, ahead: Ahead = EVER
    ) -> tuple[str, ...]:
        return await self._scan(
            search.behind_in_meanings, EMBED_SEARCH, model=model, after=after, now=now, limit=limit, ahead=ahead
        )

    async def index_words(self, lease: Lease, part: IndexedRange) -> bool:
        return await self._note(search.index_words, lease, part)

    async def index_meanings(self, lease: Lease, part: IndexedRange, *, model: str) -> bool:
        return await self._note(search.index_meanings, lease, part, model=model)

    async def search_backlog(self, *, model: str | None = None) -> SearchBacklog:
        return await self._scan(search.search_backlog, model)
