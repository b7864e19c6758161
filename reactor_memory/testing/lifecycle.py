"""Deletion, the list of sessions, and what a load reads."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Sequence
from functools import partial

import anyio
import pytest

from reactor_memory.core.ports import MessageStore
from reactor_memory.errors import InvalidInputError, SessionDeletedError, SessionError, SessionNotFoundError
from reactor_memory.models import Message
from reactor_memory.models.requests import ContextQuery, ContextRows
from reactor_memory.models.session_pages import SessionPreview
from reactor_memory.testing.branching import fork
from reactor_memory.testing.builders import append_messages, numbered, wall_clock
from reactor_memory.testing.log import nothing_left, seqs


async def delete(store: MessageStore, session_id: str, *, purge: bool, now: int | None = None) -> set[str]:
    """The ids that went, each once."""
    gone = await store.delete(session_id, None, now=wall_clock() if now is None else now, purge=purge)
    assert len(gone) == len(set(gone))
    return set(gone)


async def assert_gone(store: MessageStore, session_id: str) -> None:
    """Every call says that the session was deleted."""
    query = ContextQuery(session_id=session_id, user_id=None, last_count=5)
    fork_id = f"{session_id.partition('~')[0]}~new"
    for call in (
        lambda: append_messages(store, session_id, numbered(1)),
        lambda: store.get_session(session_id, None),
        lambda: store.read(session_id, None),
        lambda: store.read_context(query),
        lambda: store.read_background(session_id),
        lambda: store.fork(session_id, None, at_seq=1, fork_id=fork_id, now=wall_clock()),
        lambda: store.withdraw(session_id, None, seq=None, now=wall_clock(), refold=nothing_left),
    ):
        with pytest.raises(SessionDeletedError):
            await call()


class Deletion:
    """A root goes with its group, a fork with the forks below it; tombstones stay."""

    @pytest.fixture(params=[True, False], ids=["purged", "marked"])
    def purge(self, request: pytest.FixtureRequest) -> bool:
        return request.param

    async def family(self, store: MessageStore) -> None:
        """s with the forks a and b; a1 and a2 fork from a; another group."""
        await append_messages(store, "s", numbered(3))
        await fork(store, "s", "s~a", 3, own=["a3"])
        await fork(store, "s", "s~b", 3, own=["b3"])
        await fork(store, "s~a", "s~a1", 4, own=["a4"])
        await fork(store, "s~a1", "s~a2", 2, own=["a2"])
        await append_messages(store, "other", numbered(1))

    async def test_a_root_goes_with_its_whole_group(self, store: MessageStore, purge: bool) -> None:
        await self.family(store)
        group = {"s", "s~a", "s~b", "s~a1", "s~a2"}
        assert await delete(store, "s", purge=purge) == group
        for session_id in group:
            await assert_gone(store, session_id)
        assert seqs(await store.read("other", None)) == [1]

    async def test_a_fork_goes_with_the_forks_below_it(self, store: MessageStore, purge: bool) -> None:
        await self.family(store)
        assert await delete(store, "s~a", purge=purge) == {"s~a", "s~a1", "s~a2"}
        for session_id in ("s~a", "s~a1", "s~a2"):
            await assert_gone(store, session_id)
        assert seqs(await store.read("s", None)) == [1, 2, 3]
        assert seqs(await store.read("s~b", None)) == [1, 2, 3]

    async def test_a_second_deletion_changes_nothing(self, store: MessageStore, purge: bool) -> None:
        await self.family(store)
        assert await delete(store, "s~a1", purge=purge) == {"s~a1", "s~a2"}
        assert await delete(store, "s~a1", purge=purge) == set()
        assert await delete(store, "s~a", purge=purge) == {"s~a"}
        assert await delete(store, "s", purge=purge) == {"s", "s~b"}
        assert await delete(store, "s", purge=purge) == set()

    async def test_an_unknown_session_cannot_be_deleted(self, store: MessageStore, purge: bool) -> None:
        with pytest.raises(SessionNotFoundError):
            await delete(store, "s", purge=purge)

    async def test_a_deleted_id_is_not_used_again(self, store: MessageStore, purge: bool) -> None:
        await self.family(store)
        await delete(store, "s~a", purge=purge)
        with pytest.raises((SessionDeletedError, InvalidInputError)):
            await fork(store, "s", "s~a", 2)
        await assert_gone(store, "s~a")

    async def test_it_leaves_the_list(self, store: MessageStore, purge: bool) -> None:
        await self.family(store)
        await delete(store, "s~a", purge=purge)
        page = await store.list_sessions(None)
        assert {session.session_id for session in page.sessions} == {"s", "s~b", "other"}

    async def test_the_tombstone_outlives_the_content(self, store: MessageStore, purge: bool) -> None:
        await self.family(store)
        await delete(store, "s", purge=purge, now=1_000)
        assert await store.purge_deleted(before=wall_clock()) == (0 if purge else 5)
        for session_id in ("s", "s~a", "s~b", "s~a1", "s~a2"):
            await assert_gone(store, session_id)
        assert await delete(store, "s", purge=purge) == set()

    async def test_a_key_does_not_open_a_deleted_session(self, store: MessageStore, purge: bool) -> None:
        await append_messages(store, "s", numbered(1), idempotency_key="k")
        await delete(store, "s", purge=purge)
        with pytest.raises(SessionDeletedError):
            await append_messages(store, "s", numbered(1), idempotency_key="k")

    async def test_a_stranger_cannot_come_in_through_a_deletion(self, store: MessageStore, purge: bool) -> None:
        await append_messages(store, "s", numbered(1), user_id="owner")
        await store.delete("s", "owner", now=wall_clock(), purge=purge)
        with pytest.raises(SessionError):
            await append_messages(store, "s", numbered(1), user_id="stranger")

    async def test_deleting_while_others_append(self, store: MessageStore, purge: bool) -> None:
        await append_messages(store, "s", numbered(1))

        async def append() -> None:
            try:
                await append_messages(store, "s", numbered(2))
            except SessionDeletedError:
                return

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(append)
            tasks.start_soon(partial(delete, store, "s", purge=purge))
        await assert_gone(store, "s")


class Purge:
    """What is only marked is removed later."""

    async def test_only_what_was_marked_before(self, store: MessageStore) -> None:
        for number in range(1, 5):
            await append_messages(store, f"s{number}", numbered(1))
            await delete(store, f"s{number}", purge=False, now=number * 1_000)
        assert await store.purge_deleted(before=3_000) == 2
        assert await store.purge_deleted(before=3_000) == 0
        assert await store.purge_deleted(before=5_000) == 2

    async def test_no_more_than_the_limit(self, store: MessageStore) -> None:
        for number in range(5):
            await append_messages(store, f"s{number}", numbered(1))
            await delete(store, f"s{number}", purge=False, now=1_000)
        assert [await store.purge_deleted(before=2_000, limit=2) for _ in range(4)] == [2, 2, 1, 0]

    async def test_what_lives_stays(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(3), now=1_000)
        await fork(store, "s", "s~f", 3, own=["f3"])
        await delete(store, "s~f", purge=False, now=1_000)
        assert await store.purge_deleted(before=wall_clock()) == 1
        assert seqs(await store.read("s", None)) == [1, 2, 3]

    async def test_purging_a_root_takes_marked_forks_along(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(3))
        await fork(store, "s", "s~f", 3, own=["f3"])
        await delete(store, "s~f", purge=False, now=1_000)
        assert await delete(store, "s", purge=True) == {"s"}
        assert await store.purge_deleted(before=wall_clock()) == 0


NO_CURSORS = ("not json", "{}", "[1, 2]", '["a", "b"]', '[1, "a\\u0000"]', '[1, "\\ud800"]', f'[{2**63}, "a"]')


def url_safe(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


class Listing:
    """The sessions of a user, newest activity first, in keyset pages."""

    async def rows(self, store: MessageStore, user_id: str | None, limit: int = 50) -> list[SessionPreview]:
        """All pages, each checked for its size."""
        found: list[SessionPreview] = []
        cursor: str | None = None
        while True:
            page = await store.list_sessions(user_id, limit=limit, cursor=cursor)
            assert len(page.sessions) == limit or page.next_cursor is None
            found += page.sessions
            if page.next_cursor is None:
                return found
            cursor = page.next_cursor

    async def ids(self, store: MessageStore, user_id: str | None, limit: int = 50) -> list[str]:
        return [row.session_id for row in await self.rows(store, user_id, limit)]

    async def test_nobody_has_sessions_yet(self, store: MessageStore) -> None:
        assert await self.rows(store, "u") == []

    async def test_newest_activity_first(self, store: MessageStore) -> None:
        for number, session_id in enumerate(["a", "b", "c"]):
            await append_messages(store, session_id, numbered(1), user_id="u", now=1_000 + number)
        assert await self.ids(store, "u") == ["c", "b", "a"]
        await append_messages(store, "a", numbered(1), user_id="u", now=2_000)
        assert await self.ids(store, "u") == ["a", "c", "b"]

    async def test_a_row(self, store: MessageStore) -> None:
        await append_messages(store, "s", [Message.system("be kind"), Message.user("hello")], user_id="u", now=1_000)
        await append_messages(store, "s", numbered(1), user_id="u", now=2_000)
        assert await self.rows(store, "u") == [
            SessionPreview(
                session_id="s",
                owner_id="u",
                title=None,
                preview="hello",
                last_seq=3,
                created_at=1_000,
                updated_at=2_000,
            )
        ]

    async def test_a_list_shows_the_sessions_of_its_user_only(self, store: MessageStore) -> None:
        for session_id, user_id in (("a", "u"), ("b", "v"), ("c", None), ("d", ""), ("e", "U")):
            await append_messages(store, session_id, numbered(1), user_id=user_id)
        for user_id, expected in (("u", ["a"]), ("v", ["b"]), (None, ["c"]), ("", ["d"]), ("w", [])):
            assert await self.ids(store, user_id) == expected

    async def test_forks_are_sessions_too(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(3), user_id="u", now=1_000)
        await store.fork("s", "u", at_seq=3, fork_id="s~f", now=2_000)
        rows = await self.rows(store, "u")
        assert [(row.session_id, row.preview, row.last_seq) for row in rows] == [
            ("s~f", "message 1", 2),
            ("s", "message 1", 3),
        ]

    async def test_the_preview_of_a_fork_is_of_its_branch(self, store: MessageStore) -> None:
        await append_messages(store, "s", [Message.user("of the root")], user_id="u", now=1_000)
        await store.fork("s", "u", at_seq=1, fork_id="s~f", now=2_000)
        assert [row.preview for row in await self.rows(store, "u")] == ["", "of the root"]
        await append_messages(store, "s~f", [Message.user("of the fork")], user_id="u", now=3_000)
        assert [row.preview for row in await self.rows(store, "u")] == ["of the fork", "of the root"]

    @pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
    async def test_pages_neither_skip_nor_repeat(self, store: MessageStore, limit: int) -> None:
        for number in range(7):
            await append_messages(store, f"s{number}", numbered(1), user_id="u", now=1_000 + number)
        assert await self.ids(store, "u", limit) == [f"s{number}" for number in reversed(range(7))]

    @pytest.mark.parametrize("limit", [1, 2, 3, 5])
    async def test_pages_among_sessions_of_the_same_time(self, store: MessageStore, limit: int) -> None:
        expected = {"a", "b", "A", "B", "\u00e4", "\U0001f600", "10", "9"}
        for session_id in expected:
            await append_messages(store, session_id, numbered(1), user_id="u", now=1_000)
        found = await self.ids(store, "u", limit)
        assert len(found) == len(expected)
        assert set(found) == expected

    async def test_a_session_that_does_not_change_is_shown_once(self, store: MessageStore) -> None:
        for number in range(6):
            await append_messages(store, f"s{number}", numbered(1), user_id="u", now=1_000 + number)
        first = await store.list_sessions("u", limit=2)
        await append_messages(store, "s0", numbered(1), user_id="u", now=9_000)
        await append_messages(store, "new", numbered(1), user_id="u", now=9_000)
        second = await store.list_sessions("u", limit=10, cursor=first.next_cursor)
        found = [row.session_id for row in (*first.sessions, *second.sessions)]
        assert found == ["s5", "s4", "s3", "s2", "s1"]

    @pytest.mark.parametrize("cursor", ["", "broken", "\u20ac", "\0", *map(url_safe, NO_CURSORS)])
    async def test_a_broken_cursor(self, store: MessageStore, cursor: str) -> None:
        with pytest.raises(InvalidInputError):
            await store.list_sessions("u", cursor=cursor)

    @pytest.mark.parametrize(
        ("content", "preview"),
        [
            ("", ""),
            (" one\n\n two\tthree ", "one two three"),
            ("x" * 80, "x" * 80),
            ("word " * 16, ("word " * 16).strip()),
            ("\U0001f600" * 80, "\U0001f600" * 80),
        ],
    )
    async def test_a_preview_is_one_line(self, store: MessageStore, content: str, preview: str) -> None:
        await append_messages(store, "s", [Message.user(content)], user_id="u")
        assert [row.preview for row in await self.rows(store, "u")] == [preview]

    async def test_a_preview_has_at_most_80_characters(self, store: MessageStore) -> None:
        for session_id, content in (("a", "x" * 81), ("b", "long " * 100_000)):
            await append_messages(store, session_id, [Message.user(content)], user_id="u")
        for row in await self.rows(store, "u"):
            assert 70 < len(row.preview) <= 80
            assert row.preview.startswith(("xxxxxx", "long long"))

    async def test_no_preview_without_a_user_message(self, store: MessageStore) -> None:
        await append_messages(store, "s", [Message.assistant("hello"), Message.system("hi")], user_id="u")
        assert [row.preview for row in await self.rows(store, "u")] == [""]

    async def test_a_withdrawn_message_leaves_the_preview(self, store: MessageStore) -> None:
        await append_messages(store, "s", [Message.user("secret")], user_id="u")
        await store.withdraw("s", "u", seq=1, now=wall_clock(), refold=nothing_left)
        assert [row.preview for row in await self.rows(store, "u")] == [""]
        await append_messages(store, "s", [Message.user("public")], user_id="u")
        assert [row.preview for row in await self.rows(store, "u")] == ["public"]


class Loading:
    """What a load reads: by count at or below the trigger, by count and tokens above it."""

    async def load(
        self,
        store: MessageStore,
        trigger: int | None,
        *,
        last_count: int = 4,
        max_messages: int = 1_000,
        max_tokens: int = 1_000_000,
        overhead: int = 4,
    ) -> ContextRows:
        return await store.read_context(
            ContextQuery(
                session_id="s",
                user_id="u",
                last_count=last_count,
                trigger_message_count=trigger,
                max_messages=max_messages,
                max_tokens=max_tokens,
                overhead=overhead,
            )
        )

    async def fill(self, store: MessageStore, tokens: Sequence[int]) -> None:
        messages = [Message.user(str(count), token_count=count, tokenizer="t") for count in tokens]
        await append_messages(store, "s", messages, user_id="u")

    async def test_an_unknown_session_loads_as_empty(self, store: MessageStore) -> None:
        assert await self.load(store, None) == ContextRows()

    async def test_the_session_comes_along(self, store: MessageStore) -> None:
        await self.fill(store, [10] * 3)
        rows = await self.load(store, None)
        assert rows.session == await store.get_session("s", "u")
        assert rows.messages == await store.read("s", "u")
        assert rows.layout is None

    async def test_without_a_trigger_the_newest(self, store: MessageStore) -> None:
        await self.fill(store, [10] * 30)
        assert seqs((await self.load(store, None)).messages) == [27, 28, 29, 30]

    @pytest.mark.parametrize(("length", "expected"), [(3, [1, 2, 3]), (6, [3, 4, 5, 6]), (7, [1, 2, 3, 4, 5, 6, 7])])
    async def test_the_trigger(self, store: MessageStore, length: int, expected: list[int]) -> None:
        await self.fill(store, [10] * length)
        assert seqs((await self.load(store, 6)).messages) == expected

    async def test_above_the_trigger_no_more_than_max_messages(self, store: MessageStore) -> None:
        await self.fill(store, [10] * 30)
        assert seqs((await self.load(store, 6, max_messages=5)).messages) == [26, 27, 28, 29, 30]

    @pytest.mark.parametrize(
        ("max_tokens", "count"), [(0, 1), (13, 1), (14, 2), (27, 2), (28, 3), (29, 3), (10_000, 10)]
    )
    async def test_above_the_trigger_the_message_that_passes_is_included(
        self, store: MessageStore, max_tokens: int, count: int
    ) -> None:
        await self.fill(store, [10] * 10)
        rows = await self.load(store, 6, max_tokens=max_tokens)
        assert seqs(rows.messages) == list(range(11 - count, 11))

    async def test_tokens_are_added_newest_first(self, store: MessageStore) -> None:
        await self.fill(store, [1, 1, 1, 1, 100, 1, 1])
        assert seqs((await self.load(store, 3, max_tokens=50, overhead=0)).messages) == [5, 6, 7]
        assert seqs((await self.load(store, 3, max_tokens=102, overhead=0)).messages) == [4, 5, 6, 7]

    async def test_withdrawn_messages_take_no_room(self, store: MessageStore) -> None:
        await self.fill(store, [10] * 8)
        for _ in range(2):
            await store.withdraw("s", "u", seq=None, now=wall_clock(), refold=nothing_left)
        await self.fill(store, [10])
        assert seqs((await self.load(store, None)).messages) == [4, 5, 6, 9]
        assert seqs((await self.load(store, 6, max_messages=3)).messages) == [5, 6, 9]
        assert seqs((await self.load(store, 6, max_tokens=28)).messages) == [5, 6, 9]

    async def test_across_a_fork(self, store: MessageStore) -> None:
        await self.fill(store, [10] * 8)
        await store.fork("s", "u", at_seq=8, fork_id="s~f", now=wall_clock())
        await append_messages(store, "s~f", [Message.user("own", token_count=10, tokenizer="t")], user_id="u")
        query = ContextQuery(
            session_id="s~f", user_id="u", last_count=1, trigger_message_count=4, max_messages=50, max_tokens=28
        )
        assert seqs((await store.read_context(query)).messages) == [6, 7, 8]
