"""What recall can find, as entries of an index: the messages of a segment and what it states about each thing. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from reactor_memory.features.recall.days import day_words
from reactor_memory.models import Message, is_kept_by_author, is_posted_summary
from reactor_memory.models.index_requests import IndexEntry, IndexPart
from reactor_memory.models.ledger import Fact, Segment
from reactor_memory.text.spans import arguments_of, leaves

MAX_ENTRY_CHARACTERS = 20_000
"""How much of one message can be found: the end of a longer one is not searched."""


def part_of(segment: Segment, messages: Sequence[Message], facts: Iterable[Fact]) -> IndexPart:
    """What a segment adds to the index. `messages` are those of the segment that are in view."""
    entries = (*message_entries(messages), *fact_entries(facts))
    return IndexPart(
        conversation_id=segment.conversation_id,
        start_seq=segment.start_seq,
        end_seq=segment.end_seq,
        entries=entries,
    )


def message_entries(messages: Sequence[Message]) -> Iterator[IndexEntry]:
    """An entry for each message but what agents posted or keep for themselves, with the turn that it comes back in:
    from a user message to the next one.
    """
    begin = 0
    for end in range(1, len(messages) + 1):
        if end == len(messages) or messages[end].role == "user":
            turn = messages[begin].seq or 0, messages[end - 1].seq or 0
            for message in messages[begin:end]:
                if is_posted_summary(message) or is_kept_by_author(message):
                    continue
                yield IndexEntry(seq=message.seq or 0, turn=turn, text=indexed(message))
            begin = end


def fact_entries(facts: Iterable[Fact]) -> Iterator[IndexEntry]:
    """An entry for each anchor: its words, and the keys and values of its verified facts."""
    anchors: dict[str, list[Fact]] = {}
    for fact in facts:
        if fact.verified:
            anchors.setdefault(fact.anchor, []).append(fact)
    for anchor, about in anchors.items():
        seqs = [fact.source_seq for fact in about]
        words = (anchor, *(f"{fact.key} {fact.value}" for fact in about))
        yield IndexEntry(seq=max(seqs), turn=(min(seqs), max(seqs)), text="\n".join(words), anchor=anchor)


def indexed(message: Message) -> str:
    """What a message is found by: who said it, what, and on which day."""
    return f"{attributed(message)}\n{day_words(message.created_at)}"


def attributed(message: Message) -> str:
    """The text of a message behind the name of its speaker. A tool has its name in the call."""
    said = searchable(message)
    return f"{message.name}: {said}" if message.name and message.role != "tool" else said


def searchable(message: Message) -> str:
    """The text of a message with its tool calls."""
    calls = (
        f"\n{call.name} " + " ".join(f"{leaf.path} {leaf.text}" for leaf in leaves(arguments_of(call.arguments)))
        for call in message.tool_calls
    )
    return (message.content + "".join(calls))[:MAX_ENTRY_CHARACTERS]
