"""Entries of a kind that no feature of this library has: what is promised of every kind."""

from __future__ import annotations

from reactor_memory.features.entries import operations as entries
from reactor_memory.features.entries.models import Entry
from reactor_memory.features.erasure import operations as erasure
from reactor_memory.testing.branching import fork, withdraw
from reactor_memory.testing.builders import append_messages, numbered, wall_clock
from tests.scenes.stores import SqlStore as Store

KIND = "bookmark"


def entry(name: str, first: int, last: int, *, state: str | None = None) -> Entry:
    text = f"of {first} to {last}"
    return Entry(kind=KIND, name=name, start_seq=first, end_seq=last, seq=last, state=state, text=text)


async def put(store: Store, session_id: str, *new: Entry) -> None:
    await store.database.write(entries.put, entries.of_session(session_id), *new)


async def stored(store: Store, session_id: str) -> list[Entry]:
    return list(await store.database.read(entries.read_all, entries.of_session(session_id)))


async def names(store: Store, session_id: str) -> list[str]:
    return [each.name for each in await stored(store, session_id)]


class Entries:
    async def test_an_entry_comes_back_and_keeps_its_place(self, store: Store) -> None:
        await append_messages(store, "s", numbered(3))
        given = Entry(
            kind=KIND, name="a", place=2, seq=3, role="user", author="ann", text="x", details={"to": [1, "b"]}
        )
        await put(store, "s", entry("a", 1, 1), entry("b", 2, 2))
        await put(store, "s", given)
        assert await stored(store, "s") == [given, entry("b", 2, 2)]

    async def test_an_entry_goes_with_any_message_it_was_made_of(self, store: Store) -> None:
        await append_messages(store, "s", numbered(5))
        await put(store, "s", entry("a", 1, 5), entry("b", 2, 4), entry("c", 5, 5), entry("none", 0, 0))
        await fork(store, "s", "s~f", 5, own=["f5"])
        await put(store, "s~f", entry("d", 5, 5))
        await withdraw(store, "s")
        assert await names(store, "s") == ["b", "none"]
        assert await names(store, "s~f") == ["b", "d", "none"]

    async def test_forks_copy_what_stands_for_no_message(self, store: Store) -> None:
        await append_messages(store, "s", numbered(5))
        await put(store, "s", entry("a", 1, 2), entry("stands", 1, 2, state="keep"), entry("later", 3, 4))
        await fork(store, "s", "s~f", 4)
        assert await stored(store, "s~f") == [entry("a", 1, 2)]
        assert await names(store, "s") == ["a", "later", "stands"]

    async def test_what_an_entry_replaced_is_there_again_without_it(self, store: Store) -> None:
        await append_messages(store, "s", numbered(5))
        scope = entries.of_session("s")
        await put(store, "s", entry("a", 1, 2, state="keep"), entry("b", 3, 3, state="keep"))
        await store.database.write(entries.replace, scope, entry("c", 1, 5, state="keep"), ["a"])
        assert [each.replaced_by for each in await stored(store, "s")] == ["c", None, None]
        await withdraw(store, "s")
        assert [(each.name, each.replaced_by) for each in await stored(store, "s")] == [("a", None), ("b", None)]

    async def test_a_deleted_session_takes_its_entries_along(self, store: Store) -> None:
        await append_messages(store, "s", numbered(2))
        await put(store, "s", entry("a", 1, 1))
        await store.delete("s", None, now=wall_clock(), purge=True)
        assert await names(store, "s") == []

    async def test_texts_of_a_forgotten_user_end_with_an_empty_one(self, store: Store) -> None:
        for user_id in ("u", "v"):
            new = Entry(kind=KIND, name="a", version=1, text="secret")
            assert await store.database.write(entries.put_next, entries.of_user(user_id), new)
        assert await store.database.write(erasure.forget_user, "u", now=5) == 1
        (left,) = await store.database.read(entries.read_all, entries.of_user("u"))
        assert (left.version, left.text, left.created_at) == (2, "", 5)
        (kept,) = await store.database.read(entries.read_all, entries.of_user("v"))
        assert kept.text == "secret"
