"""The suite for a `SummaryStore`."""

from __future__ import annotations

import pytest

from reactor_memory.testing.correcting import Corrections, Outdated
from reactor_memory.testing.posting import Posted, PostedInForks, PostedThenErased, RandomlyPosted
from reactor_memory.testing.spending import SpendingNoted
from reactor_memory.testing.summaries import Forgetting, Invalidation, Layouts, LedgerOfForks, Recording
from reactor_memory.testing.work import Due, Leases, Parked


@pytest.mark.anyio
class SummaryStoreConformance(
    Recording,
    LedgerOfForks,
    Layouts,
    Invalidation,
    Forgetting,
    Corrections,
    Outdated,
    Posted,
    PostedInForks,
    PostedThenErased,
    RandomlyPosted,
    SpendingNoted,
    Leases,
    Due,
    Parked,
):
    """What every `SummaryStore` promises. The fixture `store` gives an opened, empty `MessageStore` that is one too."""
