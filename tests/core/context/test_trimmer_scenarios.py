"""The trimmer scenarios of the arc-reactor project, on `trim`: message trimming, pair integrity, context window.

Every character is a token and messages cost no overhead, as in the originals. Where this library promises something
else on purpose, the name of the test says what.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reactor_memory.core.context.context import Context
from reactor_memory.core.context.own_history import trim
from reactor_memory.core.context.verification import verify
from reactor_memory.errors import BudgetExceededError
from reactor_memory.models import Message, ToolCall
from reactor_memory.models.turns import find_orphans
from tests.core.context.histories import MARK
from tests.scenes.tables import each_row


def length(message: Message) -> int:
    return len(message.content) + sum(len(call.name) + len(str(call.arguments)) for call in message.tool_calls)


def trimmed(messages: Sequence[Message], budget: int) -> Context:
    context = trim(messages, budget, count=length, count_text=len, overhead=0)
    assert verify(context, count=length) == []
    assert not find_orphans(context.messages, open_tail=True)
    return context


def kept(messages: Sequence[Message], budget: int) -> list[Message]:
    return trimmed(messages, budget).messages


def call(*ids: str, content: str = "", name: str = "search") -> Message:
    return Message.assistant(content, tool_calls=[ToolCall(id=key, name=name) for key in ids])


def result(key: str, content: str = "found it") -> Message:
    return Message.tool(content, tool_call_id=key)


def pair(key: str, content: str = "found it") -> list[Message]:
    return [call(key), result(key, content)]


# Message trimming


def test_call_and_result_leave_together_when_only_the_question_fits() -> None:
    last = Message.user("last")
    assert kept([call("1"), result("1"), last], 10) == [last]


def test_only_the_last_user_message_fits_the_smallest_window() -> None:
    last = Message.user("last")
    assert kept([Message.user("first"), Message.assistant("answer"), last], 4) == [last]


def test_leading_memory_stays_while_old_turns_leave() -> None:
    facts, narrative = Message.system("Conversation Facts:\n- a: b"), Message.system("Conversation Summary:\ntalk")
    old, answer, recent = Message.user("o" * 30), Message.assistant("a" * 30), Message.user("r" * 10)
    assert kept([facts, narrative, old, answer, recent], 80) == [facts, narrative, recent]


def test_leading_memory_leaves_when_only_the_last_user_message_fits() -> None:
    last = Message.user("x")
    assert kept([Message.system("facts"), Message.system("narrative"), last], 1) == [last]


def test_facts_leave_before_the_narrative() -> None:
    facts, narrative, last = Message.system("f" * 30), Message.system("n" * 30), Message.user("x" * 10)
    assert kept([facts, narrative, last], 45) == [narrative, last]


def test_memory_too_large_for_any_window_does_not_cost_window() -> None:
    window, last = [Message.user("u" * 10), Message.assistant("a" * 10)], Message.user("last")
    assert kept([Message.system("f" * 200), *window, last], 50) == [*window, last]


def test_last_user_message_stays_in_a_tight_window_without_memory() -> None:
    last = Message.user("last question")
    assert kept([Message.user("u" * 50), Message.assistant("a" * 50), last], 20) == [last]


def test_tool_history_after_last_user_message_leaves_before_closing_answer() -> None:
    user, final = Message.user("question"), Message.assistant("final answer")
    assert kept([user, *pair("1", "r" * 40), final], 30) == [user, final]


def test_memory_leaves_before_fresh_tool_traffic() -> None:
    user, fresh = Message.user("question"), pair("1", "r" * 80)
    assert kept([Message.system("f" * 60), Message.system("n" * 60), user, *fresh], 102) == [user, *fresh]


def test_a_long_answer_after_the_last_user_message_leaves() -> None:
    user = Message.user("hi")
    assert kept([user, Message.assistant("a" * 50)], 6) == [user]


def test_each_message_is_counted_once_and_dropped_ones_never() -> None:
    counted: list[Message] = []

    def counting(message: Message) -> int:
        counted.append(message)
        return len(message.content)

    history = [Message.user(f"{index:03}") for index in range(100)]
    context = trim(history, 30, count=counting, count_text=len, overhead=0)
    assert context.messages == history[-10:]
    assert len(counted) == 11  # the eleventh shows that it does not fit


# Budgets that cannot work: the original went over budget in silence


@pytest.mark.parametrize("budget", [0, -1, -1000])
def test_budget_of_nothing_is_refused_with_the_smallest_that_works(budget: int) -> None:
    last = Message.user("last")
    with pytest.raises(BudgetExceededError) as raised:
        trimmed([Message.user("first"), Message.assistant("answer"), last], budget)
    assert raised.value.minimum == 4
    assert kept([Message.user("first"), Message.assistant("answer"), last], 4) == [last]


@each_row("budget", [-1, -100])
@each_row("systems", [0, 1, 2])
@each_row("users", [0, 1, 2])
@each_row("pairs", [0, 1, 2])
def test_whatever_the_history_a_negative_budget_is_refused(budget: int, systems: int, users: int, pairs: int) -> None:
    """The smallest budget that works shows the question of the newest turn and its newest pair, if there are any."""
    messages = [Message.system(f"memory {index}") for index in range(systems)]
    messages += [Message.user(f"question {index}") for index in range(users)]
    messages += [message for index in range(pairs) for message in pair(str(index))]
    with pytest.raises(BudgetExceededError) as raised:
        kept(messages, budget)
    shown = kept(messages, raised.value.minimum)
    expected = ["user"] * (users > 0) + ["assistant", "tool"] * (pairs > 0)
    assert [message.role for message in shown] == expected


def test_user_message_larger_than_budget_is_cut_with_a_mark() -> None:
    (message,) = kept([Message.user("x" * 500)], 100)
    assert MARK in message.content
    assert message.content.startswith("xxx")
    assert message.content.endswith("xxx")
    assert len(message.content) <= 100


@each_row("pairs", [0, 1, 2])
@each_row("systems", [0, 1, 2])
@each_row("with_user", [True, False])
def test_a_high_budget_changes_nothing(pairs: int, systems: int, with_user: bool) -> None:
    messages = [Message.system(f"memory {index}") for index in range(systems)]
    messages += [Message.user("question")] * with_user
    messages += [message for index in range(pairs) for message in pair(str(index))]
    assert kept(messages, 100_000) == messages


@each_row("pairs", [1, 2, 3, 4])
@each_row("budget", range(10, 310, 10))
def test_no_budget_leaves_a_result_without_its_call(pairs: int, budget: int) -> None:
    messages = [Message.user("old"), *pair("x", "r" * 30), Message.user("question")]
    messages += [message for index in range(pairs) for message in pair(str(index), "r" * 30)]
    try:
        shown = kept(messages, budget)
    except BudgetExceededError as error:
        shown = kept(messages, error.minimum)
    assert any(message.content == "question" for message in shown)
    assert shown[-2].tool_calls[0].id == str(pairs - 1)


# Pair integrity


def test_a_pair_that_fits_is_kept() -> None:
    messages = [Message.user("question"), *pair("1"), Message.assistant("answer")]
    assert kept(messages, 100) == messages


def test_several_pairs_are_kept() -> None:
    messages = [Message.user("question"), *pair("1"), *pair("2"), *pair("3")]
    assert kept(messages, 200) == messages


def test_a_plain_answer_needs_no_result() -> None:
    messages = [Message.user("question"), Message.assistant("answer"), Message.user("thanks")]
    assert kept(messages, 200) == messages


def test_calls_of_one_message_and_their_results_leave_together() -> None:
    parallel = [call("1", "2", "3"), result("1", "r" * 30), result("2", "r" * 30), result("3", "r" * 30)]
    user, last = Message.user("question"), Message.assistant("done")
    assert kept([user, *parallel, last], 50) == [user, last]
    assert kept([user, *parallel, last], 200) == [user, *parallel, last]


def test_several_results_of_one_call_stay_with_it() -> None:
    messages = [Message.user("question"), call("1"), result("1", "half"), result("1", "other half")]
    assert kept(messages, 100) == messages


def test_a_result_without_a_call_is_removed() -> None:
    user = Message.user("question")
    context = trimmed([result("1"), user], 100)
    assert context.messages == [user]
    assert [entry.reason for entry in context.report.dropped] == ["orphan_result"]


def test_a_call_without_a_result_is_removed_when_something_follows() -> None:
    user, last = Message.user("question"), Message.user("are you there?")
    context = trimmed([user, call("1", content="let me see"), last], 100)
    assert context.messages == [user, last]
    assert [entry.reason for entry in context.report.dropped] == ["open_call"]


def test_a_call_that_was_just_made_stays() -> None:
    messages = [Message.user("question"), call("1")]
    assert kept(messages, 100) == messages


def test_call_with_half_of_its_results_is_removed_with_them() -> None:
    user = Message.user("question")
    assert kept([user, call("1", "2"), result("1"), Message.assistant("sorry")], 100) == [
        user,
        Message.assistant("sorry"),
    ]


def test_a_result_after_the_next_user_message_is_too_late() -> None:
    user, next_user = Message.user("question"), Message.user("hurry")
    assert kept([user, call("1"), next_user, result("1")], 100) == [user, next_user]


def test_border_of_the_budget_inside_a_pair_never_splits_it() -> None:
    messages = [Message.user("question"), *pair("1", "r" * 20), *pair("2", "s" * 20), Message.user("last")]
    whole = sum(map(length, messages))
    for budget in range(4, whole + 1):
        calls = sum(bool(message.tool_calls) for message in kept(messages, budget))
        results = sum(message.role == "tool" for message in kept(messages, budget))
        assert calls == results


def test_the_exact_budget_of_one_pair_keeps_it() -> None:
    user, newest = Message.user("question"), pair("2")
    messages = [user, *pair("1", "r" * 200), *newest]
    exact = length(user) + sum(map(length, newest))
    assert kept(messages, exact) == [user, *newest]


def test_assistant_message_with_empty_list_of_calls_is_plain_one() -> None:
    messages = [Message.user("question"), Message.assistant("", tool_calls=[]), Message.user("last")]
    assert kept(messages, 100) == messages
    assert kept(messages, 4) == messages[-1:]


def test_five_trims_are_one() -> None:
    messages = [Message.user("old"), *pair("1", "r" * 90), Message.user("question"), *pair("2", "s" * 90)]
    once = kept(messages, 110)
    again = once
    for _ in range(4):
        again = kept(again, 110)
    assert again == once


def test_a_growing_loop_stays_intact_and_within_the_budget() -> None:
    messages = [Message.user("question")]
    for step in range(20):
        messages = [*messages, *pair(str(step), "r" * 40)]
        messages = kept(messages, 150)
        assert sum(map(length, messages)) <= 150
        assert messages[0].content == "question"
        assert messages[-1].tool_call_id == str(step)


# Context window, in a tool loop


def test_three_tool_rounds_keep_the_question_and_the_newest_pair() -> None:
    history = [Message.user("earlier"), Message.assistant("a" * 80)]
    rounds = [message for step in range(3) for message in pair(str(step), "r" * 60)]
    shown = kept([*history, Message.user("book it"), *rounds], 200)
    assert Message.user("book it") in shown
    assert shown[-2:] == rounds[-2:]


def test_repeated_calls_with_one_id_leave_no_orphan() -> None:
    rounds = [message for _ in range(5) for message in pair("same", "r" * 30)]
    for budget in range(60, 250, 7):
        shown = kept([Message.user("go"), *rounds], budget)
        assert len(shown) % 2 == 1


def test_without_user_message_the_newest_pair_is_the_current_turn() -> None:
    messages = [Message.system("memory"), *pair("1"), *pair("2")]
    assert kept(messages, 30) == [messages[0], *pair("2")]
    assert kept(messages, 20) == pair("2")


# What an agent posted


def test_posted_summary_in_a_given_history_neither_shows_nor_costs() -> None:
    posted = Message(role="summary", content="x" * 50, visibility="agent")
    rules, question, answer, last = (
        Message.system("rules"),
        Message.user("why?"),
        Message.assistant("so"),
        Message.user("and?"),
    )
    context = trimmed([posted, rules, question, posted, answer, last], 20)
    assert context.messages == [rules, question, answer, last]
    dropped = [(entry.reason, entry.count) for entry in context.report.dropped]
    assert dropped == [("posted_summary", 1), ("posted_summary", 1)]
