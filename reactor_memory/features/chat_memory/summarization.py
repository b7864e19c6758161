"""What happens after messages were added (`MemoryManagementStrategy`): nothing, or a summary of every so many."""

from __future__ import annotations

from collections.abc import Sequence

from reactor_memory.features.tiers.classification import CONDENSED
from reactor_memory.features.tiers.plan import Step, Writing
from reactor_memory.features.tiers.ranges import Ranges
from reactor_memory.models import Message, is_bare_reasoning
from reactor_memory.models.turns import find_pairs, units


class NoopStrategy:
    """Every message stays as it is."""

    async def post_add_messages_hook(
        self,
        conversation_id: str,
        added_messages_count: int,
        total_messages_count: int,
        *,
        user_id: str | None = None,
    ) -> None:
        """Nothing to do."""


class SummarizationStrategy:
    """As soon as `every` messages have no summary, a condensed text takes them in, as in tiers. After a failure, the
    next messages that are added bring it.
    """

    def __init__(self, *, ranges: Ranges, every: int) -> None:
        self._ranges = ranges
        self._every = every
        self._due: dict[str, int] = {}

    async def post_add_messages_hook(
        self,
        conversation_id: str,
        added_messages_count: int,
        total_messages_count: int,
        *,
        user_id: str | None = None,
    ) -> None:
        """Make the summaries that are due; while one call does so for a conversation, others leave theirs to it.

        What waited before these messages is made up for by one a call, so that switching summaries on for a long
        conversation holds nobody up.
        """
        due = added_messages_count // self._every + 1
        if conversation_id in self._due:
            self._due[conversation_id] += due
            return
        self._due[conversation_id] = due
        try:
            while known := self._due[conversation_id]:
                is_made = await self._summarize(conversation_id, user_id)
                self._due[conversation_id] -= 1 if is_made else known
        finally:
            del self._due[conversation_id]

    async def _summarize(self, conversation_id: str, user_id: str | None) -> bool:
        """Make the next summary, if one is due; another process may have been faster."""
        limit = 2 * self._every
        while True:
            view = await self._ranges.newest(conversation_id, user_id, limit=limit)
            step = next_step(view.messages, self._every)
            if step.writings:
                await self._ranges.carry_out(conversation_id, user_id, view, step)
                return True
            if len(view.messages) < limit:
                return False
            limit *= 2


def next_step(messages: Sequence[Message], every: int) -> Step:
    """The step that writes one summary, of `next_run`; one without writings if there are not enough messages yet."""
    run = tuple(next_run(messages, every))
    if not run:
        return Step()
    start, end = run[0].seq or 0, run[-1].seq or 0
    return Step(writings=(Writing(kind=CONDENSED, start_seq=start, end_seq=end, messages=run),))


def next_run(messages: Sequence[Message], every: int) -> Sequence[Message]:
    """The oldest of `messages` that make a run of at least `every`; () if there are not so many yet.

    Summaries that a caller stored do not count. No call is parted from its results, or from one that may still come;
    results at the very beginning, whose calls a summary has already taken, are left where they are.
    """
    start = next((index for index, message in enumerate(messages) if message.role != "tool"), len(messages))
    rest = messages[start:]
    first_waiting = _first_waiting(rest)
    for unit in units(rest):
        if unit.stop > first_waiting:
            break
        if sum(message.role != "summary" for message in rest[: unit.stop]) >= every:
            return rest[: unit.stop]
    return ()


def _first_waiting(messages: Sequence[Message]) -> int:
    """The place of the first call whose results may still come: the model has not gone on without them. Of what came
    with reasoning, too, more may come.
    """
    for pair in find_pairs(messages):
        if not pair.complete and all(
            later.role in ("tool", "system", "summary") for later in messages[pair.call + 1 :]
        ):
            return pair.call
    return len(messages) - 1 if messages and is_bare_reasoning(messages[-1]) else len(messages)
