"""Thousands of calls of a store at once, as LangGraph's own tests of its stores make them."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore, InvalidNamespaceError
from langgraph.store.sqlite.aio import AsyncSqliteStore

from reactor_memory import Memory, Settings, open_memory
from reactor_memory.adapters.langgraph import ReactorMemoryStore
from reactor_memory.errors import InvalidInputError

pytestmark = pytest.mark.anyio

MOST_TIMES_THEIRS = 3
ATTEMPTS = 5
ROUNDS = 10
KEYS = 100


def namespace_of(number: int) -> tuple[str, ...]:
    return ("test", "foo", "bar", "baz", str(number % 2))


def calls(store: BaseStore) -> list[Coroutine[Any, Any, Any]]:
    """Of every kind, mixed."""
    asked: list[Coroutine[Any, Any, Any]] = []
    for number in range(ROUNDS):
        namespace = namespace_of(number)
        for key in range(KEYS):
            value = {"text": f"bar {key}", "round": number}
            asked += [
                store.aput(namespace, f"key{key}", value),
                store.aget(namespace, f"key{key}"),
                store.alist_namespaces(prefix=None, max_depth=number + 1),
                store.asearch(("test",), filter={"round": number} if key % 2 else None),
                store.aput(namespace, f"other{key}", value),
                store.adelete(namespace, f"key{key}"),
            ]
    return asked


async def test_six_thousand_calls_at_once_are_answered(memory: Memory) -> None:
    store = ReactorMemoryStore(memory)
    answers = await asyncio.gather(*calls(store), return_exceptions=True)
    assert len(answers) == 6 * ROUNDS * KEYS
    assert [answer for answer in answers if isinstance(answer, BaseException)] == []
    left = await store.asearch(("test",), limit=1000)
    assert {item.key for item in left} == {f"other{key}" for key in range(KEYS)}
    assert {item.value["round"] for item in left} == {ROUNDS - 2, ROUNDS - 1}


async def test_a_call_is_answered_from_after_what_was_awaited(memory: Memory) -> None:
    store = ReactorMemoryStore(memory)

    async def turns(user: int) -> None:
        for number in range(5):
            await store.aput(("u", str(user)), str(number), {"n": number})
            assert {item.key for item in await store.asearch(("u", str(user)))} == set(map(str, range(number + 1)))
            assert ("u", str(user)) in await store.alist_namespaces(limit=1000)

    await asyncio.gather(*map(turns, range(40)))


async def test_of_simultaneous_searches_the_refused_one_fails_alone(memory: Memory) -> None:
    store = ReactorMemoryStore(memory)
    await store.aput(("a",), "k", {"tags": ["x"], "n": 1})
    answers = await asyncio.gather(
        store.asearch(("a",)),
        store.asearch(("a",), filter={"tags": [{"$like": "x"}]}),
        store.asearch(("\0",)),  # which LangGraph refuses
        store.asearch(("a" * 300,)),
        store.asearch(("a",), filter={"n": {"$gt": 10**400}}),
        store.asearch(("a",), query="\ud800 \0 x"),
        store.asearch(("a",), limit=2**80),
        store.alist_namespaces(limit=2**80),
        store.asearch(("a",), filter={"n": 1}),
        return_exceptions=True,
    )
    assert isinstance(answers[1], InvalidInputError)
    found = [[item.key for item in answer] for answer in [answers[0], *answers[3:7], answers[8]]]  # pyright: ignore
    assert isinstance(answers[2], InvalidNamespaceError)
    assert found == [["k"], [], [], ["k"], ["k"], ["k"]]
    assert answers[7] == [("a",)]


async def test_answers_of_equal_calls_are_not_shared(memory: Memory) -> None:
    store = ReactorMemoryStore(memory)
    await store.aput(("a",), "k", {"n": [1]})
    searches = await asyncio.gather(*(store.asearch(("a",)) for _ in range(3)))
    listings = await asyncio.gather(*(store.alist_namespaces() for _ in range(3)))
    gets = await asyncio.gather(*(store.aget(("a",), "k") for _ in range(3)))
    searches[0][0].value["n"].append(2)
    gets[0].value["n"].append(2)  # pyright: ignore[reportOptionalMemberAccess]
    listings[0].clear()
    assert [found[0].value for found in searches[1:]] == [{"n": [1]}] * 2
    assert [got and got.value for got in gets[1:]] == [{"n": [1]}] * 2
    assert listings[1:] == [[("a",)]] * 2


@pytest.mark.slow
async def test_many_calls_cost_a_small_multiple_of_those_of_langgraph(tmp_path: Path) -> None:
    """The best of several each: what else the machine does makes a run dearer, never cheaper."""
    ours: list[float] = []
    theirs: list[float] = []
    for attempt in range(ATTEMPTS):
        settings = Settings(store={"url": f"sqlite:///{tmp_path}/ours{attempt}.db"})  # pyright: ignore
        async with (
            open_memory(settings) as memory,
            AsyncSqliteStore.from_conn_string(f"{tmp_path}/theirs{attempt}.db") as store,
        ):
            await store.setup()
            ours.append(await processor_seconds(ReactorMemoryStore(memory)))
            theirs.append(await processor_seconds(store))
    print(f"ours {min(ours):.2f} s, theirs {min(theirs):.2f} s")
    assert min(ours) < MOST_TIMES_THEIRS * min(theirs)


async def processor_seconds(store: BaseStore) -> float:
    """Without collections of garbage: they cost what all that the process has imported makes them cost."""
    gc.collect()
    gc.disable()
    try:
        begun = time.process_time()
        await asyncio.gather(*calls(store))
        return time.process_time() - begun
    finally:
        gc.enable()
