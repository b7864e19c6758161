"""What a summarizer reads and writes is counted, whatever it says."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.errors import SummarizationError
from reactor_memory.evaluation.metering import MeteredSummarizer
from reactor_memory.models import Message
from reactor_memory.models.ledger import NOTHING_KNOWN, Extraction, Fact, Known, Usage
from tests.evaluation.contexts import WordCounter

pytestmark = pytest.mark.anyio

FACT = Fact(anchor="table 7", key="seats", value="four", source_seq=1)


class Scripted:
    name = "scripted"
    prompt_version = "1"
    condenser = None

    def __init__(self, answer: Extraction | None) -> None:
        self.answer = answer

    async def summarize(self, messages: Sequence[Message], *, known: Known = NOTHING_KNOWN) -> Extraction:
        if self.answer is None:
            raise SummarizationError("refused", "does not want to")
        return self.answer

    async def aclose(self) -> None: ...


def metered(answer: Extraction | None) -> MeteredSummarizer:
    return MeteredSummarizer(Scripted(answer), MessageCounter(WordCounter()))


async def test_messages_known_facts_and_an_earlier_summary_are_read() -> None:
    summarizer = metered(Extraction(facts=(FACT,), narrative="five words are written here", headline="two words"))
    before = Message(role="summary", content="what was said before")
    await summarizer.summarize([before, Message.user("one two")], known=Known(facts=(FACT,)))
    assert summarizer.usage == Usage(tokens_read=4 + 2 + 4, tokens_written=5 + 2 + 4)
    await summarizer.summarize([Message.user("three")])
    assert summarizer.usage == Usage(tokens_read=11, tokens_written=22)


async def test_what_is_reported_as_written_is_believed() -> None:
    summarizer = metered(Extraction(narrative="three words only", usage=Usage(tokens_read=1, tokens_written=90)))
    await summarizer.summarize([Message.user("one two")])
    assert summarizer.usage == Usage(tokens_read=2, tokens_written=90)


async def test_a_call_that_fails_was_read_all_the_same() -> None:
    summarizer = metered(None)
    with pytest.raises(SummarizationError):
        await summarizer.summarize([Message.user("one two")])
    assert summarizer.usage == Usage(tokens_read=2)
