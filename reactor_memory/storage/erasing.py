"""Content destroyed for good, written once for all SQL stores: a tombstone stays for each message, so that no position
is used again.

Each generator is one transaction, or a part of one that the log began.
"""

from __future__ import annotations

from collections.abc import Sequence

from reactor_memory.models import Message
from reactor_memory.storage.rows import key_of
from reactor_memory.storage.steps import Batch, Steps


def tombstone(message: Message) -> Message:
    """What stays of an erased message: no word of it, nor who said it."""
    return Message(
        role=message.role,
        visibility=message.visibility,
        created_at=message.created_at,
        seq=message.seq,
        message_id=message.message_id,
        token_count=0,
        tokenizer=message.tokenizer,
    )


def entomb(conversation_id: str, ranges: Sequence[tuple[int, int]]) -> Steps[None]:
    """Turn the messages of these ranges of seq (ends included) that are stored under this conversation into
    tombstones: position, id, role and time stay. What is derived from them is the caller's to take away.
    """
    values = [key_of(conversation_id) | {"start_seq": start, "end_seq": end} for start, end in ranges]
    yield Batch("blank_batches", values)
    yield Batch("entomb_messages", values)
