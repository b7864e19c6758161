"""What search decides without a store: fusing, marking, comparing vectors."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.errors import EmbeddingError, SearchTypeUnavailableError
from reactor_memory.features.recall.vectors import nearest, packed
from reactor_memory.features.search.highlights import CLOSE, LENGTH, OPEN, highlight
from reactor_memory.features.search.message_search import MAX_QUERY_WORDS, wanted_words
from reactor_memory.features.search.models import RANK_CONSTANT, by_score, fused, is_findable
from reactor_memory.features.search.operations import visible_in, visible_parts
from reactor_memory.features.sharing.access import agents_of
from reactor_memory.features.sharing.principals import Grant, Principal
from reactor_memory.models import Message, Role, Visibility
from reactor_memory.server.problems import problem_of
from reactor_memory.text.analyzer import terms
from tests.scenes.tables import each_row

PLACES = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9)), unique=True)


class TestFusing:
    def test_a_place_that_both_rank_beats_the_best_of_one(self) -> None:
        one, other, both = ("a", 1), ("b", 1), ("c", 1)
        assert [place for place, _ in fused([[one, both], [other, both]])] == [both, one, other]

    def test_the_score_is_the_sum_of_reciprocal_ranks(self) -> None:
        assert dict(fused([[("a", 1), ("b", 1)], [("b", 1)]]))["b", 1] == 1 / (RANK_CONSTANT + 2) + 1 / (
            RANK_CONSTANT + 1
        )

    def test_nothing(self) -> None:
        assert fused([]) == fused([[], []]) == []

    @given(PLACES)
    def test_one_ranking_keeps_its_order(self, ranking: list[tuple[str, int]]) -> None:
        assert [place for place, _ in fused([ranking])] == ranking

    @given(PLACES, PLACES)
    def test_the_order_of_the_rankings_does_not_matter(
        self, one: list[tuple[str, int]], other: list[tuple[str, int]]
    ) -> None:
        assert [place for place, _ in fused([one, other])] == [place for place, _ in fused([other, one])]
        assert {place for place, _ in fused([one, other])} == {*one, *other}

    def test_of_equals_the_first_conversation_and_its_latest_message(self) -> None:
        assert by_score({("b", 9): 1.0, ("a", 1): 1.0, ("a", 2): 1.0, ("z", 1): 2.0}) == [
            ("z", 1),
            ("a", 2),
            ("a", 1),
            ("b", 9),
        ]


@each_row(
    ("role", "visibility", "findable"),
    [
        ("user", "user", True),
        ("assistant", "user", True),
        ("assistant", "agent", False),
        ("system", "system", False),
        ("summary", "agent", True),
        ("tool", "agent", False),
    ],
)
def test_users_find_what_they_see_and_summaries(role: Role, visibility: Visibility, findable: bool) -> None:
    assert is_findable(Message(role=role, content="x", visibility=visibility)) is findable


class TestHighlights:
    def mark(self, text: str, query: str) -> str:
        return highlight(text, terms(query))

    def test_words_are_marked_in_any_form(self) -> None:
        assert self.mark("Two reservations, one Reserved.", "reserve") == "Two ⟦reservations⟧, one ⟦Reserved⟧."

    def test_where_most_words_stand_is_shown(self) -> None:
        text = "refund " + "filler " * 100 + "the refund policy says " + "filler " * 100
        shown = self.mark(text, "refund policy")
        assert "the ⟦refund⟧ ⟦policy⟧ says" in shown
        assert shown.startswith("…")
        assert shown.endswith("…")

    def test_without_a_word_its_beginning(self) -> None:
        shown = self.mark("word " * 200, "else")
        assert shown.startswith("word word")
        assert OPEN not in shown

    def test_marks_in_the_text_are_no_marks(self) -> None:
        assert self.mark("a ⟦cat⟧ and\na dog", "dog") == "a [cat] and a ⟦dog⟧"

    def test_markup_is_text(self) -> None:
        assert self.mark("<b>cat</b> & dog", "cat") == "<b>⟦cat⟧</b> & dog"

    @given(st.text(max_size=2000), st.text(max_size=20))
    def test_what_is_shown_stands_in_the_text(self, text: str, query: str) -> None:
        shown = self.mark(text, query)
        assert shown.count(OPEN) == shown.count(CLOSE)
        plain = shown.replace(OPEN, "").replace(CLOSE, "").strip("…").strip()
        line = re.sub(r"\s+", " ", text.replace(OPEN, "[").replace(CLOSE, "]"))
        assert plain in line or line.startswith("…") or line.endswith("…")
        assert len(plain) <= 4 * LENGTH

    @each_row(
        "text",
        [
            "zz1." * 5000,  # one word, as far as spaces go
            "zz1 " + "x" * 20_000,
            "x" * 20_000,
            "x" * 19_000 + " zz1",
            "a " * 150 + "x" * 300 + " zz1" * 4000,
        ],
    )
    def test_without_spaces_it_is_short_and_marked_too(self, text: str) -> None:
        shown = self.mark(text, "zz1 " + "x" * 40)
        assert OPEN in shown
        assert len(shown.replace(OPEN, "").replace(CLOSE, "").strip("…")) <= 4 * LENGTH

    def test_the_earliest_of_places_that_hold_as_much(self) -> None:
        far = " x" * LENGTH
        assert self.mark(f"a cat and a dog one{far} cat dog two{far}", "cat dog").startswith("a ⟦cat⟧ and a ⟦dog⟧ one")
        assert "⟦cat⟧ ⟦dog⟧ ⟦bird⟧ two" in self.mark(f"a cat and a dog one{far} cat dog bird two{far}", "cat dog bird")


class TestTerms:
    def test_function_words_are_left_out_unless_there_is_nothing_else(self) -> None:
        assert [word.beginning for word in wanted_words("the cat and the dog")] == ["cat", "dog"]
        assert [word.beginning for word in wanted_words("to be or not to be")] == ["to", "be", "or", "not"]

    @given(st.text(max_size=200))
    def test_terms_are_words_of_the_index_and_few(self, text: str) -> None:
        found = wanted_words(text * 50)
        assert len(found) <= MAX_QUERY_WORDS
        assert not any(re.search(r"[\s'\"\\*()|&]", term.removesuffix("*")) for word in found for term in word.terms)

    def test_the_last_word_may_be_the_beginning_of_one(self) -> None:
        for text, begun in (("riv", ["riv*"]), ("riv the", []), ("ri", []), ("Café", ["cafe*"]), ("riv.", [])):
            assert [term for word in wanted_words(text) for term in word.terms if term.endswith("*")] == begun
        assert self.mark("The River is long", "riv") == "The ⟦River⟧ is long"
        assert self.mark("The Rivers of the river", "rivers") == "The ⟦Rivers⟧ of the ⟦river⟧"

    def mark(self, text: str, query: str) -> str:
        return highlight(text, [term for word in wanted_words(query) for term in word.terms])


class TestVectors:
    def test_the_nearest_first_and_no_less_than_asked_for(self) -> None:
        vectors = [packed(vector) for vector in ((0.0, 1.0), (1.0, 0.0), (0.6, 0.8))]
        assert [place for place, _ in nearest((1.0, 0.0), vectors, at_least=0.5, limit=9)] == [1, 2]
        assert [place for place, _ in nearest((1.0, 0.0), vectors, at_least=-1, limit=1)] == [1]
        assert nearest((1.0, 0.0), [], at_least=0.5, limit=9) == []

    def test_plain_numbers_are_compared_alike(self) -> None:
        vectors = [(0.0, 1.0), (1.0, 0.0)]
        found = nearest((1.0, 0.0), vectors, at_least=0.5, limit=9)
        assert found == nearest((1.0, 0.0), [packed(vector) for vector in vectors], at_least=0.5, limit=9)


class TestWhatIsSearched:
    ROOT = ("a", "a", None, None, 1, "00000000", 5)
    FORK = (
        "a",
        "a~1",
        None,
        '[{"conversation_id":"a","start_seq":1,"end_seq":2},{"conversation_id":"a~1","start_seq":3,"end_seq":null}]',
        2,
        "00000000",
        4,
    )
    UNINDEXED = ("b", "b", None, None, None, None, None)

    def parts(self, *asked: str) -> list[tuple[str, int]]:
        found = visible_parts([self.ROOT, self.FORK, self.UNINDEXED], asked)
        return [(part.conversation_id, part.end_seq) for part in found if part.end_seq < 2**31 - 1] or [
            (part.conversation_id, 0) for part in found
        ]

    def test_a_fork_is_its_own_messages_and_what_it_shares(self) -> None:
        assert self.parts("a~1") == [("a", 2)]
        assert self.parts("a") == [("a", 0)]
        assert self.parts("a", "a~1") == [("a", 0), ("a~1", 0)]
        assert self.parts("b") == []

    def test_a_message_is_shown_in_the_first_conversation_asked_for(self) -> None:
        rows = [self.ROOT, self.FORK]
        assert visible_in(rows, None)(("a", 1)) == "a"
        assert visible_in(rows, ("a~1", "a"))(("a", 1)) == "a~1"
        assert visible_in(rows, ("a~1", "a"))(("a", 3)) == "a"


def test_an_agent_searches_where_its_grant_reaches() -> None:
    def agent(*names: str) -> Principal:
        return Principal(user_id="u", client_id="c", grant=Grant(agent_names=names, operations=("read",)))

    assert agents_of(Principal(user_id="u")) is None
    assert agents_of(agent("*", "a")) is None
    assert agents_of(agent("a", "b")) == ("a", "b")
    assert agents_of(agent()) == ()


def test_how_failures_are_told() -> None:
    unavailable = problem_of(SearchTypeUnavailableError("semantic"))
    assert (unavailable.kind.status, unavailable.code) == (501, "search_type_unavailable")
    failed = problem_of(EmbeddingError("timeout", "no answer"))
    assert (failed.kind.status, failed.code, failed.headers) == (503, "unavailable", {"Retry-After": "1"})
