"""The suite for a `RecallIndex`: what it finds, for whom, and what is gone when content goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from reactor_memory.features.recall.entries import part_of
from reactor_memory.models import Message
from reactor_memory.models.index_requests import IndexAnswer, IndexPart, RecallQuery
from reactor_memory.models.ledger import Fact
from reactor_memory.testing.branching import fork
from reactor_memory.testing.builders import append_messages
from reactor_memory.testing.summary_recording import MINUTE, Store, claimed, segment, session_of
from reactor_memory.text.analyzer import terms

if TYPE_CHECKING:
    from reactor_memory.core.ports import RecallIndex


def talk(*texts: str, start: int = 1) -> tuple[Message, ...]:
    """Turns of a question and an answer."""
    make = (Message.assistant, Message.user)
    return tuple(make[seq % 2](text, seq=seq) for seq, text in enumerate(texts, start=start))


def part(owner: str, messages: Sequence[Message], facts: Sequence[Fact] = ()) -> IndexPart:
    return part_of(segment(owner, messages[0].seq or 1, messages[-1].seq or 1), messages, facts)


async def indexed(
    store: Store, index: RecallIndex, owner: str, messages: Sequence[Message], facts: Sequence[Fact] = ()
) -> bool:
    """Append the messages, if the session does not have them, and index them as one part."""
    last = (await store.read_background(owner, limit=1))[0].last_seq if messages[0].seq != 1 else 0
    if last < (messages[-1].seq or 0):
        await append_messages(store, owner, messages)
    lease = await claimed(store, owner)
    extended = await index.extend(lease, part(owner, messages, facts))
    await store.summaries.release(lease, due_at=None)
    return extended


async def found(store: Store, index: RecallIndex, session_id: str, text: str, *, limit: int = 100) -> IndexAnswer:
    session = await session_of(store, session_id)
    query = RecallQuery(
        session_id=session_id, branch=session.branch, text=text, terms=tuple(dict.fromkeys(terms(text))), limit=limit
    )
    return await index.search(query)


async def seqs(store: Store, index: RecallIndex, session_id: str, text: str) -> list[int]:
    return [each.seq for each in (await found(store, index, session_id, text)).found]


@pytest.mark.anyio
class RecallIndexConformance:
    """What every `RecallIndex` promises.

    The fixture `store` gives an opened, empty `MessageStore` that is a `SummaryStore` too; override the fixture
    `index` where the index is another object.
    """

    async def test_a_message_is_found_by_its_words_in_any_form(self, store: Store, index: RecallIndex) -> None:
        await indexed(store, index, "s", talk("Two reservations at the Blue Door", "Reserved", "And a taxi", "Coming"))
        answer = await found(store, index, "s", "RESERVATION")
        assert sorted(each.seq for each in answer.found) == [1, 2]
        assert [each.turn for each in answer.found] == [(1, 2), (1, 2)]
        assert answer.frequencies == {"reserv": 2}
        assert answer.indexed_until == 4
        assert await seqs(store, index, "s", "nothing of this") == []

    async def test_a_line_is_found_by_anchor_keys_and_values(self, store: Store, index: RecallIndex) -> None:
        facts = (
            Fact(anchor="ReserveTable #1", key="party_size", value="six", source_seq=1, verified=True),
            Fact(anchor="ReserveTable #1", key="unproven", value="guess", source_seq=1),
        )
        await indexed(store, index, "s", talk("hello", "hi"), facts)
        for words in ("reserve a table", "the size of the party", "six"):
            (line,) = (await found(store, index, "s", words)).found
            assert (line.anchor, line.seq) == ("ReserveTable #1", 1)
        assert await seqs(store, index, "s", "unproven guess") == []

    async def test_rare_words_count_more_and_newer_equals_come_first(self, store: Store, index: RecallIndex) -> None:
        await indexed(store, index, "s", talk("a table", "a walrus", "a table", "a chair", "a table", "a chair"))
        assert await seqs(store, index, "s", "table walrus") == [2, 5, 3, 1]
        best = await found(store, index, "s", "table walrus", limit=2)
        assert [each.seq for each in best.found] == [2, 5]
        assert best.frequencies == {"tabl": 3, "walru": 1} or best.frequencies == {"tabl": 3, "walrus": 1}

    async def test_words_of_every_script(self, store: Store, index: RecallIndex) -> None:
        await indexed(store, index, "s", talk("東京タワーの予約", "Заказ для Ивана", "Une réservation", "مطعم الشرق"))
        assert await seqs(store, index, "s", "京タ") == [1]
        assert await seqs(store, index, "s", "заказ") == [2]
        assert await seqs(store, index, "s", "RESERVATION") == [3]
        assert await seqs(store, index, "s", "الشرق") == [4]

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "   ",
            '"',
            "a AND b",
            "NEAR(x y)",
            "terms: x*",
            "^x",
            "'); DROP",
            "a & !b",
            "<->",
            "\\",
            "%",
            "x" * 9_000,
        ],
    )
    async def test_a_query_is_words_and_never_a_language(self, store: Store, index: RecallIndex, text: str) -> None:
        await indexed(store, index, "s", talk("quite plain", "yes"))
        assert await seqs(store, index, "s", text) == []

    async def test_no_other_session_answers(self, store: Store, index: RecallIndex) -> None:
        await indexed(store, index, "one", talk("the walrus", "yes"))
        await indexed(store, index, "two", talk("the carpenter", "yes"))
        assert await seqs(store, index, "two", "walrus") == []
        assert (await found(store, index, "two", "walrus")).frequencies in ({"walru": 0}, {"walrus": 0})

    async def test_a_fork_finds_what_it_inherits_and_nothing_behind_it(self, store: Store, index: RecallIndex) -> None:
        await indexed(store, index, "s", talk("walrus early", "yes", "walrus late", "yes"))
        await fork(store, "s", at_seq=3, fork_id="s~a")
        await fork(store, "s", at_seq=3, fork_id="s~b")
        assert await seqs(store, index, "s~a", "walrus late") == [1]
        assert (await found(store, index, "s~a", "walrus")).indexed_until == 2
        await indexed(store, index, "s~a", talk("walrus of the fork", "yes", start=3))
        assert await seqs(store, index, "s~a", "walrus") == [1, 3] or await seqs(store, index, "s~a", "walrus") == [
            3,
            1,
        ]
        assert (await found(store, index, "s~a", "walrus")).indexed_until == 4
        assert await seqs(store, index, "s~b", "walrus") == [1]
        assert await seqs(store, index, "s", "fork") == []

    async def test_what_a_fork_indexed_itself_is_not_found_twice(self, store: Store, index: RecallIndex) -> None:
        """Its first part may begin before the fork."""
        await indexed(store, index, "s", talk("one", "two", "walrus", "four"))
        await fork(store, "s", at_seq=4, fork_id="s~a")
        await append_messages(store, "s~a", talk("four", start=4))
        lease = await claimed(store, "s~a")
        assert await index.extend(lease, part("s~a", talk("walrus", "four", start=3)))
        assert await seqs(store, index, "s~a", "walrus") == [3]

    async def test_parts_follow_each_other(self, store: Store, index: RecallIndex) -> None:
        assert await indexed(store, index, "s", talk("one", "two"))
        assert not await indexed(store, index, "s", talk("five", "six", start=5))
        assert not await indexed(store, index, "s", talk("one", "two"))
        assert await index.indexed_until("s") == 2
        assert await indexed(store, index, "s", talk("three", "four", start=3))
        assert await index.indexed_until("s") == 4
        assert await index.indexed_until("unknown") == 0

    async def test_a_hole_in_front_is_not_called_searched(self, store: Store, index: RecallIndex) -> None:
        await append_messages(store, "s", talk("one", "two", "walrus", "four"))
        assert await indexed(store, index, "s", talk("walrus", "four", start=3))
        answer = await found(store, index, "s", "walrus")
        assert (answer.indexed_until, answer.found) == (0, ())

    async def test_a_lost_lease_adds_nothing(self, store: Store, index: RecallIndex) -> None:
        await append_messages(store, "s", talk("walrus", "yes"))
        lease = await claimed(store, "s")
        await store.summaries.release(lease, due_at=None)
        await claimed(store, "s", MINUTE)
        assert not await index.extend(lease, part("s", talk("walrus", "yes")))
        assert await seqs(store, index, "s", "walrus") == []

    async def test_truncated_parts_can_be_added_again(self, store: Store, index: RecallIndex) -> None:
        await indexed(store, index, "s", talk("walrus one", "two"))
        await indexed(store, index, "s", talk("walrus three", "four", start=3))
        await index.truncate(["s", "unknown"], seq=9)
        assert await index.indexed_until("s") == 4
        await index.truncate(["s"], seq=3)
        assert await index.indexed_until("s") == 2
        assert await seqs(store, index, "s", "walrus") == [1]
        assert await indexed(store, index, "s", talk("walrus again", "four", start=3))
        assert await seqs(store, index, "s", "again") == [3]

    async def test_everything_of_a_forgotten_session_is_gone(self, store: Store, index: RecallIndex) -> None:
        await indexed(store, index, "s", talk("walrus", "yes"))
        await indexed(store, index, "other", talk("walrus", "yes"))
        await index.forget(["s"])
        assert await index.indexed_until("s") == 0
        assert await seqs(store, index, "s", "walrus") == []
        assert await seqs(store, index, "other", "walrus") == [1]
