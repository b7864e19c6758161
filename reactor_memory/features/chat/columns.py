"""How replies word numbers and previews. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from reactor_memory.text.borders import cut

EXCERPT_CHARACTERS = 80


def count(number: int, noun: str) -> str:
    """``1 message``, ``1,234 messages``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def excerpt(text: str, characters: int = EXCERPT_CHARACTERS) -> str:
    """The beginning of a text on one line, at most so long. What a reader takes for one character is not cut in two."""
    line = " ".join(text.split())
    if len(line) <= characters:
        return line
    return (cut(line, characters - 1) or line[: characters - 1]).rstrip() + "…"


def columns(rows: Iterable[tuple[str, str]]) -> str:
    """Two columns; the first is as wide as its longest text."""
    listed = list(rows)
    width = max((len(left) for left, _ in listed), default=0)
    return "\n".join(f"{left.ljust(width)}  {right}".rstrip() for left, right in listed)
