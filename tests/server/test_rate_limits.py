"""How often somebody may call."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.server.admission import Buckets
from reactor_memory.testing import FakeClock


def buckets(clock: FakeClock, *, per_minute: int = 60, burst_seconds: float = 3, max_names: int = 100) -> Buckets:
    return Buckets(per_minute=per_minute, burst_seconds=burst_seconds, clock=clock, max_names=max_names)


def test_a_burst_and_then_as_often_as_tokens_come() -> None:
    clock = FakeClock()
    limit = buckets(clock)
    assert [limit.take("ann") for _ in range(4)] == [0, 0, 0, 1]
    clock.advance(0.25)
    assert limit.take("ann") == pytest.approx(0.75)
    clock.advance(0.75)
    assert [limit.take("ann") for _ in range(2)] == [0, 1]


def test_being_refused_costs_nothing() -> None:
    clock = FakeClock()
    limit = buckets(clock)
    for _ in range(50):
        limit.take("ann")
    clock.advance(1)
    assert limit.take("ann") == 0


def test_a_full_bucket_holds_no_more_than_a_burst() -> None:
    clock = FakeClock()
    limit = buckets(clock)
    limit.take("ann")
    clock.advance(3600)
    assert [limit.take("ann") for _ in range(4)] == [0, 0, 0, 1]


def test_everybody_has_a_bucket() -> None:
    limit = buckets(FakeClock(), burst_seconds=1)
    assert (limit.take("ann"), limit.take("bob"), limit.take("ann")) == (0, 0, 1)


def test_a_burst_shorter_than_the_interval_is_one() -> None:
    limit = buckets(FakeClock(), per_minute=1, burst_seconds=0.5)
    assert [limit.take("ann") for _ in range(2)] == [0, 60]


def test_no_limit() -> None:
    limit = buckets(FakeClock(), per_minute=0)
    assert {limit.take("ann") for _ in range(1000)} == {0}


def test_memory_is_bounded_and_who_calls_often_is_remembered() -> None:
    clock = FakeClock()
    limit = buckets(clock, burst_seconds=1, max_names=10)
    assert limit.take("often") == 0
    for number in range(1000):
        limit.take(f"once {number}")
        assert limit.take("often") == 1
    assert len(limit._full_at) == 10  # pyright: ignore[reportPrivateUsage]


@given(st.lists(st.floats(0, 3, allow_nan=False), max_size=60), st.integers(1, 600), st.floats(0.1, 30))
def test_no_timing_gets_more_than_burst_and_rate(pauses: list[float], per_minute: int, burst: float) -> None:
    clock = FakeClock()
    limit = buckets(clock, per_minute=per_minute, burst_seconds=burst)
    begin, taken = clock(), 0
    for pause in pauses:
        clock.advance(pause)
        taken += limit.take("ann") == 0
    seconds = (clock() - begin) / 1e6
    assert taken <= max(burst * per_minute / 60, 1) + seconds * per_minute / 60 + 1e-6
