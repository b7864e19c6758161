"""What is left of a message whose content is destroyed, so that its position is not used again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reactor_memory.core.log import view_start
from reactor_memory.core.log.branches import ranges_in_branch
from reactor_memory.core.log.hooks import hooks
from reactor_memory.core.log.rows import key_of
from reactor_memory.core.log.scrubbing import note_scrub
from reactor_memory.database.operations import Batch, Query, Steps
from reactor_memory.models import BranchRange, Message, Session
from reactor_memory.models.requests import ErasedBranch


def tombstone(message: Message) -> Message:
    """What is left of an erased message: none of its words, nor who said it. A tombstone is returned as it is."""
    buried = Message(
        role=message.role,
        visibility=message.visibility,
        created_at=message.created_at,
        seq=message.seq,
        message_id=message.message_id,
        token_count=0,
        tokenizer=message.tokenizer,
    )
    return message if message == buried else buried


def entomb(conversation_id: str, ranges: Sequence[tuple[int, int]], *, now: int) -> Steps[int]:
    """Turn the messages of these ranges of seq (ends included) that are stored under this conversation into
    tombstones: position, id, role, visibility and time stay. How many messages; what is derived from them is the
    caller's to take away (`LogHook.forget`).
    """
    values = [key_of(conversation_id) | {"start_seq": start, "end_seq": end} for start, end in ranges]
    for start, end in ranges:
        for hook in hooks():
            yield from hook.out_of_view(conversation_id, start, end, destroyed=True)
    yield Batch("blank_batches", values)
    yield Batch("give_bytes_back", values)
    destroyed = 0
    for each in values:
        destroyed += len((yield Query("entomb_messages", each)))
        yield from view_start.hide(conversation_id, each["start_seq"], each["end_seq"])
    yield from note_scrub(now)
    return destroyed


def branches_showing(group: Iterable[Session], parts: Sequence[BranchRange]) -> tuple[ErasedBranch, ...]:
    """The conversations of a group to whose branch some of these stored messages belong, with the seqs of those."""
    shown = ((session, ranges_in_branch(session.branch, parts)) for session in group)
    return tuple(ErasedBranch(session=session, ranges=ranges) for session, ranges in shown if ranges)
