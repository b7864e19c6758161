"""Page tokens hold against whoever alters or borrows them, and pages neither skip nor repeat."""

from __future__ import annotations

import asyncio
import string
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from hashlib import scrypt
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.database.database import Database
from reactor_memory.errors import PageTokenError
from reactor_memory.features.sharing.principals import Principal
from reactor_memory.server.paging import ListingTokens, PageTokens, ServiceTokens
from reactor_memory.wiring.service_container import ServiceContainer
from tests.scenes.stores import memory_database, sqlite_database
from tests.scenes.tables import each_row
from tests.server.callers import Service

pytestmark = pytest.mark.anyio

TOKENS = PageTokens(b"a secret of thirty-two bytes, ok")
ALICE = Principal(user_id="alice")
KEYS = (1_700_000_000_000_000, "019a7f3e-0000-7000-8000-000000000001")
LISTING = TOKENS.of(ALICE, "listConversations", "words", "all")
TOKEN = LISTING.before(KEYS)
SIGNS = string.ascii_letters + string.digits + "-_"


def test_a_token_tells_where_to_go_on() -> None:
    assert LISTING.after(TOKEN, tuple[int, str]) == KEYS
    assert len(TOKEN) < 120


def test_no_token_is_the_first_page() -> None:
    assert LISTING.after(None, tuple[int, str]) is None


@each_row("place", range(len(TOKEN)))
def test_no_place_of_a_token_can_be_altered(place: int) -> None:
    altered = {TOKEN[:place] + sign + TOKEN[place + 1 :] for sign in SIGNS + "=+/ é\0"} - {TOKEN}
    for token in altered | {TOKEN[:place], TOKEN[:place] + TOKEN[place + 1 :], TOKEN[:place] + "A" + TOKEN[place:]}:
        with pytest.raises(PageTokenError):
            LISTING.after(token, tuple[int, str])


@given(st.text(max_size=200) | st.text(alphabet=SIGNS, max_size=200))
def test_nothing_else_is_a_token(text: str) -> None:
    with pytest.raises(PageTokenError):
        LISTING.after(text, tuple[int, str])


@each_row(
    "other",
    [
        TOKENS.of(Principal(user_id="bob"), "listConversations", "words", "all"),
        TOKENS.of(Principal(client_id="alice"), "listConversations", "words", "all"),
        TOKENS.of(Principal(user_id="alice", client_id="bot"), "listConversations", "words", "all"),
        TOKENS.of(ALICE, "listMessages", "words", "all"),
        TOKENS.of(ALICE, "listConversations", "word", "all"),
        TOKENS.of(ALICE, "listConversations", None, "all"),
        TOKENS.of(ALICE, "listConversations", "words", "roots"),
        PageTokens(b"another secret").of(ALICE, "listConversations", "words", "all"),
    ],
)
def test_tokens_of_other_callers_listings_filters_and_services_are_refused(other: ListingTokens) -> None:
    with pytest.raises(PageTokenError):
        LISTING.after(other.before(KEYS), tuple[int, str])


def test_a_token_of_other_keys_is_refused() -> None:
    with pytest.raises(PageTokenError):
        LISTING.after(LISTING.before(7), tuple[int, str])


def test_a_token_of_any_length_is_refused_unread() -> None:
    with pytest.raises(PageTokenError):
        LISTING.after(LISTING.before("x" * 2000), str)


@each_row("keys", [2**63, -(2**63) - 1, 10**400])
def test_numbers_that_no_column_holds_are_refused(keys: int) -> None:
    with pytest.raises(PageTokenError):
        LISTING.after(LISTING.before(keys), int)
    with pytest.raises(PageTokenError):
        LISTING.after(LISTING.before((keys, "id")), tuple[int, str])


@asynccontextmanager
async def opened(database: Database) -> AsyncGenerator[Database]:
    await database.open()
    try:
        yield database
    finally:
        await database.close()


async def signed_by(database: Database) -> str:
    return (await ServiceTokens(database).of(ALICE, "listConversations")).before(KEYS)


async def test_processes_on_one_database_sign_alike(tmp_path: Path) -> None:
    signed: list[str] = []
    for name in ("one.db", "one.db", "other.db"):
        async with opened(sqlite_database(tmp_path / name)) as database:
            signed.append(await signed_by(database))
    kept, kept_again, kept_elsewhere = signed
    assert kept == kept_again != kept_elsewhere


async def test_processes_that_begin_at_once_sign_alike() -> None:
    async with opened(memory_database()) as database:
        signed = await asyncio.gather(*[signed_by(database) for _ in range(8)])
    assert len(set(signed)) == 1


async def test_where_nothing_can_be_written_a_process_signs_for_itself(tmp_path: Path) -> None:
    async with opened(sqlite_database(tmp_path / "log.db")) as database:
        kept = await signed_by(database)
        database.is_read_only = True
        tokens = ServiceTokens(database)
        own = [(await tokens.of(ALICE, "listConversations")).before(KEYS) for _ in range(2)]
    assert own[0] == own[1] != kept


# -- over HTTP --------------------------------------------------------------------------------------------------------


async def pages(service: Service, path: str, *, limit: int) -> list[list[dict[str, Any]]]:
    """All pages of a listing, the first one first."""
    found: list[list[dict[str, Any]]] = []
    cursor = ""
    while cursor is not None:
        answer = await service.get(path, params={"limit": limit} | ({"after": cursor} if cursor else {}))
        assert answer.status_code == 200, answer.text
        found.append(answer.json()["data"])
        cursor = answer.json()["nextCursor"]
    return found


async def test_pages_hold_every_message_once_while_others_are_added(service: Service) -> None:
    conversation = await service.created()
    said = await service.said(conversation, *"abcd")
    first = await service.get(f"/conversations/{conversation}/messages?limit=2")
    said += await service.said(conversation, "e")
    cursor = first.json()["nextCursor"]
    rest = await service.get(f"/conversations/{conversation}/messages", params={"limit": 2, "after": cursor})
    last = await service.get(
        f"/conversations/{conversation}/messages", params={"limit": 2, "after": rest.json()["nextCursor"]}
    )
    shown = [message["id"] for page in (first, rest, last) for message in page.json()["data"]]
    assert shown == said
    assert last.json()["nextCursor"] is None


async def test_a_last_page_that_is_full_is_the_last_one(service: Service) -> None:
    conversation = await service.created()
    await service.said(conversation, *"abcd")
    assert [len(page) for page in await pages(service, f"/conversations/{conversation}/messages", limit=2)] == [2, 2]


async def test_pages_of_conversations_newest_activity_first(service: Service) -> None:
    made = [await service.created(title=str(number)) for number in range(5)]
    found = await pages(service, "/conversations", limit=2)
    assert [len(page) for page in found] == [2, 2, 1]
    assert [row["id"] for page in found for row in page] == made[::-1]


async def test_pages_of_conversations_neither_skip_nor_repeat_during_creation(service: Service) -> None:
    made = [await service.created() for _ in range(4)]
    first = (await service.get("/conversations?limit=2")).json()
    await service.created()
    rest = (await service.get("/conversations", params={"limit": 9, "after": first["nextCursor"]})).json()
    assert [row["id"] for row in first["data"] + rest["data"]] == made[::-1]


async def test_a_token_of_somebody_else_is_refused(service: Service) -> None:
    other = service.of("somebody-else")
    for caller in (service, other):
        for _ in range(2):
            await caller.created()
    cursor = (await other.get("/conversations?limit=1")).json()["nextCursor"]
    answer = await service.get("/conversations", params={"limit": 1, "after": cursor})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_page_token")


async def test_a_token_of_another_conversation_or_filter_is_refused(service: Service) -> None:
    one, other = await service.created(), await service.created()
    await service.said(one, "a", "b")
    await service.said(other, "a", "b")
    cursor = (await service.get(f"/conversations/{one}/messages?limit=1")).json()["nextCursor"]
    for path, filters in (
        (f"/conversations/{other}/messages", {}),
        (f"/conversations/{one}/messages", {"inherit": "false"}),
        ("/conversations", {}),
    ):
        answer = await service.get(path, params={"after": cursor} | filters)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_page_token"), path


async def test_the_address_of_the_database_signs_nothing(service: Service, container: ServiceContainer) -> None:
    conversation = await service.created()
    url = container.settings().store.url
    secret = scrypt(url.encode(), salt=b"reactor-memory page token", n=2**14, r=8, p=1, dklen=32)
    caller = Principal(user_id=service.user)
    forged = PageTokens(secret).of(caller, f"listMessages {conversation}", True).before(0)
    answer = await service.get(f"/conversations/{conversation}/messages", params={"after": forged})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_page_token")


@each_row("position", [2**63, 10**30, -(10**30)])
async def test_a_token_with_a_number_beyond_64_bits_is_refused(
    service: Service, container: ServiceContainer, position: int
) -> None:
    conversation = await service.created()
    tokens = ServiceTokens(container.database())
    listing = await tokens.of(Principal(user_id=service.user), f"listMessages {conversation}", True)
    path = f"/conversations/{conversation}/messages"
    assert (await service.get(path, params={"after": listing.before(0)})).status_code == 200
    answer = await service.get(path, params={"after": listing.before(position)})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_page_token")


async def test_audit_is_paged(service: Service) -> None:
    conversation = await service.created()
    for name in "abc":
        await service.post(f"/conversations/{conversation}/memberships", {"userId": name, "accessLevel": "reader"})
    found = await pages(service, f"/conversations/{conversation}/audit", limit=2)
    assert [len(page) for page in found] == [2, 2]
    assert len({row["id"] for page in found for row in page}) == 4
