"""The parameters of paths, queries and headers, with what they may be."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from litestar.di import NamedDependency
from litestar.params import HeaderParameter, PathParameter, QueryParameter

from reactor_memory.core.validation import ID_PATTERN
from reactor_memory.features.sharing.principals import Principal
from reactor_memory.server import idempotency
from reactor_memory.server.paging import MAX_TOKEN_LENGTH

MAX_PAGE = 200
"""The most rows that a page may have."""

_TEXT = r"^[^\x00]+$"

Caller: TypeAlias = NamedDependency[Principal]

ConversationId: TypeAlias = Annotated[str, PathParameter(name="conversationId", pattern=ID_PATTERN)]
MessageId: TypeAlias = Annotated[str, PathParameter(name="messageId", pattern=ID_PATTERN)]
MemberId: TypeAlias = Annotated[str, PathParameter(name="userId", pattern=ID_PATTERN)]
ResponseId: TypeAlias = Annotated[str, PathParameter(name="responseId", pattern=ID_PATTERN)]
TransferId: TypeAlias = Annotated[str, PathParameter(name="transferId", pattern=ID_PATTERN)]

Key: TypeAlias = Annotated[
    str | None,
    HeaderParameter(
        name=idempotency.HEADER,
        pattern=idempotency.PATTERN,
        description="Repeating the request with the same key does it once, and gets the first answer.",
    ),
]
After: TypeAlias = Annotated[
    str | None,
    QueryParameter(
        name="after",
        min_length=1,
        max_length=MAX_TOKEN_LENGTH,
        description="The `nextCursor` of the page before, given to the same caller for the same listing.",
    ),
]
Limit: TypeAlias = Annotated[int, QueryParameter(name="limit", ge=1, le=MAX_PAGE)]
Words: TypeAlias = Annotated[str | None, QueryParameter(name="query", pattern=_TEXT, max_length=1000)]
