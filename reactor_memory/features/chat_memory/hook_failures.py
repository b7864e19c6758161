"""Every error on the way becomes one of the three that a chat memory raises; what it was stays its cause."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from reactor_memory.errors import (
    ChatMemoryError,
    ConversationNotFoundError,
    DataValidationError,
    GenericMemoryError,
    InvalidInputError,
    ReactorMemoryError,
    SessionDeletedError,
    SessionNotFoundError,
)


@contextmanager
def mapped(conversation_id: str, *, may_be_missing: bool) -> Generator[None]:
    """Turn what is raised inside into a `ChatMemoryError`. Unless the conversation `may_be_missing`, its absence is a
    fault like any other.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, ChatMemoryError):
            raise
        raise _mapped(error, conversation_id, may_be_missing) from error


def _mapped(error: Exception, conversation_id: str, may_be_missing: bool) -> ChatMemoryError:
    if isinstance(error, InvalidInputError):
        return DataValidationError(conversation_id, str(error))
    if may_be_missing and isinstance(error, (SessionNotFoundError, SessionDeletedError)):
        return ConversationNotFoundError(conversation_id)
    return GenericMemoryError(conversation_id, f"failed: {failure_text(error)}")


def failure_text(error: Exception) -> str:
    """Our own errors hold no text of messages; of others only the kind is told."""
    return str(error) if isinstance(error, ReactorMemoryError) else type(error).__name__
