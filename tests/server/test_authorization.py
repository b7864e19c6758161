"""Who may do what, asked over HTTP: the table of `authorization.py`, cell by cell, and ways to get more."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import httpx2
import pytest

from reactor_memory.server.openapi import document
from tests.scenes.counts import count as count_proven
from tests.server.authorization import QUESTIONS, SPOIL, Cell, Question, cells
from tests.server.worlds import Staged, World, staged

pytestmark = pytest.mark.anyio

QUICK = ("own", "-")
"""The targets that are asked for in every run; the others take longer."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("authorization") / "log.db"


@pytest.fixture(scope="module")
async def stage(database: Path) -> AsyncIterator[Staged]:
    async with staged(f"sqlite:///{database}") as stage:
        yield stage


@pytest.fixture(scope="module")
async def world(stage: Staged) -> World:
    """What is asked for by those who change nothing that others would miss."""
    return await stage.world()


@cache
def operations() -> dict[str, tuple[str, str]]:
    return {
        operation["operationId"]: (method.upper(), path)
        for path, item in document()["paths"].items()
        for method, operation in item.items()
    }


async def answer(stage: Staged, world: World, cell: Cell) -> httpx2.Response:
    method, path = operations()[cell.operation]
    question = QUESTIONS.get(cell.operation, Question())
    address, body = (
        world.fill(text, cell.target, reading=method == "GET")
        for text in (path + question.query, json.dumps(question.body))
    )
    return await stage.ask(cell.who, method, address, json.loads(body))


def contents(database: Path) -> list[list[Any]]:
    """All that a refused request must leave alone."""
    with closing(sqlite3.connect(database)) as connection:
        tables = ("conversations", "messages", "memberships", "ownership_transfers", "api_keys", "answered_requests")
        return [connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables]


def test_every_operation_of_the_interface_has_its_rows() -> None:
    needed = {
        (operation, target)
        for operation, (_, path) in operations().items()
        for target in (("own", "fork", "deleted", "absent") if "{conversationId}" in path else ("-",))
    }
    assert {(cell.operation, cell.target) for cell in cells()} == needed


@pytest.mark.parametrize("operation", operations())
class TestTheTable:
    async def test_quick(self, stage: Staged, world: World, database: Path, operation: str) -> None:
        await self.check(stage, world, database, [each for each in cells() if each.target in QUICK], operation)

    @pytest.mark.slow
    async def test_whole(self, stage: Staged, world: World, database: Path, operation: str) -> None:
        await self.check(stage, world, database, [each for each in cells() if each.target not in QUICK], operation)

    async def check(self, stage: Staged, world: World, database: Path, table: Sequence[Cell], operation: str) -> None:
        asked = [cell for cell in table if cell.operation == operation]
        before = contents(database)
        found = [(cell, await answer(stage, world, cell)) for cell in asked if cell.status >= 400]
        assert contents(database) == before
        for cell in asked:
            if cell.status < 400:
                own_world = await stage.world() if operation in SPOIL else world
                found.append((cell, await answer(stage, own_world, cell)))
        assert [(cell, told.status_code) for cell, told in found if told.status_code != cell.status] == []
        refusals = [told for _, told in found if told.status_code == 404]
        assert len({told_without_id(told) for told in refusals}) <= 1
        assert all("www-authenticate" in told.headers for _, told in found if told.status_code == 401)
        count_proven("cells of the table of authorization; 0 leaks", len(found))


def told_without_id(told: httpx2.Response) -> str:
    """A refusal as whoever is curious compares it: all but the id of the request, and the time."""
    headers = {name: value for name, value in told.headers.items() if name not in ("x-request-id", "date")}
    return f"{told.text.replace(told.headers['x-request-id'], '')} {headers}"


async def test_absent_deleted_and_forbidden_things_get_the_same_answer(stage: Staged, world: World) -> None:
    for operation, (_, path) in operations().items():
        if path.startswith("/v1/user/conversations/{conversationId}"):
            asked = [Cell(operation, target, "stranger", 404) for target in ("own", "fork", "deleted", "absent")]
            told = {told_without_id(await answer(stage, world, cell)) for cell in asked}
            assert len(told) == 1, operation


class TestGettingMore:
    """Nobody gets more than they were given."""

    async def test_a_manager_makes_nobody_an_owner(self, stage: Staged, world: World) -> None:
        path = f"/v1/user/conversations/{world.own}/memberships"
        for who in ("manager", "owner"):
            body = {"userId": "friend", "accessLevel": "owner"}
            assert (await stage.ask(who, "POST", path, body)).status_code == 422
            assert (await stage.ask(who, "PATCH", f"{path}/member", {"accessLevel": "owner"})).status_code == 422

    async def test_nobody_touches_the_owner(self, stage: Staged, world: World) -> None:
        path = f"/v1/user/conversations/{world.own}/memberships/owner"
        assert (await stage.ask("manager", "PATCH", path, {"accessLevel": "reader"})).status_code == 403
        assert (await stage.ask("manager", "DELETE", path)).status_code == 403
        left = await stage.ask("owner", "DELETE", path)
        assert (left.status_code, left.json()["code"]) == (409, "sole_owner")

    @pytest.mark.parametrize("who", ["reader", "writer"])
    async def test_a_member_raises_not_even_themselves(self, stage: Staged, world: World, who: str) -> None:
        path = f"/v1/user/conversations/{world.own}/memberships"
        assert (await stage.ask(who, "PATCH", f"{path}/{who}", {"accessLevel": "manager"})).status_code == 403
        body = {"userId": "friend", "accessLevel": "reader"}
        assert (await stage.ask(who, "POST", path, body)).status_code == 403

    async def test_members_leave_by_themselves(self, stage: Staged) -> None:
        world = await stage.world()
        for who in ("reader", "writer", "manager"):
            path = f"/v1/user/conversations/{world.own}"
            assert (await stage.ask(who, "DELETE", f"{path}/memberships/{who}")).status_code == 204
            assert (await stage.ask(who, "GET", path)).status_code == 404

    async def test_only_the_recipient_accepts(self, stage: Staged, world: World) -> None:
        path = f"/v1/user/ownership-transfers/{world.transfer_id}/accept"
        for who in ("stranger", "namesake", "owner", "writer", "removed", "for-stranger"):
            assert (await stage.ask(who, "POST", path)).status_code == 404

    @pytest.mark.parametrize(
        "field", ["ownerUserId", "owner_user_id", "accessLevel", "id", "conversationId", "deletedAt", "agentName"]
    )
    async def test_a_change_sets_nothing_else(self, stage: Staged, world: World, field: str) -> None:
        path = f"/v1/user/conversations/{world.own}"
        assert (await stage.ask("writer", "PATCH", path, {"title": "x", field: "writer"})).status_code == 422

    @pytest.mark.parametrize("field", ["seq", "channel", "visibility", "role", "userId", "createdAt", "id"])
    async def test_a_user_says_no_more_than_a_message(self, stage: Staged, world: World, field: str) -> None:
        path = f"/v1/user/conversations/{world.own}/messages"
        assert (await stage.ask("writer", "POST", path, {"content": "x", field: "system"})).status_code == 422

    async def test_metadata_speaks_for_nobody(self, stage: Staged, world: World) -> None:
        path = f"/v1/user/conversations/{world.own}/messages"
        body = {"content": "x", "metadata": {"reactor_memory.parent_message_id": "y"}}
        assert (await stage.ask("writer", "POST", path, body)).status_code == 422

    async def test_an_agent_lists_no_offers_of_other_agents(self, stage: Staged, world: World) -> None:
        """Its key is for the conversations of other agents, whomever it acts for."""
        path = "/v1/user/ownership-transfers"
        told = {who: (await stage.done(who, "GET", path))["data"] for who in ("owner", "limited", "for-foreign")}
        assert told["for-foreign"] == []
        assert told["limited"] == told["owner"] != []

    async def test_who_was_removed_has_nothing_to_accept(self, stage: Staged) -> None:
        world = await stage.world()
        offers = await stage.done("manager", "GET", "/v1/user/ownership-transfers")
        offered = next(each for each in offers["data"] if each["id"] == world.transfer_id)["conversationId"]
        await stage.done("owner", "DELETE", f"/v1/user/conversations/{offered}/memberships/manager")
        path = f"/v1/user/ownership-transfers/{world.transfer_id}/accept"
        assert (await stage.ask("manager", "POST", path)).status_code == 404
