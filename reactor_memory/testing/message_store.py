"""The suite for a `MessageStore`."""

from __future__ import annotations

import pytest

from reactor_memory.testing.log import AppendAndRead, Idempotency, Ownership, RoundTrips


@pytest.mark.anyio
class MessageStoreConformance(AppendAndRead, RoundTrips, Ownership, Idempotency):
    """What every `MessageStore` promises. The fixture `store` gives an opened, empty one."""
