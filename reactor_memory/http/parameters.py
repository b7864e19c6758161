"""The parameters of paths, queries and headers, with what they may be."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from litestar.di import NamedDependency
from litestar.params import HeaderParameter, PathParameter, QueryParameter

from reactor_memory.http import idempotency
from reactor_memory.http.paging import MAX_TOKEN_LENGTH
from reactor_memory.principals import Principal

MAX_PAGE = 200
"""The most rows that a page may have."""

_ID = r"^[^\x00-\x1f\x7f-\x9f/]{1,255}$"
_TEXT = r"^[^\x00]+$"

Caller: TypeAlias = NamedDependency[Principal]

ConversationId: TypeAlias = Annotated[str, PathParameter(name="conversationId", pattern=_ID)]
MessageId: TypeAlias = Annotated[str, PathParameter(name="messageId", pattern=_ID)]
MemberId: TypeAlias = Annotated[str, PathParameter(name="userId", pattern=_ID)]
TransferId: TypeAlias = Annotated[str, PathParameter(name="transferId", pattern=_ID)]

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
