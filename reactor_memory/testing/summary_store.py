"""The suite for a `SummaryStore`."""

from __future__ import annotations

import pytest


@pytest.mark.anyio
class SummaryStoreConformance:
    """What every `SummaryStore` promises. The fixture `store` gives an opened, empty `MessageStore` that is one too."""
