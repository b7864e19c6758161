"""What a strategy of the chat memory does (plug point `memory_management`)."""

from __future__ import annotations

from typing import Protocol


class MemoryManagementStrategy(Protocol):
    """What a chat memory does after messages were added to it (`reactor_memory.features.chat_memory`)."""

    async def post_add_messages_hook(
        self,
        conversation_id: str,
        added_messages_count: int,
        total_messages_count: int,
        *,
        user_id: str | None = None,
    ) -> None:
        """The messages are stored. `added_messages_count` is 0 when a batch was repeated. `total_messages_count` counts
        messages, not summaries, from the oldest one that is left (archived ones are) to the newest; if they cannot be
        counted, those of the batch. May be called for one conversation several times at once. What it raises is logged,
        or raised to who added the messages, as ``chat_memory.on_hook_error`` says.
        """
        ...
