"""What a summarizer reads: the messages turn by turn, though turns that ran at once stand mixed in the log. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from reactor_memory.models import Message
from reactor_memory.models.turns import begun_by, in_turns

FAR_BACK = 200
"""So many messages before them are looked through for the call of a result, where its turn waited long for it."""


class Talk(NamedTuple):
    """Messages turn by turn. Those before `first_seq` were read before: they tell how turns began that go on."""

    messages: Sequence[Message]
    first_seq: int = 0

    @property
    def own_count(self) -> int:
        """How many are not read before."""
        return sum((each.seq or 0) >= self.first_seq for each in self.messages)


def said_before(messages: Sequence[Message], steps: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """The ranges of seq, ends included, that hold what was said before `messages` (oldest first) of the turns that go
    on in them: how each began, and where calls may be whose results are among them.
    """
    start = (messages[0].seq or 0) if messages else 0
    going_on = {each.seq or 0: steps[each.seq or 0] for each in messages if steps.get(each.seq or 0, start) < start}
    yield from ((begun, begun) for begun in sorted(set(going_on.values())))
    late = [going_on[each.seq or 0] for each in _uncalled(messages, steps) if (each.seq or 0) in going_on]
    if late and min(late) + 1 < start:
        yield max(min(late) + 1, start - FAR_BACK), start - 1


def in_talk(messages: Sequence[Message], begun: Sequence[Message], steps: Mapping[int, int]) -> Talk:
    """The messages with those before them that say how their turns began or what they answer; a result of which the
    call is not known is left out, lest it be taken for that of another turn.
    """
    start = (messages[0].seq or 0) if messages else 0
    if not steps:
        return Talk(messages, start)
    turns = set(begun_by(messages, steps))
    answered = {(steps.get(each.seq or 0), each.tool_call_id) for each in _uncalled(messages, steps)}
    before = {
        each.seq: each
        for each in begun
        if each.seq in turns or any((steps.get(each.seq or 0), call.id) in answered for call in each.tool_calls)
    }
    unknown = {each.seq or 0: 0 for each, at in zip(messages, begun_by(messages, steps), strict=True) if not at}
    known = unknown | dict(steps)
    ordered = in_turns([*sorted(before.values(), key=lambda each: each.seq or 0), *messages], known)
    lost = {each.seq for each in _uncalled(ordered, known)}
    return Talk([each for each in ordered if each.seq not in lost], start)


def _uncalled(messages: Sequence[Message], steps: Mapping[int, int]) -> list[Message]:
    """The results of steps whose calls are not among the messages."""
    called: defaultdict[int, set[str | None]] = defaultdict(set)
    found: list[Message] = []
    for message, begun in zip(messages, begun_by(messages, steps), strict=True):
        called[begun].update(call.id for call in message.tool_calls)
        if message.role == "tool" and message.tool_call_id not in called[begun] and (message.seq or 0) in steps:
            found.append(message)
    return found
