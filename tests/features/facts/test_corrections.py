"""A correction stands as long as what it corrects, and what was told anew gives way."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.facts.line_values import REPLACED, revalued, still_said, word_pairs
from reactor_memory.models import Role
from reactor_memory.models.block_lines import BlockLine
from reactor_memory.models.ledger import RULED, Act, Fact

SAYINGS = (
    "ferry for Anna Brook leaves at nine",
    "Anna Brook travels by night",
    "meeting about spare keys",
    "the ferry for Anna Brook leaves at ten",
)


def line(
    text: str, value: float, seq: int, act: Act = "statement", said_by: Role = "user"
) -> tuple[BlockLine, tuple[Fact, ...]]:
    fact = Fact(anchor=f"x #{seq}", key="k", value=text, source_seq=seq, act=act, said_by=said_by, salience=50)
    return BlockLine(text=text, tokens=9, value=value, source_seqs=(seq,)), (fact,)


def test_a_correction_is_worth_what_it_corrects() -> None:
    old = line("garden party with Tom Ash, forty chairs, red lamps", 2.7, 1, said_by="assistant")
    assert revalued([old, line("Tom Ash brings blue lamps instead", 1.4, 5, "correction")]) == [2.7, 2.7]


def test_rule_keeps_its_worth_and_gives_it_to_its_correction() -> None:
    old = line("never spend over 90 on printer ink", RULED, 1)
    assert revalued([old, line("printer ink: make that 70", 2.0, 5, "correction")]) == [RULED, RULED]


def test_what_speaks_of_something_else_keeps_its_value() -> None:
    old = line("garden party with Tom Ash", 2.7, 1)
    assert revalued([old, line("Tom Birch brings an ash tree instead", 1.4, 5, "correction")]) == [2.7, 1.4]


def test_the_answer_to_a_correction_stands_as_long_as_that() -> None:
    asked = line("move dinner with Tom Ash to six", 2.5, 5, "correction")
    assert revalued([asked, line("dinner with Tom Ash stays", 1.1, 6, said_by="assistant")])[1] == 2.5


def test_user_who_comes_back_to_what_was_settled_corrects_it() -> None:
    settled = line("dinner with Tom Ash, six guests, fish", 2.6, 2, "decision", "assistant")
    assert revalued([settled, line("dinner with Tom Ash: seven guests", 1.3, 9)])[1] == 2.6


def test_what_many_things_have_makes_no_correction() -> None:
    settled = line(
        "two economy seats to Nora Bay on Brook Airlines, back on the ninth", 2.6, 2, "decision", "assistant"
    )
    assert revalued([settled, line("I would rather fly with Brook Airlines", 1.3, 30)])[1] == 1.3


def test_what_is_told_anew_gives_way() -> None:
    old = line("ferry for Anna Brook leaves north pier at nine", 2.6, 1, said_by="assistant")
    new = line("ferry for Anna Brook leaves north pier at ten", 1.9, 8, said_by="assistant")
    assert revalued([old, new]) == [REPLACED, 2.6]


def test_the_same_words_about_another_thing_do_not_replace_it() -> None:
    old = line("parcel to Nora Brook should be weighing nine kilos now", 1.4, 5, "correction")
    new = line("parcel to Anna Brook is by land, weighing nine kilos", 2.1, 8, said_by="assistant")
    assert revalued([old, new])[0] == 1.4


def test_records_keep_their_value() -> None:
    record = BlockLine(text="book: Anna Brook", tokens=9, value=3.2, source_seqs=(1,))
    facts = (Fact(anchor="book #1", key="who", value="Anna Brook", source_seq=1, act="decision"),)
    assert revalued([(record, facts), line("Anna Brook comes later instead", 1.4, 5, "correction")]) == [3.2, 1.4]


def test_a_story_is_not_told_of_what_was_corrected() -> None:
    story = [BlockLine(text=text, tokens=9) for text in ("Tom Ash eats fish.", "Anna Brook sings.")]
    _, corrected = line("Tom Ash eats rice instead", 1.4, 5, "correction")
    _, stated = line("Anna Brook sings", 1.4, 6)
    assert still_said(story, (*corrected, *stated)) == (story[1],)


def test_pairs_are_made_of_names_not_of_what_changes() -> None:
    assert word_pairs("Anna Brook's ferry is at 10:30 on Monday") == {("anna", "brook"), ("brook", "ferry")}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(SAYINGS),
            st.floats(1, 2.9),
            st.sampled_from(["statement", "decision", "correction"]),
            st.sampled_from(["user", "assistant"]),
        ),
        max_size=8,
    )
)
def test_a_longer_log_improves_no_line_beyond_the_best(
    said: list[tuple[str, float, Act, Role]],
) -> None:
    lines = [line(text, value, seq, act, by) for seq, (text, value, act, by) in enumerate(said, 1)]
    values = revalued(lines)
    assert len(values) == len(lines)
    assert max(values, default=0.0) <= max((each.value for each, _ in lines), default=0.0)
    assert all(after <= before for before, after in zip(revalued(lines[:-1]), values, strict=False))
