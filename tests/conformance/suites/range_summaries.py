"""Summaries of ranges: the range each one replaces, who sees it, and how it is undone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from random import Random

import anyio
import pytest
from msgspec.structs import replace

from reactor_memory.core.log import operations as log
from reactor_memory.errors import (
    InvalidInputError,
    SessionDeletedError,
    SessionNotFoundError,
    SessionOwnershipError,
)
from reactor_memory.features.entries.operations import recount as recount_entries
from reactor_memory.features.erasure import operations as erasure
from reactor_memory.features.recounting.recounting import recount
from reactor_memory.features.tiers import operations as range_summaries
from reactor_memory.models import Message, ToolCall
from reactor_memory.models.ledger import RangeSummary, Retention
from reactor_memory.models.requests import ContextQuery
from reactor_memory.testing.branching import fork, withdraw
from reactor_memory.testing.builders import append_messages, numbered, wall_clock
from reactor_memory.testing.log import nothing_left, seqs
from tests.scenes.stores import SqlStore as Store

RETENTIONS: tuple[Retention, ...] = ("keep", "archive", "delete")
UNDOABLE: tuple[Retention, ...] = ("keep", "archive")


async def summary_of(
    store: Store, session_id: str, start: int, end: int, *, name: str = "", retention: Retention = "keep"
) -> RangeSummary:
    """A summary of `start`..`end` as the session is now; `name` is its id and its text."""
    live = await store.database.read(range_summaries.read_range_summaries, session_id, None)
    inside = [each for each in live if start <= each.start_seq and each.end_seq <= end]
    messages = [
        message
        for message in await store.read(session_id, None, after=start - 1, until=end)
        if not any(each.start_seq <= (message.seq or 0) <= each.end_seq for each in inside)
    ]
    ids = tuple(message.message_id or "" for message in messages)
    return RangeSummary(
        summary_id=name or f"{start}-{end}",
        kind="summary",
        start_seq=start,
        end_seq=end,
        message_count=len(ids) + sum(each.message_count for each in inside),
        text=f"text of {name}",
        token_count=3,
        tokenizer="characters",
        started_at=1_000 + start,
        ended_at=1_000 + end,
        created_at=9_000,
        message_ids=ids,
        retention=retention,
    )


async def summarise(
    store: Store, session_id: str, start: int, end: int, *, name: str = "", retention: Retention = "keep"
) -> RangeSummary:
    """Store `summary_of` these messages."""
    summary = await summary_of(store, session_id, start, end, name=name, retention=retention)
    assert await put(store, session_id, summary)
    return summary


async def put(store: Store, session_id: str, *new: RangeSummary, expected: Sequence[str] | None = None) -> bool:
    live = await live_ids(store, session_id) if expected is None else expected
    return await store.database.write(
        range_summaries.put_range_summaries, session_id, None, new, expected=live, now=wall_clock()
    )


async def live_ids(store: Store, session_id: str) -> list[str]:
    return [
        each.summary_id for each in await store.database.read(range_summaries.read_range_summaries, session_id, None)
    ]


async def restore(store: Store, session_id: str, summary_id: str) -> bool:
    return await store.database.write(
        range_summaries.restore_range_summary, session_id, None, summary_id, now=wall_clock()
    )


async def in_view(store: Store, session_id: str) -> list[int | None]:
    """The messages that are in view, as every way of reading tells."""
    read = await store.read(session_id, None)
    assert await store.read(session_id, None, last=1_000) == read
    assert await store.read_ranges(session_id, None, [(1, 1_000)]) == read
    for until in range(1, 1 + (read[-1].seq or 0) if read else 0):
        assert await store.read(session_id, None, until=until) == tuple(m for m in read if (m.seq or 0) <= until)
    for trigger, facts in ((None, False), (0, False), (0, True)):
        query = ContextQuery(
            session_id=session_id,
            user_id=None,
            last_count=1_000,
            trigger_message_count=trigger,
            max_messages=1_000,
            max_tokens=1_000_000,
            facts=facts,
        )
        assert (await store.read_context(query)).messages == read
    return seqs(read)


async def originals(store: Store, session_id: str) -> list[int | None]:
    read = await store.database.read(log.read_originals, session_id, None)
    assert (await store.read_background(session_id)).messages == read
    return seqs(read)


async def everything(store: Store, session_id: str) -> tuple[object, ...]:
    """All that a session shows."""
    return (
        await store.read(session_id, None),
        await store.database.read(log.read_originals, session_id, None),
        await store.database.read(range_summaries.read_range_summaries, session_id, None),
        await store.database.read(range_summaries.read_range_summaries, session_id, None, live=False),
    )


async def erase(store: Store, session_id: str, *ranges: tuple[int, int]) -> None:
    await store.database.write(erasure.erase, session_id, None, ranges=ranges, now=wall_clock(), refold=nothing_left)


def a_pair(call_id: str = "c") -> tuple[Message, Message]:
    call = Message.assistant(tool_calls=[ToolCall(id=call_id, name="look")])
    return call, Message.tool("found", tool_call_id=call_id)


class Standing:
    """A summary stands for its range; what becomes of the messages is told by its retention."""

    async def test_a_session_without_summaries(self, store: Store) -> None:
        await append_messages(store, "s", numbered(3))
        assert await store.database.read(range_summaries.read_range_summaries, "s", None) == ()
        assert await originals(store, "s") == [1, 2, 3]

    @pytest.mark.parametrize("retention", RETENTIONS)
    async def test_it_comes_back_as_it_was_stored(self, store: Store, retention: Retention) -> None:
        await append_messages(store, "s", numbered(6))
        summary = await summarise(store, "s", 2, 4, name="a", retention=retention)
        assert len(summary.message_ids) == summary.message_count == 3
        assert await store.database.read(range_summaries.read_range_summaries, "s", None) == (summary,)
        assert await store.database.read(range_summaries.read_range_summaries, "s", None, live=False) == (summary,)

    async def test_kept_messages_stay_in_view(self, store: Store) -> None:
        await append_messages(store, "s", numbered(5))
        before = await store.read("s", None)
        await summarise(store, "s", 1, 3)
        assert await store.read("s", None) == before
        assert await in_view(store, "s") == await originals(store, "s") == [1, 2, 3, 4, 5]

    async def test_archived_messages_are_out_of_view_and_can_be_read(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        before = await store.read("s", None)
        await summarise(store, "s", 2, 4, retention="archive")
        assert await in_view(store, "s") == [1, 5, 6]
        assert await store.database.read(log.read_originals, "s", None) == before
        assert await originals(store, "s") == [1, 2, 3, 4, 5, 6]

    async def test_originals_are_read_in_parts(self, store: Store) -> None:
        await append_messages(store, "s", numbered(9))
        await summarise(store, "s", 2, 7, retention="archive")
        assert seqs(await store.database.read(log.read_originals, "s", None, after=2, until=8)) == [
            3,
            4,
            5,
            6,
            7,
            8,
        ]
        assert seqs(await store.database.read(log.read_originals, "s", None, last=4)) == [6, 7, 8, 9]
        assert seqs(await store.database.read(log.read_originals, "s", None, limit=3)) == [1, 2, 3]
        assert seqs(await store.database.read(log.read_originals, "s", None, until=6, last=3, limit=2)) == [
            4,
            5,
        ]

    async def test_facts_are_drawn_from_archived_messages_too(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        await summarise(store, "s", 1, 4, retention="archive")
        assert seqs((await store.read_background("s", after=1, limit=4)).messages) == [2, 3, 4, 5]

    async def test_the_content_of_deleted_messages_is_gone(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        ids = [message.message_id for message in await store.read("s", None)]
        await summarise(store, "s", 2, 4, retention="delete")
        assert await in_view(store, "s") == await originals(store, "s") == [1, 5, 6]
        (summary,) = await store.database.read(range_summaries.read_range_summaries, "s", None)
        assert (summary.start_seq, summary.end_seq, summary.message_count) == (2, 4, 3)
        assert list(summary.message_ids) == ids[1:4]

    @pytest.mark.parametrize("retention", RETENTIONS)
    async def test_the_numbering_goes_on(self, store: Store, retention: Retention) -> None:
        await append_messages(store, "s", numbered(4))
        await summarise(store, "s", 1, 4, retention=retention)
        await append_messages(store, "s", numbered(2, start=5))
        assert (await in_view(store, "s"))[-2:] == [5, 6]
        session = await store.get_session("s", None)
        assert session is not None
        assert session.last_seq == 6

    @pytest.mark.parametrize("retention", RETENTIONS)
    async def test_a_check_finds_nothing_wrong(self, store: Store, retention: Retention) -> None:
        await append_messages(store, "s", numbered(6))
        await summarise(store, "s", 4, 6, retention=retention)
        assert (await store.check()).problems == ()

    @pytest.mark.parametrize("retention", UNDOABLE)
    async def test_other_sessions_do_not_notice(self, store: Store, retention: Retention) -> None:
        for name in ("s", "other"):
            await append_messages(store, name, numbered(4))
        before = await everything(store, "other")
        await summarise(store, "s", 1, 4, retention=retention)
        await restore(store, "s", "1-4")
        assert await everything(store, "other") == before

    async def test_several_at_once_in_the_order_of_their_ranges(self, store: Store) -> None:
        await append_messages(store, "s", numbered(9))
        second = await summary_of(store, "s", 5, 6, name="b", retention="archive")
        first = await summary_of(store, "s", 1, 3, name="c")
        assert await put(store, "s", second, first)
        assert await store.database.read(range_summaries.read_range_summaries, "s", None) == (first, second)
        assert await in_view(store, "s") == [1, 2, 3, 4, 7, 8, 9]

    async def test_summarising_counts_as_activity(self, store: Store) -> None:
        await append_messages(store, "s", numbered(3), now=1_000)
        summary = await summary_of(store, "s", 1, 3)
        await store.database.write(range_summaries.put_range_summaries, "s", None, [summary], expected=[], now=5_000)
        session = await store.get_session("s", None)
        assert session is not None
        assert session.updated_at == 5_000

    async def test_their_tokens_are_counted_again(self, store: Store) -> None:
        await append_messages(store, "s", numbered(3))
        await summarise(store, "s", 1, 2, name="a")
        await recount(
            store.database,
            "doubling",
            lambda message: 2 * len(message.content),
            also=[recount_entries],
        )
        (summary,) = await store.database.read(range_summaries.read_range_summaries, "s", None)
        assert (summary.token_count, summary.tokenizer) == (2 * len("text of a"), "doubling")

    async def test_who_may(self, store: Store) -> None:
        await append_messages(store, "s", numbered(3), user_id="u")
        for user_id in ("other", None):
            with pytest.raises(SessionOwnershipError):
                await store.database.read(range_summaries.read_range_summaries, "s", user_id)
            with pytest.raises(SessionOwnershipError):
                await store.database.read(log.read_originals, "s", user_id)
            with pytest.raises(SessionOwnershipError):
                await store.database.write(range_summaries.put_range_summaries, "s", user_id, [], expected=[], now=1)
            with pytest.raises(SessionOwnershipError):
                await store.database.write(range_summaries.restore_range_summary, "s", user_id, "x", now=1)

    @pytest.mark.parametrize("error", [SessionNotFoundError, SessionDeletedError])
    async def test_a_session_that_is_not_there(self, store: Store, error: type[Exception]) -> None:
        if error is SessionDeletedError:
            await append_messages(store, "s", numbered(3))
            await summarise(store, "s", 1, 2)
            await store.delete("s", None, now=wall_clock(), purge=False)
        with pytest.raises(error):
            await store.database.read(range_summaries.read_range_summaries, "s", None)
        with pytest.raises(error):
            await store.database.read(log.read_originals, "s", None)
        with pytest.raises(error):
            await store.database.write(range_summaries.put_range_summaries, "s", None, [], expected=[], now=1)
        with pytest.raises(error):
            await store.database.write(range_summaries.restore_range_summary, "s", None, "x", now=1)

    async def test_a_purge_takes_them_along(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        await fork(store, "s", "s~f", 3, own=["f3", "f4"])
        await summarise(store, "s~f", 3, 4, retention="archive")
        await summarise(store, "s", 1, 2)
        await store.delete("s~f", None, now=wall_clock(), purge=True)
        assert await live_ids(store, "s") == ["1-2"]
        await store.delete("s", None, now=wall_clock(), purge=True)
        assert (await store.check()).problems == ()


class Compared:
    """A summary is stored only if it was made of what is there."""

    @pytest.mark.parametrize("retention", RETENTIONS)
    async def test_who_expects_other_summaries_is_refused(self, store: Store, retention: Retention) -> None:
        await append_messages(store, "s", numbered(6))
        await summarise(store, "s", 1, 2)
        late = await summary_of(store, "s", 3, 4, name="late", retention=retention)
        before = await everything(store, "s")
        for expected in ([], ["other"], ["1-2", "other"]):
            assert await put(store, "s", late, expected=expected) is False
        assert await everything(store, "s") == before
        assert await put(store, "s", late, expected=["1-2"]) is True

    async def test_a_late_one_that_overlaps_is_late_and_not_wrong(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        late = await summary_of(store, "s", 2, 5, name="late")
        await summarise(store, "s", 1, 3)
        assert await put(store, "s", late, expected=[]) is False

    async def test_many_at_once_make_one(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        made = [await summary_of(store, "s", 1, 6, name=f"by {n}", retention="archive") for n in range(12)]
        answers: list[bool] = []

        async def try_to_put(summary: RangeSummary) -> None:
            answers.append(await put(store, "s", summary, expected=[]))

        async with anyio.create_task_group() as tasks:
            for summary in made:
                tasks.start_soon(try_to_put, summary)
        assert sorted(answers) == [False] * 11 + [True]
        assert len(await store.database.read(range_summaries.read_range_summaries, "s", None, live=False)) == 1

    async def test_a_message_that_was_withdrawn_meanwhile(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        made = await summary_of(store, "s", 3, 4)
        await withdraw(store, "s")
        assert await put(store, "s", made) is False
        assert await live_ids(store, "s") == []

    async def test_messages_that_it_does_not_name(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        made = await summary_of(store, "s", 1, 4)
        fewer = replace(made, message_ids=made.message_ids[1:], message_count=3)
        others = replace(made, message_ids=(*made.message_ids[1:], "other"))
        assert await put(store, "s", fewer) is False
        assert await put(store, "s", others) is False

    async def test_appending_meanwhile_does_no_harm(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        made = await summary_of(store, "s", 1, 4)
        await append_messages(store, "s", numbered(1, start=5))
        assert await put(store, "s", made) is True


class Refused:
    """Ranges in which no summary can stand. Nothing is stored then, of the others that came along neither."""

    @pytest.mark.parametrize(("start", "end"), [(0, 2), (3, 2), (1, 7), (7, 7), (-1, 1)])
    async def test_no_range_of_the_session(self, store: Store, start: int, end: int) -> None:
        await append_messages(store, "s", numbered(6))
        await self.refuse(store, replace(await summary_of(store, "s", 1, 2), start_seq=start, end_seq=end))

    @pytest.mark.parametrize(("start", "end"), [(1, 3), (4, 6), (4, 4)])
    async def test_a_part_of_what_another_one_stands_for(self, store: Store, start: int, end: int) -> None:
        await append_messages(store, "s", numbered(6))
        await summarise(store, "s", 3, 5, name="a")
        await self.refuse(store, await summary_of(store, "s", start, end, name="b"))

    async def test_two_new_ones_for_one_message(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        first, second = await summary_of(store, "s", 1, 3), await summary_of(store, "s", 3, 4)
        await self.refuse(store, first, second)

    async def test_an_id_that_is_taken(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        await summarise(store, "s", 1, 2, name="a")
        await self.refuse(store, await summary_of(store, "s", 3, 4, name="a"))
        twice = [await summary_of(store, "s", 3, 4, name="b"), await summary_of(store, "s", 5, 6, name="b")]
        await self.refuse(store, *twice)

    async def test_a_wrong_count(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        await summarise(store, "s", 1, 2, name="a")
        await self.refuse(store, replace(await summary_of(store, "s", 1, 4, name="b"), message_count=2))
        await self.refuse(store, replace(await summary_of(store, "s", 3, 4, name="b"), message_count=3))

    @pytest.mark.parametrize("retention", RETENTIONS)
    @pytest.mark.parametrize(("start", "end"), [(1, 3), (1, 4), (4, 6), (5, 6), (4, 4), (5, 5)])
    async def test_half_a_pair(self, store: Store, retention: Retention, start: int, end: int) -> None:
        calls = Message.assistant(tool_calls=[ToolCall(id="a", name="look"), ToolCall(id="b", name="look")])
        results = [Message.tool("found", tool_call_id=call) for call in ("a", "b")]
        await append_messages(store, "s", [*numbered(2), calls, *results, Message.assistant("done")])
        await self.refuse(store, await summary_of(store, "s", start, end, retention=retention))

    async def test_whole_pairs_may_go(self, store: Store) -> None:
        await append_messages(store, "s", [Message.user("q"), *a_pair("a"), *a_pair("b"), Message.assistant("done")])
        await summarise(store, "s", 2, 3, retention="archive")
        await summarise(store, "s", 1, 5, retention="archive")

    async def test_a_long_pair(self, store: Store) -> None:
        call, result = a_pair()
        between = [Message.system(f"waiting {n}") for n in range(40)]
        await append_messages(store, "s", [Message.user("q"), call, *between, result, Message.assistant("done")])
        await self.refuse(store, await summary_of(store, "s", 1, 22))
        await self.refuse(store, await summary_of(store, "s", 22, 44))
        await summarise(store, "s", 1, 44)

    async def test_a_result_that_may_still_come(self, store: Store) -> None:
        call, result = a_pair()
        await append_messages(store, "s", [Message.user("q"), call])
        await self.refuse(store, await summary_of(store, "s", 1, 2))
        await append_messages(store, "s", [result])
        await summarise(store, "s", 1, 3)

    async def test_a_call_that_was_given_up(self, store: Store) -> None:
        call, _ = a_pair()
        await append_messages(store, "s", [Message.user("q"), call, Message.user("never mind")])
        await summarise(store, "s", 1, 2)

    async def test_a_result_of_an_inherited_call(self, store: Store) -> None:
        call, result = a_pair()
        await append_messages(store, "s", [Message.user("q"), call, result])
        await fork(store, "s", "s~f", 3)
        await append_messages(store, "s~f", [result, Message.assistant("done")])
        before = await everything(store, "s~f")
        with pytest.raises(InvalidInputError):
            await put(store, "s~f", await summary_of(store, "s~f", 3, 4))
        assert await everything(store, "s~f") == before

    @staticmethod
    async def refuse(store: Store, *new: RangeSummary) -> None:
        before = await everything(store, "s")
        with pytest.raises(InvalidInputError):
            await put(store, "s", *new)
        assert await everything(store, "s") == before


class Replacing:
    """A summary takes the place of those that its range holds; nothing that they stood for is lost."""

    @pytest.mark.parametrize("retention", RETENTIONS)
    async def test_the_replaced_ones_stay_to_be_undone(self, store: Store, retention: Retention) -> None:
        await append_messages(store, "s", numbered(9))
        a = await summarise(store, "s", 1, 2, name="a", retention="archive")
        b = await summarise(store, "s", 5, 6, name="b")
        c = await summarise(store, "s", 1, 7, name="c", retention=retention)
        assert (c.message_count, len(c.message_ids)) == (7, 3)
        assert await store.database.read(range_summaries.read_range_summaries, "s", None) == (c,)
        every = await store.database.read(range_summaries.read_range_summaries, "s", None, live=False)
        assert set(every) == {c, replace(a, replaced_by="c"), replace(b, replaced_by="c")}
        expected = {"keep": [3, 4, 5, 6, 7, 8, 9], "archive": [8, 9], "delete": [8, 9]}
        assert await in_view(store, "s") == expected[retention]
        assert await originals(store, "s") == ([8, 9] if retention == "delete" else list(range(1, 10)))

    async def test_the_same_range(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        await summarise(store, "s", 1, 3, name="a", retention="archive")
        await summarise(store, "s", 1, 3, name="b", retention="archive")
        assert await live_ids(store, "s") == ["b"]
        assert await in_view(store, "s") == [4]

    @pytest.mark.parametrize("first", UNDOABLE)
    @pytest.mark.parametrize("second", UNDOABLE)
    @pytest.mark.parametrize("third", UNDOABLE)
    async def test_restoring_is_exact(
        self, store: Store, first: Retention, second: Retention, third: Retention
    ) -> None:
        await append_messages(store, "s", numbered(12))
        states = [await everything(store, "s")]
        retentions: dict[str, Retention] = {"a": first, "b": second, "c": third}
        for name, retention in retentions.items():
            await summarise(store, "s", 1, 4 if name == "a" else 8, name=name, retention=retention)
            states.append(await everything(store, "s"))
        for name in ("c", "b", "a"):
            assert await everything(store, "s") == states.pop()
            assert await restore(store, "s", name) is True
        assert await everything(store, "s") == states.pop()
        assert await in_view(store, "s") == list(range(1, 13))

    async def test_only_what_is_live_can_be_restored(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        await summarise(store, "s", 1, 2, name="a", retention="archive")
        await summarise(store, "s", 1, 4, name="b", retention="archive")
        before = await everything(store, "s")
        assert await restore(store, "s", "a") is False
        assert await restore(store, "s", "unknown") is False
        assert await everything(store, "s") == before
        assert await restore(store, "s", "b") is True
        assert await restore(store, "s", "b") is False
        assert await in_view(store, "s") == [3, 4, 5, 6]

    async def test_what_was_deleted_cannot_be_restored(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        await summarise(store, "s", 1, 2, name="a", retention="delete")
        await summarise(store, "s", 1, 4, name="b", retention="archive")
        assert await restore(store, "s", "b") is True
        before = await everything(store, "s")
        with pytest.raises(InvalidInputError):
            await restore(store, "s", "a")
        assert await everything(store, "s") == before
        assert await in_view(store, "s") == [3, 4, 5, 6]

    async def test_restoring_at_once_happens_once(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        await summarise(store, "s", 1, 4, name="a", retention="archive")
        answers: list[bool] = []

        async def try_to_restore() -> None:
            answers.append(await restore(store, "s", "a"))

        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(try_to_restore)
        assert sorted(answers) == [False] * 7 + [True]
        assert await in_view(store, "s") == [1, 2, 3, 4, 5, 6]


class WithdrawnUnderneath:
    """No text stays that was made of a message which was taken back."""

    async def test_the_text_goes_with_the_message(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        await summarise(store, "s", 1, 3, name="a")
        await summarise(store, "s", 4, 6, name="b")
        await withdraw(store, "s")
        assert await live_ids(store, "s") == ["a"]
        assert [
            each.summary_id
            for each in await store.database.read(range_summaries.read_range_summaries, "s", None, live=False)
        ] == ["a"]
        assert await in_view(store, "s") == [1, 2, 3, 4, 5]

    async def test_what_it_had_replaced_is_live_again(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        a = await summarise(store, "s", 1, 3, name="a", retention="archive")
        await summarise(store, "s", 5, 6, name="b")
        await summarise(store, "s", 1, 6, name="c")
        await withdraw(store, "s")
        assert await store.database.read(range_summaries.read_range_summaries, "s", None, live=False) == (a,)
        assert await in_view(store, "s") == [4, 5]

    async def test_the_newest_in_view_is_withdrawn_past_archived_ones(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        await summarise(store, "s", 4, 6, name="a", retention="archive")
        withdrawn = await withdraw(store, "s")
        assert withdrawn.seq == 3
        assert await live_ids(store, "s") == ["a"]
        assert await in_view(store, "s") == [1, 2]
        assert await originals(store, "s") == [1, 2, 4, 5, 6]


class ErasedUnderneath:
    """No text stays that was made of a message which was erased."""

    async def test_the_text_goes_and_what_it_archived_comes_back(self, store: Store) -> None:
        await append_messages(store, "s", numbered(9))
        await summarise(store, "s", 1, 3, name="a", retention="archive")
        await summarise(store, "s", 4, 6, name="b", retention="archive")
        await erase(store, "s", (5, 5))
        assert await live_ids(store, "s") == ["a"]
        assert await in_view(store, "s") == [4, 6, 7, 8, 9]
        assert await originals(store, "s") == [1, 2, 3, 4, 6, 7, 8, 9]

    async def test_so_does_every_text_that_it_went_into(self, store: Store) -> None:
        await append_messages(store, "s", numbered(9))
        a = await summarise(store, "s", 1, 3, name="a", retention="archive")
        await summarise(store, "s", 4, 6, name="b")
        await summarise(store, "s", 1, 7, name="c", retention="archive")
        await erase(store, "s", (6, 6))
        assert await store.database.read(range_summaries.read_range_summaries, "s", None, live=False) == (a,)
        assert await in_view(store, "s") == [4, 5, 7, 8, 9]

    async def test_a_text_over_deleted_messages(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        await summarise(store, "s", 1, 3, name="a", retention="delete")
        await erase(store, "s", (2, 2))
        assert await store.database.read(range_summaries.read_range_summaries, "s", None, live=False) == ()
        assert await in_view(store, "s") == [4]

    async def test_an_inherited_message(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        await summarise(store, "s", 1, 2, name="a", retention="archive")
        await fork(store, "s", "s~f", 5, own=["f5"])
        await summarise(store, "s~f", 5, 5, name="b", retention="archive")
        await erase(store, "s~f", (2, 2))
        assert await live_ids(store, "s") == []
        assert await live_ids(store, "s~f") == ["b"]
        assert await in_view(store, "s") == [1, 3, 4, 5, 6]
        assert await in_view(store, "s~f") == [1, 3, 4]


class InBranches:
    """A branch summarises its own messages, and shows the summaries of what it inherited whole."""

    @pytest.mark.parametrize("is_first", [True, False])
    @pytest.mark.parametrize("retention", UNDOABLE)
    async def test_a_fork_behind_the_range_shows_it(self, store: Store, is_first: bool, retention: Retention) -> None:
        await append_messages(store, "s", numbered(8))
        if is_first:
            await fork(store, "s", "s~f", 5, own=["f5"])
        await summarise(store, "s", 1, 4, name="a", retention=retention)
        if not is_first:
            await fork(store, "s", "s~f", 5, own=["f5"])
        assert await live_ids(store, "s~f") == ["a"]
        assert await in_view(store, "s~f") == ([1, 2, 3, 4, 5] if retention == "keep" else [5])
        assert await originals(store, "s~f") == [1, 2, 3, 4, 5]

    @pytest.mark.parametrize("is_first", [True, False])
    @pytest.mark.parametrize("retention", UNDOABLE)
    async def test_a_fork_inside_the_range_shows_the_messages(
        self, store: Store, is_first: bool, retention: Retention
    ) -> None:
        await append_messages(store, "s", numbered(8))
        if is_first:
            await fork(store, "s", "s~f", 4, own=["f4"])
        await summarise(store, "s", 1, 5, name="a", retention=retention)
        if not is_first:
            await fork(store, "s", "s~f", 4, own=["f4"])
        assert await store.database.read(range_summaries.read_range_summaries, "s~f", None, live=False) == ()
        assert await in_view(store, "s~f") == await originals(store, "s~f") == [1, 2, 3, 4]
        assert [message.content for message in await store.read("s~f", None)][-1] == "f4"

    async def test_a_fork_shows_what_was_replaced_behind_it(self, store: Store) -> None:
        await append_messages(store, "s", numbered(9))
        await summarise(store, "s", 1, 3, name="a", retention="archive")
        await fork(store, "s", "s~f", 6, own=["f6"])
        await fork(store, "s~f", "s~g", 6, own=["g6"])
        await summarise(store, "s", 1, 7, name="b", retention="archive")
        for name in ("s~f", "s~g"):
            assert await live_ids(store, name) == ["a"]
            assert await in_view(store, name) == [4, 5, 6]
        assert await restore(store, "s", "b") is True
        assert await in_view(store, "s~f") == [4, 5, 6]
        assert await restore(store, "s", "a") is True
        assert await in_view(store, "s~f") == [1, 2, 3, 4, 5, 6]

    async def test_a_fork_summarises_its_own_messages_only(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        await summarise(store, "s", 1, 2, name="a", retention="archive")
        await fork(store, "s", "s~f", 5, own=["f5", "f6", "f7"])
        for start in (3, 4):
            with pytest.raises(InvalidInputError):
                await put(store, "s~f", await summary_of(store, "s~f", start, 6, name="b"))
        await summarise(store, "s~f", 5, 6, name="c", retention="archive")
        assert await live_ids(store, "s~f") == ["a", "c"]
        assert await live_ids(store, "s") == ["a"]
        assert await in_view(store, "s~f") == [3, 4, 7]
        assert await in_view(store, "s") == [3, 4, 5, 6]

    async def test_an_inherited_summary_is_restored_where_it_belongs(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        await summarise(store, "s", 1, 2, name="a", retention="archive")
        await fork(store, "s", "s~f", 4, own=["f4"])
        with pytest.raises(InvalidInputError):
            await restore(store, "s~f", "a")
        assert await in_view(store, "s~f") == [3, 4]

    async def test_what_a_fork_needs_is_not_deleted(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        await fork(store, "s", "s~f", 4, own=["f4"])
        with pytest.raises(InvalidInputError):
            await put(store, "s", await summary_of(store, "s", 1, 5, retention="delete"))
        assert await in_view(store, "s") == [1, 2, 3, 4, 5, 6]
        await summarise(store, "s", 1, 3, name="a", retention="delete")
        await summarise(store, "s", 4, 5, name="b", retention="delete")
        assert await live_ids(store, "s~f") == ["a"]
        assert await in_view(store, "s~f") == [4]

    async def test_a_deleted_fork_needs_nothing(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        await fork(store, "s", "s~f", 4)
        await store.delete("s~f", None, now=wall_clock(), purge=False)
        await summarise(store, "s", 1, 5, retention="delete")


class AtRandom:
    """Whatever happens to a session and its forks: what is out of view has a text that stands for it."""

    @pytest.mark.parametrize("seed", range(6))
    async def test_nothing_is_out_of_view_without_a_text(self, store: Store, seed: int) -> None:
        random = Random(seed)
        sessions, gone = ["s"], set[str]()
        await append_messages(store, "s", numbered(6))
        for number in range(40):
            await self._change(store, random, sessions, gone, f"{seed}-{number}")
            for each in sessions:
                await self._check(store, each, gone)
        for each in reversed(sessions):
            await self._undo_all(store, each)
        for each in sessions:
            assert await store.read(each, None) == await store.database.read(log.read_originals, each, None)

    async def _change(self, store: Store, random: Random, sessions: list[str], gone: set[str], name: str) -> None:
        """One change, or none if it is refused. The ids of messages that are taken back or erased go to `gone`."""
        session_id = random.choice(sessions)
        session = await store.get_session(session_id, None)
        assert session is not None
        start = random.randint(1, max(1, session.last_seq))
        end = min(session.last_seq, start + random.randint(0, 6))
        what = random.choice(["append", "fork", "withdraw", "erase", "restore", *["summarise"] * 6])
        with suppress(InvalidInputError):
            if what == "append":
                await append_messages(store, session_id, numbered(random.randint(1, 4)))
            elif what == "fork" and len(sessions) < 4:
                await fork(store, session_id, f"s~{len(sessions)}", start, own=["own"])
                sessions.append(f"s~{len(sessions)}")
            elif what == "withdraw":
                gone.add((await withdraw(store, session_id)).message_id or "")
            elif what == "erase":
                erased = await store.database.read(log.read_originals, session_id, None, after=end - 1, until=end)
                await erase(store, session_id, (end, end))
                gone.update(message.message_id or "" for message in erased)
            elif what == "restore":
                await restore(store, session_id, random.choice([*await live_ids(store, session_id), "none"]))
            elif what == "summarise":
                made = await summary_of(store, session_id, start, end, name=name, retention=random.choice(UNDOABLE))
                await put(store, session_id, made)

    async def _check(self, store: Store, session_id: str, gone: set[str]) -> None:
        live = await store.database.read(range_summaries.read_range_summaries, session_id, None)
        assert all(one.end_seq < other.start_seq for one, other in pairwise(live))
        everything = await store.database.read(log.read_originals, session_id, None)
        assert not gone & {message.message_id for message in everything}
        in_view = set(seqs(await store.read(session_id, None)))
        behind = {seq for each in live for seq in range(each.start_seq, each.end_seq + 1)}
        assert set(seqs(everything)) <= in_view | behind
        for summary in live:
            held = [seq for seq in seqs(everything) if summary.start_seq <= (seq or 0) <= summary.end_seq]
            assert summary.message_count == len(held)

    async def _undo_all(self, store: Store, session_id: str) -> None:
        """Restore the session's own summaries until none is left."""
        session = await store.get_session(session_id, None)
        assert session is not None
        own_start = session.branch[-1].start_seq
        while own := [
            each
            for each in await store.database.read(range_summaries.read_range_summaries, session_id, None)
            if each.start_seq >= own_start
        ]:
            for summary in own:
                assert await restore(store, session_id, summary.summary_id)


@pytest.mark.anyio
class RangeSummaryRules(
    Standing, Compared, Refused, Replacing, WithdrawnUnderneath, ErasedUnderneath, InBranches, AtRandom
):
    """The fixture `store` gives an opened, empty one that is a log, too."""
