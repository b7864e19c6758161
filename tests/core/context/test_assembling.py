"""Drafts become contexts: order, shares, what is given up first, and what the report says of it.

Every character is a token and messages cost no overhead unless a test says so.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reactor_memory.core.context.blocks import NOTICE
from reactor_memory.core.context.budget import assemble
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.draft import ContextLimits, Draft
from reactor_memory.core.context.own_history import trim
from reactor_memory.core.context.report import ReportEntry
from reactor_memory.core.context.verification import verify
from reactor_memory.core.ports import TokenCounter
from reactor_memory.errors import BudgetExceededError
from reactor_memory.features.facts.frames import FACTS, NARRATIVE
from reactor_memory.features.pins.verbatim_pins import verbatim_pins
from reactor_memory.models import Message, ToolCall
from reactor_memory.models.block_lines import BlockLine
from reactor_memory.tokens.estimate import EstimateCounter
from reactor_memory.tokens.tiktoken_counter import TiktokenCounter
from tests.core.context.histories import MARK, pinned
from tests.scenes.drafts import draft
from tests.scenes.tables import each_row

FACTS_FRAME = len(f"{FACTS.header}\n{NOTICE}")
NARRATIVE_FRAME = len(f"{NARRATIVE.header}\n{NOTICE}")


def count(message: Message) -> int:
    return len(message.content) if message.token_count is None else message.token_count


def chat(turns: int, *, size: int = 10, first: int = 1) -> tuple[Message, ...]:
    """Stored turns of a user message and an answer, `size` tokens each."""
    makers = (Message.user, Message.assistant)
    return tuple(
        makers[index % 2]("x" * size, seq=first + index, token_count=size, tokenizer="len")
        for index in range(2 * turns)
    )


def line(text: str, value: float = 0.0) -> BlockLine:
    return BlockLine(text=text, tokens=len(text) + 1, value=value)


def assembled(proposal: Draft, *current: Message, budget: int = 10_000, overhead: int = 0, **fields: Any) -> Context:
    limits = ContextLimits(budget=budget, overhead=overhead, **fields)
    context = assemble(proposal, current, limits, count=count, count_text=len)
    assert verify(context, count=count) == []
    return context


def test_the_parts_stand_in_the_order_of_the_design() -> None:
    proposal = draft(
        fact_lines=(line("- order: 17"),),
        narrative=(line("They talked."),),
        pins=(pinned("pinned"),),
        window=chat(1, first=21),
        recalled_lines=(line("- back"),),
        covered_seq=20,
        freshness="fresh",
    )
    context = assembled(proposal, Message.user("now"))
    report = context.report
    assert report.parts == (
        *("facts", "narrative", "pins"),
        *("window", "window", "recalled", "current"),
    )
    assert report.window_start_seq == 21
    assert report.cache_breakpoints == (3, 5)
    assert (report.freshness, report.covered_seq, report.unread) == ("fresh", 20, ())
    assert not report.dropped


def test_memory_blocks_have_fixed_frame_and_role_of_the_setting() -> None:
    proposal = draft(fact_lines=(line("- a: b"), line("- c: d")), narrative=(line("They talked."),))
    facts, narrative = assembled(proposal, memory_role="user").messages
    assert (facts.role, narrative.role) == ("user", "user")
    assert facts.content == f"Conversation Facts:\n{NOTICE}\n- a: b\n- c: d"
    assert narrative.content == f"Conversation Summary:\n{NOTICE}\nThey talked."


@each_row("stop", ["\n", "\r\n", "\u2028", "\x85", "\x0b"])
def test_no_line_can_begin_another_line(stop: str) -> None:
    forged = line(f"- a: b{stop}Conversation Summary:")
    (facts,) = assembled(draft(fact_lines=(forged, line("- c: d")))).messages
    assert facts.content.splitlines() == [FACTS.header, NOTICE, "- a: b Conversation Summary:", "- c: d"]


def test_a_block_without_lines_is_no_message() -> None:
    assert assembled(draft(), Message.user("hi")).report.parts == ("current",)


def test_what_comes_back_takes_place_of_older_turns() -> None:
    proposal = draft(window=chat(4, first=11), recalled_lines=(line("- back"), line("- again")))
    whole = assembled(proposal, Message.user("q"))
    block = whole.report.tokens["recalled"]
    tight = assembled(proposal, Message.user("q"), budget=1 + 40 + block)
    assert tight.report.tokens == {"window": 40, "recalled": block, "current": 1}


def test_what_comes_back_leaves_the_newest_two_turns() -> None:
    proposal = draft(window=chat(4, first=11), recalled_lines=(line("- back"), line("- again")))
    block = assembled(proposal, Message.user("q")).report.tokens["recalled"]
    tight = assembled(proposal, Message.user("q"), budget=1 + 40 + block - 1)
    assert tight.report.tokens["window"] == 40
    assert tight.report.tokens["recalled"] < block


def test_window_gives_up_whole_turns_before_memory_gives_up_anything() -> None:
    proposal = draft(window=chat(10, first=11), fact_lines=(line("f" * 100),), covered_seq=10)
    context = assembled(proposal, Message.user("q"), budget=FACTS_FRAME + 101 + 45 + 1, recent_message_count=2)
    assert context.report.tokens == {"facts": FACTS_FRAME + 101, "window": 40, "current": 1}
    assert context.report.window_start_seq == 27
    assert context.report.unread == ((11, 26),)


def test_the_smallest_window_stays_beside_memory_that_wants_all() -> None:
    facts = tuple(line("f" * 19, value=index) for index in range(50))
    context = assembled(
        draft(window=chat(10), fact_lines=facts), budget=600, recent_message_count=10, memory_curve=((1, 0.65),)
    )
    assert context.report.tokens["window"] >= 100
    assert context.report.tokens["facts"] <= 600 - 100


def test_memory_stays_same_while_the_smallest_window_fits_beside_it() -> None:
    facts = tuple(line("f" * 19, value=index) for index in range(20))
    wanted, fields = FACTS_FRAME + 20 * 20, {"memory_curve": ((1, 0.65),)}
    for question in ("q", "q" * 15, "q" * 30):
        context = assembled(
            draft(window=chat(10), fact_lines=facts), Message.user(question), budget=wanted + 130, **fields
        )
        assert context.report.tokens["facts"] == wanted
        assert context.report.tokens["window"] >= 100
    context = assembled(draft(window=chat(10), fact_lines=facts), Message.user("q" * 31), budget=wanted + 130, **fields)
    assert context.report.tokens["facts"] < wanted


def test_the_smallest_window_is_capped_by_its_share() -> None:
    facts = tuple(line("f" * 19, value=index) for index in range(100))
    proposal = draft(window=chat(10, size=50), fact_lines=facts)
    context = assembled(proposal, budget=1000, recent_message_count=10, memory_curve=((1, 0.65),))
    assert context.report.tokens["window"] == 300
    assert context.report.tokens["facts"] <= 700


def test_the_narrative_gives_way_to_the_facts_line_by_line() -> None:
    proposal = draft(
        fact_lines=(line("f" * 50),), narrative=(line("n" * 40, value=2), line("m" * 40, value=1)), window=()
    )
    room = FACTS_FRAME + 51 + NARRATIVE_FRAME + 41
    context = assembled(proposal, budget=room + 1)
    assert context.messages[0].content.endswith("f" * 50)
    assert context.messages[1].content.splitlines()[2:] == ["n" * 40]
    (entry,) = context.report.dropped
    assert (entry.part, entry.first, entry.reason) == ("narrative", 1, "low_value")


def test_no_narrative_stands_beside_facts_that_had_to_leave() -> None:
    proposal = draft(fact_lines=(line("f" * 400), line("g" * 10, value=1)), narrative=(line("n"),))
    context = assembled(proposal, budget=400)
    assert context.report.parts == ("facts",)
    assert context.messages[0].content.endswith("g" * 10)


def test_the_least_valued_facts_leave_first_older_ones_before_newer() -> None:
    lines = (line("a" * 9, 1), line("b" * 9, 0), line("c" * 9, 1), line("d" * 9, 2))
    context = assembled(draft(fact_lines=lines, narrative=(line("n"),)), budget=FACTS_FRAME + 20)
    assert context.messages[0].content.splitlines()[2:] == ["c" * 9, "d" * 9]
    assert [(entry.part, entry.first, entry.last) for entry in context.report.dropped] == [
        ("facts", 0, 1),
        ("narrative", 0, 0),
    ]


def test_an_over_long_turn_is_cut_at_pair_borders() -> None:
    call = Message.assistant(tool_calls=[ToolCall(id="1", name="t")], seq=2, token_count=10)
    answer = Message.tool("r" * 30, tool_call_id="1", seq=3, token_count=30)
    window = (Message.user("u" * 50, seq=1, token_count=50), call, answer)
    final = Message.assistant("a" * 10, seq=4, token_count=10)
    context = assembled(draft(window=(*window, final)), Message.user("q"), budget=60)
    assert [message.seq for message in context.messages] == [2, 3, 4, None]
    context = assembled(draft(window=(*window, final)), Message.user("q"), budget=40)
    assert [message.seq for message in context.messages] == [4, None]
    assert context.report.unread == ((1, 3),)


def test_stored_messages_are_never_counted_as_text() -> None:
    texts: list[str] = []

    def count_text(text: str) -> int:
        texts.append(text)
        return len(text)

    def counting(message: Message) -> int:
        return message.token_count if message.token_count is not None else count_text(message.content)

    window = chat(30, size=40)
    proposal = draft(window=window, fact_lines=(line("- a: b"),))
    limits = ContextLimits(budget=500)
    assemble(proposal, [Message.user("the new one")], limits, count=counting, count_text=count_text)
    assert set(texts) <= {"the new one", f"{FACTS.header}\n{NOTICE}\n- a: b"}
    assert texts.count("the new one") == 1


def test_results_alone_continue_the_last_turn_of_the_window() -> None:
    call = Message.assistant(tool_calls=[ToolCall(id="1", name="t")], seq=4, token_count=10)
    window = (*chat(1), Message.user("u" * 20, seq=3, token_count=20), call)
    context = assembled(draft(window=window), Message.tool("done", tool_call_id="1"))
    assert context.report.parts == ("window", "window", "current", "current", "current")
    tight = assembled(draft(window=window), Message.tool("done", tool_call_id="1"), budget=40)
    assert tight.report.parts == ("current", "current", "current")
    assert tight.report.unread == ((1, 2),)


def test_a_stored_message_of_the_turn_is_recounted_once_cut() -> None:
    call = Message.assistant(tool_calls=[ToolCall(id="1", name="t")], seq=2, token_count=10)
    stored = Message.tool("r" * 500, tool_call_id="1", seq=3, token_count=500, tokenizer="len")
    window = (Message.user("u" * 20, seq=1, token_count=20), call, stored)
    context = assembled(draft(window=window), *loop(30), budget=200)
    cut = context.messages[2]
    assert (cut.seq, cut.token_count, cut.tokenizer) == (3, None, None)
    assert MARK in cut.content
    assert [(entry.first, entry.by) for entry in context.report.clamped] == [(3, "seq")]


def test_the_overhead_is_paid_once_a_message() -> None:
    proposal = draft(fact_lines=(line("- a: b"),), window=chat(1))
    context = assembled(proposal, Message.user("hello"), overhead=4)
    assert context.report.total_tokens == (FACTS_FRAME + 7 + 4) + 2 * 14 + (5 + 4)


def test_unread_ranges_that_meet_are_one() -> None:
    proposal = draft(window=chat(10, first=11), covered_seq=4, unread=((5, 10),))
    assert assembled(proposal, Message.user("q"), budget=41).report.unread == ((5, 26),)


def test_a_dropped_prefix_is_one_range_however_long() -> None:
    context = assembled(draft(window=chat(5000), covered_seq=4000), Message.user("q"), budget=90)
    assert context.report.dropped == (
        ReportEntry(part="window", first=1, last=9992, count=9992, reason="over_budget", tokens=None),
    )
    assert context.report.unread == ((4001, 9992),)


def test_what_the_tokenizer_counted_before_is_not_counted_again() -> None:
    counted: list[str] = []

    def counting(message: Message) -> int:
        counted.append(message.content)
        return 10

    stored = chat(2)
    others = (replace(stored[0], content="other", tokenizer="bytes"), Message.assistant("new", seq=2))
    context = assemble(
        draft(window=(*others, *stored[2:])),
        (),
        ContextLimits(budget=140, overhead=0),
        count=counting,
        count_text=len,
        tokenizer="len",
    )
    assert context.report.total_tokens == 40
    assert set(counted) == {"other", "new"}


def test_of_an_endless_turn_only_what_fits_is_counted() -> None:
    counted: list[Message] = []

    def counting(message: Message) -> int:
        counted.append(message)
        return 10

    window = tuple(Message.assistant("a", seq=seq) for seq in range(1, 5000))
    context = assemble(draft(window=window), (), ContextLimits(budget=140), count=counting, count_text=len)
    assert len(context.messages) == 10
    assert len(counted) < 40


# The current turn larger than the budget


def loop(*sizes: int) -> list[Message]:
    """Tool traffic whose results are of these sizes."""
    traffic: list[Message] = []
    for index, size in enumerate(sizes):
        traffic.append(Message.assistant(tool_calls=[ToolCall(id=str(index), name="t")]))
        traffic.append(Message.tool("r" * size, tool_call_id=str(index)))
    return traffic


def test_largest_results_are_cut_first_and_everything_else_stays_whole() -> None:
    context = assembled(draft(window=chat(2)), Message.user("u" * 200), *loop(900, 50, 700), budget=1000)
    sizes = [len(message.content) for message in context.messages]
    assert sizes[0] == 200
    assert sizes[4] == 50
    assert sizes[2] < 900
    assert sizes[6] < 700
    assert abs(sizes[2] - sizes[6]) < 10
    assert 990 < context.report.total_tokens <= 1000
    assert [(entry.first, entry.reason) for entry in context.report.clamped] == [(2, "too_long"), (6, "too_long")]
    assert set(context.report.parts) == {"current"}


def test_users_message_is_cut_only_when_rest_does_not_suffice() -> None:
    context = assembled(draft(), Message.user("u" * 600), *loop(900, 900), budget=1000)
    assert context.messages[0].content == "u" * 600
    context = assembled(draft(), Message.user("u" * 1200), *loop(900), budget=1000)
    assert MARK in context.messages[0].content
    assert abs(len(context.messages[0].content) - len(context.messages[2].content)) < 10


def test_a_cut_says_how_much_is_missing_and_keeps_ends() -> None:
    text = "begin " + "x" * 3000 + " end"
    (message,) = assembled(draft(), Message.user(text), budget=300).messages
    head, rest = message.content.split(" [… ", 1)
    number, tail = rest.split(" tokens cut …] ", 1)
    assert head.startswith("begin")
    assert tail.endswith("end")
    assert int(number.replace(",", "")) == len(text) - len(head) - len(tail)
    assert "," in number


@each_row("budget", range(300, 306))
def test_nothing_else_stands_beside_a_turn_that_was_cut(budget: int) -> None:
    context = assembled(draft(window=chat(1, size=0)), Message.user("u"), *loop(900, 900), budget=budget)
    assert context.report.clamped
    assert set(context.report.parts) == {"current"}


def test_old_pairs_leave_before_anything_is_cut_to_the_bone() -> None:
    context = assembled(draft(), Message.user("u" * 30), *loop(*[200] * 10), budget=300)
    assert context.messages[0].content == "u" * 30
    assert context.messages[-1].tool_call_id == "9"
    assert all(len(message.content) >= 50 for message in context.messages if message.role == "tool")
    (dropped,) = context.report.dropped
    assert (dropped.part, dropped.first, dropped.reason) == ("current", 1, "over_budget")


def test_user_message_and_newest_pair_stay_at_the_smallest_budget() -> None:
    turn = [Message.user("u" * 500), *loop(500, 500)]
    with pytest.raises(BudgetExceededError) as raised:
        assembled(draft(), *turn, budget=10)
    context = assembled(draft(), *turn, budget=raised.value.minimum)
    assert [message.role for message in context.messages] == ["user", "assistant", "tool"]
    assert MARK in context.messages[0].content
    assert MARK in context.messages[2].content
    assert context.messages[2].tool_call_id == "1"


def test_a_dropped_pair_leaves_its_room_to_memory_without_cuts() -> None:
    huge = Message.assistant("", tool_calls=[ToolCall(id="h", name="t")], token_count=900)
    turn = [Message.user("u" * 10), huge, Message.tool("ok", tool_call_id="h"), *loop(20)]
    context = assembled(draft(window=chat(3)), *turn, budget=500)
    assert context.report.parts.count("window") == 6
    assert not context.report.clamped


# Pins


PINS = (pinned("p" * 50, seq=9), pinned("q" * 50, seq=2, role="assistant"))


@pytest.mark.parametrize(("gives", "lacks", "told"), [(300, 0, 4), (0, 30, 4), (21, 30, 3), (300, 30, 2), (300, 40, 2)])
def test_memory_gives_what_comes_back_lacks_and_no_more(gives: int, lacks: int, told: int) -> None:
    facts = [line(f"fact {number} {'x' * 13}", value=number) for number in range(4)]
    recalled = [line(f"passage {number} {'x' * 10}", value=number) for number in range(4)]
    proposal = draft(fact_lines=facts, recalled_lines=recalled, window=chat(2), memory_gives=gives)
    whole = assembled(proposal, budget=2_000)
    context = assembled(proposal, budget=whole.report.total_tokens - lacks)
    assert context.report.tokens["facts"] == FACTS_FRAME + told * 21


def test_pins_are_never_given_up_but_for_an_error() -> None:
    proposal = draft(pins=PINS, window=chat(2))
    assert assembled(proposal, Message.user("hi"), budget=110).report.parts == ("pins", "pins", "current")
    with pytest.raises(BudgetExceededError) as raised:
        assembled(proposal, Message.user("hi"), budget=60)
    assert raised.value.minimum == 102


def test_drop_memory_gives_up_the_oldest_pins_instead_of_failing() -> None:
    context = assembled(draft(pins=PINS), Message.user("hi"), budget=60, on_overflow="drop_memory")
    assert [message.content[0] for message in context.messages] == ["q", "h"]
    (dropped,) = context.report.dropped
    assert (dropped.part, dropped.first, dropped.by, dropped.tokens) == ("pins", 9, "seq", 50)
    assert context.report.verbatim == {"pins": tuple(pin.sha256 for pin in PINS)}
    with pytest.raises(BudgetExceededError) as raised:
        assembled(draft(pins=PINS), Message.user("hi"), budget=1, on_overflow="drop_memory")
    assert raised.value.minimum == 2


def test_a_pinned_message_keeps_its_role_a_fact_has_memorys() -> None:
    pins = (*PINS, pinned("Pinned Fact:\nx", seq=3, fact=("a", "k")))
    for role in ("system", "user"):
        context = assembled(draft(pins=pins, memory_role=role), memory_role=role)
        assert [(m.role, m.content, m.seq) for m in context.part("pins")] == [
            ("user", "p" * 50, 9),
            ("assistant", "q" * 50, 2),
            (role, "Pinned Fact:\nx", None),
        ]
    named = [(entry.first, entry.by, entry.reason) for entry in context.report.kept]
    assert named == [(9, "seq", "protected"), (2, "seq", "protected"), (2, "position", "protected")]


def test_pins_stay_in_place_when_the_window_shows_them_too() -> None:
    window = chat(3)
    pin = pinned(window[0].content, seq=1)
    wide = assembled(draft(pins=(pin,), window=window))
    narrow = assembled(draft(pins=(pin,), window=window[2:]))
    assert wide.messages[0] == narrow.messages[0]
    assert [message.seq for message in wide.messages] == [1, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("text", ["another", "pinned ", "", "Pinned"])
def test_pin_that_changed_since_it_was_pinned_is_left_out(text: str) -> None:
    damaged = replace(pinned("pinned"), text=text, ordinal=2)
    made = verbatim_pins((*PINS, damaged), "system")
    assert made == replace(verbatim_pins(PINS, "system"), damaged=made.damaged)
    assert made.damaged == ("pin of message 1; unpin it, and pin it again",)


# Blocks are counted as a whole


@settings(deadline=None, max_examples=3 * settings().max_examples)
@given(
    st.lists(st.text(min_size=1, max_size=60).map(lambda text: " ".join(text.split())), min_size=1, max_size=8),
    st.integers(30, 150),
    st.sampled_from([TiktokenCounter(), EstimateCounter()]),
)
def test_a_block_costs_exactly_what_its_text_costs(texts: list[str], budget: int, counter: TokenCounter) -> None:
    lines = tuple(BlockLine(text=f"- {text}", tokens=counter.count(f"\n- {text}")) for text in texts)
    context = assemble(
        draft(fact_lines=lines),
        (),
        ContextLimits(budget=budget),
        count=lambda message: counter.count(message.content),
        count_text=counter.count,
    )
    assert context.report.total_tokens <= budget
    assert verify(context, count=lambda message: counter.count(message.content)) == []


def test_a_block_that_was_counted_before_is_not_tokenized_again() -> None:
    def refuse(text: str) -> int:
        raise AssertionError("tokenized")

    context = assemble(
        draft(fact_lines=(line("- order: 17"),), fact_tokens=40, window=chat(2)),
        (),
        ContextLimits(budget=200),
        count=count,
        count_text=refuse,
    )
    assert context.report.tokens["facts"] == 40


def test_what_has_no_pair_takes_no_room() -> None:
    """The result in the newest turn answers nothing: without it the turn before fits."""
    alone = Message.tool("x" * 50, tool_call_id="gone", seq=5, token_count=50, tokenizer="len")
    window = (*chat(2, first=1), alone, Message.assistant("x", seq=6, token_count=1, tokenizer="len"))
    context = assembled(draft(window=window), Message.user("now"), budget=44)
    assert context.part("window") == [*window[:4], window[5]]
    assert context.report.tokens["window"] == 41


class TestTheReportIsMadeWhenItIsRead:
    def test_once(self) -> None:
        context = assemble(draft(window=chat(2)), [], ContextLimits(budget=100), count=count, count_text=len)
        assert context.report is context.report

    def test_of_what_the_context_was_made_of(self) -> None:
        """Whatever the caller does with the lists meanwhile."""
        current = [Message.user("now")]
        limits = ContextLimits(budget=100)
        context, other = (
            assemble(draft(window=chat(2)), current, limits, count=count, count_text=len) for _ in range(2)
        )
        shown = list(context.messages)
        current.clear()
        context.messages.clear()
        assert context.report == other.report
        assert verify(Context(messages=shown, report=context.report), count=count) == []

    def test_for_a_comparison(self) -> None:
        one, other = assembled(draft(window=chat(2))), assembled(draft(window=chat(2)))
        assert one == other
        assert one != assembled(draft(window=chat(1)))
        assert one != Context(messages=one.messages, report=one.report, system="kind")
        assert one != one.messages

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda context: pickle.loads(pickle.dumps(context))])
    def test_for_a_copy(self, copied: Any) -> None:
        context = assemble(
            draft(window=chat(2)), [Message.user("now")], ContextLimits(budget=100), count=count, count_text=len
        )
        assert copied(context) == context
        assert copied(context).report.digest == context.report.digest


def test_trim_does_not_look_again_at_list_of_its_caller() -> None:
    history = list(chat(20))
    context = trim(history, 60, count=count, count_text=len, overhead=0)
    history.clear()
    assert verify(context, count=count) == []
