"""A summarizer that repeats what was said, louder."""

from __future__ import annotations

from collections.abc import Sequence

from reactor_memory.extend import NOTHING_KNOWN, Extraction, Known, Message, Settings


class ShoutingSummarizer:
    """The last message of the run in capital letters is the narrative; there are no facts."""

    name = "shouting"
    prompt_version = "1"
    condenser = None

    def __init__(self, settings: Settings) -> None:
        self._sign = str(settings.plugins.options.get("sample", {}).get("sign", "!"))

    async def summarize(self, messages: Sequence[Message], *, known: Known = NOTHING_KNOWN) -> Extraction:
        return Extraction(narrative=messages[-1].content.upper() + self._sign)

    async def aclose(self) -> None:
        """Nothing was opened."""
