"""How large what comes in may be, beside what the log itself allows."""

from __future__ import annotations

from reactor_memory.core.validation import MessageLimits, check_metadata, check_text
from reactor_memory.errors import InvalidInputError, LimitExceededError
from reactor_memory.features.sharing.bodies import JsonObject
from reactor_memory.features.sharing.models import RESERVED_METADATA
from reactor_memory.models import Value


class BodyLimits(Value, frozen=True, kw_only=True):
    """Checks of what the schema of a body cannot say. All raise `InvalidInputError` or `LimitExceededError`."""

    max_message_bytes: int = 256 * 1024
    max_batch_messages: int = 100
    max_metadata_keys: int = 50
    metadata: MessageLimits = MessageLimits()

    def check_content(self, content: str, field: str) -> None:
        _check(field, check_text(field, content), self.max_message_bytes, "bytes")

    def check_count(self, messages: int, field: str) -> None:
        _check(field, messages, self.max_batch_messages, "messages")

    def check_metadata(self, metadata: JsonObject | None, field: str = "metadata") -> None:
        """Keys of the service itself are refused, not passed over."""
        if not metadata:
            return
        _check(field, len(metadata), self.max_metadata_keys, "keys")
        for key in metadata:
            if key.startswith(RESERVED_METADATA):
                raise InvalidInputError(field, f"has a key that begins with {RESERVED_METADATA}, which is reserved")
        check_metadata(field, metadata, self.metadata)


def _check(field: str, actual: int, limit: int, unit: str) -> None:
    if actual > limit:
        raise LimitExceededError(field, actual=actual, limit=limit, unit=unit)
