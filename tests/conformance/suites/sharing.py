"""Conversations that people share: who sees what, who may what, what is on record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from reactor_memory.errors import (
    InvalidInputError,
    SessionDeletedError,
    SessionNotFoundError,
    SessionOwnershipError,
    SharingConflictError,
)
from reactor_memory.features.erasure import operations as erasure
from reactor_memory.features.sharing import member_operations
from reactor_memory.features.sharing import operations as conversations
from reactor_memory.features.sharing.models import (
    AccessLevel,
    AuditRecord,
    Channel,
    Conversation,
    ConversationsQuery,
    ListMode,
    Membership,
    MessagesQuery,
    NewConversation,
    NewFork,
    OwnershipTransfer,
)
from reactor_memory.models import JsonObject, Message, Visibility
from reactor_memory.models.requests import SUMMARIZE, AppendRequest
from reactor_memory.testing.builders import append_messages, stored_form
from reactor_memory.testing.summary_recording import Store
from tests.conformance.suites.correcting import amending

OWNER, MEMBER, STRANGER = "ann", "bob", "eve"
DAY = 86_400_000_000


def audit(conversation_id: str, action: str = "x", *, now: int = 1, number: int = 0) -> AuditRecord:
    return AuditRecord(
        record_id=f"{now:020}-{action}-{conversation_id}-{number}",
        group_id=conversation_id.partition("~")[0],
        conversation_id=conversation_id,
        actor_id=OWNER,
        action=action,
        created_at=now,
    )


async def create(
    store: Store,
    conversation_id: str,
    *,
    now: int = 1,
    owner_id: str = OWNER,
    title: str | None = None,
    metadata: JsonObject | None = None,
    agent_name: str | None = None,
) -> Conversation:
    new = NewConversation(
        conversation_id=conversation_id,
        owner_id=owner_id,
        title=title,
        metadata=metadata or {},
        agent_name=agent_name,
        now=now,
    )
    return await store.database.write(conversations.create_conversation, new, audit(conversation_id, "create", now=now))


async def say(
    store: Store, conversation_id: str, *texts: str, now: int = 10, visibility: Visibility = "user", by: str = OWNER
) -> tuple[Message, ...]:
    """Messages of users (or of agents, if users are not to see them), as they are stored."""
    role = "user" if visibility == "user" else "assistant"
    messages = [Message(role=role, content=text, visibility=visibility, author_id=by) for text in texts]
    conversation = await found(store, conversation_id)
    done = await append_messages(store, conversation_id, messages, user_id=conversation.session.owner_id, now=now)
    return await store.read(
        conversation_id, conversation.session.owner_id, after=done.first_seq - 1, until=done.last_seq
    )


async def fork(
    store: Store, parent_id: str, fork_id: str, at_seq: int, *, now: int = 20, first: str | None = None
) -> Conversation:
    parent = await found(store, parent_id)
    new = NewFork(
        parent_id=parent_id,
        fork_id=fork_id,
        at_seq=at_seq,
        first=None if first is None else first_message(fork_id, first, owner_id=parent.session.owner_id, now=now),
        now=now,
    )
    forked, _ = await store.database.write(conversations.fork_conversation, new, audit(fork_id, "fork", now=now))
    return forked


def first_message(fork_id: str, text: str, *, owner_id: str | None, now: int) -> AppendRequest:
    message = stored_form(Message.user(text, author_id=owner_id), now=now)
    return AppendRequest(
        session_id=fork_id, user_id=owner_id, messages=(message,), now=now, idempotency_key="k", fingerprint=text
    )


async def found(store: Store, conversation_id: str, user_id: str | None = OWNER) -> Conversation:
    conversation = await store.database.read(conversations.get_conversation, conversation_id, user_id, described=True)
    assert conversation is not None
    return conversation


async def share(
    store: Store, group_id: str, user_id: str, level: AccessLevel = "writer", *, now: int = 5
) -> Membership | None:
    member = Membership(group_id=group_id, user_id=user_id, access_level=level, created_at=now)
    return await store.database.write(
        member_operations.put_membership, member, audit(group_id, f"share {user_id}", now=now), creating=True
    )


async def offer(store: Store, group_id: str, to_user_id: str, *, name: str = "t", now: int = 6) -> OwnershipTransfer:
    transfer = OwnershipTransfer(
        transfer_id=name, group_id=group_id, from_user_id=OWNER, to_user_id=to_user_id, created_at=now
    )
    return await store.database.write(
        member_operations.offer_ownership, transfer, audit(group_id, f"offer {name}", now=now)
    )


async def listed(
    store: Store,
    user_id: str = OWNER,
    *,
    mode: ListMode = "all",
    text: str | None = None,
    limit: int = 100,
    agent_names: tuple[str, ...] | None = None,
) -> list[str]:
    query = ConversationsQuery(user_id=user_id, mode=mode, text=text, limit=limit, agent_names=agent_names)
    return [each.conversation_id for each in await store.database.read(conversations.list_conversations, query)]


async def actions(store: Store, group_id: str) -> list[str]:
    return [record.action for record in await store.database.read(member_operations.list_audit, group_id)]


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.content for message in messages]


class Beginning:
    """Conversations are created once, and told with the access of who asks."""

    async def test_a_conversation_begins_empty(self, store: Store) -> None:
        made = await create(store, "c", now=7, title="T", metadata={"a": [1]}, agent_name="helper")
        assert (made.access_level, made.metadata, made.agent_name) == ("owner", {"a": [1]}, "helper")
        assert (made.session.title, made.session.last_seq, made.session.created_at) == ("T", 0, 7)
        assert await create(store, "c", now=9, title="other") == made
        assert await actions(store, "c") == ["create"]
        assert (await store.check()).problems == ()
        with pytest.raises(SessionOwnershipError):
            await create(store, "c", owner_id=STRANGER)
        await store.database.write(conversations.delete_conversation, "c", audit("c", now=8), purge=False)
        with pytest.raises(SessionDeletedError):
            await create(store, "c")

    async def test_access_is_told_for_who_asks(self, store: Store) -> None:
        await create(store, "c")
        await fork_of_two(store, "c")
        await share(store, "c", MEMBER, "reader")
        levels = {user: (await found(store, "c~f", user)).access_level for user in (OWNER, MEMBER, STRANGER)}
        assert levels == {OWNER: "owner", MEMBER: "reader", STRANGER: None}
        assert (await found(store, "c", None)).access_level is None
        assert await store.database.read(conversations.get_conversation, "unknown", OWNER) is None

    async def test_a_preview_is_of_what_users_see_last(self, store: Store) -> None:
        await create(store, "c")
        assert (await found(store, "c")).preview == ""
        await say(store, "c", "first", "second\n line")
        await say(store, "c", "secret", visibility="agent")
        assert (await found(store, "c")).preview == "second line"
        lean = await store.database.read(conversations.get_conversation, "c", OWNER)
        assert lean is not None
        assert lean.preview == ""
        await fork(store, "c", "c~f", 2)
        assert (await found(store, "c~f")).preview == "first"

    async def test_a_title_comes_from_the_first_message_that_users_see(self, store: Store) -> None:
        await create(store, "c")
        await say(store, "c", "hidden", visibility="agent")
        assert await store.database.write(conversations.title_conversation, "c") is None
        await say(store, "c", "  the \n first " + "long " * 30, "the second")
        title = await store.database.write(conversations.title_conversation, "c")
        assert title == "the first long long long long long long"
        assert (await found(store, "c")).session.title == title
        assert await store.database.write(conversations.rename_conversation, "c", "own", audit("c", "rename", now=3))
        assert await store.database.write(conversations.title_conversation, "c") == "own"
        assert await store.database.write(conversations.title_conversation, "unknown") is None
        assert not await store.database.write(conversations.rename_conversation, "unknown", "x", audit("unknown"))

    async def test_title_goes_with_the_message_that_it_was_made_of(self, store: Store) -> None:
        for name in ("erased", "withdrawn", "kept"):
            await create(store, name)
            await say(store, name, "a secret name")
            await store.database.write(conversations.title_conversation, name)
        await fork(store, "erased", "erased~f", 2)
        await fork(store, "erased", "erased~g", 1)
        await store.database.write(
            conversations.rename_conversation, "erased", "own", audit("erased", "rename", now=25)
        )
        await say(store, "kept", "more")
        await store.database.write(erasure.erase, "erased", OWNER, ranges=((1, 1),), now=30, refold=amending)
        await store.withdraw("withdrawn", OWNER, seq=None, now=30, refold=amending)
        await store.database.write(erasure.erase, "kept", OWNER, ranges=((2, 2),), now=30, refold=amending)
        names = ("erased", "erased~f", "erased~g", "withdrawn", "kept")
        titles = [(await found(store, name)).session.title for name in names]
        assert titles == ["own", None, None, None, "a secret name"]


async def fork_of_two(store: Store, conversation_id: str) -> None:
    """Two messages, and a fork at the second one."""
    await say(store, conversation_id, "one", "two")
    await fork(store, conversation_id, f"{conversation_id}~f", 2)


class Branches:
    """A fork and its first message are one deed; what it shares is told by the last message that users see."""

    async def test_a_fork_with_its_first_message(self, store: Store) -> None:
        await create(store, "c", title="T", agent_name="helper")
        one, _ = await say(store, "c", "one", "two")
        forked = await fork(store, "c", "c~f", 2, first="other")
        assert (forked.session.title, forked.agent_name, forked.preview) == ("T", "helper", "other")
        assert forked.forked_at_message_id == one.message_id
        assert await fork(store, "c", "c~f", 2, first="other") == forked
        shown = await store.database.read(conversations.read_visible, MessagesQuery(session=forked.session))
        assert texts(shown) == ["one", "other"]
        own = await store.database.read(
            conversations.read_visible, MessagesQuery(session=forked.session, inherit=False)
        )
        assert texts(own) == ["other"]
        assert await actions(store, "c") == ["create", "fork"]

    async def test_a_first_message_that_cannot_be_stored_leaves_no_fork(self, store: Store) -> None:
        await create(store, "c")
        await say(store, "c", "one")
        new = NewFork(
            parent_id="c",
            fork_id="c~f",
            at_seq=1,
            first=first_message("c~f", "x", owner_id=STRANGER, now=20),
            now=20,
        )
        with pytest.raises(SessionOwnershipError):
            await store.database.write(conversations.fork_conversation, new, audit("c~f", "fork", now=20))
        assert await store.database.read(conversations.get_conversation, "c~f", OWNER) is None
        assert await actions(store, "c") == ["create"]

    async def test_a_fork_id_belongs_to_one_fork(self, store: Store) -> None:
        await create(store, "c")
        await fork_of_two(store, "c")
        with pytest.raises(InvalidInputError):
            await fork(store, "c", "c~f", 1)
        with pytest.raises(SessionNotFoundError):
            await store.database.write(
                conversations.fork_conversation, NewFork(parent_id="u", fork_id="u~f", at_seq=1, now=1), audit("u~f")
            )

    async def test_a_fork_at_an_inherited_message_keeps_its_parent(self, store: Store) -> None:
        await create(store, "c")
        one, _, _ = await say(store, "c", "one", "two", "three")
        await fork(store, "c", "c~f", 3, first="three of f")
        forked = await fork(store, "c~f", "c~g", 2, first="two of g")
        assert forked.session.forked_from_id == "c~f"
        assert forked.forked_at_message_id == one.message_id
        shown = await store.database.read(conversations.read_visible, MessagesQuery(session=forked.session))
        assert texts(shown) == ["one", "two of g"]

    async def test_what_users_do_not_see_is_no_fork_point(self, store: Store) -> None:
        await create(store, "c", title="T")
        await say(store, "c", "secret", visibility="agent")
        await say(store, "c", "one")
        assert (await fork(store, "c", "c~f", 2)).forked_at_message_id is None

    async def test_a_group_is_listed_in_the_order_of_its_creation(self, store: Store) -> None:
        await create(store, "c", now=100)
        await say(store, "c", "one", "two")
        await fork(store, "c", "c~z", 2, now=1)
        await fork(store, "c", "c~a", 1, now=3)
        await fork(store, "c~z", "c~m", 1, now=2)
        group = await store.database.read(conversations.list_group, "c", OWNER)
        assert [each.conversation_id for each in group] == ["c", "c~z", "c~m", "c~a"]
        await store.database.write(conversations.delete_conversation, "c~z", audit("c~z", now=4), purge=False)
        assert [each.conversation_id for each in await store.database.read(conversations.list_group, "c", MEMBER)] == [
            "c",
            "c~a",
        ]


class Seeing:
    """Users see what is meant for them; an agent that, summaries, what is for all agents, and what it wrote itself."""

    async def test_who_sees_what(self, store: Store) -> None:
        await create(store, "c")
        await say(store, "c", "for all")
        await say(store, "c", "of A", visibility="agent", by="A")
        await say(store, "c", "of B", visibility="agent", by="B")
        await say(store, "c", "for agents", visibility="system", by="B")
        summary = Message(role="summary", content="sum", author_id="B")
        await append_messages(store, "c", [summary], user_id=OWNER)
        session = (await found(store, "c")).session
        assert texts(await store.database.read(conversations.read_visible, MessagesQuery(session=session))) == [
            "for all"
        ]
        seen = await store.database.read(conversations.read_visible, MessagesQuery(session=session, client_id="A"))
        assert texts(seen) == ["for all", "of A", "for agents", "sum"]
        memory = ["of A", "for agents"]
        channels: dict[Channel, list[str]] = {"HISTORY": ["for all"], "MEMORY": memory, "SUMMARY": ["sum"]}
        for channel, expected in channels.items():
            seen = await store.database.read(
                conversations.read_visible, MessagesQuery(session=session, client_id="A", channel=channel)
            )
            assert texts(seen) == expected
        assert (
            texts(
                await store.database.read(conversations.read_visible, MessagesQuery(session=session, channel="MEMORY"))
            )
            == []
        )

    async def test_who_sees_what_of_a_fork_of_a_fork(self, store: Store) -> None:
        """Several ranges are read in one statement."""
        await create(store, "c")
        for_agents: dict[str, Any] = {"visibility": "system", "by": "B"}
        await say(store, "c", "of B", visibility="agent", by="B")
        await say(store, "c", "one", **for_agents)
        await say(store, "c", "3")
        await fork(store, "c", "c~f", 3)
        await say(store, "c~f", "two", **for_agents)
        await say(store, "c~f", "4")
        session = (await fork(store, "c~f", "c~g", 4)).session
        await say(store, "c~g", "three", **for_agents)
        seen = await store.database.read(conversations.read_visible, MessagesQuery(session=session, client_id="A"))
        assert texts(seen) == ["one", "two", "three"]
        assert await store.database.read(conversations.read_visible, MessagesQuery(session=session)) == ()

    async def test_pages_follow_one_another_across_forks(self, store: Store) -> None:
        await create(store, "c")
        await say(store, "c", "1", "2", "3")
        session = (await fork(store, "c", "c~f", 3, first="3f")).session
        await say(store, "c~f", "4f")
        seen: list[str] = []
        after = 0
        while page := await store.database.read(
            conversations.read_visible, MessagesQuery(session=session, after=after, limit=2)
        ):
            seen += texts(page)
            after = page[-1].seq or 0
        assert seen == ["1", "2", "3f", "4f"]
        assert texts(
            await store.database.read(conversations.read_visible, MessagesQuery(session=session, after=1, until=3))
        ) == ["2", "3f"]

    async def test_a_message_is_found_on_its_branch_only(self, store: Store) -> None:
        await create(store, "c")
        one, two = await say(store, "c", "one", "two")
        session = (await fork(store, "c", "c~f", 2)).session
        assert await store.database.read(conversations.find_message, session, one.message_id or "") == one
        assert await store.database.read(conversations.find_message, session, two.message_id or "") is None
        await store.withdraw("c", OWNER, seq=None, now=30, refold=amending)
        assert (
            await store.database.read(
                conversations.find_message, (await found(store, "c")).session, two.message_id or ""
            )
            is None
        )


class Finding:
    """Lists are of one user, newest activity first, and never skip or repeat."""

    async def test_own_and_shared_ones_in_the_order_of_activity(self, store: Store) -> None:
        for number, name in enumerate(("a", "b", "c", "d")):
            await create(store, name, now=number, owner_id=OWNER if name in "ac" else MEMBER)
        await share(store, "b", OWNER, "reader")
        assert await listed(store) == ["c", "b", "a"]
        await say(store, "a", "x", now=50)
        assert await listed(store) == ["a", "c", "b"]
        assert await listed(store, STRANGER) == []
        query = ConversationsQuery(user_id=OWNER)
        levels = [each.access_level for each in await store.database.read(conversations.list_conversations, query)]
        assert levels == ["owner", "owner", "reader"]
        await store.database.write(conversations.delete_conversation, "b", audit("b", now=60), purge=False)
        assert await listed(store) == ["a", "c"]

    async def test_pages_of_conversations_neither_skip_nor_repeat(self, store: Store) -> None:
        for number in range(7):
            await create(store, f"c{number}", now=number // 3, owner_id=MEMBER if number == 2 else OWNER)
        await share(store, "c2", OWNER)
        seen: list[str] = []
        after = None
        while True:
            query = ConversationsQuery(user_id=OWNER, after=after, limit=2)
            if not (page := await store.database.read(conversations.list_conversations, query)):
                break
            seen += [each.conversation_id for each in page]
            after = page[-1].session.updated_at, page[-1].conversation_id
            await create(store, f"new{len(seen)}", now=99)
        assert seen == ["c6", "c3", "c4", "c5", "c0", "c1", "c2"]

    async def test_roots_and_the_latest_of_each_group(self, store: Store) -> None:
        for name in ("a", "b"):
            await create(store, name)
            await say(store, name, "one", "two", now=10)
        await fork(store, "a", "a~f", 2, now=20)
        await fork(store, "a", "a~g", 2, now=20)
        await fork(store, "b", "b~f", 2, now=15)
        await say(store, "b", "three", now=30)
        assert await listed(store) == ["b", "a~f", "a~g", "b~f", "a"]
        assert await listed(store, mode="roots") == ["b", "a"]
        assert await listed(store, mode="latest-fork") == ["b", "a~f"]
        await store.database.write(conversations.delete_conversation, "a~f", audit("a~f", now=40), purge=False)
        assert await listed(store, mode="latest-fork") == ["b", "a~g"]
        await share(store, "a", MEMBER)
        assert await listed(store, MEMBER, mode="latest-fork") == ["a~g"]

    async def test_texts_are_found_whatever_their_case(self, store: Store) -> None:
        await create(store, "title", title="Äpfel 100%", now=1)
        await create(store, "value", metadata={"deep": {"list": ["STRASSE", 7]}}, now=2)
        await create(store, "greek", title="ΟΔΟΣ", now=3)
        await create(store, "none", now=4)
        assert await listed(store, text="äPFEL") == ["title"]
        assert await listed(store, text="straße") == ["value"]
        assert await listed(store, text="οδος") == ["greek"]
        assert await listed(store, text="7") == ["value"]
        assert await listed(store, text="0%") == ["title"]
        assert await listed(store, text="%") == ["title"]
        assert await listed(store, text="_") == []
        assert await listed(store, text="deep") == []

    async def test_only_the_conversations_of_some_agents(self, store: Store) -> None:
        for number, agent in enumerate((None, "a", "b")):
            await create(store, f"c{number}", agent_name=agent)
        assert await listed(store, agent_names=("a", "x")) == ["c1"]
        assert await listed(store, agent_names=()) == []


class Sharing:
    """Members belong to the group; each change is on record."""

    async def test_members_join_change_and_leave(self, store: Store) -> None:
        await create(store, "c", now=1)
        await fork_of_two(store, "c")
        assert await share(store, "c", MEMBER, "reader", now=5) == Membership(
            group_id="c", user_id=MEMBER, access_level="reader", created_at=5
        )
        assert await share(store, "c", MEMBER, "manager", now=6) is None
        assert await share(store, "c", OWNER, "manager", now=6) is None
        changed = Membership(group_id="c", user_id=MEMBER, access_level="manager", created_at=9)
        stored = await store.database.write(
            member_operations.put_membership, changed, audit("c", "change", now=7), creating=False
        )
        assert stored == Membership(group_id="c", user_id=MEMBER, access_level="manager", created_at=5)
        unknown = Membership(group_id="c", user_id=STRANGER, access_level="reader", created_at=9)
        assert await store.database.write(member_operations.put_membership, unknown, audit("c"), creating=False) is None
        owner = Membership(group_id="c", user_id=OWNER, access_level="owner", created_at=1)
        assert await store.database.read(member_operations.list_memberships, "c") == (owner, stored)
        assert not await store.database.write(member_operations.remove_membership, "c", OWNER, audit("c"))
        assert await store.database.write(member_operations.remove_membership, "c", MEMBER, audit("c", "remove", now=8))
        assert not await store.database.write(
            member_operations.remove_membership, "c", MEMBER, audit("c", "again", now=8)
        )
        assert await store.database.read(member_operations.list_memberships, "c") == (owner,)
        assert await actions(store, "c") == ["create", "share bob", "change", "remove", "fork"]
        assert await store.database.read(member_operations.list_memberships, "unknown") == ()

    async def test_nobody_joins_what_is_gone(self, store: Store) -> None:
        await create(store, "c")
        await share(store, "c", MEMBER)
        await store.database.write(conversations.delete_conversation, "c", audit("c", now=8), purge=False)
        for refused in (
            lambda: share(store, "c", STRANGER),
            lambda: offer(store, "c", MEMBER),
            lambda: store.database.write(member_operations.remove_membership, "c", MEMBER, audit("c")),
        ):
            with pytest.raises(SessionDeletedError):
                await refused()
        with pytest.raises(SessionNotFoundError):
            await share(store, "unknown", MEMBER)

    async def test_records_are_read_page_by_page(self, store: Store) -> None:
        await create(store, "c")
        for number in (2, 1, 3):
            record = audit("c", "read", now=number)
            await store.database.write(member_operations.add_audit, record)
            await store.database.write(member_operations.add_audit, record)
        records = await store.database.read(member_operations.list_audit, "c", limit=3)
        assert [record.action for record in records] == ["create", "read", "read"]
        rest = await store.database.read(member_operations.list_audit, "c", after=records[-1].record_id)
        assert [record.created_at for record in rest] == [3]
        assert await store.database.read(member_operations.list_audit, "other") == ()


class HandingOver:
    """One offer at a time; the recipient becomes the owner of everything, the owner a manager."""

    async def shared(self, store: Store) -> None:
        await create(store, "c")
        await fork_of_two(store, "c")
        await share(store, "c", MEMBER)

    async def test_an_offer_that_is_accepted(self, store: Store) -> None:
        await self.shared(store)
        await fork(store, "c", "c~gone", 1)
        await store.database.write(conversations.delete_conversation, "c~gone", audit("c~gone", now=25), purge=False)
        transfer = await offer(store, "c", MEMBER)
        assert (
            await store.database.read(member_operations.list_transfers, OWNER)
            == await store.database.read(member_operations.list_transfers, MEMBER)
            == (transfer,)
        )
        assert await store.database.write(member_operations.accept_ownership, "t", STRANGER, audit("c")) is None
        assert await store.database.write(member_operations.accept_ownership, "t", OWNER, audit("c")) is None
        assert (
            await store.database.write(member_operations.accept_ownership, "t", MEMBER, audit("c", "accept", now=30))
            == transfer
        )
        assert (
            await store.database.write(member_operations.accept_ownership, "t", MEMBER, audit("c", "again", now=31))
            is None
        )
        members = [
            (each.user_id, each.access_level)
            for each in await store.database.read(member_operations.list_memberships, "c")
        ]
        assert members == [(MEMBER, "owner"), (OWNER, "manager")]
        assert (await found(store, "c~f", MEMBER)).access_level == "owner"
        assert await store.database.read(member_operations.list_transfers, MEMBER) == ()
        await store.database.write(conversations.restore_conversation, "c~gone", audit("c~gone", now=40))
        assert (await found(store, "c~gone", MEMBER)).access_level == "owner"
        assert "again" not in await actions(store, "c")

    async def test_one_offer_waits_at_a_time(self, store: Store) -> None:
        await self.shared(store)
        await share(store, "c", "cyd")
        first = await offer(store, "c", MEMBER, name="t1")
        assert await offer(store, "c", "cyd", name="t2") == first
        assert await store.database.write(member_operations.accept_ownership, "t1", "cyd", audit("c")) is None
        assert await store.database.write(member_operations.decline_ownership, "t1", STRANGER, audit("c")) is None
        assert (
            await store.database.write(member_operations.decline_ownership, "t1", MEMBER, audit("c", "decline", now=30))
            == first
        )
        assert await store.database.write(member_operations.accept_ownership, "t1", MEMBER, audit("c")) is None
        assert (await offer(store, "c", "cyd", name="t2")).transfer_id == "t2"
        assert (
            await store.database.write(member_operations.decline_ownership, "t2", OWNER, audit("c", "cancel", now=31))
            is not None
        )
        assert await store.database.write(member_operations.decline_ownership, "t2", OWNER, audit("c")) is None

    async def test_only_an_owner_offers_and_only_to_a_member(self, store: Store) -> None:
        await self.shared(store)
        with pytest.raises(SharingConflictError, match="member"):
            await offer(store, "c", STRANGER)
        not_owned = OwnershipTransfer(
            transfer_id="t", group_id="c", from_user_id=MEMBER, to_user_id=OWNER, created_at=1
        )
        with pytest.raises(SessionOwnershipError):
            await store.database.write(member_operations.offer_ownership, not_owned, audit("c"))
        assert await store.database.read(member_operations.list_transfers, OWNER) == ()

    async def test_an_offer_goes_with_the_member_and_with_the_root(self, store: Store) -> None:
        await self.shared(store)
        await offer(store, "c", MEMBER)
        await store.database.write(member_operations.remove_membership, "c", MEMBER, audit("c", "remove", now=30))
        assert await store.database.read(member_operations.list_transfers, OWNER) == ()
        await share(store, "c", MEMBER, now=31)
        await offer(store, "c", MEMBER, name="t2")
        await store.database.write(conversations.delete_conversation, "c~f", audit("c~f", now=32), purge=False)
        assert len(await store.database.read(member_operations.list_transfers, OWNER)) == 1
        await store.delete("c", OWNER, now=33, purge=False)
        assert await store.database.read(member_operations.list_transfers, OWNER) == ()
        assert await store.database.write(member_operations.accept_ownership, "t2", MEMBER, audit("c")) is None

    async def test_of_many_that_answer_at_once_one_is_heard(self, store: Store) -> None:
        await self.shared(store)
        await offer(store, "c", MEMBER)
        heard: list[str] = []

        async def answer(name: str, number: int) -> None:
            record = audit("c", name, now=30, number=number)
            if name == "accept":
                done = await store.database.write(member_operations.accept_ownership, "t", MEMBER, record)
            elif name == "decline":
                done = await store.database.write(member_operations.decline_ownership, "t", MEMBER, record)
            else:
                done = await store.database.write(member_operations.remove_membership, "c", MEMBER, record)
            if done:
                heard.append(name)

        async with anyio.create_task_group() as group:
            for number in range(3):
                for name in ("accept", "decline", "remove"):
                    group.start_soon(answer, name, number)
        owners = {(await found(store, each)).session.owner_id for each in ("c", "c~f")}
        members = [
            (each.user_id, each.access_level)
            for each in await store.database.read(member_operations.list_memberships, "c")
        ]
        if "accept" in heard:
            assert heard == ["accept"]
            assert (owners, members) == ({MEMBER}, [(MEMBER, "owner"), (OWNER, "manager")])
        else:
            assert heard.count("decline") <= 1
            assert heard.count("remove") == 1
            assert (owners, members) == ({OWNER}, [(OWNER, "owner")])
        assert sorted(heard) == sorted(each for each in await actions(store, "c") if each in heard)

    async def test_of_many_that_share_at_once_one_adds_the_member(self, store: Store) -> None:
        await create(store, "c")
        added: list[Membership] = []

        async def add(now: int) -> None:
            member = await share(store, "c", MEMBER, now=now)
            if member is not None:
                added.append(member)

        async with anyio.create_task_group() as group:
            for now in range(6):
                group.start_soon(add, now)
        assert (await store.database.read(member_operations.list_memberships, "c"))[1:] == tuple(added)
        assert (await actions(store, "c")).count("share bob") == 1


class Restoring:
    """What was deleted together comes back together, until it is purged."""

    async def family(self, store: Store) -> None:
        await create(store, "c")
        await say(store, "c", "one", "two")
        await fork(store, "c", "c~a", 2)
        await fork(store, "c~a", "c~a1", 1)
        await fork(store, "c", "c~b", 2)

    async def alive(self, store: Store) -> set[str]:
        return {each.conversation_id for each in await store.database.read(conversations.list_group, "c", OWNER)}

    async def test_what_was_deleted_before_stays_deleted(self, store: Store) -> None:
        await self.family(store)
        await store.database.write(
            conversations.delete_conversation, "c~a", audit("c~a", "delete", now=50), purge=False
        )
        gone = await store.database.write(
            conversations.delete_conversation, "c", audit("c", "delete", now=50, number=1), purge=False
        )
        assert gone == ("c", "c~b")
        assert await store.database.read(conversations.get_conversation, "c", OWNER) is None
        deleted = await store.database.read(conversations.get_conversation, "c", OWNER, deleted=True)
        assert deleted is not None
        assert deleted.access_level == "owner"
        with pytest.raises(SharingConflictError, match="restore that first"):
            await store.database.write(conversations.restore_conversation, "c~a", audit("c~a", now=59))
        back = await store.database.write(conversations.restore_conversation, "c~b", audit("c~b", "restore", now=60))
        assert back is not None
        assert {each.session_id for each in back} == {"c", "c~b"} == await self.alive(store)
        assert await store.database.write(conversations.restore_conversation, "c", audit("c", "no", now=61)) == ()
        back = await store.database.write(conversations.restore_conversation, "c~a1", audit("c~a1", "restore", now=62))
        assert await self.alive(store) == {"c", "c~a", "c~a1", "c~b"}
        assert (await actions(store, "c"))[-4:] == ["delete", "delete", "restore", "restore"]
        await say(store, "c~a1", "goes on")

    async def test_background_work_is_due_again(self, store: Store) -> None:
        await self.family(store)
        await store.database.write(conversations.delete_conversation, "c", audit("c", now=50), purge=False)
        assert "c" not in (await store.summaries.due([SUMMARIZE], now=DAY))[SUMMARIZE]
        await store.database.write(conversations.restore_conversation, "c", audit("c", "restore", now=60))
        assert set((await store.summaries.due([SUMMARIZE], now=DAY))[SUMMARIZE]) == {"c", "c~a", "c~a1", "c~b"}

    async def test_what_was_purged_is_gone_with_its_members(self, store: Store) -> None:
        await self.family(store)
        await share(store, "c", MEMBER)
        await store.database.write(conversations.delete_conversation, "c~a", audit("c~a", "delete", now=50), purge=True)
        assert len(await store.database.read(member_operations.list_memberships, "c")) == 2
        await store.database.write(conversations.delete_conversation, "c", audit("c", "delete", now=51), purge=False)
        await store.purge_deleted(before=DAY)
        assert await store.database.read(conversations.get_conversation, "c", OWNER, deleted=True) is None
        assert (
            await store.database.write(conversations.restore_conversation, "c", audit("c", "restore", now=52)) is None
        )
        assert await store.database.write(conversations.restore_conversation, "unknown", audit("unknown")) is None
        assert [each.user_id for each in await store.database.read(member_operations.list_memberships, "c")] == [OWNER]
        assert await actions(store, "c") == ["create", "share bob", "fork", "fork", "fork", "delete", "delete"]


class Forgetting:
    """A user who is erased is no member any more, and no record names them."""

    async def test_no_trace_of_a_user_stays(self, store: Store) -> None:
        await create(store, "c")
        await share(store, "c", MEMBER)
        await share(store, "c", "cyd")
        await offer(store, "c", MEMBER)
        for number, (actor, target) in enumerate(((MEMBER, "cyd"), (OWNER, MEMBER))):
            record = AuditRecord(
                record_id=f"z{number}",
                group_id="c",
                conversation_id="c",
                actor_id=actor,
                action="x",
                target=target,
                created_at=9,
            )
            await store.database.write(member_operations.add_audit, record)
        assert await store.database.write(erasure.forget_user, MEMBER, now=99) == 2
        assert [each.user_id for each in await store.database.read(member_operations.list_memberships, "c")] == [
            OWNER,
            "cyd",
        ]
        assert await store.database.read(member_operations.list_transfers, MEMBER) == ()
        named = [
            (each.actor_id, each.target)
            for each in await store.database.read(member_operations.list_audit, "c", after="z")
        ]
        assert named == [(None, "cyd"), (OWNER, None)]


@pytest.mark.anyio
class SharingConformance(Beginning, Branches, Seeing, Finding, Sharing, HandingOver, Restoring, Forgetting):
    """What the operations of `features.sharing` promise, of the database of an opened,
    empty `store`.
    """
