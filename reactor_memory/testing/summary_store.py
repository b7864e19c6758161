"""The suite for a `SummaryStore`."""

from __future__ import annotations

import pytest

from reactor_memory.testing.forgetting import Forgetting, Invalidation
from reactor_memory.testing.summary_recording import Layouts, LedgerOfForks, Recording
from reactor_memory.testing.work import Due, Leases, Parked, Patience, WrongClocks


@pytest.mark.anyio
class SummaryStoreConformance(
    Recording, LedgerOfForks, Layouts, Invalidation, Forgetting, Leases, Due, Patience, WrongClocks, Parked
):
    """What every `SummaryStore` promises. The fixture `store` gives an opened, empty `MessageStore`, whose attribute
    `summaries` is the store of summaries that goes with it.
    """
