"""Full text keeps terms and no copy of them, and forgets exactly those of what went."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from reactor_memory.features.recall import operations as recall
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


@pytest.mark.parametrize("question", ["dull rare", "dull day"])
async def test_a_common_word_counts_beside_a_rarer_one_far_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    monkeypatch.setattr(recall, "PLACES_OF_A_TERM", 4)
    other = question.rpartition(" ")[2]
    first = (f"a dull {other}", "yes", other, "yes", other, "yes")
    later = [text for number in range(20) for text in (f"dull note {number}", "yes", f"day {number}", "yes")]
    async with opened(sqlite_store(tmp_path / "memory.db")) as store:
        await indexed(store, store.index, "s", talk(*first, *later))
        answer = await found(store, store.index, "s", question)
    oldest = next(hit.passage for hit in answer.found if hit.passage.seq == 1)
    assert set(oldest.terms) == {"dull", other}
    assert answer.frequencies["dull"] > 15
