"""A damaged value anywhere in the database: lists go on, loads fail only where the messages of their session cannot be
read, what was drawn from the log is drawn anew, and the rest is told by `StoreCorruptError`.

The cases come from the schema: every column of every table, with values that this library never writes there.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from shutil import copyfile
from typing import Any

import anyio
import pytest
from litestar.testing import AsyncTestClient

from reactor_memory import Memory, Message, open_memory
from reactor_memory.core.log import health
from reactor_memory.errors import (
    ReactorMemoryError,
    SessionDeletedError,
    SessionNotFoundError,
    SessionOwnershipError,
    StoreCorruptError,
)
from reactor_memory.features.items import operations as item_rows
from reactor_memory.features.search.models import MessageSearch
from reactor_memory.features.sharing.service_secrets import service_secret
from reactor_memory.features.transfer.copy import SessionCopier
from tests.acceptance.scenes import settings
from tests.proofs.damages import (
    Damage,
    change,
    columns,
    damages,
    empty_tables,
    fill,
    opened,
    opened_with_tiers,
    touched_tables,
)
from tests.server.running import running_service

pytestmark = pytest.mark.anyio

SAMPLE = 2
"""Damages of the fast test; the slow ones try them all."""

LOG = ("conversations", "messages")
DERIVED = (
    "segments", "facts", "fact_anchors", "conversation_summaries", "context_layouts", "summary_spending",
    "recall_ranges", "recall_passages", "search_progress", "search_entries", "embeddings",
)  # fmt: skip
"""No call fails for what can be made again, but the one that gives the summary itself."""

TABLES = sorted(columns().keys() - {"reactor_memory_revision"})
"""A database of another revision is not opened."""

DERIVED_ENTRIES = ("range",)

CURRENT = "And now?"
Call = Callable[[Memory], Awaitable[Any]]


async def exported(memory: Memory) -> list[Message]:
    return [message async for message in memory.stream_messages("damaged", user_id="ann")]


async def copied(memory: Memory) -> Any:
    async with open_memory(settings()) as target:
        parts = memory.container
        copier = SessionCopier(parts.database(), target.container.database(), clock=parts.clock(), owner_id="ann")
        return await copier.compare()


LOADS: dict[str, Call] = {
    "load": lambda memory: memory.load_history("damaged", user_id="ann", message=CURRENT),
    "load budget": lambda memory: memory.load_history("damaged", user_id="ann", message=CURRENT, budget=500),
    "load query": lambda memory: memory.load_history(
        "damaged", user_id="ann", message="order?", query="order number A-2", budget=900
    ),
}
OTHERS: dict[str, Call] = {
    "get": lambda memory: memory.get_session("damaged", user_id="ann"),
    "messages": lambda memory: memory.read_messages("damaged", user_id="ann"),
    "newest messages": lambda memory: memory.read_messages("damaged", user_id="ann", last=5),
    "originals": lambda memory: memory.read_messages("damaged", user_id="ann", archived=True),
    "export": exported,
    "copy": copied,
    "facts": lambda memory: memory.facts.list("damaged", user_id="ann"),
    "trace": lambda memory: memory.facts.trace("damaged", user_id="ann"),
    "segments": lambda memory: memory.facts.segments("damaged", user_id="ann"),
    "recall": lambda memory: memory.recall("damaged", "order number", user_id="ann"),
    "search": lambda memory: memory.search.search(MessageSearch(text="order number cat", user_id="ann")),
    "explain": lambda memory: memory.explain("damaged", user_id="ann", budget=500),
    "preview": lambda memory: memory.preview("damaged", user_id="ann", message=CURRENT),
    "replay": lambda memory: memory.replay("damaged", seq=20, user_id="ann"),
    "pins": lambda memory: memory.pins.list("damaged", user_id="ann"),
    "notes": lambda memory: memory.notes.read("ann", "a"),
    "items": lambda memory: memory.container.database().read(item_rows.list_items, "ann", "n"),
    "active": lambda memory: memory.sessions.list("ann"),
    "summary": lambda memory: memory.get_summary("damaged", user_id="ann"),
    "work": lambda memory: memory.work_state("damaged", user_id="ann"),
    "doctor": lambda memory: memory.container.message_store().check(),
    "overview": lambda memory: memory.overview.sessions(limit=10),
    "fork": lambda memory: memory.fork("damaged", at_seq=5, user_id="ann"),
}
OF_TIERS: dict[str, Call] = {
    "tiers load": LOADS["load"],
    "tiers stats": lambda memory: memory.tiers.stats("damaged", user_id="ann"),
}
OVER_HTTP = "over HTTP"
Touched = Mapping[str, set[str]]
"""The tables that each call reads or changes."""

TOLD = {"conversations": (StoreCorruptError, SessionDeletedError, SessionNotFoundError, SessionOwnershipError)}
"""What a damaged value may be told as: that a session is deleted, or whose it is, is a value of its row, too."""


async def check(path: Path, damage: Damage, touched: Touched | None = None) -> list[str]:
    """What is wrong with the answers. With `touched`, calls that never come to the damaged table are left out: up to
    there they do what they do in a sound database.
    """

    def comes_to_it(name: str) -> bool:
        tables = {damage.table} if touched is None else touched[name]
        return any(table == damage.table or table.startswith(f"{damage.table}_") for table in tables)

    never = damage.table in DERIVED or is_derived_entry(damage)
    calls = [(name, call, damage.table not in LOG) for name, call in LOADS.items()]
    calls += [(name, call, never and name != "summary") for name, call in OTHERS.items()]
    calls += [(name, call, True) for name, call in OF_OTHER_SESSIONS.items()]
    async with opened(path) as memory:
        wrong = await wrong_answers(memory, damage, [each for each in calls if comes_to_it(each[0])])
    if damage.table in LOG or damage.entries == "range":
        async with opened_with_tiers(path) as memory:
            wrong += await wrong_answers(memory, damage, [(name, call, never) for name, call in OF_TIERS.items()])
    return wrong + (await http_faults(path) if comes_to_it(OVER_HTTP) else [])


async def wrong_answers(memory: Memory, damage: Damage, calls: list[tuple[str, Call, bool]]) -> list[str]:
    """Of calls with their names, and whether they never fail."""
    wrong: list[str] = []
    told = TOLD.get(damage.table, (StoreCorruptError,))
    for name, call, never in calls:
        try:
            await call(memory)
        except told as error:
            if never:
                wrong.append(f"{name}: {error!r}")
        except ReactorMemoryError as error:
            wrong.append(f"{name}: another error: {error!r}")
        except Exception as error:
            wrong.append(f"{name}: untyped {error!r}")
    return wrong


def is_derived_entry(damage: Damage) -> bool:
    """What stands for messages is made again from them; an entry of a kind that there is not is nobody's."""
    return damage.entries in DERIVED_ENTRIES and damage.column != "kind"


async def whole_is_listed(memory: Memory) -> None:
    listed = await memory.list_sessions(user_id="ann")
    assert "whole" in {each.session_id for each in listed.sessions}


OF_OTHER_SESSIONS: dict[str, Call] = {
    "list": whole_is_listed,
    "whole": lambda memory: memory.load_history("whole", user_id="ann"),
}


async def touched_by_calls(path: Path) -> Touched:
    """In a sound database, before and after all calls were made; each on connections that have prepared nothing."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for _ in range(2):
        for opening, calls in ((opened, LOADS | OTHERS | OF_OTHER_SESSIONS), (opened_with_tiers, OF_TIERS)):
            for name, call in calls.items():
                with touched_tables() as tables:
                    async with opening(path) as memory:
                        await call(memory)
                found[name] |= tables
        with touched_tables() as tables:
            assert await http_faults(path) == []
        found[OVER_HTTP] |= tables
    return found


async def http_faults(path: Path) -> list[str]:
    """Answers that are none of the service, and lists that do not come. Of what a row is damaged by, its log tells."""
    faults: list[str] = []
    async with (
        running_service(f"sqlite:///{path}", background={"enabled": False}) as service,
        AsyncTestClient(service.app) as client,
    ):
        for who in ("ann", "owner"):
            listed = await client.get("/v1/user/conversations", headers=service.user(who))
            if listed.status_code != 200:
                faults.append(f"list of {who}: {listed.text}")
                continue
            for each in listed.json()["data"]:
                for what in ("", "/messages", "/memberships", "/forks"):
                    answer = await client.get(f"/v1/user/conversations/{each['id']}{what}", headers=service.user(who))
                    if answer.status_code >= 500 and not answer.json()["requestId"]:
                        faults.append(f"{what} of {each['id']}: {answer.text}")
        transfers = await client.get("/v1/user/ownership-transfers", headers=service.user("owner"))
        if transfers.status_code >= 500 and not transfers.json()["requestId"]:
            faults.append(f"transfers: {transfers.text}")
    return faults


def fresh(original: Path, copy: Path) -> Path:
    for each in copy.parent.glob(f"{copy.name}*"):
        each.unlink()
    copyfile(original, copy)
    return copy


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("damages") / "original.db"
    anyio.run(fill, path)
    return path


@pytest.fixture(scope="module")
def touched(original: Path, tmp_path_factory: pytest.TempPathFactory) -> Touched:
    return anyio.run(touched_by_calls, fresh(original, tmp_path_factory.mktemp("sound") / "memory.db"))


@pytest.fixture
def path(original: Path, tmp_path: Path) -> Path:
    return fresh(original, tmp_path / "memory.db")


async def wrongs(original: Path, path: Path, chosen: list[Damage], touched: Touched | None = None) -> list[str]:
    wrong: list[str] = []
    for damage in chosen:
        if damage.do(fresh(original, path)):
            wrong += [f"{damage}: {each}" for each in await check(path, damage, touched)]
    return wrong


def test_every_table_has_a_row_to_damage(original: Path) -> None:
    assert empty_tables(original) == set()


async def test_a_sample_of_damaged_values_gives_typed_errors_only(original: Path, path: Path) -> None:
    everything = [damage for table in TABLES for damage in damages(table)]
    assert await wrongs(original, path, random.Random(7).sample(everything, SAMPLE)) == []


@pytest.mark.slow
def test_calls_come_to_tables_that_they_answer_from(touched: Touched) -> None:
    assert {"conversations", "messages", "memberships", "ownership_transfers"} <= touched[OVER_HTTP]
    assert {"conversations", "messages", "conversation_summaries"} <= touched["load"]
    assert {"search_entries", "messages"} <= touched["search"]
    assert "recall_passages" in touched["recall"]
    assert "facts" not in touched["notes"]
    assert min(map(len, touched.values())) > 1


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("table", TABLES)
async def test_every_damaged_value_gives_typed_errors_only(
    original: Path, path: Path, touched: Touched, table: str
) -> None:
    assert await wrongs(original, path, list(damages(table)), touched) == []


@pytest.mark.parametrize(
    ("column", "value"), [("facts_json", "[[1, 2, 3]]"), ("narrative", b"\xff"), ("stale_ranges", "{bad")]
)
async def test_a_damaged_summary_is_folded_anew(path: Path, column: str, value: object) -> None:
    async with opened(path) as memory:
        before = await memory.get_summary("damaged", user_id="ann")
    change(path, f"UPDATE conversation_summaries SET {column} = ? WHERE conversation_id = 'damaged'", value)
    async with opened(path) as memory:
        await memory.load_history("damaged", user_id="ann", budget=700)
        await memory.summarize("damaged", user_id="ann")
        after = await memory.get_summary("damaged", user_id="ann")
        assert before is not None
        assert after is not None
        assert (after.facts(), after.narrative, after.stale_ranges) == (before.facts(), before.narrative, ())


async def test_damaged_facts_are_extracted_again(path: Path) -> None:
    async with opened(path) as memory:
        before = await memory.facts.list("damaged", user_id="ann")
    change(path, "UPDATE facts SET records = ? WHERE conversation_id = 'damaged'", "{bad")
    async with opened(path) as memory:
        assert len(await memory.facts.list("damaged", user_id="ann")) < len(before)
        await memory.summarize("damaged", user_id="ann")
        assert await memory.facts.list("damaged", user_id="ann") == before


@pytest.mark.parametrize(
    ("column", "value"), [("start_seq", -7), ("narrative", b"\xff"), ("created_at", "x7"), ("stale", "x7")]
)
async def test_damaged_segments_are_drawn_again(path: Path, column: str, value: object) -> None:
    async with opened(path) as memory:
        before = await memory.facts.list("damaged", user_id="ann")
        ends = [each.end_seq for each in await memory.facts.segments("damaged", user_id="ann")]
    change(path, f"UPDATE segments SET {column} = ? WHERE conversation_id = 'damaged' AND start_seq = 1", value)
    async with opened(path) as memory:
        await memory.facts.list("damaged", user_id="ann")
        await memory.summarize("damaged", user_id="ann")
        assert await memory.facts.list("damaged", user_id="ann") == before
        assert [each.end_seq for each in await memory.facts.segments("damaged", user_id="ann")] == ends


@pytest.mark.parametrize(
    ("column", "value"), [("covered_seq", "x7"), ("covered_seq", -7), ("version", b"\xff"), ("epoch", "{bad")]
)
async def test_a_damaged_head_of_a_summary_is_named(path: Path, column: str, value: object) -> None:
    change(path, f"UPDATE conversation_summaries SET {column} = ? WHERE conversation_id = 'damaged'", value)
    async with opened(path) as memory:
        context = await memory.load_history("damaged", user_id="ann", budget=700)
        assert "damaged, left out and made again: memory" in context.report.remarks
        assert context.part("window")
        await memory.summarize("damaged", user_id="ann")
        healed = await memory.load_history("damaged", user_id="ann", budget=700)
        assert healed.report.remarks == ()
        assert (await memory.get_summary("damaged", user_id="ann")).covered_seq > 0  # type: ignore[union-attr]


@pytest.mark.parametrize("column", ["fact_lines", "narrative", "window_start_seq"])
async def test_a_damaged_layout_is_named(path: Path, column: str) -> None:
    change(path, f"UPDATE context_layouts SET {column} = ? WHERE conversation_id = 'damaged'", "{bad")
    async with opened(path) as memory:
        context = await memory.load_history("damaged", user_id="ann", budget=160)
        remark = "damaged, left out and made again: layout"
        assert remark in context.report.remarks
        assert remark not in (await memory.load_history("damaged", user_id="ann", budget=160)).report.remarks


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE recall_passages SET length = ?",
        "UPDATE recall_passages SET end_seq = ?",
        "UPDATE recall_ranges SET end_seq = ?",
        "UPDATE recall_ranges SET number = ?",
        "UPDATE recall_ranges SET start_seq = ?",
    ],
)
async def test_a_damaged_index_of_recall_is_made_again(path: Path, statement: str) -> None:
    async with opened(path) as memory:
        before = await memory.recall("damaged", "order number A-2", user_id="ann")
        change(path, statement, b"\xff")
        assert await memory.recall("damaged", "order number A-2", user_id="ann")
        await memory.summarize("damaged", user_id="ann")
        assert await memory.recall("damaged", "order number A-2", user_id="ann") == before
        detail = dict((await memory.container.message_store().check()).details)["recall index"]
        assert not detail.startswith("0 messages")


async def test_a_damaged_index_of_recall_is_named(path: Path) -> None:
    change(path, "UPDATE recall_ranges SET end_seq = ?", b"\xff")
    async with opened(path) as memory:
        remark = "damaged, left out and made again: recall index"
        asked = partial(memory.load_history, "damaged", user_id="ann", query="order number A-2", budget=900)
        assert remark in (await asked()).report.remarks
        assert remark not in (await asked()).report.remarks


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE embeddings SET vector = ? WHERE seq = 3",
        "UPDATE search_entries SET length = ? WHERE seq = 3",
        "UPDATE search_progress SET indexed_seq = ?",
        "UPDATE search_progress SET embedded_seq = ?",
    ],
)
async def test_a_damaged_index_of_search_is_made_again(path: Path, statement: str) -> None:
    wanted = MessageSearch(text="order number cat", user_id="ann")
    async with opened(path, background={"poll_seconds": 3600}) as memory:
        before = await memory.search.search(wanted)
        change(path, statement, b"\xff")
        told = [(await memory.search.search(wanted)).is_damaged for _ in range(2)]
        assert told == ["embedded_seq" not in statement, False], "meanings are asked for by background work"
        await memory.container.background_work().run_once()
        assert (await memory.search.search(wanted)).hits == before.hits


@pytest.mark.parametrize("scope", ["x7", "[[1, 2, 3]]", b"\xff", '0123456"', "-1"])
async def test_a_damaged_scope_of_search_is_made_again(path: Path, scope: object) -> None:
    wanted = MessageSearch(text="order number cat", user_id="ann")
    async with opened(path, background={"poll_seconds": 3600}) as memory:
        before = await memory.search.search(wanted)
        change(path, "UPDATE search_progress SET scope = ?", scope)
        assert (await memory.search.search(wanted)).is_damaged
        await memory.container.background_work().run_once()
        assert (await memory.search.search(wanted)).hits == before.hits


async def test_a_damaged_secret_of_pages_is_made_again(path: Path) -> None:
    change(path, "UPDATE service_secrets SET secret = ?", b"\xff")
    assert await http_faults(path) == []
    async with opened(path) as memory:
        asked = partial(memory.container.database().write, service_secret, "page tokens")
        kept = await asked("one")
        assert kept not in ("one", b"\xff")
        assert await asked("other") == kept


async def test_damaged_tiers_give_way_to_their_messages(path: Path) -> None:
    change(path, "UPDATE entries SET text = ? WHERE kind = 'range'", b"\xff")
    async with opened_with_tiers(path) as memory:
        context = await memory.load_history("damaged", user_id="ann")
        assert context.report.remarks == ("damaged, left out and made again: tiers",)
        assert len(context.part("window")) == 20
        await memory.tiers.summarize("damaged", user_id="ann")
        assert len((await memory.load_history("damaged", user_id="ann")).part("window")) < 20


@pytest.mark.parametrize(("table", "column"), [("segments", "narrative"), ("conversation_summaries", "covered_seq")])
async def test_damage_keeps_nothing_from_being_erased(path: Path, table: str, column: str) -> None:
    change(path, f"UPDATE {table} SET {column} = ? WHERE conversation_id = 'damaged'", "{bad")
    change(path, f"UPDATE {table} SET {column} = ? WHERE conversation_id = 'damaged'", b"\xff")
    async with opened(path) as memory:
        await memory.erasure.erase("damaged", seq=[(1, 2)], user_id="ann")
        left = await memory.read_messages("damaged", user_id="ann")
        assert left[0].seq == 3


@pytest.mark.parametrize(("column", "value"), [("path", "{bad"), ("last_seq", "x7"), ("updated_at", b"\xff")])
async def test_a_damaged_session_can_be_deleted(path: Path, column: str, value: object) -> None:
    change(path, f"UPDATE conversations SET {column} = ? WHERE conversation_id = 'damaged'", value)
    async with opened(path) as memory:
        await memory.delete("damaged", user_id="ann")
        listed = (await memory.list_sessions(user_id="ann")).sessions
        assert "damaged" not in {each.session_id for each in listed}


async def test_a_damaged_pin_is_left_out_and_named(path: Path) -> None:
    change(path, "UPDATE entries SET text = ? WHERE conversation_id = 'damaged' AND kind = 'pin'", b"\xff")
    async with opened(path) as memory:
        context = await memory.load_history("damaged", user_id="ann")
        assert context.report.remarks == ("damaged, left out: pin of message 1; unpin it, and pin it again",)
        with pytest.raises(StoreCorruptError, match="the pin of message 1 of session 'damaged' is damaged"):
            await memory.pins.list("damaged", user_id="ann")
        await memory.pins.remove("damaged", seq=1, user_id="ann")
        assert await memory.pins.list("damaged", user_id="ann") == ()


@pytest.mark.parametrize(("column", "value"), [("path", "{bad"), ("last_seq", "x7"), ("title", b"\xff")])
async def test_a_damaged_session_is_listed_as_that(path: Path, column: str, value: object) -> None:
    change(path, f"UPDATE conversations SET {column} = ? WHERE conversation_id = 'damaged'", value)
    async with opened(path) as memory:
        listed = (await memory.list_sessions(user_id="ann")).sessions
        assert {each.session_id for each in listed if each.is_damaged} == {"damaged"}
        assert {each.session_id for each in listed} > {"damaged", "whole"}


DAMAGED_INDEXES = {
    "UPDATE recall_ranges SET end_seq = ? WHERE conversation_id = 'damaged'": "recall index",
    "UPDATE recall_ranges SET start_seq = ? WHERE conversation_id = 'damaged'": "recall index",
    """UPDATE recall_passages SET length = ?
    WHERE place = (SELECT MAX(place) FROM recall_passages
                   WHERE place >> 40 = (SELECT number FROM recall_ranges WHERE conversation_id = 'damaged'))
    """: "recall index",
    "UPDATE search_progress SET embedded_seq = ? WHERE conversation_id = 'damaged'": "search index",
    "UPDATE search_progress SET scope = ? WHERE conversation_id = 'damaged'": "search index",
    "UPDATE search_entries SET length = ? WHERE conversation_id = 'damaged' AND seq = 3": "search index",
    "UPDATE embeddings SET vector = ? WHERE conversation_id = 'damaged' AND seq = 3": "search index",
}


@pytest.mark.parametrize("statement", DAMAGED_INDEXES)
async def test_doctor_names_a_damaged_index_until_it_is_made_again(path: Path, statement: str) -> None:
    async with opened(path) as memory:
        assert (await memory.container.message_store().check()).problems == ()
        change(path, statement, b"\xff")
        told = (await memory.container.message_store().check()).problems
        what = DAMAGED_INDEXES[statement]
        assert told == (f"session 'damaged': its {what} is damaged; run: reactor-memory summarize damaged",)
        await memory.container.database().write(health.make_again_what_is_damaged, "damaged")
        assert (await memory.container.message_store().check()).problems == ()
        await memory.summarize("damaged", user_id="ann")
        await memory.container.background_work().run_once()
        assert await memory.recall("damaged", "order number A-2", user_id="ann")


@pytest.mark.parametrize("vector", [b"\xff", b"", "x7", b"\xff" * 4096])
async def test_damaged_meanings_are_named_by_the_load(path: Path, vector: object) -> None:
    change(path, "UPDATE embeddings SET vector = ? WHERE conversation_id = 'damaged' AND seq = 3", vector)
    async with opened(path, background={"poll_seconds": 3600}) as memory:
        remark = "damaged, left out and made again: recall index"
        asked = partial(memory.load_history, "damaged", user_id="ann", query="order number and cat", budget=900)
        assert remark in (await asked()).report.remarks
        assert remark not in (await asked()).report.remarks
        await memory.container.background_work().run_once()
        assert (await memory.container.message_store().check()).problems == ()


async def test_the_service_names_what_is_damaged(path: Path) -> None:
    async with (
        running_service(f"sqlite:///{path}", background={"enabled": False}) as service,
        AsyncTestClient(service.app) as client,
    ):
        asked = partial(client.post, "/v1/user/search/messages", json={"query": "order"}, headers=service.user("ann"))
        whole = (await asked()).json()
        assert "isDamaged" not in whole
        change(path, "UPDATE search_progress SET scope = ? WHERE conversation_id = 'damaged'", b"\xff")
        change(path, "UPDATE context_layouts SET narrative = ? WHERE conversation_id = 'damaged'", "{bad")
        assert (await asked()).json()["isDamaged"] is True
        assert "isDamaged" not in (await asked()).json()
