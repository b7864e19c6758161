"""What an agent may say when it posts a summary: checked, and the title made plain."""

from __future__ import annotations

from reactor_memory.core.validation import check_text
from reactor_memory.errors import InvalidInputError
from reactor_memory.features.facts.plain_text import is_blank, visible
from reactor_memory.models import JsonObject, Message
from reactor_memory.models.ledger import TITLE_KEY
from reactor_memory.text.borders import cut

MAX_TITLE_CHARACTERS = 200


def summary_message(text: str, title: str | None, author_id: str | None, metadata: JsonObject | None) -> Message:
    """The message that is posted. Raises `InvalidInputError` for a text that says nothing or that no store can keep."""
    check_text("text", text)
    if is_blank(text):
        raise InvalidInputError("text", "says nothing; give the summary")
    kept = {} if metadata is None else metadata
    if title is not None and type(kept) is dict:  # anything else is refused where messages are
        kept = {**kept, TITLE_KEY: title}
    return Message(role="summary", content=text, visibility="agent", author_id=author_id, metadata=kept)


def one_line_title(text: object) -> str:
    """The title on one line, without control characters, marks of direction and whatever else is invisible, cut to
    `MAX_TITLE_CHARACTERS`. Raises `InvalidInputError` for one that says nothing.
    """
    check_text("title", text)
    title = cut(visible(str(text)), MAX_TITLE_CHARACTERS).rstrip()
    if not title:
        raise InvalidInputError("title", "says nothing; give a title, or None to leave it as it is")
    return title
