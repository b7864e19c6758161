"""Full text keeps terms and no copy of them, and forgets exactly those of what went."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from reactor_memory.features.recall import operations as recall
from reactor_memory.models.index_requests import IndexAnswer
from reactor_memory.testing.recall import found, indexed, seqs, talk
from tests.features.recall.test_recall_keys import opened
from tests.scenes.stores import sqlite_store

pytestmark = pytest.mark.anyio


def postings(path: Path) -> set[str]:
    """The terms that full text holds, without the key of their conversation."""
    with closing(sqlite3.connect(path)) as connection:
        return {term.rpartition("\u00aa")[2] for (term,) in connection.execute("SELECT term FROM recall_postings")}


async def test_terms_go_with_their_passages_and_no_others(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with opened(sqlite_store(path)) as store:
        await indexed(store, store.index, "one", talk("walrus parade", "yes", "東京 tower", "yes"))
        await indexed(store, store.index, "two", talk("walrus carpenter", "yes"))
        await store.index.truncate(["one"], seq=3)
        assert await seqs(store, store.index, "one", "walrus tower") == [1]
        assert not postings(path) & {"tower", "東京"}
        await store.index.forget(["one"])
        assert await seqs(store, store.index, "two", "walrus") == [1]
        assert postings(path) >= {"walrus", "carpent"}
        assert "parad" not in postings(path)
        await indexed(store, store.index, "one", talk("oyster", "yes"))
        assert await seqs(store, store.index, "one", "walrus oyster") == [1]


async def common_word(path: Path, *first: str) -> IndexAnswer:
    """What a session answers that begins with `first` and goes on with twenty passages of each of two common words."""
    later = [text for number in range(20) for text in (f"dull note {number}", "yes", f"day {number}", "yes")]
    async with opened(sqlite_store(path / "memory.db")) as store:
        await indexed(store, store.index, "s", talk(*first, *later))
        return await found(store, store.index, "s", f"dull {first[0].split()[-1]}")


@pytest.mark.parametrize("other", ["rare", "day"])
@pytest.mark.parametrize("places", [1, 3])
async def test_a_common_word_counts_beside_a_rarer_one_far_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str, places: int
) -> None:
    monkeypatch.setattr(recall, "PLACES_OF_A_WORD", 4)
    answer = await common_word(tmp_path, f"a dull {other}", "yes", *([other, "yes"] * (places - 1)))
    oldest = next(hit.passage for hit in answer.found if hit.passage.seq == 1)
    assert set(oldest.terms) == {"dull", other}
    assert answer.frequencies["dull"] > 15


async def test_common_words_are_looked_for_so_far_back_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall, "PLACES_OF_A_WORD", 4)
    monkeypatch.setattr(recall, "MAX_FARTHER", 2)
    answer = await common_word(tmp_path, "a dull day", "yes")
    assert 1 not in [hit.passage.seq for hit in answer.found]


async def test_parts_of_the_index_are_merged(tmp_path: Path) -> None:
    """Each search looks into each of them."""
    path = tmp_path / "memory.db"
    async with opened(sqlite_store(path)) as store:
        for start in range(1, 121, 2):
            await indexed(store, store.index, "s", talk(f"walrus {start}", "yes", start=start))
    with closing(sqlite3.connect(path)) as connection:
        [(parts,)] = connection.execute("SELECT COUNT(DISTINCT segid) FROM recall_terms_idx")
    assert parts < 10
