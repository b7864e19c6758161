"""What is near joins what words found; nothing else changes."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.recall.database_index import NoRecallIndex
from reactor_memory.features.recall.ranking import scored
from reactor_memory.features.recall.vectors import Near, NearQuery
from reactor_memory.features.search.hybrid_recall import FULL_SCORE, MeaningIndex, with_meanings
from reactor_memory.models import BranchRange
from reactor_memory.models.index_requests import IndexAnswer, IndexHit, Passage, RecallQuery
from tests.doubles.fake_embedder import FakeEmbedder
from tests.doubles.scripted_database import ScriptedDatabase

pytestmark = pytest.mark.anyio


def hit(seq: int, end_seq: int, *words: str, length: int) -> IndexHit:
    return IndexHit(passage=Passage(seq=seq, start=0, end_seq=end_seq, end=9, tokens=3, terms=words), length=length)


WORDS = scored(
    IndexAnswer(
        found=(hit(1, 2, "dog", length=4), hit(5, 6, "day", length=6), hit(30, 30, "day", length=2)),
        frequencies={"dog": 1, "day": 40},
        total=100,
        indexed_until=90,
    )
)
QUERY = RecallQuery(
    session_id="s", branch=(BranchRange(conversation_id="s", start_seq=1),), text="a cat", words=(("cat",),), limit=10
)


def near(seq: int, similarity: float) -> Near:
    return Near(seq=seq, similarity=similarity)


def scores(findings: IndexAnswer) -> dict[int, float]:
    return {found.passage.seq: found.score for found in findings.found}


def test_nothing_near_changes_nothing() -> None:
    assert with_meanings(WORDS, (), above=0.3, limit=10) is WORDS


def test_the_same_meaning_brings_its_message_like_a_rare_term() -> None:
    findings = with_meanings(
        IndexAnswer(indexed_until=90), [near(7, 1.0), near(9, 0.65), near(11, 0.3)], above=0.3, limit=9
    )
    assert scores(findings) == pytest.approx({7: FULL_SCORE, 9: FULL_SCORE / 2})
    assert findings.indexed_until == 90


def test_a_passage_found_both_ways_is_lifted() -> None:
    before, after = scores(WORDS), scores(with_meanings(WORDS, [near(6, 1.0)], above=0.3, limit=10))
    assert next(iter(after)) == 5
    assert {seq: after[seq] - before[seq] for seq in before} == pytest.approx({1: 0, 5: FULL_SCORE, 30: 0})


def test_what_is_added_takes_nothing_from_what_words_found() -> None:
    after = scores(with_meanings(WORDS, [near(17, 0.9)], above=0.3, limit=10))
    assert {seq: score for seq, score in after.items() if seq != 17} == pytest.approx(scores(WORDS))


@given(st.dictionaries(st.integers(1, 90), st.floats(0.31, 1.0), max_size=20), st.integers(1, 5))
def test_the_best_are_kept_each_once(similarities: dict[int, float], limit: int) -> None:
    given_ = [near(seq, similarity) for seq, similarity in similarities.items()]
    found = with_meanings(WORDS, given_, above=0.3, limit=limit)
    whole = with_meanings(WORDS, given_[::-1], above=0.3, limit=100)
    assert found.found == whole.found[: len(found.found)]
    shown = {1, 5, 30} | ({*similarities} - {2, 6})
    assert sorted(scores(whole)) == sorted(shown)
    assert len(whole.found) == len(shown)


def test_a_bound_of_one_divides_by_nothing() -> None:
    assert with_meanings(IndexAnswer(), [near(7, 1.0)], above=1.0, limit=9).found == ()


class Words(NoRecallIndex):
    """Finds nothing in what is indexed up to `until`."""

    def __init__(self, until: int) -> None:
        self._until = until

    async def search(self, query: RecallQuery) -> IndexAnswer:
        return IndexAnswer(indexed_until=self._until)


class Vectors(ScriptedDatabase):
    """Answers every query with one message, unless it is broken or hangs."""

    def __init__(self) -> None:
        self.asked: list[NearQuery] = []
        self.fault: Exception | None = None
        self.hangs = False

    async def nearest_in_branch(self, query: NearQuery) -> tuple[Near, ...]:
        self.asked.append(query)
        if self.fault is not None:
            raise self.fault
        if self.hangs:
            await anyio.sleep_forever()
        return (near(3, 0.9),)


class Scene:
    def __init__(self, until: int = 10, *, seconds: float = 1.5) -> None:
        self.vectors, self.embedder = Vectors(), FakeEmbedder()
        self.index = MeaningIndex(
            Words(until), database=self.vectors, embedder=self.embedder, min_similarity=0.3, seconds=seconds
        )

    async def found(self) -> list[int]:
        return [found.passage.seq for found in (await self.index.search(QUERY)).found]


async def test_a_search_asks_for_the_vectors_of_what_is_indexed() -> None:
    scene = Scene()
    assert await scene.found() == [3]
    [asked] = scene.vectors.asked
    assert (asked.branch, asked.until, asked.model, asked.vector) == (QUERY.branch, 10, "fake", (1.0, 0.0, 0.0))


async def test_nobody_is_asked_while_nothing_is_indexed() -> None:
    scene = Scene(until=0)
    assert await scene.found() == []
    assert scene.embedder.asked == []


async def test_a_query_without_a_meaning_is_not_compared() -> None:
    scene = Scene()
    found = await scene.index.search(RecallQuery(session_id="s", branch=(), text="qqq", words=(("qqq",),)))
    assert (found.found, scene.vectors.asked) == ((), [])


async def test_a_store_that_fails_costs_what_it_would_have_found(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    scene.vectors.fault = RuntimeError("a cat")
    assert await scene.found() == []
    [record] = caplog.records
    told = vars(record)
    assert (record.message, told["reason"], told["session_id"]) == ("recalled by words alone", "RuntimeError", "s")
    assert "a cat" not in str(told)


async def test_a_store_that_hangs_is_waited_for_no_longer() -> None:
    scene = Scene(seconds=0.01)
    scene.vectors.hangs = True
    assert await scene.found() == []
