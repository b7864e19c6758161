"""Search over all conversations of a user."""

from __future__ import annotations

from litestar import Controller, post
from litestar.params import JSONBody
from msgspec import UNSET

from reactor_memory.features.search.message_search import MessageSearchService
from reactor_memory.features.search.models import MessageHit, MessageSearch, SearchCursor
from reactor_memory.features.sharing import bodies
from reactor_memory.features.sharing.access import agents_of, check_granted, user_of
from reactor_memory.server import serializers
from reactor_memory.server.paging import ServiceTokens
from reactor_memory.server.parameters import Caller, Key


class SearchController(Controller):
    path = "/search"

    search: MessageSearchService
    tokens: ServiceTokens

    @post("/messages", operation_id="searchMessages", status_code=200)
    async def search_messages(
        self, principal: Caller, data: JSONBody[bodies.SearchMessagesRequest], idempotency_key: Key = None
    ) -> bodies.SearchResults:
        """The messages that answer best, of all conversations that the user owns or is a member of. Nothing changes, so
        an idempotency key makes no difference.
        """
        check_granted(principal, "read")
        asked = MessageSearch(
            text=data.query,
            user_id=user_of(principal),
            conversation_ids=None if data.conversation_ids is None else tuple(data.conversation_ids),
            agent_names=agents_of(principal),
            before=data.before,
            search_type=data.search_type,
            limit=data.top_k,
        )
        tokens = await self.tokens.of(principal, "searchMessages", asked)
        found = await self.search.search(asked.continued(tokens.after(data.cursor, SearchCursor)))
        return bodies.SearchResults(
            data=[_result(hit) for hit in found.hits],
            next_cursor=None if found.next is None else tokens.before(found.next),
            is_damaged=True if found.is_damaged else UNSET,
        )


def _result(hit: MessageHit) -> bodies.SearchResult:
    return bodies.SearchResult(
        message=serializers.message(hit.message, hit.conversation_id), score=hit.score, highlights=hit.highlight or None
    )
