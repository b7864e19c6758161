"""Bounds that the numbers of an evaluation have to keep: what a check in CI is made of. Pure."""

from __future__ import annotations

import re
from typing import Literal, Protocol

from reactor_memory.models import Value

MEASURES = (
    "attributable",
    "survival",
    "legible",
    "fill",
    "told",
    "junk",
    "stale",
    "evidence_recall",
    "any_gold",
    "all_gold",
    "read_amplification",
    "prefix_reuse",
    "prefix_reuse_weighted",
    "violations",
    "cost",
    "p50_us",
    "p99_us",
)

_FORM = re.compile(rf"({'|'.join(MEASURES)})(?:@(\d+))?\s*(>=|<=)\s*(\d+(?:\.\d+)?)")


class Measured(Protocol):
    """A row of results; it has the attributes that `MEASURES` names too."""

    @property
    def budget(self) -> int | None: ...


class Requirement(Value, frozen=True, kw_only=True):
    """`measure` is at least (``>=``) or at most (``<=``) `bound`, in every row of `budget` (None: of any)."""

    measure: str
    budget: int | None
    relation: Literal[">=", "<="]
    bound: float

    @classmethod
    def parse(cls, text: str) -> Requirement:
        """From ``survival@1000>=0.98`` or ``violations<=0``. Raises ValueError with the form that it should have."""
        found = _FORM.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"write MEASURE>=NUMBER or MEASURE@BUDGET<=NUMBER; measures: {', '.join(MEASURES)}")
        measure, budget, relation, bound = found.groups()
        return cls(
            measure=measure,
            budget=int(budget) if budget else None,
            relation=">=" if relation == ">=" else "<=",
            bound=float(bound),
        )

    def __str__(self) -> str:
        budget = "" if self.budget is None else f"@{self.budget}"
        return f"{self.measure}{budget} {self.relation} {self.bound:g}"

    def concerns(self, row: Measured) -> bool:
        return self.budget is None or row.budget == self.budget

    def is_met(self, row: Measured) -> bool:
        """A number that could not be measured keeps no bound."""
        value: float | None = getattr(row, self.measure)
        if value is None:
            return False
        return value >= self.bound if self.relation == ">=" else value <= self.bound
