"""Tiers over the store in memory, with a condenser to steer."""

from __future__ import annotations

from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.features.facts.provider_guard import ProviderGuard
from reactor_memory.features.facts.spending_caps import SpendingCaps
from reactor_memory.features.redaction import unredacted
from reactor_memory.features.tiers.classification import COMPRESSED, CONDENSED, TierSizes
from reactor_memory.features.tiers.progressive_tiers import ProgressiveTiers, TierOptions
from reactor_memory.features.tiers.ranges import Ranges
from reactor_memory.features.tiers.writer import TextForm, TextForms, TierWriter
from reactor_memory.models.ledger import Retention
from reactor_memory.providers.breaker import CircuitBreaker
from reactor_memory.testing import FakeClock, ScriptedCondenser
from reactor_memory.tokens.estimate import EstimateCounter
from tests.scenes.stores import SqlStore


def guard_over(store: SqlStore, *, cap: int = 0) -> ProviderGuard:
    return ProviderGuard(
        redactor=unredacted,
        caps=SpendingCaps(database=store.database, clock=FakeClock(), max_tokens_per_session=cap, max_tokens_per_day=0),
        breaker=CircuitBreaker(failures=100, open_seconds=1, monotonic=lambda: 0.0),
        timeout_seconds=5,
    )


def writer_over(
    store: SqlStore,
    condenser: ScriptedCondenser,
    *,
    chunk_tokens: int = 100_000,
    max_tokens: int = 50_000,
    cap: int = 0,
) -> TierWriter:
    return TierWriter(
        condenser,
        fallback=ScriptedCondenser(),
        guard=guard_over(store, cap=cap),
        counter=MessageCounter(EstimateCounter()),
        forms=TextForms(
            by_level={
                CONDENSED: TextForm(prompt="condense", max_tokens=max_tokens),
                COMPRESSED: TextForm(prompt="compress", max_tokens=max_tokens),
            },
            chunk_tokens=chunk_tokens,
        ),
    )


def ranges_over(store: SqlStore, condenser: ScriptedCondenser, retention: Retention = "archive") -> Ranges:
    return Ranges(
        messages=store,
        database=store.database,
        writer=writer_over(store, condenser),
        counter=MessageCounter(EstimateCounter()),
        clock=FakeClock(),
        retention=retention,
    )


def tiers_over(
    store: SqlStore, condenser: ScriptedCondenser, sizes: TierSizes, retention: Retention = "archive"
) -> ProgressiveTiers:
    return ProgressiveTiers(
        messages=store,
        ranges=ranges_over(store, condenser, retention),
        options=TierOptions(sizes=sizes),
    )
