"""All operations of the service, as methods that take and give the types of `features.sharing.bodies`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from copy import copy
from datetime import datetime
from types import TracebackType
from typing import Any, Protocol, TypeVar, cast
from uuid import uuid4

import httpx2
import msgspec
from msgspec import UNSET, UnsetType

from reactor_memory.client.calls import Call, Caller, Identity, Params, QuietTransport, Token, path_of
from reactor_memory.client.failures import CallSubject
from reactor_memory.client.reader import FollowedResponse
from reactor_memory.client.retries import DEFAULT_RETRIES, Retries
from reactor_memory.client.writer import ResponseWriter
from reactor_memory.core.context.given_messages import MessageLike, MessagesLike
from reactor_memory.features.sharing import bodies
from reactor_memory.features.sharing.bodies import FinalState, GivenLevel
from reactor_memory.features.sharing.models import ListMode
from reactor_memory.forms.kept_messages import record_of
from reactor_memory.forms.losses import Provider
from reactor_memory.forms.storable import sendable
from reactor_memory.models import JsonObject, Message, SearchType
from reactor_memory.models.ledger import PostedMode

A = TypeVar("A")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class _Page(Protocol[T_co]):
    @property
    def data(self) -> Sequence[T_co]: ...
    @property
    def next_cursor(self) -> str | None: ...


class MemoryServiceClient:
    """The service at `base_url` for a user (`token`), an agent (`api_key`), or an agent on behalf of a user (`api_key`
    with `token` or `on_behalf_of`)::

        async with MemoryServiceClient("http://127.0.0.1:8080", token=token) as client:
            conversation = await client.create_conversation(title="Trip to Lisbon")
            await client.append_message(conversation.id, "Which hotel did we book?")

    `token` may be a function, also an async one, that is asked before every request. Each wait for the service is
    bounded by `timeout_seconds`. Redirects are not followed. `transport` replaces the network: a proxy, a Unix socket,
    an application in this process.

    GET and POST are repeated (`retries`) when no answer comes and when the service asks for it; every POST carries an
    `idempotency_key`, a new one unless given, so that the deed is done once. A key of your own (such as the id of what
    you are working on) makes a repetition after a restart the same request.

    Calls raise `SessionNotFoundError` (no such conversation, or none that you may see), `InvalidInputError`,
    `PageTokenError`, `SharingConflictError`, `IdempotencyConflictError`, `StoreFullError`, `StoreUnavailableError` (no
    answer, the outcome is unknown), and `ServiceError` with its `code` for everything else, such as a message that is
    not found.
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: Token | None = None,
        api_key: str | None = None,
        on_behalf_of: str | None = None,
        timeout_seconds: float = 10.0,
        retries: Retries = DEFAULT_RETRIES,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        http = httpx2.AsyncClient(
            base_url=base_url,
            timeout=timeout_seconds,
            follow_redirects=False,
            transport=QuietTransport(transport or httpx2.AsyncHTTPTransport()),
        )
        identity = Identity(token=token, api_key=api_key, on_behalf_of=on_behalf_of)
        self._caller = Caller(http, identity, retries)

    async def __aenter__(self) -> MemoryServiceClient:
        await self._caller.http.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._caller.http.__aexit__(kind, error, trace)

    async def aclose(self) -> None:
        await self._caller.http.aclose()

    def acting_for(self, user_id: str) -> MemoryServiceClient:
        """The same agent on behalf of this user, over the connections of this client and only as long as it is open."""
        identity = msgspec.structs.replace(self._caller.identity, token=None, on_behalf_of=user_id)
        acting = copy(self)
        acting._caller = Caller(self._caller.http, identity, self._caller.retries)
        return acting

    # -- system -------------------------------------------------------------------------------------------------------

    async def get_health(self) -> bodies.Health:
        return await self._get(bodies.Health, path_of("health"))

    async def get_readiness(self) -> bodies.Readiness:
        """Also of a service that is not ready."""
        return await self._caller.answer(Call(method="GET", path=path_of("ready"), accepted=(503,)), bodies.Readiness)

    # -- conversations ------------------------------------------------------------------------------------------------

    async def list_conversations(
        self, *, after: str | None = None, limit: int | None = None, query: str | None = None, mode: ListMode = "all"
    ) -> bodies.ConversationPage:
        """A page of the conversations that the user may see, newest activity first. `after` is a `next_cursor`; `query`
        is looked for in titles and metadata.
        """
        params = {"after": after, "limit": limit, "query": query, "mode": mode}
        return await self._get(bodies.ConversationPage, path_of("user", "conversations"), params)

    def conversations(
        self, *, query: str | None = None, mode: ListMode = "all", page_size: int | None = None
    ) -> AsyncGenerator[bodies.ConversationSummary]:
        """All of them, page by page."""
        return _items(lambda after: self.list_conversations(after=after, limit=page_size, query=query, mode=mode))

    async def create_conversation(
        self,
        *,
        title: str | None = None,
        metadata: JsonObject | None = None,
        agent_name: str | None = None,
        idempotency_key: str | None = None,
    ) -> bodies.Conversation:
        body = bodies.CreateConversationRequest(title=title, metadata=metadata, agent_name=agent_name)
        return await self._post(bodies.Conversation, path_of("user", "conversations"), body, idempotency_key)

    async def get_conversation(self, conversation_id: str) -> bodies.Conversation:
        return await self._get(bodies.Conversation, _user(conversation_id), about=conversation_id)

    async def update_conversation(self, conversation_id: str, *, title: str | None) -> bodies.Conversation:
        """Rename it; None takes the title away."""
        body = bodies.UpdateConversationRequest(title=title)
        return await self._patch(bodies.Conversation, _user(conversation_id), body, about=conversation_id)

    async def delete_conversation(self, conversation_id: str) -> bodies.Deletion:
        """A root with all its forks, or the branch of a fork, until the time to restore it is over. Where there is
        none, the answer tells whether all of it is gone.
        """
        asked = Call(method="DELETE", path=_user(conversation_id), asked=CallSubject(conversation_id=conversation_id))
        return await self._caller.answer(asked, bodies.Deletion, empty=bodies.Deletion())

    async def restore_conversation(
        self, conversation_id: str, *, idempotency_key: str | None = None
    ) -> bodies.Conversation:
        path = _user(conversation_id, "restore")
        return await self._post(bodies.Conversation, path, None, idempotency_key, about=conversation_id)

    # -- messages and forks -------------------------------------------------------------------------------------------

    async def list_messages(
        self, conversation_id: str, *, after: str | None = None, limit: int | None = None, inherit: bool = True
    ) -> bodies.MessagePage:
        """A page of what users see, oldest first; with `inherit` False without what a fork has from its ancestors."""
        params = {"after": after, "limit": limit, "inherit": inherit}
        return await self._get(bodies.MessagePage, _user(conversation_id, "messages"), params, about=conversation_id)

    def messages(
        self, conversation_id: str, *, inherit: bool = True, page_size: int | None = None
    ) -> AsyncGenerator[bodies.Message]:
        """All of them, page by page."""
        return _items(lambda after: self.list_messages(conversation_id, after=after, limit=page_size, inherit=inherit))

    async def append_message(
        self,
        conversation_id: str,
        content: str | None = None,
        *,
        given: MessageLike | None = None,
        metadata: JsonObject | None = None,
        parent_message_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> bodies.Message:
        """What the user says: a text, or what is `given` in the form of a provider, such as a message with pictures."""
        body = bodies.CreateUserMessageRequest(
            content=UNSET if content is None else content,
            given=_as_json(given),
            metadata=metadata,
            parent_message_id=parent_message_id,
        )
        path = _user(conversation_id, "messages")
        return await self._post(bodies.Message, path, body, idempotency_key, about=conversation_id)

    async def fork_conversation(
        self,
        conversation_id: str,
        message_id: str,
        *,
        title: str | None = None,
        new_message: bodies.CreateUserMessageRequest | None = None,
        idempotency_key: str | None = None,
    ) -> bodies.Conversation:
        """A new conversation that continues before this message of the user, with `new_message` in its place."""
        body = bodies.ForkRequest(title=title, new_message=new_message)
        path = _user(conversation_id, "messages", message_id, "fork")
        return await self._post(bodies.Conversation, path, body, idempotency_key)

    async def list_forks(
        self, conversation_id: str, *, after: str | None = None, limit: int | None = None
    ) -> bodies.ForkPage:
        """A page of the conversation that all are forks of and its forks, in the order of their creation."""
        params = {"after": after, "limit": limit}
        return await self._get(bodies.ForkPage, _user(conversation_id, "forks"), params, about=conversation_id)

    def forks(self, conversation_id: str, *, page_size: int | None = None) -> AsyncGenerator[bodies.ConversationFork]:
        """All of them, page by page."""
        return _items(lambda after: self.list_forks(conversation_id, after=after, limit=page_size))

    async def list_tier_summaries(self, conversation_id: str) -> bodies.TierSummaryList:
        """The texts that stand for older messages, in their order: those of tiers and of the chat memory."""
        return await self._get(bodies.TierSummaryList, _user(conversation_id, "tiers"), about=conversation_id)

    # -- sharing ------------------------------------------------------------------------------------------------------

    async def list_memberships(self, conversation_id: str) -> bodies.MembershipList:
        return await self._get(bodies.MembershipList, _user(conversation_id, "memberships"), about=conversation_id)

    async def share_conversation(
        self, conversation_id: str, user_id: str, access_level: GivenLevel, *, idempotency_key: str | None = None
    ) -> bodies.ConversationMembership:
        body = bodies.ShareConversationRequest(user_id=user_id, access_level=access_level)
        path = _user(conversation_id, "memberships")
        return await self._post(bodies.ConversationMembership, path, body, idempotency_key, about=conversation_id)

    async def update_membership(
        self, conversation_id: str, user_id: str, access_level: GivenLevel
    ) -> bodies.ConversationMembership:
        body = bodies.UpdateMembershipRequest(access_level=access_level)
        return await self._patch(bodies.ConversationMembership, _user(conversation_id, "memberships", user_id), body)

    async def remove_membership(self, conversation_id: str, user_id: str) -> None:
        """Members may also remove themselves."""
        await self._delete(_user(conversation_id, "memberships", user_id))

    async def list_audit(
        self, conversation_id: str, *, after: str | None = None, limit: int | None = None
    ) -> bodies.AuditPage:
        """Who changed what of the conversation and its forks, oldest first."""
        params = {"after": after, "limit": limit}
        return await self._get(bodies.AuditPage, _user(conversation_id, "audit"), params, about=conversation_id)

    def audit(self, conversation_id: str, *, page_size: int | None = None) -> AsyncGenerator[bodies.AuditEntry]:
        """All of it, page by page."""
        return _items(lambda after: self.list_audit(conversation_id, after=after, limit=page_size))

    async def transfer_ownership(
        self, conversation_id: str, new_owner_user_id: str, *, idempotency_key: str | None = None
    ) -> bodies.OwnershipTransfer:
        """Offer it to a member, who accepts it or not."""
        body = bodies.TransferOwnershipRequest(new_owner_user_id=new_owner_user_id)
        path = _user(conversation_id, "transfer-ownership")
        return await self._post(bodies.OwnershipTransfer, path, body, idempotency_key, about=conversation_id)

    async def list_ownership_transfers(self) -> bodies.TransferList:
        """Those that the user gave or got."""
        return await self._get(bodies.TransferList, path_of("user", "ownership-transfers"))

    async def accept_ownership_transfer(self, transfer_id: str, *, idempotency_key: str | None = None) -> None:
        path = path_of("user", "ownership-transfers", transfer_id, "accept")
        asked = CallSubject(transfer_id=transfer_id, idempotency_key=idempotency_key or _new_key())
        await self._caller.done(Call(method="POST", path=path, asked=asked))

    async def decline_ownership_transfer(self, transfer_id: str) -> None:
        """By its sender to take it back, by its recipient to decline it."""
        path = path_of("user", "ownership-transfers", transfer_id)
        await self._caller.done(Call(method="DELETE", path=path, asked=CallSubject(transfer_id=transfer_id)))

    # -- search -------------------------------------------------------------------------------------------------------

    async def search_messages(
        self,
        query: str,
        *,
        top_k: int = 20,
        conversation_ids: Iterable[str] | None = None,
        before: str | None = None,
        search_type: SearchType = "auto",
        cursor: str | None = None,
        idempotency_key: str | None = None,
    ) -> bodies.SearchResults:
        """The best `top_k` answers of all conversations that the user may see; the next ones by `cursor`."""
        body = bodies.SearchMessagesRequest(
            query=query,
            top_k=top_k,
            conversation_ids=None if conversation_ids is None else list(conversation_ids),
            before=before,
            search_type=search_type,
            cursor=cursor,
        )
        return await self._post(bodies.SearchResults, path_of("user", "search", "messages"), body, idempotency_key)

    # -- agents -------------------------------------------------------------------------------------------------------

    async def get_context(
        self,
        conversation_id: str,
        *,
        budget: int | None = None,
        query: str | None = None,
        limit: int | None = None,
        after_message_id: str | None = None,
        report: bool = False,
        summaries: PostedMode = "auto",
        form: Provider | None = None,
    ) -> bodies.ConversationContext:
        """What the model is to get, in at most `budget` tokens. The answer writes it as providers take it
        (`to_openai()`, ...); with `form` the service does, too.
        """
        params: Params = {
            "budget": budget,
            "query": query,
            "limit": limit,
            "afterMessageId": after_message_id,
            "report": report,
            "summaries": summaries,
            "form": form,
        }
        return await self._get(bodies.ConversationContext, _agent(conversation_id, "context"), params)

    async def list_agent_messages(
        self,
        conversation_id: str,
        *,
        after: str | None = None,
        limit: int | None = None,
        channel: bodies.Channel | None = None,
    ) -> bodies.MessagePage:
        """A page of what users see, of summaries, and of what this agent keeps for itself."""
        params = {"after": after, "limit": limit, "channel": channel}
        return await self._get(bodies.MessagePage, _agent(conversation_id, "messages"), params, about=conversation_id)

    def agent_messages(
        self, conversation_id: str, *, channel: bodies.Channel | None = None, page_size: int | None = None
    ) -> AsyncGenerator[bodies.Message]:
        """All of them, page by page."""
        return _items(
            lambda after: self.list_agent_messages(conversation_id, after=after, limit=page_size, channel=channel)
        )

    async def append_agent_messages(
        self,
        conversation_id: str,
        messages: Iterable[bodies.CreateAgentMessageRequest] | None = None,
        *,
        given: MessagesLike | None = None,
        idempotency_key: str | None = None,
    ) -> bodies.MessageList:
        """All of them or none, side by side: `messages`, or what is `given` as providers take and give it, such as an
        answer of an SDK or `Message` values. It goes back to its provider as it came.
        """
        body = bodies.CreateAgentMessagesRequest(
            messages=UNSET if messages is None else list(messages), given=_as_json(given)
        )
        path = _agent(conversation_id, "messages")
        return await self._post(bodies.MessageList, path, body, idempotency_key, about=conversation_id)

    async def create_summary(
        self,
        conversation_id: str,
        *,
        title: str,
        summary: str,
        until_message_id: str,
        summarized_at: datetime,
        idempotency_key: str | None = None,
    ) -> bodies.Message:
        """The narrative of everything up to a message, and the title of the conversation."""
        body = bodies.CreateSummaryRequest(
            title=title, summary=summary, until_message_id=until_message_id, summarized_at=summarized_at
        )
        return await self._post(bodies.Message, _agent(conversation_id, "summaries"), body, idempotency_key)

    # -- responses that are being written -----------------------------------------------------------------------------

    def write_response(self, conversation_id: str, *, producer: str | None = None) -> ResponseWriter:
        """Begin a response and post it piece by piece while it is generated."""
        return ResponseWriter(self, conversation_id, producer=producer)

    def follow_response(self, conversation_id: str, response_id: str, *, after: int = 0) -> FollowedResponse:
        """The pieces of a response behind number `after`, while it runs and afterwards, over lost connections."""
        path = _user(conversation_id, "responses", response_id, "events")
        return FollowedResponse(self._caller, path, conversation_id=conversation_id, after=after)

    async def list_responses(self, conversation_id: str) -> bodies.ResponseList:
        return await self._get(bodies.ResponseList, _user(conversation_id, "responses"), about=conversation_id)

    async def get_response(self, conversation_id: str, response_id: str) -> bodies.Response:
        return await self._get(bodies.Response, _user(conversation_id, "responses", response_id))

    async def stop_response(
        self, conversation_id: str, response_id: str, *, idempotency_key: str | None = None
    ) -> bodies.Response:
        """Ask its producer to end."""
        path = _user(conversation_id, "responses", response_id, "stop")
        return await self._post(bodies.Response, path, None, idempotency_key)

    async def start_response(
        self, conversation_id: str, *, producer: str | None = None, idempotency_key: str | None = None
    ) -> bodies.Response:
        """Begin one; a running one of the conversation is superseded."""
        body = bodies.StartResponseRequest(producer=producer)
        path = _agent(conversation_id, "responses")
        return await self._post(bodies.Response, path, body, idempotency_key, about=conversation_id)

    async def list_running_responses(self, conversation_ids: Iterable[str]) -> bodies.ResponseList:
        """Which of these conversations have a response that is being written, as far as the user may read them."""
        params = {"conversationIds": ",".join(conversation_ids)}
        return await self._get(bodies.ResponseList, path_of("user", "responses"), params)

    async def get_agent_response(
        self, conversation_id: str, response_id: str, *, wait_seconds: float | None = None
    ) -> bodies.Response:
        """How it stands; up to `wait_seconds` later, once it is to stop or has ended."""
        params = {"wait": wait_seconds}
        return await self._get(bodies.Response, _agent(conversation_id, "responses", response_id), params)

    async def append_response_chunks(
        self,
        conversation_id: str,
        response_id: str,
        texts: Sequence[str],
        *,
        fence: int,
        first_event: int,
        idempotency_key: str | None = None,
    ) -> bodies.Response:
        """Add pieces, the first of which has the number `first_event`."""
        body = bodies.ResponseChunksRequest(fence=fence, first_event=first_event, texts=list(texts))
        path = _agent(conversation_id, "responses", response_id, "chunks")
        return await self._post(bodies.Response, path, body, idempotency_key)

    async def finish_response(
        self,
        conversation_id: str,
        response_id: str,
        *,
        fence: int,
        state: FinalState = "completed",
        message_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> bodies.Response:
        body = bodies.FinishResponseRequest(fence=fence, state=state, message_id=message_id)
        path = _agent(conversation_id, "responses", response_id, "complete")
        return await self._post(bodies.Response, path, body, idempotency_key)

    # -- how ----------------------------------------------------------------------------------------------------------

    async def _get(self, kind: type[A], path: str, params: Params | None = None, *, about: str | None = None) -> A:
        call = Call(method="GET", path=path, params=params or {}, asked=CallSubject(conversation_id=about))
        return await self._caller.answer(call, kind)

    async def _post(
        self, kind: type[A], path: str, body: bodies.Request | None, key: str | None, *, about: str | None = None
    ) -> A:
        asked = CallSubject(conversation_id=about, idempotency_key=key or _new_key())
        return await self._caller.answer(Call(method="POST", path=path, body=body, asked=asked), kind)

    async def _patch(self, kind: type[A], path: str, body: bodies.Request, *, about: str | None = None) -> A:
        call = Call(method="PATCH", path=path, body=body, asked=CallSubject(conversation_id=about))
        return await self._caller.answer(call, kind)

    async def _delete(self, path: str, *, about: str | None = None) -> None:
        await self._caller.done(Call(method="DELETE", path=path, asked=CallSubject(conversation_id=about)))


def _as_json(given: MessagesLike | None) -> msgspec.Raw | UnsetType:
    if given is None:
        return UNSET
    is_list = not isinstance(given, (str, Mapping, Message)) and not hasattr(given, "model_dump")
    found = [_plain(each) for each in cast("Iterable[Any]", given)] if is_list else _plain(given)
    return msgspec.Raw(msgspec.json.encode(found))


def _plain(given: Any) -> Any:
    return record_of(given) if isinstance(given, Message) else sendable(given)


def _user(conversation_id: str, *below: str) -> str:
    return path_of("user", "conversations", conversation_id, *below)


def _agent(conversation_id: str, *below: str) -> str:
    return path_of("agent", "conversations", conversation_id, *below)


def _new_key() -> str:
    return str(uuid4())


async def _items(page_after: Callable[[str | None], Awaitable[_Page[T]]]) -> AsyncGenerator[T]:
    cursor: str | None = None
    while True:
        page = await page_after(cursor)
        for item in page.data:
            yield item
        if (cursor := page.next_cursor) is None:
            return
