"""What archiving did."""

from __future__ import annotations

from reactor_memory.models import Message, Value


class Archived(Value, frozen=True, kw_only=True):
    """What was archived now: how many messages, and the summary that was posted in their place."""

    message_count: int
    summary: Message | None = None
