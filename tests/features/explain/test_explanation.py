"""What a report and an explanation answer, for each reason that there is."""

from __future__ import annotations

from typing import Any, get_args

from msgspec.structs import replace

from reactor_memory.core.context.budget import assemble
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.draft import ContextLimits, Draft
from reactor_memory.core.context.report import MessageReason
from reactor_memory.features.explain import reasons
from reactor_memory.features.explain.explanation import (
    Evidence,
    Explanation,
    FactFate,
    FactReason,
    about_message,
    explain,
)
from reactor_memory.features.facts.frames import FACTS
from reactor_memory.features.facts.prose import render_narrative
from reactor_memory.features.facts.rendering import render_facts
from reactor_memory.features.pins.placement import fact_text
from reactor_memory.models import Message
from reactor_memory.models.block_lines import BlockLine
from reactor_memory.models.ledger import Fact, Segment
from tests.core.context.histories import count, count_text, pinned, stored
from tests.scenes.drafts import draft
from tests.scenes.tables import each_row

LOG = stored([Message.user(f"message {n}") if n % 2 else Message.assistant(f"message {n}") for n in range(1, 31)])


def fact(seq: int, value: str = "", **fields: Any) -> Fact:
    given: dict[str, Any] = {
        "anchor": f"thing {seq}",
        "key": "what",
        "value": value or f"value {seq}",
        "source_seq": seq,
    }
    given |= {"verified": True, **fields}
    return Fact(**given)


def draft_of(lines: tuple[BlockLine, ...] = (), **fields: Any) -> Draft:
    given: dict[str, Any] = {
        "fact_lines": lines,
        "window": LOG[20:],
        "covered_seq": 24,
    }
    given |= {"memory_before_seq": 21, "freshness": "fresh", **fields}
    return draft(**given)


def context_of(draft: Draft, budget: int = 1000) -> Context:
    limits = ContextLimits(budget=budget, memory_curve=((1, 0.9),), recent_message_count=2)
    return assemble(draft, [Message.user("and now?")], limits, count=count, count_text=count_text)


def explained(facts: list[Fact], draft: Draft, budget: int = 1000, **fields: Any) -> Explanation:
    context = context_of(draft, budget)
    given: dict[str, Any] = {
        "seqs": range(1, 31),
        "in_view": frozenset(range(1, 31)),
        "facts": facts,
        "competing": facts,
    }
    given |= {"successors": {}, "quotes": {}, **fields}
    return explain(context, draft, Evidence(**given))


def only(explanation: Explanation) -> FactFate:
    (found,) = explanation.facts
    return found


def lines_of(*facts: Fact) -> tuple[BlockLine, ...]:
    return render_facts(facts, count=count_text)


# -- the report -------------------------------------------------------------------------------------------------------


def test_window_messages_are_kept_older_ones_remembered_or_summarized() -> None:
    report = context_of(draft_of(lines_of(fact(3), fact(5)))).report
    shown = report.why(25)
    assert (shown.outcome, shown.reason, shown.parts, shown.lines) == ("kept", "fits", ("window",), ())
    remembered = report.why(5)
    assert (remembered.outcome, remembered.parts) == ("remembered", ())
    (line,) = remembered.lines
    assert (line.part, line.number, line.kept, line.reason, line.sources) == ("facts", 2, True, "fits", (5,))
    assert (report.why(4).outcome, report.why(4).reason) == ("dropped", "summarized")
    assert report.why(31).reason == report.why(99).reason == report.why(0).reason == "unknown"


def test_a_line_is_found_in_its_block_by_its_number() -> None:
    """Also when other lines were given up before it."""
    lines = tuple(BlockLine(text=f"line {n}: x", tokens=3, value=n % 2, source_seqs=(n,)) for n in range(1, 11))
    context = context_of(draft_of(lines), budget=48)
    text = context.messages[0].content.split("\n")
    assert text[0] == FACTS.header
    kept = [line for line in context.report.lines() if line.kept]
    assert 0 < len(kept) < len(lines)
    for line in kept:
        assert text[1 + (line.number or 0)] == f"line {line.sources[0]}: x"
    gone = next(line for line in context.report.lines() if not line.kept)
    assert (gone.number, gone.reason) == (None, "low_value")
    assert context.report.why(gone.sources[0]).outcome == "dropped"
    assert context.report.why(gone.sources[0]).lines == (gone,)


def test_what_is_neither_in_window_nor_in_memory_is_unread() -> None:
    report = context_of(draft_of(covered_seq=10, unread=((11, 20),))).report
    assert [report.why(seq).reason for seq in (10, 11, 20, 21)] == ["summarized", "unread", "unread", "fits"]


def test_message_that_window_has_no_room_for_is_over_budget() -> None:
    report = context_of(draft_of(), budget=40).report
    assert (report.why(21).outcome, report.why(21).reason) == ("dropped", "over_budget")


def test_a_message_may_stand_twice_and_a_pinned_fact_once() -> None:
    pins = (pinned("message 25", seq=25), pinned("Pinned Fact: x", seq=3, fact=("thing 3", "what")))
    report = context_of(draft_of(pins=pins)).report
    assert report.why(25).parts == ("pins", "window")
    assert (report.why(25).reason, report.why(25).lines) == ("protected", ())
    assert report.why(3).outcome == "remembered"
    assert [(line.part, line.number, line.sources) for line in report.why(3).lines] == [("pins", 2, (3,))]


def test_a_message_whose_text_was_cut_is_clamped() -> None:
    window = (*LOG[:28], replace(LOG[28], content="long " * 500, token_count=None))
    limits = ContextLimits(budget=200)
    draft = draft_of(window=window)
    context = assemble(draft, [Message.assistant("so far")], limits, count=count, count_text=count_text)
    assert (context.report.why(29).outcome, context.report.why(29).reason) == ("clamped", "too_long")


# -- the explanation --------------------------------------------------------------------------------------------------


def test_a_shown_fact_stays_shown_when_a_later_one_holds() -> None:
    old, new = fact(3, anchor="a"), fact(25, anchor="a")
    found = only(explained([old], draft_of(lines_of(old)), successors={old: new}, quotes={old: "it is value 3"}))
    assert (found.kept, found.reason, found.successor, found.quote) == (True, "shown", new, "it is value 3")
    assert found.line
    assert (found.line.number, found.line.text) == (1, "a: value 3")


@each_row(
    ("reason", "given", "draft", "fields"),
    [
        ("unverified", fact(25, verified=False), draft_of(), {}),
        ("verbatim", fact(25), draft_of(), {}),
        ("superseded", fact(3), draft_of(), {"successors": {fact(3): fact(4)}}),
        ("no_memory", fact(3), draft_of(memory_before_seq=0), {}),
        ("after_memory", fact(19), draft_of(memory_before_seq=15), {}),
        ("not_in_working_set", fact(3), draft_of(), {"competing": []}),
        ("repeated", fact(3, value=" ; "), draft_of(), {}),
        ("below_floor", fact(3), draft_of(floor=(2.0, 5)), {}),
        ("over_budget", fact(3), draft_of(floor=(0.5, 0)), {}),
    ],
)
def test_each_reason(reason: str, given: Fact, draft: Draft, fields: dict[str, Any]) -> None:
    found = only(explained([given], draft, **fields))
    assert (found.reason, found.kept) == (reason, reason == "verbatim")


def test_a_line_given_up_makes_its_facts_low_value() -> None:
    facts = [fact(seq) for seq in range(1, 11)]
    found = explained(facts, draft_of(lines_of(*facts)), budget=48)
    assert {fate.reason for fate in found.facts} == {"shown", "low_value"}
    assert [fate.kept for fate in found.facts] == [line.kept for line in found.lines]


def test_a_fact_whose_line_was_recalled_is_shown() -> None:
    facts = [fact(3), fact(5)]
    found = explained(facts, draft_of(floor=(2.0, 1), recalled_lines=lines_of(facts[0])))
    assert [(fate.kept, fate.reason) for fate in found.facts] == [(True, "shown"), (False, "below_floor")]
    line = found.facts[0].line
    assert line
    assert (line.part, line.number, line.sources) == ("recalled", 1, (3,))
    assert found.messages[2].outcome == "remembered"


def test_a_pinned_fact_is_pinned_only_as_it_was_pinned() -> None:
    old, new = fact(3, anchor="a"), fact(5, anchor="a")
    pin = pinned(fact_text(old), seq=3, fact=("a", "what"))
    found = explained([old, new], draft_of(pins=(pin,)), competing=[new], successors={old: new})
    assert [fate.reason for fate in found.facts] == ["pinned", "over_budget"]


def test_a_line_of_narrative_is_traced_to_its_segment() -> None:
    told = "They said hello. They ordered tea.\nTea came."
    segments = [
        Segment(conversation_id="s", start_seq=1, end_seq=9, source_hash="", summarizer="", prompt_version="",
                narrative="Before. They said hello. They ordered tea."),
        Segment(conversation_id="s", start_seq=10, end_seq=24, source_hash="", summarizer="", prompt_version="",
                narrative="Tea came."),
    ]  # fmt: skip
    draft = draft_of(narrative=render_narrative(told, count=count_text)[1:])
    found = explained([], draft, narrative=told, segments=segments)
    assert [(line.text, line.kept, line.sources) for line in found.lines] == [
        ("They said hello. They ordered tea.", False, tuple(range(1, 10))),
        ("Tea came.", True, tuple(range(10, 25))),
    ]


def test_a_message_out_of_view_was_withdrawn() -> None:
    found = explained([], draft_of(), in_view=frozenset(range(2, 31)))
    assert [fate.reason for fate in found.messages[:2]] == ["withdrawn", "summarized"]


def test_what_is_about_a_message_is_its_facts_and_lines() -> None:
    facts = [fact(3), fact(5)]
    found = about_message(explained(facts, draft_of(lines_of(*facts))), 5)
    assert [fate.seq for fate in found.messages] == [5]
    assert [fate.fact.source_seq for fate in found.facts] == [5]
    assert [line.sources for line in found.lines] == [(5,)]


def test_every_reason_has_words() -> None:
    assert set(reasons.FACT_REASONS) == set(get_args(FactReason))
    named = {reason for union in get_args(MessageReason) for reason in get_args(union)}
    assert set(reasons.MESSAGE_REASONS) == named
