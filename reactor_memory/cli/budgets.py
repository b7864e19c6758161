"""The budget of a context that is shown: the one that was given, that of the agent's last load, or a default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from reactor_memory.memory import Memory

DEFAULT_BUDGET = 2000

Origin = Literal["option", "last_load", "default"]


class Budget(NamedTuple):
    """How many tokens a context may take (None: ``context.max_tokens`` decides), and who says so."""

    tokens: int | None
    origin: Origin

    def told(self) -> str:
        """A line about a budget that nobody gave; empty for one that was."""
        tokens = "context.max_tokens" if self.tokens is None else f"{self.tokens:,} tokens"
        match self.origin:
            case "option":
                return ""
            case "last_load":
                return f"budget: {tokens}, as in the last load of this session (--budget names another)"
            case "default":
                return f"budget: {tokens}, as no load of this session is known (--budget names another)"


async def budget_of(memory: Memory, session_id: str, given: int | None, *, default: int | None) -> Budget:
    """What was `given`, else what the last load asked for, else the `default`."""
    if given is not None:
        return Budget(given, "option")
    is_known = memory.container.in_database() == "on"
    last = await memory.container.replayer().last_budget(session_id) if is_known else None
    return Budget(default, "default") if last is None else Budget(last or None, "last_load")
