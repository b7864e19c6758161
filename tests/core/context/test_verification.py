"""The verifier must notice each kind of damage, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from reactor_memory.core.context.budget import assemble
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.draft import ContextLimits
from reactor_memory.core.context.report import ReportEntry, digest
from reactor_memory.core.context.verification import verify
from reactor_memory.models import Message, Pin, ToolCall
from reactor_memory.models.block_lines import BlockLine
from tests.core.context.histories import THOUGHT, count, count_text, pinned, stored
from tests.scenes.drafts import draft
from tests.scenes.tables import each_row

PINS = (pinned("one", seq=9), pinned("two", seq=4, role="assistant"))
HASHES = tuple(pin.sha256 for pin in PINS)
LINE = BlockLine(text="- order: 17", tokens=count_text("\n- order: 17"))


def good() -> Context:
    """A context with every part, a dropped prefix, a tool pair and a message that was cut."""
    log = stored(
        [
            *(Message.user("x" * 400), Message.assistant("y" * 400)),
            *(Message.user("recalled"), Message.assistant("answer")),
            *(Message.user("question"), Message.assistant(tool_calls=[ToolCall(id="1", name="t")])),
            *(Message.tool("result", tool_call_id="1"), Message.assistant("done")),
        ]
    )
    proposal = draft(
        fact_lines=(LINE, LINE),
        narrative=(LINE,),
        pins=PINS,
        window=(*log[:2], *log[4:]),
        recalled_lines=(LINE,),
        covered_seq=1,
    )
    return assemble(proposal, [Message.user("now")], ContextLimits(budget=150), count=count, count_text=count_text)


def reasoned() -> tuple[tuple[Message, ...], Context]:
    """A log with reasoning in messages of its own, and its context."""
    call = Message.assistant(tool_calls=[ToolCall(id="1", name="t")])
    log = stored(
        [
            *(Message.user("question"), THOUGHT, Message.assistant("let me see"), call),
            *(Message.tool("result", tool_call_id="1"), THOUGHT, Message.assistant("done")),
        ]
    )
    empty = draft(strategy="take_last", window=log)
    return log, assemble(empty, [Message.user("now")], ContextLimits(budget=200), count=count, count_text=count_text)


def clamped() -> Context:
    empty = draft(strategy="take_last")
    message = Message.user("word " * 500)
    return assemble(empty, [message], ContextLimits(budget=100), count=count, count_text=count_text)


def reported(context: Context, **fields: Any) -> Context:
    return Context(messages=context.messages, report=replace(context.report, **fields), system=context.system)


def saying(context: Context, messages: list[Message]) -> Context:
    """`context` with other messages under the same report."""
    return Context(messages=messages, report=context.report, system=context.system)


def shown(context: Context, messages: list[Message], parts: tuple[str, ...] | None = None) -> Context:
    """`context` with other messages and a digest that matches them."""
    context = saying(context, messages)
    return reported(context, digest=digest(messages), parts=parts or context.report.parts)


def changed(context: Context, part: str, offset: int = 0, **fields: Any) -> Context:
    index = context.report.parts.index(part) + offset
    messages = list(context.messages)
    messages[index] = replace(messages[index], **fields)
    return shown(context, messages)


def without(context: Context, part: str, offset: int = 0) -> Context:
    index = context.report.parts.index(part) + offset
    parts = context.report.parts
    return shown(context, context.messages[:index] + context.messages[index + 1 :], parts[:index] + parts[index + 1 :])


def swapped(context: Context, first: int, second: int) -> Context:
    messages = list(context.messages)
    messages[first], messages[second] = messages[second], messages[first]
    return shown(context, messages)


def doubled(context: Context) -> Context:
    """The first message of the window once more, as if it were the current turn."""
    window = context.messages[context.report.parts.index("window")]
    index = context.report.parts.index("current")
    return shown(context, [*context.messages[:index], window, *context.messages[index + 1 :]])


def entry(**fields: Any) -> ReportEntry:
    return ReportEntry(**{"part": "window", "first": 5, "last": 5, "count": 1, "reason": "over_budget", **fields})


def test_what_came_with_one_reasoning_stays_whole_or_leaves() -> None:
    log, context = reasoned()
    assert verify(context, count=count, log=log) == []
    for offset, alone in ((1, False), (2, False), (5, False), (6, True)):
        broken = without(context, "window", offset)
        found = [problem for problem in verify(broken, count=count, log=log) if problem.startswith("reasoning:")]
        first, last = (2, 4) if offset < 4 else (6, 7)
        assert f"reasoning: of messages {first} to {last}, which came with one reasoning, only some are shown" in found
        without_log = [problem for problem in verify(broken, count=count) if problem.startswith("reasoning:")]
        assert bool(without_log) == (alone or offset == 2)
    later = without(without(context, "window", 6), "current")
    assert "reasoning: message 5 is not followed by what it led to" in verify(later, count=count)


def test_calls_just_made_with_one_reasoning_may_be_open() -> None:
    a, b = [Message.assistant(tool_calls=[ToolCall(id=key, name="t")]) for key in "ab"]
    empty, limits = draft(strategy="take_last"), ContextLimits(budget=200)
    for said in ([THOUGHT, a, b], [THOUGHT, a, a], [THOUGHT]):
        current = [Message.user("now"), *said]
        context = assemble(empty, current, limits, count=count, count_text=count_text)
        assert context.messages == current
        assert verify(context, count=count) == []


def test_good_contexts_have_no_problem() -> None:
    assert set(good().report.parts) == {"facts", "narrative", "pins", "window", "recalled", "current"}
    assert good().report.dropped
    assert clamped().report.clamped
    assert verify(good(), count=count) == []
    assert verify(clamped(), count=count) == []


DAMAGES: list[tuple[str, Callable[[], Context]]] = [
    ("parts: do not name", lambda: reported(good(), parts=good().report.parts[1:])),
    ("tokens: window has", lambda: changed(good(), "window", token_count=50)),
    ("tokens: facts has", lambda: changed(good(), "facts", token_count=500)),
    ("tokens: the total of", lambda: reported(good(), total_tokens=good().report.total_tokens - 1)),
    ("are over the budget of", lambda: reported(good(), budget=good().report.total_tokens - 1)),
    ("order: the parts are not", lambda: shown(good(), good().messages, good().report.parts[::-1])),
    ("order: window is not oldest first", lambda: swapped(good(), 6, 7)),
    ("order: a message is shown twice", lambda: doubled(good())),
    ("order: the current turn is older", lambda: changed(good(), "current", seq=1)),
    ("roles: pins has a message of an unknown role", lambda: changed(good(), "pins", role="developer")),
    ("roles: facts does not begin", lambda: changed(good(), "facts", content="Facts:\n\n- a\n- b")),
    ("roles: the memory blocks are not of one role", lambda: changed(good(), "facts", role="user")),
    ("roles: the memory blocks are not of one role", lambda: changed(good(), "narrative", role="assistant")),
    ("is a result without a call", lambda: without(good(), "window", 1)),
    ("has a call without a result", lambda: without(good(), "window", 2)),
    ("account: window does not show", lambda: without(good(), "window", 3)),
    ("account: facts does not show", lambda: changed(good(), "facts", content="Conversation Facts:\n\n- a")),
    ("account: window was offered", lambda: reported(good(), dropped=())),
    ("account: window was offered", lambda: reported(good(), kept=(*good().report.kept, entry(reason="fits")))),
    ("account: a message of window is in no entry", lambda: changed(good(), "window", seq=4)),
    ("is shown and called dropped", lambda: reported(good(), dropped=(*good().report.dropped, entry()))),
    ("sources: the report does not name the position", lambda: changed(good(), "window", seq=None)),
    ("sources: facts does not name", lambda: reported(good(), sources={**good().report.sources, "facts": ((1,),)})),
    ("sources: pins does not name", lambda: reported(good(), sources={})),
    ("clamped: a message that was cut has no mark", lambda: changed(clamped(), "current", content="word")),
    ("ranges: the window does not start", lambda: reported(good(), window_start_seq=1)),
    ("ranges: unread is not in order", lambda: reported(good(), unread=((2, 3), (1, 1)))),
    ("ranges: a message of the window is called unread", lambda: reported(good(), unread=((2, 2), (5, 5)))),
    ("ranges: messages left the window unread", lambda: reported(good(), unread=())),
    ("breakpoints:", lambda: reported(good(), cache_breakpoints=(1,))),
    ("verbatim: one of pins is not, byte for byte", lambda: changed(good(), "pins", content="One", token_count=3)),
    ("verbatim: one of pins is not, byte for byte", lambda: changed(good(), "pins", 1, content="two ")),
    ("verbatim: one of pins is not, byte for byte", lambda: swapped(good(), 2, 3)),
    ("verbatim: one of pins is not, byte for byte", lambda: without(good(), "pins", 1)),
    ("account: pins does not show", lambda: without(good(), "pins")),
    ("verbatim: the report does not name each of pins", lambda: reported(good(), verbatim={"pins": HASHES[1:]})),
    ("digest:", lambda: reported(good(), digest="")),
    ("digest:", lambda: saying(good(), [*good().messages[:-1], Message.user("won")])),
]


@each_row(("problem", "damaged"), DAMAGES)
def test_each_check_bites(problem: str, damaged: Callable[[], Context]) -> None:
    assert any(problem in found for found in verify(damaged(), count=count))


def test_pins_of_session_that_the_report_leaves_out_are_noticed() -> None:
    def problems(*pins: Pin) -> list[str]:
        return verify(good(), count=count, verbatim={"pins": [pin.sha256 for pin in pins]})

    assert problems(*PINS) == []
    unnamed = ["verbatim: the report does not name what stands as it is"]
    assert problems() == problems(PINS[0]) == problems(*PINS[::-1]) == problems(*PINS, pinned("three")) == unnamed


def test_a_block_that_stands_twice_is_noticed() -> None:
    context = good()
    doubled_block = shown(context, [context.messages[0], *context.messages], ("facts", *context.report.parts))
    assert "roles: a memory block stands twice" in verify(doubled_block, count=count)


def test_problems_never_quote_a_message() -> None:
    for _, damaged in DAMAGES:
        assert not any("question" in found or "order: 17" in found for found in verify(damaged(), count=count))


@pytest.mark.parametrize("number", [1, 2**63, -(10**30)])
def test_a_call_may_hold_a_number_of_any_size(number: int) -> None:
    call = ToolCall(id="1", name="t", arguments={"n": number})
    current = [Message.user("now"), Message.assistant(tool_calls=[call])]
    empty = draft(strategy="take_last")
    context = assemble(empty, current, ContextLimits(budget=500), count=count, count_text=count_text)
    assert verify(context, count=count) == []
    other = replace(current[1], tool_calls=(replace(call, arguments={"n": number + 1}),))
    assert "digest:" in verify(saying(context, [current[0], other]), count=count)[0]
