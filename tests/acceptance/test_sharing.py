"""Who else may use a conversation, and who owns it, below HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import msgspec
import pytest

from reactor_memory.errors import (
    AccessDeniedError,
    InvalidInputError,
    MemberNotFoundError,
    NotGrantedError,
    SessionNotFoundError,
    SharingConflictError,
    TransferNotFoundError,
)
from reactor_memory.features.sharing import member_operations
from reactor_memory.features.sharing.messages import NewMessage
from reactor_memory.features.sharing.models import AccessLevel
from reactor_memory.features.sharing.principals import Principal
from reactor_memory.features.transfer.copy import SessionCopier
from reactor_memory.testing import wall_clock
from reactor_memory.wiring.service_container import ServiceContainer
from tests.acceptance.shared import ANN, BOB, CYD, EVE, agent, begin, say, service, texts_of
from tests.scenes.stores import memory_database

pytestmark = pytest.mark.anyio


@pytest.fixture
async def container(tmp_path: Path) -> AsyncIterator[ServiceContainer]:
    async with service(f"sqlite:///{tmp_path}/memory.db") as container:
        yield container


async def shared(container: ServiceContainer, **levels: AccessLevel) -> str:
    made = await begin(container, "one")
    for user_id, level in levels.items():
        await container.sharing().add(ANN, made.conversation_id, user_id, level)
    return made.conversation_id


async def levels_of(container: ServiceContainer, conversation_id: str, by: Principal = ANN) -> dict[str, AccessLevel]:
    return {each.user_id: each.access_level for each in await container.sharing().members(by, conversation_id)}


class TestMembers:
    async def test_what_is_shared_is_the_whole_group(self, container: ServiceContainer) -> None:
        key = await shared(container)
        (one,) = await container.shared_messages().list_for_user(ANN, key)
        fork = await container.conversations().fork(ANN, key, one.message_id or "", first=NewMessage(content="f"))
        member = await container.sharing().add(ANN, fork.conversation_id, "bob", "reader")
        assert (member.user_id, member.access_level) == ("bob", "reader")
        assert await texts_of(container, key, BOB) == ["one"]
        assert await texts_of(container, fork.conversation_id, BOB) == ["f"]
        assert await levels_of(container, key, BOB) == {"ann": "owner", "bob": "reader"}
        assert {each.conversation_id for each in await container.conversations().list(BOB)} == {
            key,
            fork.conversation_id,
        }

    async def test_levels_change_and_members_go(self, container: ServiceContainer) -> None:
        key = await shared(container, bob="reader")
        with pytest.raises(AccessDeniedError):
            await say(container, key, "x", by=BOB)
        await container.sharing().change(ANN, key, "bob", "writer")
        await say(container, key, "x", by=BOB)
        await container.sharing().remove(ANN, key, "bob")
        with pytest.raises(SessionNotFoundError):
            await say(container, key, "y", by=BOB)
        assert await levels_of(container, key) == {"ann": "owner"}

    async def test_a_member_is_added_once_an_unknown_one_not_changed(self, container: ServiceContainer) -> None:
        key = await shared(container, bob="reader")
        for user_id in ("bob", "ann"):
            with pytest.raises(SharingConflictError) as caught:
                await container.sharing().add(ANN, key, user_id, "writer")
            assert caught.value.reason == "already_member"
        with pytest.raises(MemberNotFoundError):
            await container.sharing().change(ANN, key, "eve", "writer")
        with pytest.raises(MemberNotFoundError):
            await container.sharing().remove(ANN, key, "eve")
        with pytest.raises(InvalidInputError):
            await container.sharing().add(ANN, key, "a\nb", "reader")

    async def test_nobody_becomes_owner_by_a_change(self, container: ServiceContainer) -> None:
        key = await shared(container, bob="manager")
        for by in (ANN, BOB):
            with pytest.raises(InvalidInputError, match="access_level"):
                await container.sharing().add(by, key, "cyd", "owner")
            with pytest.raises(InvalidInputError, match="access_level"):
                await container.sharing().change(by, key, "bob", "owner")

    async def test_nobody_touches_the_owner(self, container: ServiceContainer) -> None:
        key = await shared(container, bob="manager")
        sharing = container.sharing()
        for act in (lambda: sharing.remove(BOB, key, "ann"), lambda: sharing.change(BOB, key, "ann", "reader")):
            with pytest.raises(AccessDeniedError):
                await act()
        for act in (lambda: sharing.remove(ANN, key, "ann"), lambda: sharing.change(ANN, key, "ann", "reader")):
            with pytest.raises(SharingConflictError) as caught:
                await act()
            assert caught.value.reason == "sole_owner"
        assert (await levels_of(container, key))["ann"] == "owner"

    async def test_managers_manage_and_all_may_leave(self, container: ServiceContainer) -> None:
        key = await shared(container, bob="manager", cyd="reader")
        await container.sharing().add(BOB, key, "dan", "manager")
        await container.sharing().remove(BOB, key, "dan")
        await container.sharing().remove(CYD, key, "cyd")
        await container.sharing().remove(BOB, key, "bob")
        assert await levels_of(container, key) == {"ann": "owner"}

    @pytest.mark.parametrize("level", ["reader", "writer"])
    async def test_others_look_and_change_nothing(self, container: ServiceContainer, level: AccessLevel) -> None:
        key = await shared(container, bob=level, cyd="reader")
        assert len(await levels_of(container, key, BOB)) == 3
        sharing = container.sharing()
        for act in (
            lambda: sharing.add(BOB, key, "eve", "reader"),
            lambda: sharing.change(BOB, key, "cyd", "writer"),
            lambda: sharing.remove(BOB, key, "cyd"),
            lambda: sharing.offer(BOB, key, "cyd"),
            lambda: sharing.audit(BOB, key),
        ):
            with pytest.raises(AccessDeniedError):
                await act()

    async def test_strangers_learn_nothing_and_agents_need_the_grant(self, container: ServiceContainer) -> None:
        key = await shared(container, bob="reader")
        sharing = container.sharing()
        limited = agent(user_id="ann", operations=("read", "append"))
        for act, error in (
            (lambda: sharing.members(EVE, key), SessionNotFoundError),
            (lambda: sharing.add(EVE, key, "eve", "reader"), SessionNotFoundError),
            (lambda: sharing.remove(EVE, key, "eve"), SessionNotFoundError),
            (lambda: sharing.add(limited, key, "eve", "reader"), NotGrantedError),
            (lambda: sharing.remove(limited, key, "bob"), NotGrantedError),
            (lambda: sharing.offer(limited, key, "bob"), NotGrantedError),
            (lambda: sharing.accept(limited, key), NotGrantedError),
            (lambda: container.conversations().delete(limited, key), NotGrantedError),
            (lambda: sharing.members(agent(), key), NotGrantedError),
        ):
            with pytest.raises(error):
                await act()
        assert len(await sharing.members(limited, key)) == 2
        await sharing.add(agent(user_id="ann"), key, "cyd", "reader")


class TestOwners:
    async def test_an_accepted_offer_swaps_the_roles(self, container: ServiceContainer) -> None:
        key = await shared(container, bob="reader")
        sharing = container.sharing()
        transfer = await sharing.offer(ANN, key, "bob", request_key="k")
        assert await sharing.offer(ANN, key, "bob", request_key="k") == transfer
        assert await sharing.transfers(ANN) == await sharing.transfers(BOB) == (transfer,)
        assert await sharing.transfers(EVE) == ()
        for refused in (ANN, EVE):
            with pytest.raises(TransferNotFoundError):
                await sharing.accept(refused, transfer.transfer_id)
        await sharing.accept(BOB, transfer.transfer_id)
        with pytest.raises(TransferNotFoundError):
            await sharing.accept(BOB, transfer.transfer_id)
        assert await levels_of(container, key) == {"bob": "owner", "ann": "manager"}
        await say(container, key, "still here", by=ANN)
        with pytest.raises(AccessDeniedError):
            await sharing.offer(ANN, key, "bob")
        await sharing.remove(ANN, key, "ann")

    async def test_an_offer_needs_a_member_and_is_the_only_one(self, container: ServiceContainer) -> None:
        key = await shared(container, bob="reader", cyd="reader")
        sharing = container.sharing()
        with pytest.raises(InvalidInputError):
            await sharing.offer(ANN, key, "ann")
        with pytest.raises(SharingConflictError) as caught:
            await sharing.offer(ANN, key, "eve")
        assert caught.value.reason == "not_a_member"
        first = await sharing.offer(ANN, key, "bob")
        for user_id in ("bob", "cyd"):
            with pytest.raises(SharingConflictError) as caught:
                await sharing.offer(ANN, key, user_id)
            assert caught.value.reason == "transfer_pending"
        with pytest.raises(TransferNotFoundError):
            await sharing.decline(CYD, first.transfer_id)
        await sharing.decline(BOB, first.transfer_id)
        second = await sharing.offer(ANN, key, "cyd")
        await sharing.decline(ANN, second.transfer_id)
        third = await sharing.offer(ANN, key, "cyd")
        await sharing.remove(CYD, key, "cyd")
        with pytest.raises(TransferNotFoundError):
            await sharing.accept(CYD, third.transfer_id)

    async def test_everything_is_on_record_without_a_word_of_content(self, container: ServiceContainer) -> None:
        key = await shared(container, bob="reader")
        sharing = container.sharing()
        await container.conversations().rename(ANN, key, "Secret title")
        await sharing.change(ANN, key, "bob", "manager")
        await sharing.decline(BOB, (await sharing.offer(ANN, key, "bob")).transfer_id)
        await sharing.accept(BOB, (await sharing.offer(ANN, key, "bob")).transfer_id)
        await container.conversations().delete(BOB, key)
        await container.conversations().restore(BOB, key)
        records = await sharing.audit(BOB, key)
        assert [(each.action, each.actor_id, each.target) for each in records] == [
            ("create", "ann", None),
            ("share", "ann", "bob"),
            ("rename", "ann", None),
            ("change_access", "ann", "bob"),
            ("offer_ownership", "ann", "bob"),
            ("decline_ownership", "bob", "bob"),
            ("offer_ownership", "ann", "bob"),
            ("accept_ownership", "bob", "ann"),
            ("delete", "bob", None),
            ("restore", "bob", None),
        ]
        assert records[3].details == {"access_level": "manager"}
        assert b"Secret" not in msgspec.json.encode(records)
        assert await sharing.audit(BOB, key, after=records[8].record_id) == records[9:]

    @pytest.mark.postgres
    async def test_an_owner_who_changes_while_all_write_is_no_error(self, postgres_dsn: str) -> None:
        async with service(postgres_dsn) as container:
            key = await shared(container, bob="writer")
            sharing = container.sharing()
            (one,) = await container.shared_messages().list_for_user(ANN, key)

            async def hand_over(owner: Principal, member: Principal) -> None:
                transfer = await sharing.offer(owner, key, member.user_id or "")
                await sharing.accept(member, transfer.transfer_id)

            async with anyio.create_task_group() as group:
                for number in range(8):
                    for by in (ANN, BOB):
                        group.start_soon(container.shared_messages().append_as_user, by, key, NewMessage(content="x"))
                    group.start_soon(container.shared_messages().context, agent(), key)
                    if number % 4 == 0:
                        group.start_soon(container.conversations().fork, BOB, key, one.message_id or "")
                group.start_soon(hand_over, ANN, BOB)
            assert await levels_of(container, key, BOB) == {"bob": "owner", "ann": "manager"}
            assert len(await texts_of(container, key, BOB)) == 17
            group_of = await container.conversations().forks(BOB, key)
            assert {each.session.owner_id for each in group_of} == {"bob"}


class TestForgottenAndMoved:
    async def test_erasing_a_user_takes_them_out_of_what_others_own(self, container: ServiceContainer) -> None:
        key = await shared(container, bob="manager")
        own = await begin(container, "of bob", owner=BOB)
        await container.sharing().add(BOB, own.conversation_id, "ann", "reader")
        await container.sharing().offer(ANN, key, "bob")
        await container.erasure().erase_user("bob")
        assert await levels_of(container, key) == {"ann": "owner"}
        assert await container.conversations().list(BOB) == ()
        assert [each.conversation_id for each in await container.conversations().list(ANN)] == [key]
        assert await container.sharing().transfers(ANN) == ()
        assert "bob" not in json.dumps(msgspec.to_builtins(await container.sharing().audit(ANN, key)))

    async def test_members_offers_and_records_move_with_the_group(
        self, container: ServiceContainer, tmp_path: Path
    ) -> None:
        key = await shared(container, bob="reader", cyd="writer")
        transfer = await container.sharing().offer(ANN, key, "bob")
        records = await container.sharing().audit(ANN, key)
        gone = await begin(container, "gone")
        await container.conversations().delete(ANN, gone.conversation_id)
        between = memory_database()
        await between.open()
        source = container.database()
        async with service(f"sqlite:///{tmp_path}/target.db") as target:
            for one, other in ((source, between), (between, target.database())):
                await SessionCopier(one, other, clock=wall_clock).copy(lambda done: None)
            assert await levels_of(target, key) == {"ann": "owner", "bob": "reader", "cyd": "writer"}
            assert await target.sharing().transfers(BOB) == (transfer,)
            assert await target.sharing().audit(ANN, key) == records
            kept = await target.database().read(member_operations.list_audit, gone.conversation_id)
            assert [each.action for each in kept] == ["create", "delete"]
            await target.sharing().accept(BOB, transfer.transfer_id)
        await between.close()
