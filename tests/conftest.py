"""Settings that hold for every test."""

from collections.abc import AsyncIterator

import pytest

from tests.fake_gemini import FakeGemini

pytest_plugins = ["tests.fixtures_postgres"]


@pytest.fixture
def anyio_backend() -> str:
    """The drivers speak asyncio, so the tests run on it."""
    return "asyncio"


@pytest.fixture
async def fake_gemini() -> AsyncIterator[FakeGemini]:
    """A local server that speaks the Gemini wire format."""
    async with FakeGemini.running() as server:
        yield server
