"""The store of LangGraph: compared with its own in memory, in a real graph, and over facts and notes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypedDict
from uuid import uuid4

import hypothesis.strategies as st
import pytest
from hypothesis import given
from langgraph.config import get_store
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from reactor_memory import InvalidInputError, Memory, Message, SessionOwnershipError
from reactor_memory.adapters.langgraph import (
    ReactorMemoryStore,
    fact_key,
    facts_namespace,
    label_of,
    notes_namespace,
)

pytestmark = pytest.mark.anyio

EVERYTHING = 10_000

# -- InMemoryStore as the oracle ---------------------------------------------------------------------------------------

labels = st.sampled_from(["a", "b", "ab", "a-b", "é"])
namespaces = st.lists(labels, min_size=1, max_size=3).map(tuple)
keys = st.sampled_from(["k", "l", "", "é k"])
leaves = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["x", "7", "x y"])
values = st.dictionaries(
    st.sampled_from(["n", "m", "o"]),
    leaves | st.lists(leaves, max_size=2) | st.dictionaries(st.just("i"), leaves, max_size=1),
    max_size=3,
)
puts = st.builds(PutOp, namespaces, keys, st.none() | values, index=st.sampled_from([None, False]), ttl=st.none())
gets = st.builds(GetOp, namespaces, keys)
filters = st.dictionaries(st.sampled_from(["n", "o"]), leaves | st.just({"$eq": 1}) | st.just({"$ne": "x"}), max_size=2)
searches = st.builds(
    SearchOp,
    st.just(()) | namespaces,
    filter=st.none() | filters,
    limit=st.just(EVERYTHING),
    offset=st.just(0),
    query=st.none(),
)
conditions = st.builds(
    MatchCondition,
    st.sampled_from(["prefix", "suffix"]),
    st.lists(labels | st.just("*"), max_size=2).map(tuple),
)
listings = st.builds(
    ListNamespacesOp,
    st.none() | st.lists(conditions, max_size=2).map(tuple),
    st.none() | st.integers(1, 3),
    st.just(EVERYTHING),
    st.just(0),
)
batches = st.lists(st.lists(puts | gets | searches, max_size=6), max_size=6)


def seen(result: Any) -> Any:
    """An answer without times, and without an order that nobody promises."""
    if isinstance(result, list):
        return sorted(repr(seen(item)) for item in result)
    if hasattr(result, "namespace"):
        return (result.namespace, result.key, result.value, getattr(result, "score", None))
    return result


@pytest.fixture(scope="module")
def fresh(memory_thread: Memory) -> Callable[[], ReactorMemoryStore]:
    """An empty store for each example: that of a new user."""
    return lambda: ReactorMemoryStore(memory_thread, user_id=uuid4().hex)


@given(batches)
def test_batches_are_answered_as_the_store_in_memory_answers_them(
    fresh: Callable[[], ReactorMemoryStore], batches: list[list[Op]]
) -> None:
    ours, theirs = fresh(), InMemoryStore()
    for ops in [*batches, [SearchOp((), limit=EVERYTHING)]]:
        assert [seen(each) for each in ours.batch(ops)] == [seen(each) for each in theirs.batch(ops)]


@given(st.lists(namespaces, max_size=8), listings)
def test_namespaces_are_listed_as_there(
    fresh: Callable[[], ReactorMemoryStore], filled: list[tuple[str, ...]], listing: ListNamespacesOp
) -> None:
    ours, theirs = fresh(), InMemoryStore()
    ops = [PutOp(namespace, "k", {}) for namespace in filled]
    ours.batch(ops)
    theirs.batch(ops)
    assert ours.batch([listing]) == theirs.batch([listing])


@given(st.lists(st.integers(-3, 3), max_size=5), st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), st.integers(-3, 3))
def test_comparisons_are_those_of_there(
    fresh: Callable[[], ReactorMemoryStore], numbers: list[int], operator: str, operand: int
) -> None:
    ours, theirs = fresh(), InMemoryStore()
    ops = [PutOp(("a",), str(position), {"n": number}) for position, number in enumerate(numbers)]
    ours.batch(ops)
    theirs.batch(ops)
    search = SearchOp(("a",), filter={"n": {operator: operand}})
    assert [seen(each) for each in ours.batch([search])] == [seen(each) for each in theirs.batch([search])]


# -- items ------------------------------------------------------------------------------------------------------------


async def test_a_batch_is_answered_from_before_its_changes(memory: Memory) -> None:
    store = ReactorMemoryStore(memory)
    await store.aput(("a",), "k", {"n": 1})
    answers = await store.abatch(
        [PutOp(("a",), "k", {"n": 2}), GetOp(("a",), "k"), PutOp(("a",), "k", {"n": 3}), SearchOp(("a",))]
    )
    assert [answers[0], answers[2]] == [None, None]
    assert answers[1].value == {"n": 1}  # pyright: ignore
    assert [item.value for item in answers[3]] == [{"n": 1}]  # pyright: ignore
    assert (await store.aget(("a",), "k")).value == {"n": 3}  # pyright: ignore


async def test_items_outlive_the_process_with_their_times(memory: Memory) -> None:
    store = ReactorMemoryStore(memory)
    await store.aput(("a", "b"), "k", {"n": [1, {"x": None}]})
    first = await store.aget(("a", "b"), "k")
    await store.aput(("a", "b"), "k", {"n": 2})
    again = await ReactorMemoryStore(memory).aget(("a", "b"), "k")
    assert first is not None
    assert again is not None
    assert (first.namespace, first.key, first.value) == (("a", "b"), "k", {"n": [1, {"x": None}]})
    assert first.created_at == first.updated_at == again.created_at < again.updated_at
    assert again.created_at.tzinfo is not None
    await store.adelete(("a", "b"), "k")
    assert await store.aget(("a", "b"), "k") is None


async def test_pages_are_the_whole_in_parts_the_newest_first(memory: Memory) -> None:
    store = ReactorMemoryStore(memory)
    for n in range(7):
        await store.aput(("a", str(n % 2)), f"k{n}", {"n": n, "odd": n % 2})

    async def found(**options: Any) -> list[int]:
        return [item.value["n"] for item in await store.asearch(("a",), **options)]

    assert await found() == [6, 5, 4, 3, 2, 1, 0]
    assert await found(limit=3) + await found(limit=3, offset=3) + await found(limit=3, offset=6) == await found()
    assert await found(filter={"odd": 1}, limit=2, offset=1) == [3, 1]


async def test_a_query_ranks_by_the_words_that_are_shared(memory: Memory) -> None:
    store = ReactorMemoryStore(memory)
    await store.aput(("m",), "food", {"text": "prefers vegetarian restaurants"})
    await store.aput(("m",), "seat", {"text": "window seat on trains"})
    found = await store.asearch(("m",), query="which restaurant is vegetarian?", limit=1)
    assert [item.key for item in found] == ["food"]
    assert found[0].score is not None
    assert 0 < found[0].score <= 1
    assert [item.key for item in await store.asearch(("m",), query="train seat")] == ["seat", "food"]


async def test_a_filter_looks_below_a_path_of_names(memory: Memory) -> None:
    store = ReactorMemoryStore(memory)
    values: dict[str, Any] = {
        "nested": {"a": {"b": {"c": "x"}}, "n": {"m": 5}},
        "literal": {"a.b.c": "x", "n.m": 1},
        "other": {"a": {"b": {"c": "y"}}, "n": "m"},
        "short": {"a": "x", "n": [5]},
    }
    for key, value in values.items():
        await store.aput(("a",), key, value)

    async def found(wanted: dict[str, Any]) -> list[str]:
        return sorted(item.key for item in await store.asearch(("a",), filter=wanted))

    assert await found({"a.b.c": "x"}) == ["literal", "nested"]
    assert await found({"a.b": {"c": "y"}}) == ["other"]
    assert await found({"a": {"b.c": "x"}}) == ["nested"]
    assert await found({"n.m": {"$gte": 1}}) == ["literal", "nested"]
    assert await found({"n.m": {"$eq": 5}, "a.b.c": {"$ne": "y"}}) == ["nested"]
    assert await found({"a.b.c": {"$eq": "y"}}) == ["other"]
    assert await found({"n.m": None}) == ["other", "short"]


async def test_filters_over_many_items_find_each_one(memory: Memory) -> None:
    store, theirs = ReactorMemoryStore(memory), InMemoryStore()
    ops = [
        PutOp(("a",), str(n), {"n": n, "of": f'say "{n % 7}" \né', "o": {"l": ["x", n % 2]}, "t": float(n)})
        for n in range(300)
    ]
    await store.abatch(ops)
    theirs.batch(ops)
    filters: list[dict[str, Any]] = [
        {"of": 'say "3" \né'},
        {"o": {"l": ["x", 1]}},
        {"n": 7.0},
        {"t": True},
        {"n": {"$lt": 250}, "of": {"$eq": 'say "6" \né'}},
        {"of": {"$ne": 'say "3" \né'}, "missing": None},
        {"missing": "x"},
        {"of": "\ud800"},
    ]
    for wanted in filters:
        search = SearchOp(("a",), filter=wanted, limit=EVERYTHING)
        assert seen((await store.abatch([search]))[0]) == seen(theirs.batch([search])[0]), wanted
    first = await store.asearch(("a",), filter={"n": {"$gte": 0}}, limit=70, offset=220)
    assert [item.value["n"] for item in first] == [
        item.value["n"] for item in await store.asearch(("a",), limit=70, offset=220)
    ]


async def test_calls_that_are_made_at_once_are_done_together(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    database = memory.container.needed_database()
    asked: list[str] = []
    for verb in ("read", "write"):
        monkeypatch.setattr(database, verb, counted(getattr(database, verb), asked))
    store = ReactorMemoryStore(memory)
    await asyncio.gather(*(store.aput(("a",), str(n), {"n": n}) for n in range(100)))
    found = await asyncio.gather(*(store.aget(("a",), str(n % 150)) for n in range(200)))
    assert [item and item.value["n"] for item in found] == [n % 150 if n % 150 < 100 else None for n in range(200)]
    assert asked.count("change_items") <= 2
    assert asked.count("read_items") <= 2


async def test_searches_and_listings_at_once_are_done_together(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    database = memory.container.needed_database()
    store = ReactorMemoryStore(memory)
    await asyncio.gather(*(store.aput(("a", str(n % 5)), str(n), {"n": n % 10}) for n in range(40)))
    asked: list[str] = []
    for verb in ("read", "read_long"):
        monkeypatch.setattr(database, verb, counted(getattr(database, verb), asked))
    found = await asyncio.gather(
        *(store.asearch(("a",), filter={"n": n % 10}, limit=50) for n in range(100)),
        *(store.asearch(("a", str(n % 5)), query=f"n {n % 10}", limit=50) for n in range(100)),
    )
    assert [{item.value["n"] for item in items} for items in found[:10]] == [{n} for n in range(10)]
    assert asked.count("find_each") <= 3
    listed = await asyncio.gather(*(store.alist_namespaces(prefix=("a",)) for _ in range(100)))
    assert {len(each) for each in listed} == {5}
    assert asked.count("list_item_namespaces") <= 2


def counted(verb: Callable[..., Any], asked: list[str]) -> Callable[..., Any]:
    async def call(operation: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        asked.append(operation.__name__)
        return await verb(operation, *args, **kwargs)

    return call


async def test_of_simultaneous_calls_the_refused_one_fails_alone(memory: Memory) -> None:
    store = ReactorMemoryStore(memory)
    results = await asyncio.gather(
        store.aput(("a",), "k", {"n": 1}),
        store.aput(("a",), "l", {"n": object()}),
        store.aget(("a",), "\0"),
        return_exceptions=True,
    )
    assert results[::2] == [None, None]
    assert isinstance(results[1], InvalidInputError)
    assert [item.key for item in await store.asearch(("a",))] == ["k"]


async def test_what_would_expire_or_be_embedded_is_refused(memory: Memory) -> None:
    store = ReactorMemoryStore(memory)
    with pytest.raises(NotImplementedError, match="TTL"):
        await store.aput(("a",), "k", {}, ttl=1)
    with pytest.raises(InvalidInputError, match="ttl"):
        await store.abatch([PutOp(("a",), "k", {}, ttl=1)])
    with pytest.raises(InvalidInputError, match="index"):
        await store.aput(("a",), "k", {}, index=["text"])
    assert await store.asearch(("a",)) == []
    await store.aput(("a",), "k", {}, index=False)
    assert await store.aget(("a",), "k") is not None


async def test_each_bound_user_has_a_store_of_their_own(memory: Memory) -> None:
    ann, bob, shared = (ReactorMemoryStore(memory, user_id=user) for user in ("ann", "bob", None))
    for store, of in ((ann, "ann"), (bob, "bob"), (shared, "all")):
        await store.aput(("a",), "k", {"of": of})
    assert [(await store.aget(("a",), "k")).value["of"] for store in (ann, bob, shared)] == ["ann", "bob", "all"]  # pyright: ignore
    await ann.adelete(("a",), "k")
    assert await ann.alist_namespaces() == []
    assert await bob.alist_namespaces() == [("a",)]


@pytest.mark.parametrize("namespace", [(), ("a.b",), ("a", ""), ("a", "\0"), ("langgraph",)])
async def test_namespaces_that_cannot_be(memory: Memory, namespace: tuple[str, ...]) -> None:
    with pytest.raises(InvalidNamespaceError):
        await ReactorMemoryStore(memory).aput(namespace, "k", {})


@pytest.mark.parametrize("op", [GetOp(("a.b",), "k"), SearchOp(("a.b",)), PutOp(("a.b",), "k", {}), PutOp((), "k", {})])
async def test_nor_in_a_batch(memory: Memory, op: Op) -> None:
    store = ReactorMemoryStore(memory)
    await store.aput(("a", "b"), "k", {"n": 1})
    with pytest.raises(InvalidNamespaceError):
        await store.abatch([PutOp(("a", "b"), "k", {"n": 2}), op])
    assert (await store.aget(("a", "b"), "k")).value == {"n": 1}  # pyright: ignore


@pytest.mark.parametrize(
    "value", [{"n": object()}, {"n": float("nan")}, {1: 2}, {"n": (1,)}, {"n": "\ud800"}, [1], "x"]
)
async def test_what_would_not_come_back_as_it_was_is_refused(memory: Memory, value: Any) -> None:
    store = ReactorMemoryStore(memory)
    with pytest.raises(InvalidInputError, match="value"):
        await store.abatch([PutOp(("a",), "j", {"n": 1}), PutOp(("a",), "k", value)])
    assert await store.asearch(("a",)) == []


async def test_a_key_that_no_store_keeps_is_refused(memory: Memory) -> None:
    for key in ("\0", "k" * 300):
        with pytest.raises(InvalidInputError, match="key"):
            await ReactorMemoryStore(memory).aput(("a",), key, {})


async def test_an_unknown_operator_is_refused(memory: Memory) -> None:
    store = ReactorMemoryStore(memory)
    await store.aput(("a",), "k", {"n": "text"})
    assert await store.asearch(("a",), filter={"n": {"$gt": 1}}) == []
    with pytest.raises(InvalidInputError, match="filter"):
        await store.asearch(("a",), filter={"n": {"$like": 1}})
    with pytest.raises(InvalidInputError, match="filter"):
        await store.asearch(("nothing",), filter={"n": {"$like": 1}})


# -- notes and facts --------------------------------------------------------------------------------------------------


class TestNotes:
    WHERE = notes_namespace("ann@example.com", "travel.agent")

    async def test_are_those_of_the_tool(self, memory: Memory) -> None:
        store, notes = ReactorMemoryStore(memory), memory.notes
        assert await store.aget(self.WHERE, "notes") is None
        await notes.apply("ann@example.com", "travel.agent", "append", content="likes tea")
        item = await store.aget(self.WHERE, "notes")
        assert item is not None
        assert (item.namespace, item.value) == (self.WHERE, {"text": "likes tea"})
        await store.aput(self.WHERE, "notes", {"text": "likes coffee"})
        assert (await notes.read("ann@example.com", "travel.agent")).text == "likes coffee"
        assert [found.value for found in await store.asearch(self.WHERE, query="coffee")] == [{"text": "likes coffee"}]
        assert await store.asearch(self.WHERE, filter={"text": "x"}) == []
        await store.adelete(self.WHERE, "notes")
        assert await store.aget(self.WHERE, "notes") is None
        assert (await notes.undo("ann@example.com", "travel.agent")).notes.text == "likes coffee"

    @pytest.mark.parametrize("value", [{}, {"text": 1}, {"text": "x", "more": 1}])
    async def test_have_one_form(self, memory: Memory, value: Any) -> None:
        with pytest.raises(InvalidInputError, match="value"):
            await ReactorMemoryStore(memory).aput(self.WHERE, "notes", value)
        with pytest.raises(InvalidInputError, match="key"):
            await ReactorMemoryStore(memory).aput(self.WHERE, "other", {"text": "x"})

    async def test_that_are_too_long_are_refused(self, memory: Memory) -> None:
        with pytest.raises(InvalidInputError, match="limit"):
            await ReactorMemoryStore(memory).aput(self.WHERE, "notes", {"text": "x" * 5000})

    async def test_that_are_refused_take_their_batch_along(self, memory: Memory) -> None:
        store = ReactorMemoryStore(memory)
        with pytest.raises(InvalidInputError, match="limit"):
            await store.abatch([PutOp(("a",), "k", {}), PutOp(self.WHERE, "notes", {"text": "x" * 5000})])
        assert await store.aget(("a",), "k") is None


class TestFacts:
    @pytest.fixture
    async def store(self, memory: Memory) -> ReactorMemoryStore:
        turns = [
            Message.user("My order number is A-1042."),
            Message.assistant("Noted."),
            Message.user("My budget is 300 euros."),
            Message.assistant("Fine."),
            *[Message.user("go on"), Message.assistant("yes")] * 3,
        ]
        await memory.save_history("s.1", turns, user_id="ann")
        await memory.drain()
        return ReactorMemoryStore(memory)

    WHERE = facts_namespace("s.1", user_id="ann")

    async def test_are_read_by_key_and_found_by_filter_and_query(self, store: ReactorMemoryStore) -> None:
        facts = await store.asearch(self.WHERE, limit=100)
        order = next(fact for fact in facts if "1042" in fact.value["value"])
        again = await store.aget(self.WHERE, fact_key(order.value["anchor"], order.value["key"]))
        assert again is not None
        assert again.value == order.value
        assert (order.value["source_seq"], order.value["said_by"]) == (1, "user")
        only = await store.asearch(self.WHERE, filter={"source_seq": {"$lte": 1}}, limit=100)
        assert {fact.value["source_seq"] for fact in only} == {1}
        found = await store.asearch(self.WHERE, query="order number")
        assert found[0].value["value"] == "My order number is A-1042."
        assert await store.asearch(self.WHERE, query="category") == [], "what a fact is called is not what it says"
        assert all(fact.score for fact in found)
        assert await store.aget(self.WHERE, "none") is None

    async def test_cannot_be_written(self, store: ReactorMemoryStore) -> None:
        with pytest.raises(InvalidNamespaceError, match="read here"):
            await store.aput(self.WHERE, "k", {})

    async def test_of_others_are_refused(self, store: ReactorMemoryStore, memory: Memory) -> None:
        with pytest.raises(SessionOwnershipError):
            await store.asearch(facts_namespace("s.1", user_id="bob"))
        with pytest.raises(InvalidNamespaceError, match="another user"):
            await ReactorMemoryStore(memory, user_id="bob").asearch(self.WHERE)

    async def test_of_an_unknown_session_are_none(self, store: ReactorMemoryStore) -> None:
        assert await store.asearch(facts_namespace("other")) == []
        assert await store.aget(facts_namespace("other"), "k") is None


async def test_the_rest_of_what_is_reserved_is_empty(memory: Memory) -> None:
    store = ReactorMemoryStore(memory)
    assert await store.asearch(("reactor",)) == []
    assert await store.aget(("reactor", "x"), "k") is None
    with pytest.raises(InvalidNamespaceError, match="reserved"):
        await store.aput(("reactor", "x"), "k", {})


@given(st.text())
def test_labels_hold_no_points_and_differ_as_their_texts_do(text: str) -> None:
    assert "." not in label_of(text)
    assert label_of(text).replace("%2E", ".").replace("%25", "%") == text
    assert label_of(text) != label_of(None)


# -- graphs -----------------------------------------------------------------------------------------------------------


class Talk(TypedDict):
    said: str
    known: Sequence[str]


def graph_with(store: BaseStore) -> Any:
    async def remember(state: Talk, runtime: Runtime[Any]) -> dict[str, Any]:
        assert runtime.store is not None
        await runtime.store.aput(("memories", "ann"), state["said"], {"text": state["said"]})
        return {}

    async def recall(state: Talk) -> dict[str, Any]:
        found = await get_store().asearch(("memories", "ann"))
        return {"known": sorted(item.value["text"] for item in found)}

    graph = StateGraph(Talk).add_node(remember).add_node(recall)
    return graph.add_edge(START, "remember").add_edge("remember", "recall").compile(store=store)


async def test_a_graph_remembers_across_threads_and_stores(memory: Memory) -> None:
    await graph_with(ReactorMemoryStore(memory)).ainvoke({"said": "tea", "known": []})
    result = await graph_with(ReactorMemoryStore(memory)).ainvoke({"said": "coffee", "known": []})
    assert result["known"] == ["coffee", "tea"]


def test_a_synchronous_graph(memory_thread: Memory) -> None:
    store = ReactorMemoryStore(memory_thread)

    def node(state: Talk) -> dict[str, Any]:
        get_store().put(("memories",), "k", {"text": state["said"]})
        return {"known": [item.value["text"] for item in get_store().search(("memories",))]}

    graph = StateGraph(Talk).add_node("node", node).add_edge(START, "node").compile(store=store)
    assert graph.invoke({"said": "tea", "known": []})["known"] == ["tea"]


async def test_synchronous_calls_refuse_to_block_the_loop_of_the_memory(memory: Memory) -> None:
    with pytest.raises(InvalidInputError, match="async methods"):
        ReactorMemoryStore(memory).get(("a",), "k")
