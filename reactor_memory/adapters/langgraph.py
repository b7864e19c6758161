"""The store of LangGraph (`BaseStore`) over this library: items of the application, notes of agents, facts of sessions.

What a graph puts under a namespace of its own is kept as it is, beside the log. Two kinds of namespaces show what the
library knows: `notes_namespace` holds one item, ``notes``, the notes of an agent about a user, which may be replaced;
`facts_namespace` holds the facts of a session, which may only be read. All that begins with ``reactor`` is reserved.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

import anyio.to_thread
import msgspec

from reactor_memory.adapters.batches import Joined
from reactor_memory.adapters.extras import require
from reactor_memory.adapters.langgraph_filters import fragments, matches
from reactor_memory.adapters.loop_bridge import Crossing
from reactor_memory.core.validation import MessageLimits, check_label, check_object
from reactor_memory.database.database import Database
from reactor_memory.errors import InvalidInputError, SessionNotFoundError, StoreCorruptError
from reactor_memory.features.items import operations as items
from reactor_memory.features.items.models import Item as StoredItem
from reactor_memory.features.items.models import ItemChange
from reactor_memory.features.notes.long_term_memory import LongTermMemory
from reactor_memory.memory import Memory
from reactor_memory.models import JsonObject, Session
from reactor_memory.models.ledger import Fact
from reactor_memory.text.analyzer import terms
from reactor_memory.text.moments import moment_of

require("langgraph", adapter=__name__, package="langgraph", extra="langgraph")

from langgraph.store.base import (  # noqa: E402 - after the check
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    validate_op_namespace,
)

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock

RESERVED = "reactor"
NOTES_KEY = "notes"
NOBODY = "%"
"""The label of a session that has no owner; no other label becomes this one."""

MOST_SEARCHES = 50
"""So many are done in one call to the database, which has one deadline."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Namespace = tuple[str, ...]


def label_of(text: str | None) -> str:
    """A user, agent or session id as a label of a namespace, where no point may stand."""
    return NOBODY if text is None else text.replace("%", "%25").replace(".", "%2E")


def notes_namespace(user_id: str, agent_name: str) -> Namespace:
    """Where the notes of an agent about a user are, under the key ``notes``: ``{"text": ...}``."""
    return (RESERVED, label_of(user_id), label_of(agent_name), "notes")


def facts_namespace(session_id: str, *, user_id: str | None = None) -> Namespace:
    """Where the facts of a session are, under `fact_key`, for reading only."""
    return (RESERVED, label_of(user_id), "sessions", label_of(session_id), "facts")


def fact_key(anchor: str, key: str) -> str:
    """The key of a fact in `facts_namespace`."""
    return json.dumps([anchor, key], ensure_ascii=False)


class ReactorMemoryStore(BaseStore):
    """A `BaseStore` over an open memory: pass it to ``compile(store=...)`` or ``create_agent(store=...)``.

    Items of the application are kept apart for each `user_id`; without one they are shared by all that have none. A
    store of a user reaches the notes and facts of that user only. Values are JSON objects and come back as they were;
    a search gives what was changed last first, with a `query` what shares most words with it; the database selects and
    ranks. A batch is answered in its order and from before its own changes; those of items are made together, and so
    are calls that are made at once. Nothing expires, and nothing is embedded: a `ttl` or paths to `index` are refused.

    Every thread and event loop may use it; on the thread of the loop on which the memory was opened only the async
    methods answer. Raises `InvalidNamespaceError` for a namespace that cannot be, or not be written,
    `InvalidInputError` for a value that cannot be kept, and `StoreError`.
    """

    def __init__(self, memory: Memory, *, user_id: str | None = None) -> None:
        self._user_id = user_id
        self._crossing = Crossing(memory.loop)
        self._memory = memory
        container = memory.container
        self._items = _Items(
            container.needed_database(),
            user_id or "",
            container.clock(),
            MessageLimits(**container.settings().limits.model_dump()),
        )

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        asked = list(ops)
        return self._crossing.call(lambda: self._execute(asked))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        asked = list(ops)
        return await self._crossing.acall(lambda: self._execute(asked))

    async def _execute(self, ops: Sequence[Op]) -> list[Result]:
        for op in ops:
            validate_op_namespace(op)
        if len(ops) == 1:  # what thousands of calls at once are, each by itself
            return [await self._execute_one(ops[0])]
        puts = [(self._source(op.namespace), op) for op in ops if isinstance(op, PutOp)]
        for source, op in puts:
            source.check(op)
        answers = await self._answers(ops)
        for source, op in puts:
            if source is not self._items:  # first, for what they are given may be refused
                await source.write([op])
        await self._items.write([op for source, op in puts if source is self._items])
        return answers

    def _execute_one(self, op: Op) -> Awaitable[Result]:
        if not isinstance(op, PutOp):
            return self._answer(op)
        source = self._source(op.namespace)
        source.check(op)
        return source.write([op])

    async def _answers(self, ops: Sequence[Op]) -> list[Result]:
        """In the order of the operations; the items of all that get one are read together."""
        gets = [op for op in ops if isinstance(op, GetOp) and self._source(op.namespace) is self._items]
        got = iter(await self._items.get_all(gets))
        of_items = set(map(id, gets))
        return [next(got) if id(op) in of_items else await self._answer(op) for op in ops]

    async def _answer(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            return await self._source(op.namespace).get(op)
        if isinstance(op, SearchOp):
            return await self._source(op.namespace_prefix).search(op)
        if isinstance(op, ListNamespacesOp):
            return await self._items.namespaces(op)
        return None

    def _source(self, namespace: Namespace) -> _Source:
        """What holds the items of the namespace."""
        if namespace[:1] != (RESERVED,):
            return self._items
        match tuple(map(_text_of, namespace[1:])):
            case (str(user_id), str(agent_name), "notes"):
                return _Notes(self._memory.notes, self._allowed(user_id), agent_name)
            case (user_id, "sessions", str(session_id), "facts"):
                return _Facts(self._memory, session_id, self._allowed(user_id))
            case _:
                return _Nothing()

    def _allowed(self, user_id: Any) -> Any:
        if self._user_id is not None and user_id != self._user_id:
            raise InvalidNamespaceError("this store is bound to another user than the namespace names")
        return user_id


class _Source(Protocol):
    """What holds the items of a namespace, or of all that begin with it."""

    async def get(self, op: GetOp) -> Item | None: ...

    async def search(self, op: SearchOp) -> list[SearchItem]: ...

    def check(self, op: PutOp) -> None:
        """Raises for what `write` could not do."""
        ...

    async def write(self, ops: Sequence[PutOp]) -> None: ...


class _Nothing:
    """Reserved namespaces in which nothing is."""

    async def get(self, op: GetOp) -> Item | None:
        return None

    async def search(self, op: SearchOp) -> list[SearchItem]:
        return []

    def check(self, op: PutOp) -> None:
        raise InvalidNamespaceError(f"namespaces that begin with {RESERVED!r} are reserved: use one of your own")

    async def write(self, ops: Sequence[PutOp]) -> None:
        raise NotImplementedError


# -- items of the application -----------------------------------------------------------------------------------------


class _Items:
    def __init__(self, database: Database, user_id: str, clock: Clock, limits: MessageLimits) -> None:
        self._database = database
        self._user_id = user_id
        self._clock = clock
        self._limits = limits
        self._reads = Joined(self._read)
        self._writes = Joined(self._change)
        self._searches = Joined(self._find)
        self._listings = Joined(self._list)

    async def get(self, op: GetOp) -> Item | None:
        (item,) = await self.get_all([op])
        return item

    async def get_all(self, ops: Sequence[GetOp]) -> list[Item | None]:
        found = await self._reads.do([(".".join(op.namespace), op.key) for op in ops])
        return [None if item is None else Item(**_fields(item, item.value)) for item in found]

    async def search(self, op: SearchOp) -> list[SearchItem]:
        if not all(map(self._is_storable, op.namespace_prefix)):
            return []
        (found,) = await self._searches.do([(repr(op), _search(op))])
        return _search_items(found[op.offset :], op)

    async def namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        (listed,) = await self._listings.do([op])
        return list(listed)

    def check(self, op: PutOp) -> None:
        if not op.namespace:
            raise InvalidNamespaceError("Namespace cannot be empty.")
        for label in (*op.namespace, op.key):
            check_label("key" if label is op.key else "namespace", label, self._limits)
        if op.value is not None:
            check_object("value", op.value, self._limits)
        if op.ttl is not None:
            raise InvalidInputError("ttl", "is not supported: items stay until they are deleted")
        if op.index:
            raise InvalidInputError("index", "is not supported: a query looks at all words of a value; leave it out")

    async def write(self, ops: Sequence[PutOp]) -> None:
        await self._writes.do(
            [
                ItemChange(
                    namespace=".".join(op.namespace), key=op.key, value=None if op.value is None else dict(op.value)
                )
                for op in ops
            ]
        )

    async def _read(self, keys: Sequence[tuple[str, str]]) -> Sequence[StoredItem | None]:
        storable = {key: all(map(self._is_storable, (*key[0].split("."), key[1]))) for key in dict.fromkeys(keys)}
        asked = [key for key in keys if storable[key]]
        found = iter(await self._database.read(items.read_items, self._user_id, asked) if asked else ())
        return [next(found) if storable[key] else None for key in keys]

    async def _find(self, asked: Sequence[tuple[str, items.ItemSearch]]) -> Sequence[items.Found | Exception]:
        """Equal ones are searched for once."""
        distinct = dict(asked)
        names = list(distinct)
        found: dict[str, items.Found | Exception] = {}
        for some in (names[start : start + MOST_SEARCHES] for start in range(0, len(names), MOST_SEARCHES)):
            searches = [distinct[name] for name in some]
            answers = await self._database.read_long(items.find_each, self._user_id, searches)
            found.update(zip(some, answers, strict=True))
        return [found[name] for name, _ in asked]

    async def _list(self, ops: Sequence[ListNamespacesOp]) -> Sequence[list[Namespace] | Exception]:
        paths = await self._database.read(items.list_item_namespaces, self._user_id)
        return await anyio.to_thread.run_sync(_selections, paths, ops)  # there may be any number of them

    async def _change(self, changes: Sequence[ItemChange]) -> Sequence[None]:
        await self._database.write(items.change_items, self._user_id, changes, now=self._clock())
        return [None] * len(changes)

    def _is_storable(self, label: str) -> bool:
        """Whether there can be an item with this label or key; a database would refuse to be asked for others."""
        try:
            check_label("key", label, self._limits)
        except InvalidInputError:
            return False
        return True


def _search(op: SearchOp) -> items.ItemSearch:
    wanted = op.filter
    return items.ItemSearch(
        namespace=".".join(op.namespace_prefix),
        query=frozenset(terms(op.query or "")),
        fragments=fragments(wanted or {}),
        fits=(lambda value: matches(value, wanted)) if wanted else None,
        limit=min(op.offset + op.limit, sys.maxsize),
    )


def _search_items(found: items.Found, op: SearchOp) -> list[SearchItem]:
    """What one search is told, with values of its own."""
    words = len(frozenset(terms(op.query or ""))) if op.query else 0
    return [
        SearchItem(
            **_fields(item, items.value_from_json(msgspec.json.encode(item.value).decode())),
            score=(shared / words if words else 0.0) if op.query else None,
        )
        for item, shared in found
    ]


def _fields(item: StoredItem, value: JsonObject) -> dict[str, Any]:
    return {
        "namespace": tuple(item.namespace.split(".")),
        "key": item.key,
        "value": value,
        "created_at": _moment(item.created_at),
        "updated_at": _moment(item.updated_at),
    }


def _moment(microseconds: int) -> datetime:
    moment = moment_of(microseconds)
    if moment is None:
        raise StoreCorruptError("store: an item has a time that no calendar has")
    return moment


# -- notes ------------------------------------------------------------------------------------------------------------


class _Notes:
    """The notes of an agent about a user as one item. Empty notes are none."""

    def __init__(self, memory: LongTermMemory, user_id: str, agent_name: str) -> None:
        self._memory = memory
        self._user_id = user_id
        self._agent_name = agent_name

    async def get(self, op: GetOp) -> Item | None:
        fields = await self._fields(op.namespace)
        return None if fields is None or op.key != NOTES_KEY else Item(**fields)

    async def search(self, op: SearchOp) -> list[SearchItem]:
        fields = await self._fields(op.namespace_prefix)
        items = [SearchItem(**fields)] if fields is not None and matches(fields["value"], op.filter) else []
        return _page(_ranked(items, op.query) if op.query else items, op)

    def check(self, op: PutOp) -> None:
        if op.key != NOTES_KEY:
            raise InvalidInputError("key", f"must be {NOTES_KEY!r}: there is one item of notes")
        match op.value:
            case None | {"text": str()} if op.value is None or len(op.value) == 1:
                pass
            case _:
                raise InvalidInputError("value", 'must be {"text": ...}, as notes are')

    async def write(self, ops: Sequence[PutOp]) -> None:
        for op in ops:
            text = "" if op.value is None else op.value["text"]
            result = await self._memory.apply(self._user_id, self._agent_name, "overwrite", content=text)
            if result.status not in ("ok", "unchanged"):
                raise InvalidInputError("value", result.message)

    async def _fields(self, namespace: Namespace) -> dict[str, Any] | None:
        notes = await self._memory.read(self._user_id, self._agent_name)
        if not notes.text:
            return None
        at = _moment(notes.created_at)
        value = {"text": notes.text}
        return {"namespace": namespace, "key": NOTES_KEY, "value": value, "created_at": at, "updated_at": at}


# -- facts ------------------------------------------------------------------------------------------------------------


class _Facts:
    """The facts of a session that hold. The times of an item are those of the session."""

    def __init__(self, memory: Memory, session_id: str, user_id: str | None) -> None:
        self._memory = memory
        self._session_id = session_id
        self._user_id = user_id

    async def get(self, op: GetOp) -> Item | None:
        items = (Item(**fields) for fields in await self._items(op.namespace))
        return next((item for item in items if item.key == op.key), None)

    async def search(self, op: SearchOp) -> list[SearchItem]:
        """With a query, the facts that share words with it, the best first, and of equally good ones the shortest."""
        found = [SearchItem(**fields) for fields in await self._items(op.namespace_prefix)]
        items = [item for item in found if matches(item.value, op.filter)]
        if op.query and items:
            by_length = sorted(items, key=lambda item: len(item.value["value"]))
            items = [item for item in _ranked(by_length, op.query, _stated) if item.score]
        return _page(items, op)

    def check(self, op: PutOp) -> None:
        raise InvalidNamespaceError("facts come from messages: they can be read here, not written")

    async def write(self, ops: Sequence[PutOp]) -> None:
        raise NotImplementedError

    async def _items(self, namespace: Namespace) -> list[dict[str, Any]]:
        try:
            session = await self._memory.get_session(self._session_id, user_id=self._user_id)
        except SessionNotFoundError:
            return []
        facts = await self._memory.facts.list(self._session_id, user_id=self._user_id)
        return [_fields_of_fact(fact, session, namespace) for fact in facts if fact.verified]


def _fields_of_fact(fact: Fact, session: Session, namespace: Namespace) -> dict[str, Any]:
    names = ("anchor", "key", "value", "category", "source_seq", "said_by", "failed")
    return {
        "namespace": namespace,
        "key": fact_key(fact.anchor, fact.key),
        "value": {name: getattr(fact, name) for name in names},
        "created_at": _moment(session.created_at),
        "updated_at": _moment(session.updated_at),
    }


# -- what a search selects --------------------------------------------------------------------------------------------


def _page(items: Sequence[SearchItem], op: SearchOp) -> list[SearchItem]:
    return list(items[op.offset : op.offset + op.limit])


def _stated(item: SearchItem) -> str:
    """What a fact says, without where it comes from."""
    return " ".join(item.value[name] for name in ("anchor", "key", "value"))


def _written(item: SearchItem) -> str:
    return msgspec.json.encode(item.value).decode()


def _ranked(
    items: Sequence[SearchItem], query: str, text_of: Callable[[SearchItem], str] = _written
) -> list[SearchItem]:
    """By the share of the words of the query that stand in the text; those without any come last."""
    wanted = set(terms(query))
    for item in items:
        held = wanted.intersection(terms(text_of(item)))
        item.score = len(held) / len(wanted) if wanted else 0.0
    return sorted(items, key=lambda item: -(item.score or 0.0))


# -- namespaces -------------------------------------------------------------------------------------------------------


def _selections(paths: Sequence[str], ops: Sequence[ListNamespacesOp]) -> list[list[Namespace] | Exception]:
    """What each listing shows, equal ones worked out once. Reserved namespaces are not listed: they would name every
    user.
    """
    namespaces = [tuple(path.split(".")) for path in paths]
    selected = {repr(op): op for op in ops}
    shown = {name: _selection(namespaces, op) for name, op in selected.items()}
    return [shown[repr(op)] for op in ops]


def _selection(namespaces: Sequence[Namespace], op: ListNamespacesOp) -> list[Namespace] | Exception:
    try:
        matching = [path for path in namespaces if all(_is_match(path, each) for each in op.match_conditions or ())]
        shown = {path[: op.max_depth] for path in matching} if op.max_depth is not None else matching
        return sorted(shown)[op.offset : op.offset + op.limit]
    except Exception as error:  # of what this one asks for, not of the others
        return error


def _is_match(namespace: Namespace, condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return len(namespace) >= len(path) and all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))


def _text_of(label: str) -> str | None:
    """The inverse of `label_of`."""
    return None if label == NOBODY else label.replace("%2E", ".").replace("%25", "%")
