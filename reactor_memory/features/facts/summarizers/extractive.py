"""The summarizer that needs no model. Its rules are imported when there is something to summarize."""

from __future__ import annotations

from collections.abc import Sequence

import anyio.to_thread

from reactor_memory.features.facts import summarizers
from reactor_memory.models import Message
from reactor_memory.models.ledger import NOTHING_KNOWN, Extraction, Known


class ExtractiveSummarizer:
    """A `Summarizer` that reads every message itself. Never fails, never leaves the machine."""

    condenser = None

    @property
    def name(self) -> str:
        return "extractive"

    @property
    def prompt_version(self) -> str:
        return "1"

    async def summarize(self, messages: Sequence[Message], *, known: Known = NOTHING_KNOWN) -> Extraction:
        """Facts in the order of the messages and the one or two sentences that hold the most details.

        Works in a thread: large messages take tens of milliseconds, and the agent is talking meanwhile.
        """
        return await anyio.to_thread.run_sync(_extracted, messages)

    async def aclose(self) -> None:
        """Nothing to give back."""


def _extracted(messages: Sequence[Message]) -> Extraction:
    return summarizers.extraction.extract(messages)
