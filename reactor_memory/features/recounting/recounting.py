"""Counting the tokens of what is stored again, with another tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from reactor_memory.core.log.rows import key_of, message_from
from reactor_memory.database.database import Database
from reactor_memory.database.operations import Batch, Query, Steps
from reactor_memory.models import Message

PAGE = 500
"""Rows that are counted again in one transaction: appends wait meanwhile."""


MessageKey: TypeAlias = tuple[str, str, int]
"""Group, conversation and seq of a stored message."""

BEFORE_ALL: MessageKey = ("", "", 0)


class RecountPage(Protocol):
    """Counts the next `limit` rows of one kind again; how many there were."""

    def __call__(self, tokenizer: str, count: Callable[[Message], int], *, limit: int) -> Steps[int]: ...


async def recount(
    database: Database, tokenizer: str, count: Callable[[Message], int], *, also: Sequence[RecountPage] = ()
) -> int:
    """Store new counts where another tokenizer made them: of messages, and of the rows of features (`also`). How
    many messages were counted.
    """
    rewritten, after = 0, BEFORE_ALL
    while after is not None:
        page, after = await database.write(recount_messages, tokenizer, count, after=after, limit=PAGE)
        rewritten += page
    for recount_page in also:
        while await database.write(recount_page, tokenizer, count, limit=PAGE):
            pass
    return rewritten


def recount_messages(
    tokenizer: str, count: Callable[[Message], int], *, after: MessageKey, limit: int
) -> Steps[tuple[int, MessageKey | None]]:
    """Recount the next messages behind `after`: how many, and the last one of them (None: there are no more)."""
    position = {"group_id": after[0], "conversation_id": after[1], "seq": after[2]}
    rows = yield Query("messages_of_other_tokenizers", position | {"tokenizer": tokenizer, "limit": limit})
    counted = [(row[0], row[1], message_from(row[2:])) for row in rows]
    yield Batch(
        "store_token_count",
        [
            key_of(session_id) | {"seq": message.seq, "token_count": count(message), "tokenizer": tokenizer}
            for _, session_id, message in counted
        ],
    )
    if len(rows) < limit:
        return len(rows), None
    group_id, session_id, message = counted[-1]
    return len(rows), (group_id, session_id, message.seq or 0)
