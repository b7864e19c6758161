"""A chat memory by conversation: add, get and clear messages, with summaries in place of older ones.

`ChatMemoryService` is the door (``container.chat_memory()``); what happens after messages were added is decided by a
`MemoryManagementStrategy`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactor_memory.lazy_names import names_of

if TYPE_CHECKING:
    from reactor_memory.features.chat_memory.chat_memory import ChatMemoryService
    from reactor_memory.features.chat_memory.projection import SummarizationMetadata, TimestampRange, View
    from reactor_memory.features.chat_memory.summarization import NoopStrategy, SummarizationStrategy

_HOME = {
    "ChatMemoryService": "chat_memory",
    "NoopStrategy": "summarization",
    "SummarizationMetadata": "projection",
    "SummarizationStrategy": "summarization",
    "TimestampRange": "projection",
    "View": "projection",
}

__all__ = [
    "ChatMemoryService",
    "NoopStrategy",
    "SummarizationMetadata",
    "SummarizationStrategy",
    "TimestampRange",
    "View",
]

__getattr__ = names_of(__name__, _HOME)
