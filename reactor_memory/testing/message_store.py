"""The suite for a `MessageStore`."""

from __future__ import annotations

import pytest

from reactor_memory.testing.branching import Forks, Withdrawal
from reactor_memory.testing.idempotency import Idempotency
from reactor_memory.testing.lifecycle import Deletion, Listing, Loading, Purge
from reactor_memory.testing.log import AppendAndRead, Ownership, RoundTrips


@pytest.mark.anyio
class MessageStoreConformance(
    AppendAndRead, RoundTrips, Ownership, Idempotency, Forks, Withdrawal, Deletion, Purge, Listing, Loading
):
    """What every `MessageStore` promises. The fixture `store` gives an opened, empty one."""
