"""What is printed: every reason has words, and nothing that was stored can steer the terminal."""

from __future__ import annotations

import logging
import sys
from typing import get_args

import pytest

from reactor_memory.cli.log_lines import LogLine
from reactor_memory.cli.tables import facts, message_view
from reactor_memory.cli.terminal import WIDTH, console
from reactor_memory.core.context.draft import Freshness
from reactor_memory.core.context.report import Reason
from reactor_memory.features.explain import reasons
from reactor_memory.features.facts.tracing import TracedFact
from reactor_memory.models import Message, ToolCall
from reactor_memory.models.ledger import Fact
from reactor_memory.text.printable import printable


def printed(capsys: pytest.CaptureFixture[str], message: Message) -> str:
    console().print(message_view(message))
    return capsys.readouterr().out


def test_every_reason_and_every_freshness_has_words() -> None:
    assert set(reasons.REASONS) == set(get_args(Reason))
    assert {*reasons.FRESHNESS, "none"} == set(get_args(Freshness))  # which is told with what is missing


def test_characters_that_steer_a_terminal_are_replaced() -> None:
    assert printable("a\x1b[31mb\u202ec\x00\x9b\r") == "a\ufffd[31mb\ufffdc\ufffd\ufffd\ufffd"
    assert printable("tab\tline\nfamily 👨‍👩‍👧 שלום") == "tab\tline\nfamily 👨‍👩‍👧 שלום"


def test_a_message_cannot_steer_the_terminal_wherever_the_text_stands(capsys: pytest.CaptureFixture[str]) -> None:
    evil = "\x1b]0;title\x07"
    call = ToolCall(id=evil, name=evil, arguments=evil)
    message = Message.assistant(evil, tool_calls=[call], name=evil, tool_call_id=evil, parts=({"type": evil},))
    output = printed(capsys, message)
    assert "\x1b" not in output
    assert "\x07" not in output
    assert output.count("title") == 7


def test_text_that_looks_like_markup_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert "[bold]a[/bold] :smile:" in printed(capsys, Message.user("[bold]a[/bold] :smile:"))


def test_lines_are_wrapped_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, Message.user("word " * 200)).splitlines()
    assert len(lines) > 5
    assert max(map(len, lines)) <= WIDTH


def log_record(*, failed: bool) -> logging.LogRecord:
    try:
        raise ValueError("broken")
    except ValueError:
        trace = sys.exc_info() if failed else None
    record = logging.LogRecord("reactor_memory.x", logging.WARNING, "f", 1, "work failed", (), trace)
    record.session_id = "s1"
    return record


def test_log_line_has_its_fields_and_tracebacks_only_when_verbose() -> None:
    quiet = LogLine(verbose=False).format(log_record(failed=True))
    assert quiet.endswith(" WARNING work failed session_id=s1")
    assert "ValueError: broken" in LogLine(verbose=True).format(log_record(failed=True))
    assert "\n" not in LogLine(verbose=True).format(log_record(failed=False))


@pytest.mark.parametrize("width", [60, 72, 80, 100, 160])
def test_words_of_facts_are_not_broken(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    said = "I can't eat shellfish, and always write about the delivery of the chair"
    fact = Fact(
        anchor="the user #1", key="condition", value=said, category="CONDITION", source_seq=1, said_by="assistant"
    )
    console().print(facts([TracedFact(fact=fact, quote=said)]))
    out = capsys.readouterr().out
    for word in (*said.replace(",", "").split(), "condition"):
        assert word in out
    assert max(map(len, out.splitlines())) <= width
