"""What readers of files give, and what they say of what they cannot read."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

import msgspec

from reactor_memory.errors import ImportFormatError, InvalidInputError
from reactor_memory.evaluation.transcripts import problem_of
from reactor_memory.models import Message
from reactor_memory.text.bounded_files import UnreadableError
from reactor_memory.text.moments import microseconds_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

LeaveOut: TypeAlias = Callable[[ImportFormatError], None]
"""Told of a row that cannot be read; raises the error if nothing may be left out."""


class Conversation(NamedTuple):
    """Messages, oldest first. What has no id is named by whoever knows the file."""

    messages: Sequence[Message]
    session_id: str | None = None
    title: str | None = None


class Row(NamedTuple):
    """A row that holds one message, or several."""

    session_id: str
    row_id: Any
    content: bytes | str | None
    kind: str | None
    created_at: str | None

    def text(self) -> bytes:
        """What it holds, as bytes."""
        return self.content.encode() if isinstance(self.content, str) else self.content or b""


class FormError(ValueError):
    """A value that is not what its form says. The text names the place."""


def stop(error: ImportFormatError) -> None:
    """Leaves nothing out."""
    raise error


def say_nothing(error: ImportFormatError) -> None:
    """Leaves out what was told of before."""


@contextmanager
def reading(where: str, expected: str) -> Generator[None]:
    """Makes an `ImportFormatError` of whatever a value of a stranger does to those who read it."""
    try:
        yield
    except (InvalidInputError, UnreadableError, FormError) as error:
        raise ImportFormatError(where, str(error)) from None
    except msgspec.ValidationError as error:
        raise ImportFormatError(where, f"{problem_of(error)}; expected {expected}") from None
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError):
        raise ImportFormatError(where, f"is in no known form; expected {expected}") from None


def microseconds_in(field: str, seconds: float) -> int:
    """Raises `FormError` for a time outside the years 1 to 9999."""
    try:
        return microseconds_of(_EPOCH + timedelta(seconds=seconds))
    except (OverflowError, ValueError):
        raise FormError(f"{field}: must be seconds since 1970") from None


def microseconds_in_text(text: object) -> int | None:
    """A time as databases write it; None for what is none."""
    try:
        return microseconds_of(datetime.fromisoformat(text)) if isinstance(text, str) else None
    except (ValueError, OverflowError):
        return None
