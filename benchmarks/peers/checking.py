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

    A conversation that fits as a whole need not fill anything. Of the oldest message, the middle may be left out.
    """
    texts = [said.text for said in expected]
    if not loaded or not _is_end(loaded, texts[-len(loaded) :]):
        return f"loaded {len(loaded)} messages, which are not the end of the conversation"
    used = sum(count(text) + OVERHEAD for text in loaded)
    if used > budget * (1 + slack):
        return f"{used} tokens do not fit into {budget}"
    if len(loaded) < len(texts) and used < budget * (1 - slack):
        return f"{used} tokens leave too much of {budget}"
    return ""


def _is_end(loaded: Sequence[str], texts: Sequence[str]) -> bool:
    return list(loaded[1:]) == texts[1:] and (loaded[0] == texts[0] or _is_cut(loaded[0], texts[0]))


def _is_cut(shown: str, text: str) -> bool:
    """Whether it is the beginning and the end of the text, with our mark of what was left out between them."""
    head, mark, rest = shown.partition("\n[… ")
    _, closed, tail = rest.partition("…]\n")
    return bool(mark and closed) and text.startswith(head) and text.endswith(tail) and len(shown) < len(text)
