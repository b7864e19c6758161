"""What a draft shows of the log whatever the strategy chose, and what it does not show to this reader. Pure."""

from __future__ import annotations

from collections.abc import Container, Sequence

from msgspec.structs import replace

from reactor_memory.core.context.blocks import Block
from reactor_memory.core.context.draft import Draft
from reactor_memory.models import Message, Session, is_kept_by_author
from reactor_memory.models.requests import ContextRows
from reactor_memory.models.turns import has_traffic, is_traffic, last_turn_start, with_interruptions


def standing_messages(rows: ContextRows) -> dict[int, Message]:
    """The messages that every context shows, by seq."""
    return {message.seq or 0: message for message in (*rows.leading, *rows.standing)}


def with_standing(draft: Draft, rows: ContextRows) -> Draft:
    """The draft with the system messages that always stand: those that the session begins with, and later ones that the
    window does not show at their place, in front.
    """
    if not (rows.leading or rows.standing):
        return draft
    standing = standing_messages(rows)
    last = rows.leading[-1].seq or 0 if rows.leading else 0
    window = tuple([standing.get(each.seq or 0, each) for each in draft.window if (each.seq or 0) > last])
    at_their_place = {each.seq for each in window}
    leading = tuple([each for seq, each in standing.items() if seq <= last or seq not in at_their_place])
    unread = tuple([(max(first, last + 1), end) for first, end in draft.unread if end > last])
    blocks = tuple([_without_lines_of({*standing, *rows.superseded}, block) for block in draft.blocks])
    return replace(draft, leading=leading, window=window, unread=unread, superseded=rows.superseded, blocks=blocks)


def _without_lines_of(instructions: Container[int], block: Block) -> Block:
    """What stands itself is told by no line of memory, and what another took the place of would contradict it."""
    lines = [
        each for each in block.lines if not each.source_seqs or any(s not in instructions for s in each.source_seqs)
    ]
    return block if len(lines) == len(block.lines) else replace(block, lines=tuple(lines), tokens=None)


def interrupted(draft: Draft, session: Session | None, has_current: bool) -> Draft:
    """The draft with results for the calls with which turns broke off; a newest turn without an answer is named."""
    if session is None or not draft.window:
        return draft
    last = draft.window[-1]
    calls = has_traffic(draft.window)
    if last.seq == session.last_seq and ((calls and is_traffic(last)) or (has_current and last.role == "user")):
        begins = draft.window[last_turn_start(draft.window)].seq
        remark = f"the turn of message {begins} has no answer: it was interrupted, or goes on"
        draft = replace(draft, remarks=(*draft.remarks, remark))
    window = with_interruptions(draft.window, session.last_seq) if calls else draft.window
    return draft if window is draft.window else replace(draft, window=tuple(window))


def with_damage(draft: Draft, part: str) -> Draft:
    """The draft with a remark on a derived part that could not be read."""
    return replace(draft, remarks=(*draft.remarks, f"damaged, left out and made again: {part}"))


def readable_by(reader_id: str | None, draft: Draft) -> Draft:
    """The draft without the messages that other agents keep for themselves; as it is for a reader of None.

    Where the window begins is decided with them, so that it is the same for all readers.
    """
    if reader_id is None or not any(map(is_kept_by_author, (*draft.leading, *draft.window))):
        return draft
    leading, window = _of_reader(reader_id, draft.leading), _of_reader(reader_id, draft.window)
    hidden = len(draft.window) - len(window)
    remark = (f"messages of the window that other agents keep for themselves: {hidden}",) if hidden else ()
    return replace(draft, leading=leading, window=window, remarks=(*draft.remarks, *remark))


def _of_reader(reader_id: str, messages: Sequence[Message]) -> tuple[Message, ...]:
    return tuple(each for each in messages if each.author_id == reader_id or not is_kept_by_author(each))
