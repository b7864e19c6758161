"""Items of applications."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from reactor_memory.database.database import Database
from reactor_memory.errors import InvalidInputError, StoreError
from reactor_memory.features.erasure import operations as erasure
from reactor_memory.features.items import operations as items
from reactor_memory.features.items.models import Item, ItemChange
from reactor_memory.features.transfer import operations as transfer
from reactor_memory.models import JsonObject
from reactor_memory.testing.log import TEXTS
from reactor_memory.text.analyzer import terms

USER = "ann"
VALUES: tuple[JsonObject, ...] = (
    {},
    {"a": [1, -2.5, None, True, {"b": []}]},
    {"n": 2**63 - 1},
    {"nul": "\0"},
    {"": {"": ""}},
)


async def put(
    database: Database, namespace: str, key: str, value: JsonObject, *, now: int, user_id: str = USER
) -> None:
    await database.write(items.change_items, user_id, [ItemChange(namespace=namespace, key=key, value=value)], now=now)


async def remove(database: Database, namespace: str, key: str, *, user_id: str = USER) -> None:
    await database.write(items.change_items, user_id, [ItemChange(namespace=namespace, key=key)], now=99)


def item(namespace: str, key: str, value: JsonObject, created_at: int, updated_at: int | None = None) -> Item:
    updated = created_at if updated_at is None else updated_at
    return Item(namespace=namespace, key=key, value=value, created_at=created_at, updated_at=updated)


@pytest.mark.anyio
class ItemsRules:
    """The fixture `database` gives an opened, empty one."""

    async def test_there_is_nothing_at_first(self, database: Database) -> None:
        assert await database.read(items.read_items, USER, []) == ()
        assert await database.read(items.read_items, USER, [("a", "k")]) == (None,)
        assert await database.read(items.list_items, USER, "") == ()
        assert await database.read(items.list_item_namespaces, USER) == ()

    async def test_items_are_answered_in_the_order_asked_for(self, database: Database) -> None:
        await put(database, "a", "k", {"n": 1}, now=1)
        await put(database, "b", "k", {"n": 2}, now=2)
        found = await database.read(items.read_items, USER, [("b", "k"), ("a", "x"), ("a", "k"), ("b", "k")])
        b = item("b", "k", {"n": 2}, 2)
        assert found == (b, None, item("a", "k", {"n": 1}, 1), b)

    async def test_a_value_that_is_replaced_keeps_when_it_was_created(self, database: Database) -> None:
        await put(database, "a", "k", {"n": 1, "m": 1}, now=1)
        await put(database, "a", "k", {"n": 2}, now=5)
        assert await database.read(items.read_items, USER, [("a", "k")]) == (item("a", "k", {"n": 2}, 1, 5),)

    async def test_what_was_removed_begins_anew(self, database: Database) -> None:
        await put(database, "a", "k", {}, now=1)
        await remove(database, "a", "k")
        await remove(database, "a", "k")
        assert await database.read(items.read_items, USER, [("a", "k")]) == (None,)
        await put(database, "a", "k", {}, now=7)
        assert await database.read(items.read_items, USER, [("a", "k")]) == (item("a", "k", {}, 7),)

    async def test_of_changes_to_one_item_the_last_one_holds(self, database: Database) -> None:
        changes = [
            ItemChange(namespace="a", key="k", value={"n": 1}),
            ItemChange(namespace="a", key="x", value={"n": 2}),
            ItemChange(namespace="a", key="k"),
            ItemChange(namespace="a", key="x", value={"n": 3}),
        ]
        await database.write(items.change_items, USER, changes, now=1)
        assert await database.read(items.read_items, USER, [("a", "k"), ("a", "x")]) == (
            None,
            item("a", "x", {"n": 3}, 1),
        )

    async def test_items_of_a_namespace_and_below_it_the_newest_first(self, database: Database) -> None:
        for now, namespace in enumerate(["a", "a.b", "a.b.c", "ab", "a-b", "a/b", "a b", "b", "b.a"], start=1):
            await put(database, namespace, "k", {"at": namespace}, now=now)

        async def listed(namespace: str) -> list[str]:
            return [each.namespace for each in await database.read(items.list_items, USER, namespace)]

        async def found(namespace: str, limit: int = 99) -> list[str]:
            hits = await database.read_long(items.find_items, USER, namespace, limit=limit)
            return [each.namespace for each, _ in hits]

        assert await listed("a") == ["a.b.c", "a.b", "a"]
        assert await listed("a.b") == ["a.b.c", "a.b"]
        assert await found("a", limit=2) == ["a.b.c", "a.b"]
        assert await found("a", limit=0) == []
        for namespace in ("", "a", "a.b", "c"):
            assert await found(namespace) == await listed(namespace)
        assert await listed("c") == []
        assert await listed("") == ["b.a", "b", "a b", "a/b", "a-b", "ab", "a.b.c", "a.b", "a"]
        assert sorted(await database.read(items.list_item_namespaces, USER)) == sorted(await listed(""))

    async def test_those_that_share_most_terms_come_first(self, database: Database) -> None:
        texts = ["window seats on trains", "vegetarian restaurants", "a seat in a restaurant", "Zug nach Köln", "none"]
        for now, text in enumerate(texts, start=1):
            await put(database, "a", str(now), {"text": text}, now=now)
        await put(database, "b", "6", {"text": "a seat in a restaurant"}, now=6)
        await put(database, "a", "5", {"text": "nothing"}, now=7)

        async def found(query: str, limit: int = 99) -> list[tuple[str, int]]:
            wanted = frozenset(terms(query))
            hits = await database.read_long(items.find_items, USER, "a", query=wanted, limit=limit)
            return [(each.key, shared) for each, shared in hits]

        assert await found("seats, restaurant") == [("3", 2), ("2", 1), ("1", 1), ("5", 0), ("4", 0)]
        assert await found("seats, restaurant", limit=2) == [("3", 2), ("2", 1)]
        assert (await found("KOLN"))[0] == ("4", 1)
        assert [shared for _, shared in await found("sea rant %")] == [0] * 5
        assert [key for key, _ in await found("")] == ["5", "4", "3", "2", "1"]

    async def test_what_was_exported_and_imported_is_found_by_its_terms(self, database: Database) -> None:
        await put(database, "a", "k", {"text": "window seats"}, now=1)
        exported = await database.read(transfer.export_user, USER)
        await remove(database, "a", "k")
        await database.write(transfer.import_user, exported)
        found = await database.read_long(items.find_items, USER, "a", query=frozenset(terms("seat")), limit=9)
        assert found == ((item("a", "k", {"text": "window seats"}, 1), 1),)

    async def test_of_those_that_the_database_selects_the_ones_that_fit(self, database: Database) -> None:
        changes = [ItemChange(namespace="a", key=f"{n:03}", value={"n": n, "of": f"x{n % 2}"}) for n in range(400)]
        await database.write(items.change_items, USER, changes, now=1)
        await put(database, "a", "nul", {"of": "\0 %", "n": -1}, now=2)
        asked: list[int] = []

        def fits(value: JsonObject) -> bool:
            asked.append(value["n"])
            return value["n"] % 3 == 0

        async def found(fragments: list[str], limit: int) -> list[int]:
            asked.clear()
            hits = await database.read_long(items.find_items, USER, "a", fragments=fragments, fits=fits, limit=limit)
            return [each.value["n"] for each, _ in hits]

        every_sixth = list(range(3, 400, 6))
        assert await found(['"of"', '"x1"'], limit=2) == every_sixth[:2]
        assert len(asked) < 100
        assert await found(['"x1"'], limit=999) == every_sixth
        assert asked == list(range(1, 400, 2))
        assert await found(['"x1"', '"x0"'], limit=9) == asked == []
        assert await found(['"\\u0000 %"'], limit=9) == []
        assert asked == [-1]

    async def test_of_several_searches_each_has_its_own_answer(self, database: Database) -> None:
        for number in range(3):
            await put(
                database, "a" if number else "b", str(number), {"text": "seats" if number == 1 else "none"}, now=1
            )

        def refuses(value: JsonObject) -> bool:
            raise InvalidInputError("filter", "cannot be asked for")

        plain = items.ItemSearch(namespace="", query=frozenset(), fragments=(), fits=None, limit=9)
        searches: list[items.ItemSearch] = [
            {**plain, "namespace": "a", "query": frozenset(terms("seats"))},
            {**plain, "fits": refuses},
            {**plain, "namespace": "b", "fits": lambda value: True},
            {**plain, "namespace": "c"},
        ]
        ranked, refused, below, nothing = await database.read_long(items.find_each, USER, searches)
        assert isinstance(refused, InvalidInputError)
        found = [[(each.key, shared) for each, shared in answer] for answer in (ranked, below, nothing)]  # pyright: ignore
        assert found == [[("1", 1), ("2", 0)], [("0", 0)], []]
        assert await database.read_long(items.find_each, USER, []) == ()

    async def test_items_of_one_moment_are_in_order_of_their_names(self, database: Database) -> None:
        for namespace, key in [("b", "1"), ("a", "2"), ("a", "1"), ("a", "B"), ("a", "é")]:
            await put(database, namespace, key, {}, now=1)
        listed = [(each.namespace, each.key) for each in await database.read(items.list_items, USER, "")]
        assert listed == [("a", "1"), ("a", "2"), ("a", "B"), ("a", "é"), ("b", "1")]

    async def test_each_user_has_items_of_their_own(self, database: Database) -> None:
        for now, user_id in enumerate(["", "ann", "bob"], start=1):
            await put(database, "a", "k", {"of": user_id}, now=now, user_id=user_id)
        await remove(database, "a", "k", user_id="bob")
        assert await database.read(items.read_items, "", [("a", "k")]) == (item("a", "k", {"of": ""}, 1),)
        assert await database.read(items.list_items, "ann", "a") == (item("a", "k", {"of": "ann"}, 2),)
        assert await database.read(items.list_items, "bob", "") == ()
        assert await database.read(items.list_item_namespaces, "bob") == ()

    async def test_forgetting_a_user_takes_their_items_and_no_others(self, database: Database) -> None:
        for namespace in ("a", "b.c"):
            for user_id in ("ann", "bob", ""):
                await put(database, namespace, "k", {}, now=1, user_id=user_id)
        assert await database.write(erasure.forget_user, "ann", now=2) == 2
        assert await database.read(items.list_items, "ann", "") == ()
        assert (
            len(await database.read(items.list_items, "bob", ""))
            == len(await database.read(items.list_items, "", ""))
            == 2
        )

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    async def test_texts_come_back_as_they_were(self, database: Database, text: str) -> None:
        await put(database, "a", "k", {"text": text, text: 1}, now=1)
        assert await database.read(items.read_items, USER, [("a", "k")]) == (
            item("a", "k", {"text": text, text: 1}, 1),
        )

    @pytest.mark.parametrize("value", VALUES)
    async def test_values_come_back_as_they_were(self, database: Database, value: Any) -> None:
        await put(database, "a", "k", value, now=1)
        found = await database.read(items.list_items, USER, "a")
        assert found == (item("a", "k", value, 1),)

    async def test_a_value_is_nobody_elses(self, database: Database) -> None:
        given: JsonObject = {"list": [1]}
        await put(database, "a", "k", given, now=1)
        given["list"].append(2)
        (found,) = await database.read(items.read_items, USER, [("a", "k")])
        assert found is not None
        found.value["list"].append(3)
        assert await database.read(items.read_items, USER, [("a", "k")]) == (item("a", "k", {"list": [1]}, 1),)

    async def test_a_refused_change_changes_nothing(self, database: Database) -> None:
        changes = [
            ItemChange(namespace="a", key="k", value={"n": 1}),
            ItemChange(namespace="a", key="x", value={"n": object()}),
        ]
        with pytest.raises((TypeError, StoreError)):
            await database.write(items.change_items, USER, changes, now=1)
        assert await database.read(items.list_items, USER, "") == ()

    async def test_all_that_is_changed_at_once_is_kept(self, database: Database) -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(lambda n=number: put(database, "a", f"k{n % 10}", {"n": n}, now=n))
        assert sorted(each.key for each in await database.read(items.list_items, USER, "a")) == [
            f"k{n}" for n in range(10)
        ]
