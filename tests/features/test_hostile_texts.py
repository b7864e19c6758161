"""Texts made to hurt are read as fast as others: no pattern looks at the same characters again and again."""

from __future__ import annotations

import time
from collections.abc import Callable

import anyio
import pytest

from reactor_memory.errors import SummarizationError
from reactor_memory.features.facts.summarizers.answer import parse_answer, parse_condensed
from reactor_memory.features.facts.summarizers.extractive import ExtractiveSummarizer
from reactor_memory.features.recall.question import identifiers
from reactor_memory.features.tiers.portions import pieces
from reactor_memory.models import Message, ToolCall
from reactor_memory.tokens.text import LONGEST_SPACE, digestible
from tests.scenes.tables import each_row

MOST_SECONDS = 0.25
"""Of processor time. What these texts took when time grew with the square of their length, or the cube: a second and
more.
"""


def names_of_twenty(text: str) -> None:
    """A load looks for identifiers in the beginning of the message, so one text is too short to tell."""
    for _ in range(20):
        identifiers(text)


def in_portions(text: str) -> None:
    assert "".join(pieces(text, 1_000_000, len)) == text


def digested(text: str) -> None:
    assert "".join(digestible(text)) == text


def summarized(argument: str) -> None:
    call = ToolCall(id="c", name="book_table", arguments={"table": argument})
    said = [Message.assistant("", tool_calls=[call], seq=1), Message.tool("done", tool_call_id="c", seq=2)]
    assert anyio.run(ExtractiveSummarizer().summarize, said).facts


def refused(parse: Callable[[str], object]) -> Callable[[str], None]:
    def read(text: str) -> None:
        with pytest.raises(SummarizationError):
            parse(text)

    return read


@each_row(
    ("read", "text"),
    [
        (refused(parse_answer), "```json" + "\n" * 2000 + "x"),
        (refused(parse_answer), "```json" + "\n" * 900_000 + "x"),
        (refused(parse_answer), "```json\n" + "\n```" * 60_000 + "x"),
        (refused(parse_answer), "\n" * 250_000 + "```"),
        (refused(parse_answer), '{"facts": [' * 80_000),
        (refused(parse_answer), '{"facts": ["' + '\\"' * 400_000),
        (refused(parse_answer), '{"facts":' + '"a' * 400_000),
        (refused(parse_answer), '{"facts" ' * 100_000),
        (refused(parse_answer), "{" + " " * 900_000),
        (refused(parse_answer), '{"facts": ' + "[" * 900_000),
        (refused(parse_condensed), "```json" + "\r\n" * 2000 + "x"),
        (names_of_twenty, "_" * 4000),
        (names_of_twenty, "/" * 4000),
        (names_of_twenty, "a/" * 2000),
        (names_of_twenty, "a@" * 2000),
        (names_of_twenty, "a.-" * 1300),
        (in_portions, "`" * 3000 + "\n" + "x\n" * 150_000),
        (in_portions, "".join("`" * length + "\n" for length in range(700, 2, -1))),
        (in_portions, "~~~\n```\n" * 30_000),
        (digested, (" " * (LONGEST_SPACE - 1) + "x") * 2),
        (digested, " " * (5 * LONGEST_SPACE + 1)),
        (summarized, "1" + "-" * 20_000 + "word"),
    ],
)
def test_texts_made_to_hurt(read: Callable[[str], None], text: str) -> None:
    assert any(seconds_of(read, text) < MOST_SECONDS for _ in range(3)), "three times in a row"


def seconds_of(read: Callable[[str], None], text: str) -> float:
    """Of the processor, for this process as a whole: threads that other tests left running count, too."""
    begin = time.process_time()
    read(text)
    return time.process_time() - begin


@each_row(
    ("blanks", "lengths"),
    [
        (LONGEST_SPACE, [LONGEST_SPACE + 1, 1]),
        (LONGEST_SPACE - 1, [LONGEST_SPACE + 1]),
        (2 * LONGEST_SPACE + 5, [LONGEST_SPACE + 1, LONGEST_SPACE, 6]),
    ],
)
def test_long_white_space_is_cut_where_it_is_too_long(blanks: int, lengths: list[int]) -> None:
    assert [len(piece) for piece in digestible("a" + " " * blanks + "b")] == lengths
