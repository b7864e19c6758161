"""Where a run of messages may begin or end without parting what belongs together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reactor_memory.core.log import operations as log
from reactor_memory.database.operations import Steps
from reactor_memory.errors import InvalidInputError
from reactor_memory.models import BranchRange, Message, reasoned_runs
from reactor_memory.models.turns import find_pairs


def check_border(turn: Sequence[Message], after: int) -> None:
    """A summary begins or ends behind message `after`; `turn` is the turn around it, the user message that follows
    included. `InvalidInputError` if the border parts a call from a result, or from one that may still come, or
    reasoning from what it led to.
    """
    for run in reasoned_runs(turn, range(len(turn)), len(turn)):
        start, last = turn[run[0]].seq or 0, turn[run[-1]].seq or 0
        if start <= after < last:
            raise InvalidInputError(
                "end_seq", f"reasoning at {start} and what it led to stand on both sides of {after}"
            )
    for pair in find_pairs(turn):
        call = turn[pair.call].seq or 0
        last = max((turn[index].seq or 0 for index in pair.results), default=call)
        waits = not (pair.complete or _is_given_up(turn, pair.call))
        if call <= after and (last > after or waits):
            raise InvalidInputError("end_seq", f"a tool call at {call} and its results stand on both sides of {after}")


def _is_given_up(turn: Sequence[Message], call: int) -> bool:
    """Whether the talk went on without all results of the calls at `call`."""
    return any(message.role in ("assistant", "agent", "user") for message in turn[call + 1 :])


_FIRST_CHUNK = 16


def turn_around(branch: Sequence[BranchRange], border: int) -> Steps[Sequence[Message]]:
    """The turn that goes on behind message `border`, with the user message that ends it; () if none goes on."""
    following = yield from _until_user(
        lambda limit: log.read_along(branch, after=border, limit=limit, wanted="archived too")
    )
    if following and following[0].role == "user":
        return ()
    preceding = yield from _until_user(
        lambda limit: log.read_along(branch, until=border, last=limit, wanted="archived too"), newest_first=True
    )
    return (*preceding, *following)


def _until_user(
    read: Callable[[int], Steps[tuple[Message, ...]]], *, newest_first: bool = False
) -> Steps[tuple[Message, ...]]:
    """What `read` gives, up to the first user message, or all if there is none. Most turns are short."""
    limit = _FIRST_CHUNK
    while True:
        messages = yield from read(limit)
        order = range(len(messages) - 1, -1, -1) if newest_first else range(len(messages))
        found = next((place for place in order if messages[place].role == "user"), None)
        if found is not None:
            return messages[found:] if newest_first else messages[: found + 1]
        if len(messages) < limit:
            return messages
        limit *= 4
