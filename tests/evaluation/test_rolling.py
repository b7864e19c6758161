"""The rolling summary that others are compared with: how a budget is shared out, what is shown, what is kept."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reactor_memory.core.context.draft import ContextLimits
from reactor_memory.core.context.strategy import PlanRequest
from reactor_memory.evaluation.rolling import RollingLimits, RollingStrategy
from reactor_memory.evaluation.sentences import SentenceSummarizer
from reactor_memory.evaluation.strategies import NO_LIMIT, QUICK_STRATEGIES, STRATEGIES, replays_of, sections_of
from reactor_memory.models import Message, Session, ToolCall
from reactor_memory.models.ledger import Summary
from reactor_memory.models.requests import ContextRows
from reactor_memory.settings.settings import Settings
from tests.scenes.drafts import lines_in

pytestmark = pytest.mark.anyio


def words(text: str) -> int:
    return len(text.split())


async def summarized(*messages: Message, max_tokens: int = 1000) -> list[str]:
    extraction = await SentenceSummarizer(max_tokens=max_tokens, count=words).summarize(messages)
    assert extraction.facts == ()
    return extraction.narrative.splitlines()


@pytest.mark.parametrize("budget", [1000, 8000])
def test_parts_of_budget_leave_room_for_the_message_to_come(budget: int) -> None:
    limits = RollingLimits.of(Settings(**sections_of("rolling", [budget])))
    assert limits.summary_tokens == budget * 0.6
    assert 0 < limits.summary_tokens + limits.window_tokens < budget * 0.9


def test_a_rolling_summary_is_replayed_once_a_budget() -> None:
    assert replays_of("rolling", [1000, 2000]) == ((1000,), (2000,))
    assert replays_of("hierarchical", [1000, 2000]) == ((1000, 2000),)
    assert replays_of("full-context", [1000, 2000]) == ((None,),)


def test_every_strategy_is_made_of_settings() -> None:
    settings = {name: Settings(**sections_of(name, replays_of(name, [1000])[0])) for name in STRATEGIES}
    assert {name for name in settings if settings[name].summary.mode == "full"} == {"full"}
    assert {name for name in settings if settings[name].summary.enabled} == {"rolling", "full", "hierarchical"}
    assert settings["full-context"].context.max_tokens == NO_LIMIT
    assert set(STRATEGIES) - set(QUICK_STRATEGIES) == {"full"}


def planned(summary: Summary | None, seqs: Sequence[int]) -> PlanRequest:
    session = Session(session_id="s", group_id="s", owner_id=None, last_seq=9, branch=(), created_at=0, updated_at=0)
    messages = tuple(Message.user(f"text {seq}", seq=seq, message_id=f"m{seq}") for seq in seqs)
    rows = ContextRows(session=session, summary=summary, messages=messages)
    return PlanRequest(session_id="s", rows=rows, limits=ContextLimits(budget=100), count=lambda _: 2, count_text=words)


def test_the_summary_stands_before_what_it_does_not_cover() -> None:
    draft = RollingStrategy()(planned(Summary(narrative="one\ntwo", covered_seq=7), range(5, 10))).draft
    assert [line.text for line in lines_in(draft, "narrative")] == ["one", "two"]
    assert [message.seq for message in draft.window] == [8, 9]
    assert (draft.covered_seq, draft.unread, draft.freshness) == (7, (), "fresh")


def test_what_was_not_read_is_named() -> None:
    draft = RollingStrategy()(planned(Summary(narrative="one", covered_seq=3), range(6, 10))).draft
    assert draft.unread == ((4, 5),)


def test_without_a_summary_there_is_the_window() -> None:
    draft = RollingStrategy()(planned(None, range(1, 10))).draft
    assert (len(draft.window), lines_in(draft, "narrative"), draft.unread, draft.freshness) == (9, (), (), "none")


async def test_sentences_calls_and_results_are_lines() -> None:
    call = ToolCall(id="c1", name="book", arguments={"seats": 4, "place": "Luigi's"})
    lines = await summarized(
        Message.user("I want a table at Luigi's. Please hurry."),
        Message.assistant(tool_calls=[call]),
        Message.tool('{"table": {"number": 7}}', tool_call_id="c1", name="book"),
    )
    assert lines == ["I want a table at Luigi's.", "book: seats=4; place=Luigi's", "book: number=7"]


async def test_lines_worth_most_are_kept_in_order_of_the_messages() -> None:
    many = "The code is K7 and the room is B12 on Monday."
    few = "So we talked for quite a long while about that thing called Bob."
    assert await summarized(Message.user(few), Message.user(many), max_tokens=12) == [many]
    assert await summarized(Message.user(few), Message.user(many)) == [few, many]


async def test_a_summary_of_a_summary_keeps_lines_without_repeating_any() -> None:
    before = Message(role="summary", content="book: seats=4; place=Luigi's\nI am Ann Lee.")
    assert await summarized(before, Message.user("I am Ann Lee. I like Rome.")) == [
        "book: seats=4; place=Luigi's",
        "I am Ann Lee.",
        "I like Rome.",
    ]


async def test_listing_is_worth_no_more_than_one_of_its_records() -> None:
    listing = Message.tool('[{"dish": "a"}, {"dish": "b"}, {"dish": "c"}]', tool_call_id="c", name="menu")
    order = Message.tool('{"dish": "a", "table": "b", "code": "c"}', tool_call_id="c", name="order")
    assert await summarized(listing, order, max_tokens=4) == ["order: dish=a; table=b; code=c"]


async def test_no_line_is_too_long_to_be_a_unit() -> None:
    (line,) = await summarized(Message.user("Rome " * 200))
    assert len(line) <= 400
