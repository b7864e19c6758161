"""Who may do what, decided without a store."""

from __future__ import annotations

from typing import Any

import pytest

from reactor_memory.errors import AccessDeniedError, NotGrantedError
from reactor_memory.features.sharing.access import Access, check_granted, check_level, client_of, is_visible, user_of
from reactor_memory.features.sharing.audit import Audit
from reactor_memory.features.sharing.models import LEVELS, AccessLevel, Conversation
from reactor_memory.features.sharing.principals import OPERATIONS, Grant, Operation, Principal
from reactor_memory.models import BranchRange, Session
from tests.scenes.tables import each_row

USER = Principal(user_id="ann")


def conversation(
    level: AccessLevel | None = None,
    *,
    owner_id: str | None = "owner",
    deleted: bool = False,
    agent_name: str | None = None,
) -> Conversation:
    session = Session(
        session_id="c",
        group_id="c",
        owner_id=owner_id,
        last_seq=0,
        branch=(BranchRange(conversation_id="c", start_seq=1),),
        created_at=1,
        updated_at=1,
        deleted_at=2 if deleted else None,
    )
    return Conversation(session=session, access_level=level, agent_name=agent_name)


def key(*agent_names: str, operations: tuple[Operation, ...] = OPERATIONS, user_id: str | None = None) -> Principal:
    return Principal(user_id=user_id, client_id="app", grant=Grant(agent_names=agent_names, operations=operations))


class Asked:
    """A database that notes which operations may be read on the thread of the event loop."""

    def __init__(self) -> None:
        self.bounded: list[bool] = []

    async def read(self, operation: Any, *args: Any, **parts: Any) -> Conversation:
        self.bounded.append(getattr(operation, "is_bounded", False))
        return conversation("owner")


@pytest.mark.anyio
async def test_access_is_checked_by_reads_that_are_bounded() -> None:
    database: Any = Asked()
    access = Access(database=database, audit=Audit(database=database, clock=lambda: 1))
    await access.conversation(USER, "c", needs="reader", operation="read")
    await access.check_visible(USER, "c")
    assert database.bounded == [True, True]
    await access.conversation(USER, "c", needs="reader", operation="read", described=True)
    assert database.bounded[2:] == [False], "a description looks through the messages of a branch"


class TestSeeing:
    @each_row("level", [None, *LEVELS])
    def test_members_see_what_is_there_deleters_what_is_deleted(self, level: AccessLevel | None) -> None:
        assert is_visible(USER, conversation(level)) == (level is not None)
        assert is_visible(USER, conversation(level, deleted=True)) == (level in ("manager", "owner"))

    @pytest.mark.parametrize("principal", [USER, key("*"), key("*", user_id="ann")])
    def test_nobody_sees_what_belongs_to_nobody(self, principal: Principal) -> None:
        assert not is_visible(principal, conversation("owner", owner_id=None))

    def test_a_bare_key_sees_the_conversations_of_its_agents(self) -> None:
        assert is_visible(key("helper"), conversation(agent_name="helper"))
        assert not is_visible(key("helper"), conversation(agent_name="other"))
        assert not is_visible(key("helper"), conversation())
        assert is_visible(key("*"), conversation())
        assert not is_visible(key("*"), conversation(deleted=True))
        assert not is_visible(Principal(client_id="app"), conversation())

    def test_an_agent_for_a_user_sees_what_the_user_sees(self) -> None:
        assert not is_visible(key("*", user_id="eve"), conversation(None))
        assert is_visible(key("other", user_id="ann"), conversation("reader", agent_name="helper"))


class TestLevels:
    @each_row("needs", LEVELS)
    @each_row("level", LEVELS)
    def test_a_level_may_do_what_lower_ones_may(self, level: AccessLevel, needs: AccessLevel) -> None:
        if LEVELS.index(level) >= LEVELS.index(needs):
            check_level(USER, conversation(level), needs)
            return
        with pytest.raises(AccessDeniedError) as caught:
            check_level(USER, conversation(level), needs)
        assert caught.value.needed == needs

    def test_a_bare_key_writes_and_manages_nothing(self) -> None:
        check_level(key("*"), conversation(), "writer")
        with pytest.raises(AccessDeniedError):
            check_level(key("*"), conversation(), "manager")

    def test_agent_for_a_user_has_their_level_within_its_grant(self) -> None:
        check_level(key("helper", user_id="ann"), conversation("reader", agent_name="helper"), "reader")
        with pytest.raises(AccessDeniedError):
            check_level(key("helper", user_id="ann"), conversation("reader", agent_name="helper"), "writer")
        with pytest.raises(NotGrantedError):
            check_level(key("helper", user_id="ann"), conversation("owner", agent_name="other"), "reader")


class TestGrants:
    @each_row("operation", OPERATIONS)
    def test_users_need_none_and_keys_need_the_operation(self, operation: Operation) -> None:
        check_granted(USER, operation)
        check_granted(key(operations=(operation,)), operation)
        others: tuple[Operation, ...] = tuple(each for each in OPERATIONS if each != operation)
        for refused in (key(operations=others), Principal(client_id="app")):
            with pytest.raises(NotGrantedError, match=operation):
                check_granted(refused, operation)

    def test_some_things_are_for_users_and_some_for_agents(self) -> None:
        assert (user_of(key(user_id="ann")), client_of(key())) == ("ann", "app")
        with pytest.raises(NotGrantedError, match="user"):
            user_of(key())
        with pytest.raises(NotGrantedError, match="agent"):
            client_of(USER)
