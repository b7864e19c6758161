"""Counting the tokens of what is stored again, with another tokenizer."""

from __future__ import annotations

from collections.abc import Callable

from reactor_memory.core.log import operations as log
from reactor_memory.database.database import Database
from reactor_memory.features.tiers import operations as range_summaries
from reactor_memory.models import Message

PAGE = 500
"""Rows that are counted again in one transaction: appends wait meanwhile."""


async def recount(database: Database, tokenizer: str, count: Callable[[Message], int]) -> int:
    """Store new counts where another tokenizer made them: of messages, pins and summaries of ranges. How many messages
    were counted.
    """
    rewritten, after = 0, log.BEFORE_ALL
    while after is not None:
        page, after = await database.write(log.recount_page, tokenizer, count, after=after, limit=PAGE)
        rewritten += page
    for recount_page in (log.recount_pins, range_summaries.recount_range_summaries):
        while await database.write(recount_page, tokenizer, count, limit=PAGE):
            pass
    return rewritten
