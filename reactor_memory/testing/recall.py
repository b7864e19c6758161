"""The suite for a `RecallIndex`: what it finds, for whom, and what is gone when content goes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reactor_memory.core.ports import RecallIndex
from reactor_memory.features.recall.passages import passages_of
from reactor_memory.models import BranchRange, Message, ToolCall
from reactor_memory.models.index_requests import IndexAnswer, IndexPart, RecallQuery
from reactor_memory.testing.branching import fork
from reactor_memory.testing.builders import append_messages
from reactor_memory.testing.summary_recording import MINUTE, Store, claimed, session_of
from reactor_memory.text.analyzer import beginnings, query_words


def talk(*texts: str, start: int = 1) -> tuple[Message, ...]:
    """Turns of a question and an answer."""
    make = (Message.assistant, Message.user)
    return tuple(make[seq % 2](text, seq=seq) for seq, text in enumerate(texts, start=start))


def part(owner: str, messages: Sequence[Message]) -> IndexPart:
    """The messages as an indexer gives them to an index."""
    return IndexPart(
        conversation_id=owner,
        start_seq=messages[0].seq or 1,
        end_seq=messages[-1].seq or 1,
        passages=tuple(passages_of(messages)),
    )


async def indexed(store: Store, index: RecallIndex, owner: str, messages: Sequence[Message]) -> bool:
    """Append the messages, if the session does not have them, and index them as one part."""
    last = (await store.read_background(owner, limit=1)).session.last_seq if messages[0].seq != 1 else 0
    if last < (messages[-1].seq or 0):
        await append_messages(store, owner, messages)
    lease = await claimed(store, owner)
    extended = await index.extend(lease, part(owner, messages))
    await store.summaries.release(lease, due_at=None)
    return extended


def asked(session_id: str, branch: tuple[BranchRange, ...], text: str, *, limit: int = 100) -> RecallQuery:
    words = query_words(text)
    return RecallQuery(
        session_id=session_id,
        branch=branch,
        text=text,
        words=tuple(word.terms for word in words),
        begun={word.terms[0]: beginnings(word) for word in words},
        limit=limit,
    )


async def found(store: Store, index: RecallIndex, session_id: str, text: str, *, limit: int = 100) -> IndexAnswer:
    session = await session_of(store, session_id)
    return await index.search(asked(session_id, session.branch, text, limit=limit))


async def seqs(store: Store, index: RecallIndex, session_id: str, text: str) -> list[int]:
    """Where the passages begin that hold a word of `text`, best first."""
    answer = await found(store, index, session_id, text)
    return [hit.passage.seq for hit in answer.found if hit.passage.terms]


@pytest.mark.anyio
class RecallIndexConformance:
    """What every `RecallIndex` promises.

    The fixture `store` gives an opened, empty `MessageStore` that is a `SummaryStore` too; override the fixture
    `index` where the index is another object.
    """

    async def test_talk_is_found_by_its_words_in_any_form(self, store: Store, index: RecallIndex) -> None:
        await indexed(store, index, "s", talk("Two reservations at the Blue Door", "Reserved", "And a taxi", "Coming"))
        answer = await found(store, index, "s", "RESERVATION")
        best, beside = answer.found
        assert (best.passage.seq, best.passage.end_seq) == (1, 2)
        assert (beside.passage.seq, beside.passage.terms) == (3, ())
        assert best.score > beside.score > 0
        assert list(answer.frequencies.values()) == [1]
        assert answer.indexed_until == 4
        assert await seqs(store, index, "s", "nothing of this") == []

    async def test_a_long_text_is_found_to_its_end(self, store: Store, index: RecallIndex) -> None:
        pages = "\n".join(f"line {number} of the page says little" for number in range(2_000))
        await indexed(store, index, "s", talk("read it", f"{pages}\nthe walrus stands at the end"))
        (hit, *_) = (await found(store, index, "s", "walrus")).found
        assert (hit.passage.seq, hit.passage.end_seq) == (2, 2)
        assert hit.passage.start > 60_000
        assert hit.passage.end - hit.passage.start <= 600

    async def test_a_result_is_found_by_its_call(self, store: Store, index: RecallIndex) -> None:
        call = ToolCall(id="c", name="read_file", arguments={"path": "src/walrus.py"})
        log = (
            Message.user("look", seq=1),
            Message.assistant(tool_calls=[call], seq=2),
            Message.tool("forty lines", tool_call_id="c", seq=3),
        )
        await indexed(store, index, "s", log)
        answer = await found(store, index, "s", "walrus.py")
        assert {(hit.passage.seq, hit.passage.call_seq) for hit in answer.found if hit.passage.terms} == {
            (2, 2),
            (3, 2),
        }

    async def test_a_word_that_is_not_written_out_is_found(self, store: Store, index: RecallIndex) -> None:
        await indexed(store, index, "s", talk("the river", "yes", "a chair", "yes"))
        assert await seqs(store, index, "s", "riv") == [1]
        assert await seqs(store, index, "s", "chair riv") in ([1, 3], [3, 1])

    async def test_rare_words_count_more_and_newer_equals_come_first(self, store: Store, index: RecallIndex) -> None:
        texts = (
            "a table",
            "yes",
            "a walrus",
            "yes",
            "a table",
            "yes",
            "a chair",
            "yes",
            "a table",
            "yes",
            "a lamp",
            "yes",
        )
        await indexed(store, index, "s", talk(*texts))
        assert (await seqs(store, index, "s", "table walrus"))[0] == 3
        assert [seq for seq in await seqs(store, index, "s", "table") if seq != 3] == [9, 5, 1]
        best = await found(store, index, "s", "table walrus", limit=1)
        assert [hit.passage.seq for hit in best.found] == [3]
        assert sorted(best.frequencies.values()) == [1, 3]

    async def test_words_of_every_script(self, store: Store, index: RecallIndex) -> None:
        texts = ("東京タワーの予約", "yes", "Заказ для Ивана", "yes", "Une réservation", "yes", "مطعم الشرق", "yes")
        await indexed(store, index, "s", talk(*texts))
        assert await seqs(store, index, "s", "東京") == [1]
        assert await seqs(store, index, "s", "заказы") == [3]
        assert await seqs(store, index, "s", "RESERVATION") == [5]
        assert await seqs(store, index, "s", "الشرق") == [7]

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
        assert list((await found(store, index, "two", "walrus")).frequencies.values()) == [0]

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

    async def test_talk_across_a_fork_is_not_of_the_fork(self, store: Store, index: RecallIndex) -> None:
        await indexed(store, index, "s", talk("one", "walrus"))
        await fork(store, "s", at_seq=2, fork_id="s~a")
        await append_messages(store, "s~a", talk("zwei", start=2))
        assert await seqs(store, index, "s~a", "walrus") == []

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
