"""What is compared, as settings. What a setting here does not decide is left to the user's own settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NO_LIMIT = 1_000_000_000
"""More tokens than any session has."""

MOST_TURNS = 1_000_000
"""More turns than any session has: only the budget limits take-last."""

_NO_MEMORY: dict[str, Any] = {
    "history": {"strategy": "take_last", "max_conversation_turns": MOST_TURNS},
    "summary": {"enabled": False},
    "background": {"enabled": False},
}

STRATEGIES: Mapping[str, Mapping[str, Any]] = {
    "take-last": _NO_MEMORY,
    "hierarchical": {
        "history": {"strategy": "hierarchical"},
        "summary": {"enabled": True},
        "background": {"enabled": True},
    },
    "full-context": {**_NO_MEMORY, "context": {"max_tokens": NO_LIMIT}},
}
"""Sections of settings by the name of the strategy."""

WITHOUT_BUDGET = frozenset({"full-context"})
"""Strategies that are loaded once, without a budget."""
