"""That the contenders did the work which is timed: what they load is what was said."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.peers.contender import Said
from benchmarks.peers.trimming import OVERHEAD


class WrongAnswerError(AssertionError):
    """A contender loads something else than what it was given."""

    def __init__(self, contender: str, size: int, problem: str) -> None:
        super().__init__(f"{contender}, a conversation of {size} messages: {problem}")


def problem_of_last(loaded: Sequence[str], expected: Sequence[Said]) -> str:
    """Empty if exactly the expected texts were loaded, in their order."""
    texts = [said.text for said in expected]
    if list(loaded) == texts:
        return ""
    return f"loaded {len(loaded)} messages, which are not the last {len(texts)}"


def problem_of_trimmed(
    loaded: Sequence[str], expected: Sequence[Said], budget: int, count: Callable[[str], int], *, slack: float
) -> str:
    """Empty if an end of what was said is loaded that fits, and fills at least all but `slack` of the budget.

    A conversation that fits as a whole need not fill anything.
    """
    texts = [said.text for said in expected]
    if not loaded or list(loaded) != texts[-len(loaded) :]:
        return f"loaded {len(loaded)} messages, which are not the end of the conversation"
    used = sum(count(text) + OVERHEAD for text in loaded)
    if used > budget * (1 + slack):
        return f"{used} tokens do not fit into {budget}"
    if len(loaded) < len(texts) and used < budget * (1 - slack):
        return f"{used} tokens leave too much of {budget}"
    return ""
