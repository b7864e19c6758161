"""The lines that were judged by hand, and the measure of today's lines among them."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.judged_lines import VERDICTS, Judged, altered, judged, table, verdicts
from reactor_memory.evaluation.generator import generate_sessions
from reactor_memory.models import Message

SAID = [Message.user("The gate code is 77."), Message.assistant("Noted, 77 it is.")]


def test_hundreds_of_lines_of_ten_sessions_were_judged() -> None:
    known = verdicts()
    assert len(known) >= 300
    assert len({session for session, _ in known}) == 10
    assert set(known.values()) <= set(VERDICTS)
    found = Counter(known.values())
    assert found["useful"] >= 0.6 * len(known)
    assert found["junk"] <= 0.12 * len(known)
    assert found["wrong"] + found["failed"] + found["altered"] == 0


@pytest.mark.parametrize("line", ['"The gate code is 78."', 'Ann: "The gate is 77."', '"77." then "Noted, 78"'])
def test_a_quotation_of_no_message_is_altered(line: str) -> None:
    assert list(altered([line], SAID)) == [line]


@pytest.mark.parametrize("line", ['"The gate code is 77."', '(to "gate code") "Noted, 77 it is."', "open: gate=5"])
def test_words_of_messages_are_not_altered(line: str) -> None:
    assert list(altered([line], SAID)) == []


def test_what_was_not_judged_counts_for_nothing() -> None:
    rows = [Judged("a", 10, Counter({"useful": 3, "junk": 1}), ()), Judged("b", 5, Counter(), ("x",))]
    _, first, second, last = table(rows)
    assert first.split() == ["a", "10", "4", "0.75", "0.00", "0.25", "0.00", "0.00", "0.00", "0"]
    assert second.split()[:4] == ["b", "5", "0", "-"]
    assert last.split()[1:3] == ["15", "4"]


@pytest.mark.slow
@pytest.mark.anyio
async def test_most_lines_of_a_generated_session_were_judged() -> None:
    (session,) = generate_sessions(1, seed=3)
    found = await judged(session.name, session.messages, [1_000, 2_000])
    assert found.verdicts.total() >= 0.7 * found.lines
    assert found.altered == []
