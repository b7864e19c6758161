"""Messages of shared conversations, below HTTP: who says and sees what, and the context for the model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reactor_memory.errors import (
    AccessDeniedError,
    IdempotencyConflictError,
    InvalidInputError,
    MessageNotFoundError,
    NotGrantedError,
    SessionNotFoundError,
)
from reactor_memory.features.notes import operations as note_rows
from reactor_memory.features.notes.models import Notes
from reactor_memory.features.sharing.access import Access
from reactor_memory.features.sharing.messages import NewMessage, SharedContext
from reactor_memory.features.sharing.models import PARENT_MESSAGE_ID, Conversation
from reactor_memory.features.sharing.principals import Principal
from reactor_memory.models import Message, ToolCall
from reactor_memory.testing import FakeClock
from reactor_memory.wiring.service_container import ServiceContainer
from tests.acceptance.shared import ANN, BOB, CYD, EVE, agent, begin, say, service, texts_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def container(tmp_path: Path) -> AsyncIterator[ServiceContainer]:
    async with service(f"sqlite:///{tmp_path}/memory.db") as container:
        yield container


class TestAppending:
    async def test_a_user_gets_the_message_as_it_is_stored(self, container: ServiceContainer) -> None:
        made = await begin(container, "one")
        (first,) = await container.shared_messages().list_for_user(ANN, made.conversation_id)
        given: dict[str, Any] = {"parent_message_id": first.message_id, "role": "assistant", "visibility": "agent"}
        new = NewMessage(content="two", metadata={"a": 1}, **given)
        said = await container.shared_messages().append_as_user(ANN, made.conversation_id, new)
        assert (said.seq, said.role, said.visibility, said.author_id) == (2, "user", "user", "ann")
        assert said.metadata == {"a": 1, PARENT_MESSAGE_ID: first.message_id}
        assert (await container.shared_messages().list_for_user(ANN, made.conversation_id))[1] == said

    async def test_a_repetition_of_what_was_erased_finds_nothing(self, container: ServiceContainer) -> None:
        made = await begin(container)
        messages, identity = container.shared_messages(), made.conversation_id
        said = [NewMessage(content="one"), NewMessage(content="two")]
        await messages.append_as_user(ANN, identity, said[0], request_key="said")
        first = await messages.append_as_agent(agent(), identity, said, request_key="written")
        await container.erasure().erase(identity, seq=[1, 2], user_id="ann")
        with pytest.raises(MessageNotFoundError):
            await messages.append_as_user(ANN, identity, said[0], request_key="said")
        assert await messages.append_as_agent(agent(), identity, said, request_key="written") == first[1:]
        await container.erasure().erase(identity, seq=3, user_id="ann")
        with pytest.raises(MessageNotFoundError):
            await messages.append_as_agent(agent(), identity, said, request_key="written")

    async def test_a_repetition_gets_the_first_answer_and_other_content_none(self, container: ServiceContainer) -> None:
        made = await begin(container)
        messages = container.shared_messages()

        async def ask(content: str, by: Principal = ANN) -> Message:
            new = NewMessage(content=content)
            return await messages.append_as_user(by, made.conversation_id, new, request_key="k")

        first = await ask("hello")
        await say(container, made.conversation_id, "between")
        assert await ask("hello") == first
        with pytest.raises(IdempotencyConflictError):
            await ask("other")
        await container.sharing().add(ANN, made.conversation_id, "bob", "writer")
        assert (await ask("of bob", BOB)).seq == 3
        assert await texts_of(container, made.conversation_id) == ["hello", "between", "of bob"]

    async def test_a_batch_of_an_agent(self, container: ServiceContainer) -> None:
        made = await begin(container)
        call = ToolCall(id="t1", name="find", arguments={"q": 1})
        batch = [
            NewMessage(content="for me", visibility="agent"),
            NewMessage(role="assistant", content="", tool_calls=(call,)),
            NewMessage(role="tool", content="found", tool_call_id="t1", name="find"),
        ]
        messages = container.shared_messages()
        stored = await messages.append_as_agent(agent(), made.conversation_id, batch, request_key="k")
        assert [each.seq for each in stored] == [1, 2, 3]
        assert await messages.append_as_agent(agent(), made.conversation_id, batch, request_key="k") == stored
        assert [each.author_id for each in stored] == ["app", "app", "app"]
        assert (stored[1].tool_calls, stored[2].tool_call_id, stored[2].name) == ((call,), "t1", "find")

    async def test_an_agent_speaks_for_a_user_only_in_their_role(self, container: ServiceContainer) -> None:
        made = await begin(container)
        batch = [NewMessage(content="q"), NewMessage(role="assistant", content="a")]
        stored = await container.shared_messages().append_as_agent(agent(user_id="ann"), made.conversation_id, batch)
        assert [each.author_id for each in stored] == ["ann", "app"]
        with pytest.raises(SessionNotFoundError):
            await container.shared_messages().append_as_agent(agent(user_id="eve"), made.conversation_id, batch)

    async def test_one_message_that_is_refused_refuses_the_batch(self, container: ServiceContainer) -> None:
        made = await begin(container)
        batch = [NewMessage(content="good"), NewMessage(content="a\0b")]
        with pytest.raises(InvalidInputError, match=r"messages\[1\]"):
            await container.shared_messages().append_as_agent(agent(), made.conversation_id, batch)
        assert await texts_of(container, made.conversation_id) == []

    @pytest.mark.parametrize("fields", [{"metadata": {PARENT_MESSAGE_ID: "x"}}, {"parent_message_id": ""}])
    async def test_reserved_metadata_and_empty_ids_are_refused(
        self, container: ServiceContainer, fields: dict[str, Any]
    ) -> None:
        made = await begin(container)
        with pytest.raises(InvalidInputError):
            await container.shared_messages().append_as_user(
                ANN, made.conversation_id, NewMessage(content="x", **fields)
            )

    async def test_it_goes_on_past_a_posted_summary(self, container: ServiceContainer) -> None:
        made = await begin(container, "one")
        first = (await container.shared_messages().list_for_user(ANN, made.conversation_id))[0]
        until, now = first.message_id or "", datetime(2026, 11, 21, tzinfo=UTC)
        posted = await container.posted_summaries().post(
            agent(), made.conversation_id, text="told", title=None, until_message_id=until, summarized_at=now
        )
        await say(container, made.conversation_id, "two")

        async def behind(message_id: str | None, limit: int) -> tuple[list[str], str | None]:
            page = await container.shared_messages().context(
                agent(), made.conversation_id, after_message_id=message_id, limit=limit
            )
            return [each.content for each in page.messages], page.next_after_message_id

        assert await behind(until, 1) == ([], posted.message_id)
        assert (await behind(posted.message_id, 1))[0] == (await behind(until, 2))[0] == ["two"]

    async def test_a_repetition_of_a_summary_that_was_erased_finds_nothing(self, container: ServiceContainer) -> None:
        made = await begin(container, "one", "two")
        first, second = await container.shared_messages().list_for_user(ANN, made.conversation_id)

        async def post() -> Message:
            return await container.posted_summaries().post(
                agent(),
                made.conversation_id,
                text="told",
                title=None,
                until_message_id=second.message_id or "",
                summarized_at=datetime(2026, 11, 21, tzinfo=UTC),
                request_key="k",
            )

        assert await post() == await post()
        await container.erasure().erase(made.conversation_id, seq=first.seq or 0, user_id="ann")
        with pytest.raises(MessageNotFoundError):
            await post()

    async def test_who_may_not(self, container: ServiceContainer) -> None:
        made = await begin(container, agent_name="helper")
        await container.sharing().add(ANN, made.conversation_id, "cyd", "reader")
        messages, new = container.shared_messages(), NewMessage(content="x")
        for refused, error in (
            (CYD, AccessDeniedError),
            (EVE, SessionNotFoundError),
            (agent(user_id="ann", operations=("read",)), NotGrantedError),
            (agent("other", user_id="ann"), NotGrantedError),
            (agent(), NotGrantedError),
        ):
            with pytest.raises(error):
                await messages.append_as_user(refused, made.conversation_id, new)
        for refused, error in (
            (ANN, NotGrantedError),
            (agent("other"), SessionNotFoundError),
            (agent(operations=("read",)), NotGrantedError),
        ):
            with pytest.raises(error):
                await messages.append_as_agent(refused, made.conversation_id, [new])
        assert await texts_of(container, made.conversation_id, CYD) == []


class TestSeeing:
    async def test_agents_do_not_see_what_others_wrote_for_themselves(self, container: ServiceContainer) -> None:
        made = await begin(container, "for all")
        messages = container.shared_messages()
        for name in ("a", "b"):
            note = NewMessage(role="assistant", content=f"of {name}", visibility="agent")
            await messages.append_as_agent(agent(client_id=name), made.conversation_id, [note])
        for name in ("a", "b"):
            seen = await messages.list_for_agent(agent(client_id=name), made.conversation_id)
            assert [each.content for each in seen] == ["for all", f"of {name}"]
            memory = await messages.list_for_agent(agent(client_id=name), made.conversation_id, channel="MEMORY")
            assert [each.content for each in memory] == [f"of {name}"]
        assert await texts_of(container, made.conversation_id) == ["for all"]
        with pytest.raises(NotGrantedError):
            await messages.list_for_agent(ANN, made.conversation_id)
        with pytest.raises(NotGrantedError):
            await messages.list_for_user(agent(), made.conversation_id)

    async def test_a_fork_alone_and_page_by_page(self, container: ServiceContainer) -> None:
        root = await begin(container, "one", "two", "three")
        messages = container.shared_messages()
        three = (await messages.list_for_user(ANN, root.conversation_id))[2]
        fork = await container.conversations().fork(
            ANN, root.conversation_id, three.message_id or "", first=NewMessage(content="own")
        )
        own = await messages.list_for_user(ANN, fork.conversation_id, inherit=False)
        assert [each.content for each in own] == ["own"]
        page = await messages.list_for_user(ANN, fork.conversation_id, after=1, limit=2)
        assert [each.content for each in page] == ["two", "own"]


class TestContext:
    async def test_it_is_the_managers_own(self, container: ServiceContainer) -> None:
        made = await begin(container, "one", "two")
        context = await container.shared_messages().context(agent(), made.conversation_id, report=True)
        expected = await container.conversation_manager().load_history(made.conversation_id, user_id="ann")
        assert list(context.messages) == expected.messages
        assert context.tokens == expected.report.total_tokens
        assert context.next_after_message_id == expected.messages[-1].message_id
        assert context.report is not None
        assert context.report["digest"] == expected.report.digest
        assert (await container.shared_messages().context(agent(), made.conversation_id)).report is None

    async def test_an_empty_conversation(self, container: ServiceContainer) -> None:
        made = await begin(container)
        context = await container.shared_messages().context(agent(), made.conversation_id)
        assert context == SharedContext(
            conversation_id=made.conversation_id, messages=(), parts=(), next_after_message_id=None, tokens=0
        )

    async def test_limit_keeps_the_newest_and_no_result_without_its_call(self, container: ServiceContainer) -> None:
        made = await begin(container, "one", "two")
        call = ToolCall(id="t", name="find")
        batch = [
            NewMessage(role="assistant", content="", tool_calls=(call,)),
            NewMessage(role="tool", content="found", tool_call_id="t"),
            NewMessage(role="assistant", content="done"),
        ]
        messages = container.shared_messages()
        await messages.append_as_agent(agent(), made.conversation_id, batch)
        whole = await messages.context(agent(), made.conversation_id)
        for limit, kept in ((1, 1), (2, 1), (3, 3), (4, 4), (5, 5), (9, 5)):
            context = await messages.context(agent(), made.conversation_id, limit=limit)
            assert context.messages == whole.messages[len(whole.messages) - kept :]
            assert context.tokens == sum((each.token_count or 0) + 4 for each in context.messages)
            assert context.next_after_message_id == whole.next_after_message_id

    async def test_a_limit_means_messages(self, tmp_path: Path) -> None:
        summary = {"enabled": True, "trigger_message_count": 8, "recent_message_count": 4, "segment_message_count": 4}
        async with service(f"sqlite:///{tmp_path}/memory.db", summary=summary) as container:
            made = await begin(container, *(f"My order number is A-{number:04}." for number in range(14)))
            await container.conversation_manager().drain()
            messages = container.shared_messages()
            whole = await messages.context(agent(), made.conversation_id)
            memory = [each for each in whole.messages if each.seq is None]
            assert memory
            for limit in range(1, len(whole.messages) + 2):
                cut = await messages.context(agent(), made.conversation_id, limit=limit)
                newest = min(max(limit - len(memory), 1), len(whole.messages) - len(memory))
                assert [*cut.messages] == [*memory[: limit - 1], *whole.messages[-newest:]]
                assert len(cut.parts) == len(cut.messages) == min(limit, len(whole.messages))
                assert cut.parts[-1] == "window"
                assert cut.tokens == sum((each.token_count or 0) + 4 for each in cut.messages)

    async def test_notes_about_the_owner_are_for_no_other_member(self, tmp_path: Path) -> None:
        async with service(f"sqlite:///{tmp_path}/memory.db", notes={"enabled": True}) as container:
            made = await begin(container, "one", agent_name="travel")
            await container.sharing().add(ANN, made.conversation_id, "bob", "manager")
            notes = Notes(user_id="ann", agent_name="travel", version=1, text="- allergic to walnuts")
            assert await container.database().write(note_rows.put_notes, notes)
            told = {
                who: "walnuts"
                in str(await container.shared_messages().context(agent(user_id=who), made.conversation_id))
                for who in (None, "ann", "bob")
            }
            assert told == {None: True, "ann": True, "bob": False}

    async def test_it_goes_on_behind_a_message(self, container: ServiceContainer) -> None:
        made = await begin(container, "one", "two", "three", "four")
        messages = container.shared_messages()
        first = (await messages.list_for_user(ANN, made.conversation_id))[0]

        async def behind(message_id: str | None, limit: int | None = None) -> SharedContext:
            return await messages.context(agent(), made.conversation_id, after_message_id=message_id, limit=limit)

        page = await behind(first.message_id, 2)
        assert [each.content for each in page.messages] == ["two", "three"]
        rest = await behind(page.next_after_message_id)
        assert [each.content for each in rest.messages] == ["four"]
        end = await behind(rest.next_after_message_id)
        assert (end.messages, end.next_after_message_id) == ((), rest.next_after_message_id)
        with pytest.raises(InvalidInputError, match="after_message_id"):
            await behind("unknown")

    async def test_who_may_not(self, container: ServiceContainer) -> None:
        made = await begin(container)
        for refused, error in (
            (ANN, NotGrantedError),
            (agent("other"), SessionNotFoundError),
            (agent(user_id="eve"), SessionNotFoundError),
            (agent(operations=("append",)), NotGrantedError),
        ):
            with pytest.raises(error):
                await container.shared_messages().context(refused, made.conversation_id)


class HandedOverMeanwhile(Access):
    """Between the check and the act somebody else becomes the owner, so many times."""

    handed_over = 0
    times = 1

    async def conversation(self, *args: Any, **kwargs: Any) -> Conversation:
        found = await super().conversation(*args, **kwargs)
        if self.handed_over < self.times:
            self.handed_over += 1
            before = replace(found.session, owner_id="somebody before")
            return replace(found, session=before)
        return found


class TestAnotherOwnerMeanwhile:
    @pytest.fixture
    def meanwhile(self, container: ServiceContainer) -> ServiceContainer:
        container.access().__class__ = HandedOverMeanwhile  # which all parts stand on
        return container

    async def test_is_no_error_for_who_appends_reads_or_forks(self, meanwhile: ServiceContainer) -> None:
        access = meanwhile.access()
        assert isinstance(access, HandedOverMeanwhile)
        access.times = 0
        made = await begin(meanwhile, "one")
        (one,) = await meanwhile.shared_messages().list_for_user(ANN, made.conversation_id)
        for act in (
            lambda: meanwhile.shared_messages().append_as_user(ANN, made.conversation_id, NewMessage(content="x")),
            lambda: meanwhile.shared_messages().context(agent(), made.conversation_id),
            lambda: meanwhile.conversations().fork(ANN, made.conversation_id, one.message_id or ""),
        ):
            access.times = access.handed_over + 1
            await act()
            assert access.handed_over == access.times


class TestOnRecord:
    async def test_bare_keys_leave_write_records_and_hourly_read_records(self, tmp_path: Path) -> None:
        clock = FakeClock()
        async with service(f"sqlite:///{tmp_path}/memory.db", clock=clock) as container:
            made = await begin(container, "one")
            messages, key = container.shared_messages(), made.conversation_id
            for _ in range(3):
                await messages.context(agent(), key)
                await messages.list_for_agent(agent(), key)
            container.audit.reset()
            container.access.reset()
            container.shared_messages.reset()
            await container.shared_messages().context(agent(), key)
            clock.advance(3_600)
            await messages.context(agent(), key)
            await messages.context(agent(user_id="ann"), key)
            for _ in range(2):
                await messages.append_as_agent(agent(), key, [NewMessage(content="x")])
            records = await container.sharing().audit(ANN, key)
            noted = [each for each in records if each.client_id is not None]
            assert sorted(each.action for each in noted) == ["append", "append", "read", "read"]
            assert {(each.client_id, each.actor_id) for each in noted} == {("app", None)}
            with pytest.raises(NotGrantedError):
                await messages.context(agent(operations=("append",)), key)
            assert len(await container.sharing().audit(ANN, key)) == len(records)
