"""The budget of the last load of each session: what shows a context takes it. No load writes it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from msgspec.structs import replace

from reactor_memory.core.log.rows import key_of
from reactor_memory.database.operations import Batch, Query, Steps
from reactor_memory.models.requests import AppendRequest

MOST_SESSIONS = 1_000
"""Of so many sessions the budgets are remembered that no save has stored yet; the sessions that loaded last count."""

NO_BUDGET = 0
"""What stands for a load that gave none."""


class LastBudgets:
    """What loads asked for since the last save of their session. The next save stores it with the session, in the
    statement that it makes anyway.
    """

    def __init__(self) -> None:
        self._asked: OrderedDict[str, int] = OrderedDict()

    def asked(self, session_id: str, budget: int | None) -> None:
        self._asked[session_id] = budget or NO_BUDGET
        self._asked.move_to_end(session_id)
        if len(self._asked) > MOST_SESSIONS:
            self._asked.popitem(last=False)

    def of(self, session_id: str) -> int | None:
        """In tokens, or `NO_BUDGET`; None: no load since the last save."""
        return self._asked.get(session_id)

    def told_by(self, batch: AppendRequest) -> AppendRequest:
        """The batch, with the budget that is to be stored with it."""
        budget = self._asked.get(batch.session_id)
        return batch if budget is None else replace(batch, last_budget=budget)

    def stored(self, batch: AppendRequest) -> None:
        """Unless a load meanwhile asked for another one."""
        if self._asked.get(batch.session_id) == batch.last_budget:
            self._asked.pop(batch.session_id, None)

    def taken(self) -> Mapping[str, int]:
        """All that no save has stored, which is forgotten here."""
        taken, self._asked = self._asked, OrderedDict()
        return taken


def store_last_budgets(budgets: Mapping[str, int]) -> Steps[None]:
    yield Batch("store_last_budget", [key_of(each) | {"budget": budget} for each, budget in sorted(budgets.items())])


def read_last_budget(session_id: str) -> Steps[int | None]:
    """As `LastBudgets.of`, of the loads before. None: no load is known."""
    rows = yield Query("last_budget", key_of(session_id))
    budget = rows[0][0] if rows else None
    return budget if isinstance(budget, int) and budget >= NO_BUDGET else None
