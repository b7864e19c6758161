"""The rows of a list of sessions: cursors between pages, and the preview of a session.

Pure functions of values, for stores with and without a database.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated, TypeAlias

import msgspec

from reactor_memory.errors import InvalidInputError
from reactor_memory.models import LARGEST, Value
from reactor_memory.text.borders import cut

PREVIEW_LENGTH = 80
PREVIEW_SOURCE_LENGTH = 400
"""`preview_of` looks at this many characters of a message, so a store need not fetch more of it."""


class Cursor(Value, frozen=True, kw_only=True):
    """The last row of a page: the next page begins with what sorts after it."""

    updated_at: int
    session_id: str


def encode_cursor(cursor: Cursor) -> str:
    """An opaque text, safe in a URL."""
    return urlsafe_b64encode(msgspec.json.encode((cursor.updated_at, cursor.session_id))).decode().rstrip("=")


def decode_cursor(text: str) -> Cursor:
    """The inverse of `encode_cursor`; anything else raises `InvalidInputError`."""
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        updated_at, session_id = _ROW.decode(raw)
    except (msgspec.DecodeError, binascii.Error, ValueError):
        raise InvalidInputError("cursor", "is not one that a list of sessions gave; begin without it") from None
    return Cursor(updated_at=updated_at, session_id=session_id)


_Time: TypeAlias = Annotated[int, msgspec.Meta(ge=-LARGEST - 1, le=LARGEST)]
_Id: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"\A[^\x00]*\Z")]
_ROW = msgspec.json.Decoder(tuple[_Time, _Id])


def preview_of(text: str) -> str:
    """The beginning of a message on one line, at most `PREVIEW_LENGTH` characters, cut with an ellipsis."""
    line = " ".join(text[:PREVIEW_SOURCE_LENGTH].split())
    return line if len(line) <= PREVIEW_LENGTH else cut(line, PREVIEW_LENGTH - 1).rstrip() + "…"


TITLE_LENGTH = 40
"""Characters that a conversation without a title takes from its first message."""


def title_from(text: str) -> str | None:
    """The title of a conversation whose first message is `text`; None if that is blank."""
    return cut(" ".join(text.split()), TITLE_LENGTH).rstrip() or None
