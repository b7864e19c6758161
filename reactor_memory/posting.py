"""What an agent may say when it posts a summary: checked, and the title made plain."""

from __future__ import annotations

from reactor_memory.context.rendering import visible
from reactor_memory.errors import InvalidInputError
from reactor_memory.validation import check_text

MAX_TITLE_CHARACTERS = 200


def check_summary_text(text: object) -> None:
    """Raises `InvalidInputError` for a text that says nothing, or that no store can keep."""
    check_text("text", text)
    if not visible(str(text)):
        raise InvalidInputError("text", "says nothing; give the summary")


def one_line_title(text: object) -> str:
    """The title on one line, without control characters, marks of direction and whatever else is invisible, cut to
    `MAX_TITLE_CHARACTERS`. Raises `InvalidInputError` for one that says nothing.
    """
    check_text("title", text)
    title = visible(str(text))[:MAX_TITLE_CHARACTERS].rstrip()
    if not title:
        raise InvalidInputError("title", "says nothing; give a title, or None to leave it as it is")
    return title
