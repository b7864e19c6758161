"""Passages hold all of a conversation, end at borders, and tell where they stand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.recall.passages import (
    PASSAGE_CHARACTERS,
    WIDE,
    borders,
    call_text,
    passages_of,
    pieces,
    short_call,
    text_of,
)
from reactor_memory.models import Message, ToolCall

CALL = ToolCall(id="c", name="read_file", arguments={"path": "src/app.py"})
TEXTS = st.text(st.sampled_from("ab \n.。é\u0301日"), max_size=4_000)


def numbered(*messages: Message) -> list[Message]:
    return [Message(**{**_fields(message), "seq": seq}) for seq, message in enumerate(messages, start=1)]


def _fields(message: Message) -> dict[str, object]:
    return {name: getattr(message, name) for name in message.__struct_fields__}


@given(TEXTS)
def test_pieces_of_a_text_are_all_of_it_in_order(text: str) -> None:
    found = list(borders(text))
    assert "".join(text[start:end] for start, end in found) == text
    assert all(0 < end - start <= PASSAGE_CHARACTERS for start, end in found)


@pytest.mark.parametrize("word", ["会议", "かな", "회의"])
def test_wide_scripts_have_shorter_passages(word: str) -> None:
    found = list(borders(word * 1_000))
    assert all(end - start <= PASSAGE_CHARACTERS // WIDE for start, end in found)
    (half, *_) = borders("a" * 1_000 + word * 500)
    assert PASSAGE_CHARACTERS // WIDE < half[1] < PASSAGE_CHARACTERS
    log = numbered(Message.user(word * 60), Message.assistant(word * 20), Message.assistant(word * 40))
    assert [(each.passage.seq, each.passage.end_seq) for each in pieces(log)] == [(1, 2), (3, 3)]


@pytest.mark.parametrize(
    ("between", "begins"), [("\n\n", "second"), ("\n", "second"), (". ", "second"), ("。", "second"), (" ", "second")]
)
def test_a_text_is_cut_at_its_largest_border(between: str, begins: str) -> None:
    text = "x" * 500 + between + begins + "y" * 300
    (_, (start, _)) = borders(text)
    assert text[start:].startswith(begins)


def test_talk_of_one_turn_is_one_passage() -> None:
    log = numbered(
        Message.user("Where is it?"),
        Message.assistant("Behind the door."),
        Message.user("Look there."),
        Message.assistant(tool_calls=[CALL]),
        Message.tool("forty lines", tool_call_id="c"),
        Message.assistant("Found it."),
    )
    places = [(each.seq, each.end_seq, each.call_seq) for each in passages_of(log)]
    assert places == [(1, 2, 0), (3, 3, 0), (4, 4, 4), (5, 5, 4), (6, 6, 0)]


def test_what_no_longer_fits_begins_a_passage_of_its_own() -> None:
    log = numbered(Message.user("a" * 400), Message.assistant("b" * 300), Message.assistant("c" * 100))
    assert [(each.seq, each.end_seq) for each in passages_of(log)] == [(1, 1), (2, 3)]


def test_a_result_has_the_words_of_its_call() -> None:
    log = numbered(Message.assistant(tool_calls=[CALL]), Message.tool("forty lines", tool_call_id="c"))
    *_, result = passages_of(log)
    assert {"src", "forti"} <= set(result.terms)


def test_what_agents_keep_for_themselves_is_in_no_passage() -> None:
    log = numbered(Message.user("hello"), Message(role="summary", content="a summary"))
    assert [each.seq for each in passages_of(log)] == [1]


def test_a_term_that_was_redacted_is_in_no_passage() -> None:
    log = numbered(Message.user("my card is 4711 today"))
    clean = numbered(Message.user("my card is [card] today"))
    (passage,) = passages_of(log, clean)
    assert "4711" not in passage.terms
    assert "today" in passage.terms
    assert (passage.start, passage.end) == (0, len(log[0].content))


@given(st.lists(TEXTS, max_size=6))
def test_every_text_stands_in_passages(texts: list[str]) -> None:
    log = numbered(*(Message.user(text) for text in texts))
    covered = "".join(piece.text for piece in pieces(log))
    assert "".join(covered.split()) == "".join("".join(texts).split())


def test_arguments_are_shown_as_they_were_given() -> None:
    assert call_text(ToolCall(id="c", name="cancel", arguments='{"id": 4711}')) == 'cancel {"id": 4711}'
    assert text_of(Message.assistant("ok", tool_calls=[CALL])) == 'ok\nread_file {"path": "src/app.py"}'
    long = ToolCall(id="c", name="write", arguments={"text": "x" * 900})
    assert len(short_call(long)) == len("write ") + 120 + 1
