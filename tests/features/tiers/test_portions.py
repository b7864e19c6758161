"""Long runs and long messages in portions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.tiers.portions import CUT, OVERHEAD, pieces, portions, shortened
from reactor_memory.models import Message, ToolCall
from tests.core.context.histories import count, count_text, logs

CODE = "```python\nx = 1\n\ny = 2\n```\n"


@given(text=st.text(max_size=400), room=st.integers(1, 60))
def test_pieces_of_text_are_text_and_none_is_too_long(text: str, room: int) -> None:
    found = pieces(text, room, len)
    assert "".join(found) == text
    assert all(len(piece) <= room for piece in found)


def test_a_text_is_cut_between_paragraphs_then_sentences_then_characters() -> None:
    assert pieces("one two.\n\nthree four.\n\nfive.", 20, len) == ["one two.\n\n", "three four.\n\nfive."]
    assert pieces("One two. Three four. Five.", 12, len) == ["One two. ", "Three four. ", "Five."]
    assert pieces("这是一句话。这也是一句话。", 7, len) == ["这是一句话。", "这也是一句话。"]
    assert pieces("abcdefgh", 3, len) == ["abc", "def", "gh"]


def test_a_code_fence_stays_whole_if_it_fits() -> None:
    text = f"Hi.\n\n{CODE}After it. And more words."
    assert CODE in pieces(text, len(CODE), len)
    cut = pieces(text, len(CODE) - 1, len)
    assert CODE not in cut
    assert "".join(cut) == text


def test_a_fence_that_never_ends_is_text() -> None:
    text = "```\nno end\n\n" + "word " * 20
    assert "".join(pieces(text, 20, len)) == text


@given(log=logs(), room=st.integers(OVERHEAD + 1, 400))
def test_a_run_is_cut_between_messages_and_loses_nothing(log: tuple[Message, ...], room: int) -> None:
    runs = portions(log, room, cost=count, count=count_text)
    said = "".join(message.content for run in runs for message in run)
    assert all(message.content in said for message in log if not message.tool_calls)
    assert [message.seq for run in runs for message in run] == sorted(
        message.seq or 0 for run in runs for message in run
    )
    for run in runs:
        assert len(run) == 1 or sum(count(message) + OVERHEAD for message in run) <= room


def test_a_message_that_fits_stays_as_it_is() -> None:
    log = (Message.assistant("hello", tool_calls=[ToolCall(id="c", name="look", arguments={"q": 1})]),)
    assert portions(log, 100, cost=lambda message: 10, count=len) == [log]


def test_of_too_long_messages_calls_and_parts_become_text() -> None:
    message = Message.assistant(
        "hello",
        tool_calls=[ToolCall(id="c", name="look", arguments={"q": 1}), ToolCall(id="d", name="see", arguments="{bad")],
        parts=({"type": "text", "text": "caption"}, {"type": "image", "data": "x" * 500}),
        seq=4,
    )
    runs = portions([message], 40, cost=lambda message: 500, count=len)
    pieces_of_it = [piece for run in runs for piece in run]
    assert (
        "".join(piece.content for piece in pieces_of_it) == 'hello\n\ncaption\n\n[image]\n\nlook({"q":1})\n\nsee({bad)'
    )
    assert {(piece.role, piece.seq) for piece in pieces_of_it} == {("assistant", 4)}


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (40, "One. Two is longer. Three.\nFour five."),
        (26, f"One. Two is longer. {CUT}"),
        (9, f"One. {CUT}"),
        (5, f"On {CUT}" if len(f"On {CUT}") <= 5 else f"O {CUT}"),
    ],
)
def test_a_text_that_is_too_long_ends_with_a_mark(room: int, expected: str) -> None:
    assert shortened("One. Two is longer. Three.\nFour five.", room, len) == expected


@given(text=st.text(max_size=300), room=st.integers(3, 80))
def test_a_shortened_text_is_never_too_long(text: str, room: int) -> None:
    found = shortened(text, room, len)
    assert len(found) <= room
    assert found == text or found.endswith(CUT)
