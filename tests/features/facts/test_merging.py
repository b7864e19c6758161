"""The fold gives one state, whatever arrived when."""

from itertools import permutations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reactor_memory.features.facts.merge import (
    WorkingSet,
    as_of,
    fold,
    fold_into,
    fold_narrative,
    next_working_set,
    refold,
    successors,
    working_set,
)
from reactor_memory.models.ledger import Fact, Ledger, Segment, Summary


def words(text: str) -> int:
    return len(text.split())


def fact(value: str, seq: int = 1, **fields: object) -> Fact:
    given = {"anchor": "booking", "key": "day", "value": value, "source_seq": seq, "verified": True, **fields}
    return Fact(**given)  # type: ignore[arg-type]


def segment(start: int, narrative: str = "", **fields: object) -> Segment:
    given = {"conversation_id": "c", "start_seq": start, "end_seq": start + 9, "source_hash": "h", "summarizer": "s"}
    return Segment(**{**given, "prompt_version": "1", "narrative": narrative, **fields})  # type: ignore[arg-type]


FACTS = st.builds(
    Fact,
    anchor=st.sampled_from(["a", "b"]),
    key=st.sampled_from(["k", "l"]),
    value=st.sampled_from(["one", "two", "three words long"]),
    category=st.sampled_from(["GENERAL", "DECISION"]),
    source_seq=st.integers(1, 5),
    span=st.tuples(st.integers(0, 2), st.just(3)),
    said_by=st.sampled_from(["user", "assistant", "tool"]),
    act=st.sampled_from(["statement", "decision", "correction"]),
    failed=st.booleans(),
    verified=st.booleans(),
)
NARRATIVE = st.text(alphabet="ab .!?\n。", max_size=40)
LIMITS = {"max_fact_tokens": 10_000, "max_narrative_tokens": 12, "count": words}


def test_the_later_message_wins() -> None:
    assert fold([fact("Monday", 1), fact("Friday", 3), fact("Sunday", 2)]) == (fact("Friday", 3),)


def test_inside_message_a_correction_beats_a_decision_beats_a_statement() -> None:
    said = [fact("Monday", act="correction"), fact("Sunday", act="decision"), fact("Friday")]
    assert all(fold(order) == (said[0],) for order in permutations(said))
    assert fold(said[1:]) == (said[1],)


def test_a_tool_never_replaces_what_was_said() -> None:
    stated, told = fact("Monday", 1, said_by="user"), fact("Friday", 2, said_by="tool")
    assert fold([told, stated]) == (stated, told)


def test_two_bookings_are_two_anchors_and_a_failed_attempt_stays() -> None:
    facts = [fact("Monday", 1, failed=True), fact("Friday", 2), fact("Friday", 3, anchor="other")]
    assert fold(facts) == tuple(facts)


def test_as_of_shows_the_facts_as_they_stood() -> None:
    facts = [fact("Monday", 1), fact("Friday", 3)]
    assert as_of(facts, 2) == (facts[0],)
    assert as_of(facts, 0) == ()


@given(st.lists(FACTS, max_size=12), st.randoms(use_true_random=False))
def test_any_order_of_arrival_gives_the_same_state(facts: list[Fact], random: object) -> None:
    shuffled = list(facts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert fold(shuffled) == fold(facts)


@given(st.lists(FACTS, max_size=12), st.integers(0, 12))
def test_folding_a_fold_loses_nothing(facts: list[Fact], cut: int) -> None:
    assert fold([*fold(facts[:cut]), *facts[cut:]]) == fold(facts)


def test_the_working_set_keeps_what_is_worth_most() -> None:
    decided = fact("Monday", act="decision", said_by="assistant")
    told = fact("a long text of a tool", key="text", said_by="tool")
    assert working_set([told, decided], max_tokens=6, count=words) == ((decided,), (told,))
    assert working_set([told, decided], max_tokens=999, count=words) == ((told, decided), ())


@given(st.lists(FACTS, max_size=12, unique=True), st.integers(0, 60), st.integers(0, 60))
def test_a_larger_working_set_never_loses_a_fact(facts: list[Fact], one: int, other: int) -> None:
    small = working_set(facts, max_tokens=min(one, other), count=words)
    large = working_set(facts, max_tokens=max(one, other), count=words)
    assert set(small.kept) <= set(large.kept)


@given(st.lists(FACTS, max_size=12, unique=True), st.integers(0, 60))
def test_a_working_set_says_when_it_leaves_something_out(facts: list[Fact], limit: int) -> None:
    kept, spare = working_set(facts, max_tokens=limit, count=words)
    assert bool(spare) == (len(kept) < len(facts))
    assert list(kept) == [f for f in facts if f in kept]
    assert list(spare) == [f for f in facts if f in spare]
    assert not set(kept) & set(spare)


def test_a_segment_of_the_first_message_alone_is_told() -> None:
    first = segment(1, "A table was booked.", end_seq=1)
    whole = refold(Ledger(segments=(first,)), **LIMITS)  # type: ignore[arg-type]
    assert whole.narrative == first.narrative
    folded = fold_into(Summary(), [], first, **LIMITS)  # type: ignore[arg-type]
    assert folded is not None
    assert folded.narrative == first.narrative


def test_of_equal_facts_those_that_say_more_per_token_stay() -> None:
    cheap, dear = fact("Monday", 1, anchor="a"), fact("in the early afternoon of the third day", 2, anchor="b")
    assert working_set([cheap, dear], max_tokens=10, count=words).kept == (cheap,)
    two = [fact("on Monday", 3, anchor="c"), fact("at noon", 3, anchor="c", key="hour", span=(9, 12))]
    one = fact("a large table", 4, anchor="d")
    assert working_set([*two, one], max_tokens=6, count=words).kept == tuple(two)


def test_the_lowest_ranked_stays_spare_as_its_anchor_gets_more() -> None:
    facts = [fact("Monday morning", seq, anchor=f"a{seq}") for seq in range(1, 9)]
    before = working_set(facts, max_tokens=12, count=words)
    newest, lowest = before.kept[-1], before.spare[-1]
    shorter = replace(newest, value="noon", source_seq=9)
    more = fact("fine", 10, anchor=lowest.anchor, key="weather", said_by="tool")
    found = next_working_set(before, [shorter, more], [newest, lowest], max_tokens=12, count=words)
    assert found == working_set(fold([*facts, shorter, more]), max_tokens=12, count=words)
    assert found is not None
    assert lowest in found.spare


def test_what_is_spare_ranks_next_and_is_little() -> None:
    said = [fact(f"day {n}", anchor=f"the user #{n}", source_seq=n, salience=50 - n) for n in range(20)]
    assert working_set(said, max_tokens=32, count=words) == (tuple(said[:8]), tuple(said[8:10]))
    assert working_set(said, max_tokens=4, count=words) == (tuple(said[:1]), tuple(said[1:2]))


def test_the_oldest_sentences_are_dropped_first() -> None:
    lines = ["One two. Three four.", "Five six."]
    assert fold_narrative(lines, max_tokens=6, count=words) == "Three four.\nFive six."
    assert fold_narrative(lines, max_tokens=3, count=words) == "Five six."
    assert fold_narrative(lines, max_tokens=2, count=words) == ""


@given(st.lists(NARRATIVE, max_size=6), st.integers(0, 20))
def test_the_narrative_keeps_its_limit(lines: list[str], limit: int) -> None:
    assert words(fold_narrative(lines, max_tokens=limit, count=words)) <= limit


@given(st.lists(st.tuples(st.lists(FACTS, max_size=4), NARRATIVE), max_size=5))
def test_one_segment_after_the_other_equals_all_at_once(read: list[tuple[list[Fact], str]]) -> None:
    segments = [segment(1 + 10 * n, narrative) for n, (_, narrative) in enumerate(read)]
    summary = Summary()
    for current, (facts, _) in zip(segments, read, strict=True):
        summary = fold_into(summary, facts, current, **LIMITS)  # type: ignore[arg-type]
    ledger = Ledger(segments=tuple(segments), facts=tuple(f for facts, _ in read for f in facts))
    whole = refold(ledger, **LIMITS)  # type: ignore[arg-type]
    assert msgspec.structs.replace(summary, version=0) == whole
    assert summary.version == len(read)


def known_about(facts: list[Fact], ledger: list[Fact]) -> list[Fact]:
    anchors = {f.anchor for f in facts}
    return [f for f in ledger if f.verified and f.anchor in anchors]


MANY_FACTS = st.builds(
    Fact,
    anchor=st.sampled_from("abcdefghij"),
    key=st.sampled_from("kl"),
    value=st.sampled_from(["one", "two", "three words long", "no more than that many words", ""]),
    source_seq=st.integers(1, 60),
    said_by=st.sampled_from(["user", "assistant", "tool"]),
    act=st.sampled_from(["statement", "statement", "decision", "correction"]),
    failed=st.booleans(),
    verified=st.sampled_from([True, True, True, False]),
    salience=st.sampled_from([0, 0, 30, 100]),
)


@settings(max_examples=3 * settings().max_examples, deadline=None)
@given(st.lists(st.lists(MANY_FACTS, max_size=5), max_size=10), st.integers(0, 60))
def test_a_truncated_summary_goes_on_as_the_whole_ledger_would(read: list[list[Fact]], limit: int) -> None:
    """In any order of arrival: corrections that make a kept fact shorter or worth less among them."""
    limits = {**LIMITS, "max_fact_tokens": limit}
    summary, segments, ledger = Summary(), list[Segment](), list[Fact]()
    for number, facts in enumerate(read):
        segments.append(segment(1 + 10 * number, f"Part {number}."))
        known = known_about(facts, ledger)
        added = fold_into(summary, facts, segments[-1], known=known, **limits)  # type: ignore[arg-type]
        ledger += facts
        whole = refold(Ledger(segments=tuple(segments), facts=tuple(ledger)), **limits)  # type: ignore[arg-type]
        if added is None:
            assert summary.truncated
            summary = msgspec.structs.replace(whole, version=number + 1)
            continue
        summary = added
        assert (summary.facts(), summary.truncated, summary.narrative) == (
            whole.facts(),
            whole.truncated,
            whole.narrative,
        )
        assert (summary.covered_seq, summary.version) == (whole.covered_seq, number + 1)


def test_a_truncated_summary_is_refolded_only_without_spare_facts() -> None:
    limits = {**LIMITS, "max_fact_tokens": 16}
    ledger = [fact("some three words", anchor=f"t{n}", source_seq=n, act="decision") for n in range(1, 8)]
    summary = refold(Ledger(segments=(segment(1),), facts=tuple(ledger)), **limits)  # type: ignore[arg-type]
    assert [f.source_seq for f in summary.facts()] == [4, 5, 6, 7]
    assert [f.source_seq for f in summary.spare()] == [3]
    gone = [fact("", anchor="t7", source_seq=10), fact("", anchor="t6", source_seq=11)]
    once = fold_into(summary, gone[:1], segment(11), known=known_about(gone[:1], ledger), **limits)  # type: ignore[arg-type]
    assert once is None, "the fact that takes the place is spare, and the one behind it is not known"
    limits["max_fact_tokens"] = 15
    summary = refold(Ledger(segments=(segment(1),), facts=tuple(ledger)), **limits)  # type: ignore[arg-type]
    assert [f.source_seq for f in summary.facts()] == [5, 6, 7]
    once = fold_into(summary, gone[:1], segment(11), known=known_about(gone[:1], ledger), **limits)  # type: ignore[arg-type]
    assert once is None
    changed = [fact("other three words", anchor="t7", source_seq=10, act="decision")]
    once = fold_into(summary, changed, segment(11), known=known_about(changed, ledger), **limits)  # type: ignore[arg-type]
    assert once is not None
    assert [f.source_seq for f in once.facts()] == [5, 6, 10]
    assert [f.source_seq for f in once.spare()] == [4]


def test_a_working_set_without_spare_facts_is_folded_again() -> None:
    limits = {**LIMITS, "max_fact_tokens": 3}
    old = replace(summary_with_spare(), spare_json="[]")
    assert fold_into(old, [], segment(11), **limits) is None  # type: ignore[arg-type]


def summary_with_spare() -> Summary:
    facts = (fact("Monday", act="decision"), fact("Friday", key="other"))
    limits = {**LIMITS, "max_fact_tokens": 3}
    return refold(Ledger(segments=(segment(1),), facts=facts), **limits)  # type: ignore[arg-type]


def test_unverified_facts_are_kept_out_of_summary_and_replace_nothing() -> None:
    ledger = Ledger(segments=(segment(1),), facts=(fact("Monday", 1), fact("Friday", 2, verified=False)))
    assert refold(ledger, **LIMITS).facts() == (fact("Monday", 1),)  # type: ignore[arg-type]


def test_a_refold_names_stale_ranges_and_how_far_it_reaches() -> None:
    summary = refold(Ledger(segments=(segment(1), segment(11, stale=True))), **LIMITS)  # type: ignore[arg-type]
    assert summary.covered_seq == 20
    assert summary.stale_ranges == ((11, 20),)


def test_a_truncated_summary_stays_truncated() -> None:
    limits = {**LIMITS, "max_fact_tokens": 1}
    summary = fold_into(Summary(), [fact("Monday")], segment(1), **limits)  # type: ignore[arg-type]
    assert summary.truncated
    assert fold_into(summary, [], segment(11), **limits).truncated  # type: ignore[arg-type]


def test_a_quotation_weighs_what_its_words_weigh() -> None:
    said = fact("I would like to have the two rooms", anchor="the user #1", salience=50)
    assert working_set([said], max_tokens=10, count=words) == ((said,), ())
    assert working_set([said], max_tokens=9, count=words) == ((), (said,))


def test_the_working_set_keeps_the_quotation_that_matters_more() -> None:
    more, less = (fact("two rooms", anchor=f"the user #{n}", source_seq=n, salience=90 - n) for n in (1, 2))
    assert working_set([more, less], max_tokens=5, count=words) == WorkingSet((more,), (less,))


def test_what_holds_no_more_is_named_with_what_does() -> None:
    first, second, last = fact("Monday", 1), fact("Friday", 3), fact("Sunday", 5)
    others = [fact("Monday", 7, verified=False), fact("Monday", 8, said_by="tool"), fact("Monday", 9, failed=True)]
    assert successors([last, first, *others, second]) == {first: last, second: last}
