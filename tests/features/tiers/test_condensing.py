"""Shorter texts without a model."""

from __future__ import annotations

import pytest

from reactor_memory.features.facts.summarizers.extractive import ExtractiveSummarizer
from reactor_memory.features.tiers.condenser import ExtractionCondenser
from reactor_memory.models import Message
from reactor_memory.models.ledger import Extraction, Fact
from reactor_memory.testing import ScriptedSummarizer
from tests.core.context.histories import count_text

pytestmark = pytest.mark.anyio

EARLIER = Message(role="summary", content="They met in Lisbon on May 3.\nThey were glad.", seq=1)


def said(*texts: str) -> list[Message]:
    return [Message.user(text, seq=seq) for seq, text in enumerate(texts, start=10)]


async def condensed(messages: list[Message], max_tokens: int = 500, summarizer: object = None) -> str:
    condenser = ExtractionCondenser(summarizer or ExtractiveSummarizer(), count=count_text)  # type: ignore[arg-type]
    return (await condenser.condense(messages, prompt="", max_tokens=max_tokens)).text


async def test_what_an_earlier_text_says_comes_before_news() -> None:
    text = await condensed([EARLIER, *said("My order number is A-4711.", "Ship it to Berlin by June 5.")])
    assert text.startswith("They met in Lisbon on May 3.\nThey were glad.\n")
    assert "A-4711" in text
    assert "Berlin" in text


async def test_earlier_texts_alone_need_no_summarizer() -> None:
    summarizer = ScriptedSummarizer()
    assert await condensed([EARLIER], summarizer=summarizer) == EARLIER.content
    assert summarizer.calls == []


async def test_in_tight_room_details_stay_and_missing_lines_are_mentioned() -> None:
    words = ("on", "about", "so", "then", "well", "again", "more", "much")
    plain_lines = [f"they talked and talked {word}" for word in words]
    text = await condensed([Message(role="summary", content="\n".join([EARLIER.content, *plain_lines]), seq=1)], 40)
    assert text.splitlines() == [
        "They met in Lisbon on May 3.",
        "they talked and talked again",
        "they talked and talked more",
        "they talked and talked much",
        "(lines left out for their length: 6)",
    ]
    again = await condensed([Message(role="summary", content=text, seq=1)], max_tokens=100)
    assert again == "\n".join(text.splitlines()[:-1])


async def test_of_an_earlier_one_line_text_what_fits_stays() -> None:
    text = await condensed([Message(role="summary", content="They met. " * 5 + "and on " * 200, seq=1)], max_tokens=60)
    assert text.startswith("They met.\nand on")
    assert count_text(text) <= 60


async def test_only_what_messages_prove_is_told() -> None:
    extraction = Extraction(
        facts=(
            Fact(anchor="order", key="number", value="A-4711", source_seq=10),
            Fact(anchor="x", key="y", value="invented", source_seq=10),
        ),
        narrative="They ordered A-4711. They paid 99 euros.",
    )
    summarizer = ScriptedSummarizer(default=extraction)
    text = await condensed(said("My order number is A-4711."), summarizer=summarizer)
    assert "A-4711" in text
    assert "invented" not in text
    assert "99" not in text


async def test_of_what_is_said_twice_the_later_line_stays() -> None:
    twice = Message(role="summary", content="They were glad.", seq=5)
    assert await condensed([EARLIER, twice]) == EARLIER.content


async def test_where_nothing_stands_out_the_beginnings_of_the_messages_do() -> None:
    assert await condensed(said("ok", "yes")) == "Messages without a detail to keep: 2.\nok\nyes"
    assert await condensed([Message.user(parts=({"type": "image"},), content="", seq=1)]) == (
        "Messages without a detail to keep: 1."
    )
    assert await condensed(said("so so " * 400), max_tokens=20) == "Messages without a detail to keep: 1."


@pytest.mark.parametrize("max_tokens", [30, 60, 120, 400])
async def test_no_text_is_too_long(max_tokens: int) -> None:
    texts = (f"My order number is A-{number:04} and I pay {number} euros." for number in range(60))
    text = await condensed([EARLIER, *said(*texts)], max_tokens)
    assert 0 < count_text(text) <= max_tokens
