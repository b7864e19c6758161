"""Which messages the next summary takes. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from reactor_memory.features.tiers.classification import CONDENSED
from reactor_memory.features.tiers.plan import Step, Writing
from reactor_memory.models import Message, is_bare_reasoning
from reactor_memory.models.turns import find_pairs, units


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
