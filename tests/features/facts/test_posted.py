"""What an agent posted in the narrative: a fold that goes on from one is the fold of everything."""

from __future__ import annotations

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.facts.merge import fold_into, posted_lines, refold
from reactor_memory.models.ledger import Ledger, PostedSummary, Segment, Summary
from reactor_memory.text.spans import sentences

texts = st.text(st.sampled_from("abc.!? \n\u2028漢。-"), max_size=40)
prose = st.lists(texts, max_size=4).map("\n".join)


def segment(number: int, narrative: str) -> Segment:
    """Of two messages."""
    start = 2 * number + 1
    return Segment(
        conversation_id="s",
        start_seq=start,
        end_seq=start + 1,
        source_hash="h",
        summarizer="s",
        prompt_version="1",
        narrative=narrative,
    )


@given(st.lists(texts, max_size=6), prose, st.integers(1, 14), st.integers(0, 60), st.integers(0, 6))
def test_folding_on_gives_the_same_as_folding_everything(
    narratives: list[str], text: str, until_seq: int, max_tokens: int, sealed_before: int
) -> None:
    segments = [segment(number, narrative) for number, narrative in enumerate(narratives)]
    posted = PostedSummary(seq=99, until_seq=until_seq, text=text)
    whole = partial(refold, max_fact_tokens=10, max_narrative_tokens=max_tokens, count=len)
    fold_on = partial(fold_into, posted_until=until_seq, max_fact_tokens=10, max_narrative_tokens=max_tokens, count=len)
    summary = whole(Ledger(segments=tuple(segments[:sealed_before]), posted=posted))
    for each in segments[sealed_before:]:
        folded = fold_on(summary, (), each)
        assert folded is not None
        summary = folded
    expected = whole(Ledger(segments=tuple(segments), posted=posted))
    assert (summary.narrative, summary.covered_seq) == (expected.narrative, expected.covered_seq)


@given(prose)
def test_every_word_of_it_is_told(text: str) -> None:
    assert " ".join(posted_lines(text)).split() == " ".join(sentences(text)).split()


def test_a_sentence_that_never_ends_is_told_in_pieces() -> None:
    for text in ("word " * 1000, "x" * 5000, "word " * 50 + "y" * 1000):
        lines = posted_lines(text)
        assert max(map(len, lines)) <= 400
        assert "".join("".join(lines).split()) == "".join(text.split())
        told = refold(
            Ledger(posted=PostedSummary(seq=2, until_seq=1, text=text)),
            max_fact_tokens=0,
            max_narrative_tokens=900,
            count=len,
        )
        assert 0 < len(told.narrative) <= 900


def test_what_segments_tell_of_the_same_messages_is_left_out() -> None:
    segments = tuple(segment(number, f"part {number}.") for number in range(3))
    posted = PostedSummary(seq=9, until_seq=3, text="It began.\n- so it did")
    told = refold(Ledger(segments=segments, posted=posted), max_fact_tokens=9, max_narrative_tokens=99, count=len)
    assert told.narrative.splitlines() == ["It began.", "- so it did", "part 1.", "part 2."]
    assert told.covered_seq == 6


def test_without_one_nothing_is_different() -> None:
    assert refold(Ledger(), max_fact_tokens=9, max_narrative_tokens=9, count=len) == Summary()
