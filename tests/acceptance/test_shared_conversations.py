"""Conversations of many users, below HTTP: begun, found, forked, deleted, restored."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reactor_memory.errors import (
    AccessDeniedError,
    InvalidInputError,
    LimitExceededError,
    MessageNotFoundError,
    NotGrantedError,
    SessionNotFoundError,
    SharingConflictError,
)
from reactor_memory.features.sharing import member_operations
from reactor_memory.features.sharing.messages import NewMessage
from reactor_memory.testing import FakeClock
from reactor_memory.wiring.service_container import ServiceContainer
from tests.acceptance.shared import ANN, BOB, CYD, EVE, agent, begin, say, service, texts_of

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["sqlite:///{folder}/memory.db", "memory://"], ids=["sqlite", "memory"])
async def container(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ServiceContainer]:
    async with service(request.param.format(folder=tmp_path)) as container:
        yield container


class TestBeginning:
    async def test_a_conversation_is_its_makers(self, container: ServiceContainer) -> None:
        conversations = container.conversations()
        made = await conversations.create(ANN, title="Trip", metadata={"team": "x"}, agent_name="helper")
        assert (made.access_level, made.session.owner_id, made.preview) == ("owner", "ann", "")
        assert await conversations.get(ANN, made.conversation_id) == made
        assert await conversations.list(ANN) == (made,)
        with pytest.raises(SessionNotFoundError):
            await conversations.get(EVE, made.conversation_id)
        assert await conversations.list(EVE) == ()

    async def test_a_repeated_request_begins_one_conversation(self, container: ServiceContainer) -> None:
        conversations = container.conversations()
        first = await conversations.create(ANN, request_key="k")
        assert await conversations.create(ANN, request_key="k") == first
        assert await conversations.create(BOB, request_key="k") != first
        assert len(await conversations.list(ANN)) == 1

    async def test_blank_title_is_none_and_the_first_message_gives_one(self, container: ServiceContainer) -> None:
        made = await begin(container, title=" \n ")
        assert made.session.title is None
        await say(container, made.conversation_id, "  Where is my\n order " + "x" * 60, "second")
        titled = await container.conversations().get(ANN, made.conversation_id)
        assert titled.session.title == ("Where is my order " + "x" * 60)[:40]
        renamed = await container.conversations().rename(ANN, made.conversation_id, "Order 7")
        assert renamed.session.title == "Order 7"
        await say(container, made.conversation_id, "third")
        assert (await container.conversations().get(ANN, made.conversation_id)).session.title == "Order 7"

    async def test_an_agents_words_for_a_user_give_only_a_title(self, container: ServiceContainer) -> None:
        made = await begin(container)
        messages = container.shared_messages()
        hidden = [NewMessage(content="internal", visibility="agent"), NewMessage(role="assistant", content="Hi")]
        await messages.append_as_agent(agent(), made.conversation_id, hidden)
        assert (await container.conversations().get(ANN, made.conversation_id)).session.title is None
        await messages.append_as_agent(agent(), made.conversation_id, [NewMessage(content="said")])
        assert (await container.conversations().get(ANN, made.conversation_id)).session.title == "said"

    @pytest.mark.parametrize(
        ("fields", "error"),
        [
            ({"metadata": {"reactor_memory.x": 1}}, InvalidInputError),
            ({"metadata": {"a": "x" * 20_000}}, LimitExceededError),
            ({"title": "a\0b"}, InvalidInputError),
            ({"agent_name": "a\nb"}, InvalidInputError),
        ],
    )
    async def test_what_no_store_can_keep_is_refused(
        self, container: ServiceContainer, fields: dict[str, object], error: type[Exception]
    ) -> None:
        with pytest.raises(error):
            await container.conversations().create(ANN, **fields)  # pyright: ignore[reportArgumentType]
        assert await container.conversations().list(ANN) == ()

    async def test_agents_begin_and_list_what_their_grant_covers(self, container: ServiceContainer) -> None:
        conversations = container.conversations()
        helper = agent("helper", user_id="ann")
        made = await conversations.create(helper, agent_name="helper")
        other = await begin(container, agent_name="other")
        assert [each.conversation_id for each in await conversations.list(helper)] == [made.conversation_id]
        assert len(await conversations.list(agent("*", user_id="ann"))) == 2
        for refused in (helper, agent("helper", user_id="ann", operations=("read",))):
            with pytest.raises(NotGrantedError):
                await conversations.create(refused, agent_name="other")
        with pytest.raises(NotGrantedError):
            await conversations.create(agent())
        with pytest.raises(NotGrantedError):
            await conversations.get(helper, other.conversation_id)


class TestForking:
    async def test_fork_shows_what_stands_before_its_point_and_its_own(self, container: ServiceContainer) -> None:
        root = await begin(container, "one", "two", "three", title="T", agent_name="helper")
        one, two, _ = await container.shared_messages().list_for_user(ANN, root.conversation_id)
        fork = await container.conversations().fork(
            ANN, root.conversation_id, two.message_id or "", first=NewMessage(content="other")
        )
        assert (fork.session.title, fork.agent_name, fork.access_level) == ("T", "helper", "owner")
        assert (fork.forked_at_message_id, fork.session.forked_from_id) == (one.message_id, root.conversation_id)
        assert await texts_of(container, fork.conversation_id) == ["one", "other"]
        assert await texts_of(container, root.conversation_id) == ["one", "two", "three"]
        forks = await container.conversations().forks(ANN, fork.conversation_id)
        assert [each.conversation_id for each in forks] == [root.conversation_id, fork.conversation_id]

    async def test_a_fork_at_the_first_message_shares_nothing(self, container: ServiceContainer) -> None:
        root = await begin(container, "one")
        (one,) = await container.shared_messages().list_for_user(ANN, root.conversation_id)
        fork = await container.conversations().fork(ANN, root.conversation_id, one.message_id or "", title="F")
        assert (fork.forked_at_message_id, fork.session.title) == (None, "F")
        assert await texts_of(container, fork.conversation_id) == []

    async def test_a_repeated_request_forks_once(self, container: ServiceContainer) -> None:
        root = await begin(container, "one")
        (one,) = await container.shared_messages().list_for_user(ANN, root.conversation_id)

        async def ask() -> object:
            return await container.conversations().fork(
                ANN, root.conversation_id, one.message_id or "", first=NewMessage(content="x"), request_key="k"
            )

        assert await ask() == await ask()
        assert len(await container.conversations().forks(ANN, root.conversation_id)) == 2

    async def test_only_message_of_user_that_users_see_is_fork_point(self, container: ServiceContainer) -> None:
        root = await begin(container, "one")
        messages = container.shared_messages()
        said = await messages.append_as_agent(
            agent(),
            root.conversation_id,
            [NewMessage(role="assistant", content="a"), NewMessage(content="b", visibility="agent")],
        )
        for each in said:
            with pytest.raises(InvalidInputError):
                await container.conversations().fork(ANN, root.conversation_id, each.message_id or "")
        with pytest.raises(MessageNotFoundError):
            await container.conversations().fork(ANN, root.conversation_id, "unknown")

    async def test_a_message_of_another_branch_is_no_fork_point(self, container: ServiceContainer) -> None:
        root = await begin(container, "one", "two")
        one, two = await container.shared_messages().list_for_user(ANN, root.conversation_id)
        fork = await container.conversations().fork(ANN, root.conversation_id, two.message_id or "")
        with pytest.raises(MessageNotFoundError):
            await container.conversations().fork(ANN, fork.conversation_id, two.message_id or "")
        again = await container.conversations().fork(ANN, fork.conversation_id, one.message_id or "")
        assert again.session.forked_from_id == fork.conversation_id

    async def test_writers_fork_for_the_owner_and_readers_do_not(self, container: ServiceContainer) -> None:
        root = await begin(container, "one")
        (one,) = await container.shared_messages().list_for_user(ANN, root.conversation_id)
        await container.sharing().add(ANN, root.conversation_id, "bob", "writer")
        await container.sharing().add(ANN, root.conversation_id, "cyd", "reader")
        fork = await container.conversations().fork(
            BOB, root.conversation_id, one.message_id or "", first=NewMessage(content="of bob")
        )
        assert (fork.access_level, fork.session.owner_id) == ("writer", "ann")
        (said,) = await container.shared_messages().list_for_user(CYD, fork.conversation_id)
        assert (said.content, said.author_id) == ("of bob", "bob")
        with pytest.raises(AccessDeniedError):
            await container.conversations().fork(CYD, root.conversation_id, one.message_id or "")
        with pytest.raises(SessionNotFoundError):
            await container.conversations().fork(EVE, root.conversation_id, one.message_id or "")


class TestDeleting:
    async def test_a_root_goes_with_its_group_and_comes_back(self, container: ServiceContainer) -> None:
        root = await begin(container, "one")
        (one,) = await container.shared_messages().list_for_user(ANN, root.conversation_id)
        fork = await container.conversations().fork(ANN, root.conversation_id, one.message_id or "")
        both = {root.conversation_id, fork.conversation_id}
        assert set((await container.conversations().delete(ANN, root.conversation_id)).session_ids) == both
        for gone in both:
            with pytest.raises(SessionNotFoundError):
                await container.conversations().get(ANN, gone)
            with pytest.raises(SessionNotFoundError):
                await say(container, gone, "x")
        back = await container.conversations().restore(ANN, fork.conversation_id)
        assert back.session.deleted_at is None
        assert await container.conversations().restore(ANN, fork.conversation_id) == back
        assert len(await container.conversations().list(ANN)) == 2
        await say(container, root.conversation_id, "goes on")

    async def test_who_may_delete_and_who_sees_what_was_deleted(self, container: ServiceContainer) -> None:
        root = await begin(container, "one")
        for name, level in (("bob", "manager"), ("cyd", "writer")):
            await container.sharing().add(ANN, root.conversation_id, name, level)  # pyright: ignore[reportArgumentType]
        for refused, error in ((CYD, AccessDeniedError), (EVE, SessionNotFoundError)):
            with pytest.raises(error):
                await container.conversations().delete(refused, root.conversation_id)
        await container.conversations().delete(BOB, root.conversation_id)
        for refused, error in ((BOB, AccessDeniedError), (CYD, SessionNotFoundError), (EVE, SessionNotFoundError)):
            with pytest.raises(error):
                await container.conversations().restore(refused, root.conversation_id)
        restored = await container.conversations().restore(ANN, root.conversation_id)
        assert restored.access_level == "owner"
        assert (await container.conversations().get(CYD, root.conversation_id)).access_level == "writer"

    async def test_a_fork_that_was_deleted_alone_stays_deleted(self, container: ServiceContainer) -> None:
        root = await begin(container, "one")
        (one,) = await container.shared_messages().list_for_user(ANN, root.conversation_id)
        fork = await container.conversations().fork(ANN, root.conversation_id, one.message_id or "")
        await container.conversations().delete(ANN, fork.conversation_id)
        await container.conversations().delete(ANN, root.conversation_id)
        with pytest.raises(SharingConflictError) as caught:
            await container.conversations().restore(ANN, fork.conversation_id)
        assert caught.value.reason == "parent_deleted"
        await container.conversations().restore(ANN, root.conversation_id)
        assert len(await container.conversations().list(ANN)) == 1

    async def test_after_the_window_nothing_comes_back(self, tmp_path: Path) -> None:
        clock = FakeClock()
        async with service(f"sqlite:///{tmp_path}/memory.db", clock=clock) as container:
            root = await begin(container, "one")
            await container.sharing().add(ANN, root.conversation_id, "bob", "writer")
            await container.conversations().delete(ANN, root.conversation_id)
            clock.advance(29 * 86_400)
            await container.background_work().run_once()
            await container.conversations().restore(ANN, root.conversation_id)
            await container.conversations().delete(ANN, root.conversation_id)
            clock.advance(31 * 86_400)
            await container.background_work().run_once()
            with pytest.raises(SessionNotFoundError):
                await container.conversations().restore(ANN, root.conversation_id)
            assert len(await container.database().read(member_operations.list_memberships, root.conversation_id)) == 1
