"""The share of memory: a larger budget gives memory no less, and leaves no less."""

from __future__ import annotations

from itertools import accumulate

from reactor_memory.core.context.draft import MEMORY_CURVE, share_at


def test_a_larger_budget_gives_memory_and_window_no_less() -> None:
    memory = [int(share_at(MEMORY_CURVE, budget) * budget) for budget in range(200, 20_000)]
    left = [budget - taken for budget, taken in enumerate(memory, 200)]
    assert all(taken >= most for taken, most in zip(memory, accumulate(memory, max), strict=True))
    assert all(rest >= most - 1 for rest, most in zip(left, accumulate(left, max), strict=True))  # in whole tokens
