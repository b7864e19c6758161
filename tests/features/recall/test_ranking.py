"""Rare words count for more; what is searched in parts ranks as if it were searched at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.recall.passages import passages_of
from reactor_memory.features.recall.ranking import best_places, found_among, joined, rarity, scored
from reactor_memory.models import Message, ToolCall
from reactor_memory.models.index_requests import IndexAnswer, IndexHit, Passage, RecallQuery

WORDS = st.sampled_from(["4711", "815", "0042", "77", "9000"])  # the same in every language
LOGS = st.lists(st.lists(WORDS, min_size=1, max_size=5).map(" ".join), min_size=2, max_size=12).map(
    lambda texts: [Message.user(text, seq=seq) for seq, text in enumerate(texts, start=1)]
)


def findings(messages: list[Message], *words: str, begun: dict[str, tuple[str, ...]] | None = None) -> IndexAnswer:
    asked = RecallQuery(session_id="s", branch=(), text="", words=tuple((word,) for word in words), begun=begun or {})
    return found_among(passages_of(messages), asked)


def seqs(answer: IndexAnswer) -> list[int]:
    return [hit.passage.seq for hit in answer.found if hit.passage.terms]


def test_a_rare_word_says_more() -> None:
    assert rarity(1, 100) > rarity(2, 100) > rarity(100, 100) > 0
    assert rarity(5, 0) > 0


def test_a_short_passage_outranks_a_long_one_the_newer_wins() -> None:
    texts = enumerate(["taxi and many other words", "", "taxi", "", "taxi"], start=1)
    log = [Message.user(text, seq=seq) for seq, text in texts]
    assert seqs(scored(findings(log, "taxi"))) == [5, 3, 1]


def test_a_long_answer_outranks_a_short_one_that_holds_less() -> None:
    answer = "0042 77 4711 " + " ".join(f"{number} marks" for number in range(100, 140))
    log = [Message.user(text, seq=seq) for seq, text in enumerate(["0042 77", "", answer, "", "815", "815"], start=1)]
    assert seqs(scored(findings(log, "0042", "77", "4711")))[0] == 3


def test_what_stands_beside_an_answer_counts_for_more() -> None:
    log = [Message.user(text, seq=seq) for seq, text in enumerate(["walrus", "at noon", "a taxi", "no"], start=1)]
    answer = scored(findings(log, "walrus"))
    assert [hit.passage.seq for hit in answer.found] == [1, 2]
    assert answer.found[0].score > answer.found[1].score > 0


def test_steps_count_less_beside_each_other_than_talk() -> None:
    def beside(call_seq: int) -> float:
        found = tuple(
            IndexHit(passage=Passage(seq=seq, start=0, end_seq=seq, end=1, tokens=1, call_seq=call_seq, terms=held))
            for seq, held in ((1, ("walrus",)), (2, ()))
        )
        return scored(IndexAnswer(found=found, frequencies={"walrus": 1}, total=9)).found[1].score

    assert beside(0) > beside(1) > 0


def called(call: str, result: str) -> list[Message]:
    made = ToolCall(id="1", name="book", arguments=call)
    return [
        Message.user("a taxi", seq=1),
        Message(role="assistant", content="", tool_calls=(made,), seq=2),
        Message(role="tool", content=result, tool_call_id="1", seq=3),
    ]


LONG = " ".join(f"word{number}" for number in range(40))


def test_what_a_short_call_gave_comes_before_it() -> None:
    ranked = scored(findings(called("walrus", LONG), "walrus")).found
    assert [hit.passage.seq for hit in ranked][:2] == [3, 2]
    assert ranked[0].score > ranked[1].score > 0


def test_a_call_that_tells_more_than_its_result_stays_first() -> None:
    assert seqs(scored(findings(called(LONG + " walrus", "done"), "walrus")))[0] == 2
    assert seqs(scored(findings(called("walrus", LONG)[:2], "walrus"))) == [2]


def test_a_word_that_nothing_holds_may_be_begun() -> None:
    log = [Message.user("the river", seq=1), Message.user("a taxi", seq=2)]
    assert seqs(findings(log, "riv")) == []
    assert seqs(findings(log, "riv", begun={"riv": ("riv*",)})) == [1]
    assert seqs(findings(log, "taxi", begun={"taxi": ("t*",)})) == [2]


@given(LOGS, st.integers(1, 11), st.lists(WORDS, min_size=1, max_size=3, unique=True))
def test_two_parts_find_what_one_finds(log: list[Message], cut: int, query: list[str]) -> None:
    whole = findings(log, *query)
    parts = joined(findings(log[:cut], *query), findings(log[cut:], *query))
    assert sorted(seqs(parts)) == sorted(seqs(whole))
    assert parts.frequencies == whole.frequencies


def test_the_best_places_weigh_most_and_are_the_newest() -> None:
    places = {"rare": [5], "common": [9, 5, 1]}
    assert best_places(places, {"rare": 5.0, "common": 1.0}, 2) == [5, 9]
