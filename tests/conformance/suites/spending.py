"""What summarizers cost: noted by session and day, and never forgotten."""

from __future__ import annotations

import anyio

from reactor_memory.features.facts import operations as fact_operations
from reactor_memory.models.ledger import Spending
from reactor_memory.testing.branching import fork
from reactor_memory.testing.builders import append_messages, numbered, wall_clock
from reactor_memory.testing.summary_recording import Store


class SpendingNoted:
    """Sums of tokens, for the caps of the settings."""

    async def test_nothing_was_spent_at_first(self, store: Store) -> None:
        assert await store.database.read(fact_operations.read_spending, "unknown", day=20_000) == Spending()

    async def test_sessions_sum_over_days_and_days_sum_over_sessions(self, store: Store) -> None:
        await store.database.write(fact_operations.add_spending, "s", day=20_000, tokens=100)
        await store.database.write(fact_operations.add_spending, "s", day=20_000, tokens=20)
        await store.database.write(fact_operations.add_spending, "s", day=20_001, tokens=3)
        await store.database.write(fact_operations.add_spending, "t", day=20_001, tokens=5_000_000_000)
        assert await store.database.read(fact_operations.read_spending, "s", day=20_000) == Spending(
            session=123, day=120
        )
        assert await store.database.read(fact_operations.read_spending, "s", day=20_001) == Spending(
            session=123, day=5_000_000_003
        )
        assert await store.database.read(fact_operations.read_spending, "t", day=20_000) == Spending(
            session=5_000_000_000, day=120
        )
        assert await store.database.read(fact_operations.read_spending, "t", day=20_002) == Spending(
            session=5_000_000_000, day=0
        )

    async def test_each_branch_spends_for_itself(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        await fork(store, "s", "s~f", 3, own=["own"])
        await store.database.write(fact_operations.add_spending, "s", day=1, tokens=10)
        await store.database.write(fact_operations.add_spending, "s~f", day=1, tokens=7)
        assert await store.database.read(fact_operations.read_spending, "s~f", day=1) == Spending(session=7, day=17)
        assert await store.database.read(fact_operations.read_spending, "s", day=1) == Spending(session=10, day=17)

    async def test_all_that_is_spent_at_once_is_noted(self, store: Store) -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(1, 21):
                tasks.start_soon(
                    lambda tokens=number: store.database.write(fact_operations.add_spending, "s", day=1, tokens=tokens)
                )
        assert await store.database.read(fact_operations.read_spending, "s", day=1) == Spending(session=210, day=210)

    async def test_what_was_spent_outlives_its_session(self, store: Store) -> None:
        """Or deleting sessions would be a way around a cap."""
        await append_messages(store, "s", numbered(4))
        await store.database.write(fact_operations.add_spending, "s", day=1, tokens=10)
        await store.summaries.forget(["s"])
        await store.delete("s", None, now=wall_clock(), purge=True)
        await store.database.write(fact_operations.add_spending, "s", day=1, tokens=5)
        assert await store.database.read(fact_operations.read_spending, "s", day=1) == Spending(session=15, day=15)
