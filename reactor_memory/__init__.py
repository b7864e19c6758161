"""Memory that LLM agents can trust.

``turn`` gives the context for the next call of the model and keeps what happened; `load_history` and `save_history` are
its two halves::

    async with open_memory("agent.db") as memory:
        async with memory.turn("session-1", "What was my order number?", user_id="u1", budget=4000) as turn:
            turn.answer(await model(turn.messages()))

Names are imported when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactor_memory.lazy_names import names_of

if TYPE_CHECKING:
    from reactor_memory.core.context.context import Context
    from reactor_memory.core.context.report import ContextReport
    from reactor_memory.core.manager import ConversationManager
    from reactor_memory.errors import (
        ActiveSessionConflictError,
        BudgetExceededError,
        ConfigurationError,
        IdempotencyConflictError,
        InvalidInputError,
        InvalidMessageError,
        LimitExceededError,
        OutcomeUnknownError,
        ReactorMemoryError,
        RedactionError,
        SessionDeletedError,
        SessionNotFoundError,
        SessionOwnershipError,
        StoreError,
        StoreFullError,
        StoreReadOnlyError,
        StoreUnavailableError,
        SummarizationError,
        TurnNotFoundError,
    )
    from reactor_memory.memory import Memory, open_memory
    from reactor_memory.models import Message, Pin, Session, ToolCall
    from reactor_memory.models.ledger import Fact, Summary
    from reactor_memory.settings.settings import Settings
    from reactor_memory.version import __version__ as __version__
    from reactor_memory.wiring.container import Container
    from reactor_memory.wiring.opening import open_container

_HOME = {
    "ActiveSessionConflictError": "errors",
    "BudgetExceededError": "errors",
    "ConfigurationError": "errors",
    "Container": "wiring.container",
    "Context": "core.context.context",
    "ContextReport": "core.context.report",
    "ConversationManager": "core.manager",
    "Fact": "models.ledger",
    "IdempotencyConflictError": "errors",
    "InvalidInputError": "errors",
    "InvalidMessageError": "errors",
    "LimitExceededError": "errors",
    "Memory": "memory",
    "Message": "models",
    "OutcomeUnknownError": "errors",
    "Pin": "models",
    "ReactorMemoryError": "errors",
    "RedactionError": "errors",
    "Session": "models",
    "SessionDeletedError": "errors",
    "SessionNotFoundError": "errors",
    "SessionOwnershipError": "errors",
    "Settings": "settings.settings",
    "StoreError": "errors",
    "StoreFullError": "errors",
    "StoreReadOnlyError": "errors",
    "StoreUnavailableError": "errors",
    "SummarizationError": "errors",
    "Summary": "models.ledger",
    "ToolCall": "models",
    "TurnNotFoundError": "errors",
    "__version__": "version",
    "open_container": "wiring.opening",
    "open_memory": "memory",
}

__all__ = [
    "ActiveSessionConflictError",
    "BudgetExceededError",
    "ConfigurationError",
    "Container",
    "Context",
    "ContextReport",
    "ConversationManager",
    "Fact",
    "IdempotencyConflictError",
    "InvalidInputError",
    "InvalidMessageError",
    "LimitExceededError",
    "Memory",
    "Message",
    "OutcomeUnknownError",
    "Pin",
    "ReactorMemoryError",
    "RedactionError",
    "Session",
    "SessionDeletedError",
    "SessionNotFoundError",
    "SessionOwnershipError",
    "Settings",
    "StoreError",
    "StoreFullError",
    "StoreReadOnlyError",
    "StoreUnavailableError",
    "SummarizationError",
    "Summary",
    "ToolCall",
    "TurnNotFoundError",
    "open_container",
    "open_memory",
]

__getattr__ = names_of(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
