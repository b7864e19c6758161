"""Settings that hold for every test."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The drivers speak asyncio, so the tests run on it."""
    return "asyncio"
