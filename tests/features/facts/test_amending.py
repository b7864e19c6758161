"""The fold with corrections: order never matters, the last word of a person holds until a later message."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reactor_memory.features.facts.amendment_fold import amended, muted, overruled, until
from reactor_memory.features.facts.merge import as_of, fold, refold
from reactor_memory.models import Role
from reactor_memory.models.ledger import Fact, FactCorrection, Ledger

names = st.tuples(st.sampled_from("ab"), st.sampled_from("xy"))
facts = st.lists(
    st.builds(
        lambda name, value, seq, said_by, failed, verified: Fact(
            anchor=name[0], key=name[1], value=value, source_seq=seq, said_by=said_by, failed=failed, verified=verified
        ),
        names,
        st.sampled_from(["1", "2", "3"]),
        st.integers(1, 20),
        st.sampled_from(["user", "assistant", "tool"]),
        st.booleans(),
        st.just(True),
    ),
    max_size=12,
)
said = st.lists(st.tuples(names, st.sampled_from(["right", "wrong", None]), st.integers(1, 20)), max_size=4)


def corrections_of(given_: list[tuple[tuple[str, str], str | None, int]]) -> tuple[FactCorrection, ...]:
    """In the order in which they were made, so with lengths that do not shrink."""
    lengths = sorted(length for _, _, length in given_)
    return tuple(
        FactCorrection(anchor=anchor, key=key, value=value, seq=length, source_seq=1, ordinal=ordinal)
        for ordinal, (((anchor, key), value, _), length) in enumerate(zip(given_, lengths, strict=True), start=1)
    )


def holding(found: list[Fact], corrections: tuple[FactCorrection, ...]) -> tuple[Fact, ...]:
    return fold(amended(found, corrections))


@given(facts, said, st.randoms())
def test_the_order_of_the_facts_does_not_matter(found: list[Fact], given_: Any, chance: random.Random) -> None:
    corrections = corrections_of(given_)
    shuffled = list(found)
    chance.shuffle(shuffled)
    assert holding(shuffled, corrections) == holding(found, corrections)


@given(facts, said)
def test_what_a_person_said_last_holds_until_a_later_message(found: list[Fact], given_: Any) -> None:
    corrections = corrections_of(given_)
    last = {(each.anchor, each.key): each for each in corrections}
    for name, correction in last.items():
        now = [fact for fact in holding(found, corrections) if (fact.anchor, fact.key) == name]
        later = [fact for fact in found if (fact.anchor, fact.key) == name and fact.source_seq > correction.seq]
        fixed = [fact.value for fact in now if fact.amended]
        people = ("user", "system")
        stated = any(not fact.failed and (fact.said_by in people or fact.act == "correction") for fact in later)
        assert fixed == ([] if correction.value is None or stated else [correction.value])
        assert all(fact.amended or fact.source_seq > correction.seq for fact in now)


@given(facts, said)
def test_other_facts_are_left_alone(found: list[Fact], given_: Any) -> None:
    corrections = corrections_of(given_)
    named = {(each.anchor, each.key) for each in corrections}
    others = [fact for fact in found if (fact.anchor, fact.key) not in named]
    assert [fact for fact in holding(found, corrections) if (fact.anchor, fact.key) not in named] == list(fold(others))


@given(facts, said, st.integers(0, 21))
def test_what_held_earlier_can_be_asked_for(found: list[Fact], given_: Any, seq: int) -> None:
    corrections = corrections_of(given_)
    then = [fact for fact in found if fact.source_seq <= seq]
    made = until(corrections, seq)
    assert as_of(amended(found, made), seq) == tuple(fact for fact in holding(then, made) if fact.source_seq <= seq)


@given(facts, said)
def test_whatever_gave_way_is_told_with_what_took_its_place(found: list[Fact], given_: Any) -> None:
    corrections = corrections_of(given_)
    gone = overruled(found, corrections)
    held = amended(found, corrections)
    assert set(gone) == set(found) - set(held)
    for fact, instead in gone.items():
        assert instead is None or (instead in held and (instead.anchor, instead.key) == (fact.anchor, fact.key))


@given(facts, said, st.integers(1, 60))
def test_a_refold_keeps_what_a_person_said(found: list[Fact], given_: Any, room: int) -> None:
    ledger = Ledger(facts=tuple(found), corrections=corrections_of(given_))
    plain = Ledger(facts=tuple(holding(found, ledger.corrections)))
    options: Any = {"max_fact_tokens": room, "max_narrative_tokens": 5, "count": len}
    assert refold(ledger, **options) == refold(plain, **options)


def test_it_stands_in_the_place_of_what_it_replaces() -> None:
    booked = Fact(
        anchor="table #2", key="day", value="monday", source_seq=4, span=(3, 9), act="decision", category="DECISION",
        said_by="tool", verified=True,
    )  # fmt: skip
    correction = FactCorrection(anchor="table #2", key="day", value="friday", seq=9, source_seq=4, ordinal=1)
    assert amended([booked], [correction]) == (replace(booked, value="friday", said_by="user", amended=True),)


def test_it_outlives_what_it_replaced() -> None:
    correction = FactCorrection(anchor="user", key="name", value="Ann", seq=9, source_seq=4, ordinal=1)
    (fact,) = amended([], [correction])
    assert (fact.value, fact.source_seq, fact.said_by, fact.verified) == ("Ann", 4, "user", True)


def quoted(value: str, seq: int, span: tuple[int, int] = (0, 0), said_by: Role = "user") -> Fact:
    return Fact(
        anchor=f"said #{seq}", key="said", value=value, source_seq=seq, span=span, said_by=said_by, salience=50,
        verified=True,
    )  # fmt: skip


SEAT = Fact(
    anchor="trip 10", key="seat", value="window seat", source_seq=5, span=(10, 21), said_by="user", verified=True
)
NO_SEAT = FactCorrection(anchor="trip 10", key="seat", value=None, seq=9, source_seq=5)


def test_what_says_the_same_goes_with_a_retracted_fact() -> None:
    sentence = quoted("I'd like a window seat", 5, (0, 22))
    answer = quoted("A window seat, noted", 6, said_by="assistant")
    kept = (
        replace(SEAT, anchor="trip 11", span=(40, 51)),  # the same value of another thing, in the same message
        quoted("Trip 11 also by the window seat side", 7, (0, 36)),
        quoted("My bag is red", 5, (60, 73)),
        quoted("a window seat again", 12, said_by="assistant"),
        replace(SEAT, anchor="booking #1", said_by="tool", source_seq=6),
    )
    facts = (SEAT, sentence, answer, *kept)
    assert amended(facts, [NO_SEAT]) == kept
    assert overruled(facts, [NO_SEAT]) == {SEAT: None, sentence: None, answer: None}
    fixed = replace(NO_SEAT, value="aisle seat")
    assert {each and each.value for each in overruled(facts, [fixed]).values()} == {"aisle seat"}
    assert amended(facts, [replace(NO_SEAT, value="Window  seat")])[:-1] == facts[1:]


def test_muted_facts_go_whenever_they_were_said() -> None:
    later = replace(SEAT, value="aisle", source_seq=30, span=(0, 5))
    other = replace(SEAT, anchor="trip 11", category="DECISION", span=(40, 51))
    mute = FactCorrection(anchor="trip 10", key="", value=None, seq=5, source_seq=5, ordinal=1)
    fixed = FactCorrection(anchor="trip 10", key="seat", value="none", seq=9, source_seq=5, ordinal=2)
    assert amended([SEAT, later, other], [mute, fixed]) == (other,)
    assert muted([SEAT, later, other], [mute, fixed]) == {SEAT, later}
    category = FactCorrection(anchor="", key="DECISION", value=None, seq=0, source_seq=0, ordinal=3)
    assert amended([SEAT, other], [category]) == (SEAT,)
    lifted = replace(category, value="", ordinal=4)
    assert amended([SEAT, other], [category, lifted]) == (SEAT, other)
