"""Counting the tokens of what is stored again, with another tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from reactor_memory.core.log import operations as log
from reactor_memory.database.database import Database
from reactor_memory.database.operations import Steps
from reactor_memory.models import Message

PAGE = 500
"""Rows that are counted again in one transaction: appends wait meanwhile."""


class RecountPage(Protocol):
    """Counts the next `limit` rows of one kind again; how many there were."""

    def __call__(self, tokenizer: str, count: Callable[[Message], int], *, limit: int) -> Steps[int]: ...


async def recount(
    database: Database, tokenizer: str, count: Callable[[Message], int], *, also: Sequence[RecountPage] = ()
) -> int:
    """Store new counts where another tokenizer made them: of messages, and of the rows of features (`also`). How
    many messages were counted.
    """
    rewritten, after = 0, log.BEFORE_ALL
    while after is not None:
        page, after = await database.write(log.recount_page, tokenizer, count, after=after, limit=PAGE)
        rewritten += page
    for recount_page in also:
        while await database.write(recount_page, tokenizer, count, limit=PAGE):
            pass
    return rewritten
