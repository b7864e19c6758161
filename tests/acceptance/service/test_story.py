"""A conversation from its beginning to its end, as people and an agent live it, on a real service and database."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from reactor_memory.client import MemoryServiceClient
from reactor_memory.errors import SessionNotFoundError
from reactor_memory.features.sharing.bodies import CreateAgentMessageRequest, CreateUserMessageRequest, SearchResult
from tests.server.processes import ServiceProcess, environment, service, token_of

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

ANSWER = "You chose the Hotel Azulejo, by the river. "


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/log.db"
    return request.getfixturevalue("postgres_dsn")


@pytest.fixture
def running(url: str, tmp_path: Path) -> Iterator[ServiceProcess]:
    with service(url, tmp_path) as running:
        yield running


@pytest.fixture
def key(url: str, running: ServiceProcess, tmp_path: Path) -> str:
    """A key of the agent, made while the service runs."""
    command = [sys.executable, "-m", "reactor_memory", "keys", "create", "--store", url, "--client", "travel-agent"]
    grant = ["--agent", "*", "--allow", "read,append,summarize,respond"]
    made = subprocess.run(
        [*command, *grant], env=environment(tmp_path), capture_output=True, text=True, check=True, timeout=200
    )
    return made.stdout.split()[-1]


async def test_a_conversation_from_its_beginning_to_its_end(running: ServiceProcess, key: str) -> None:
    async with (
        MemoryServiceClient(running.address, token=token_of("ann")) as ann,
        MemoryServiceClient(running.address, token=token_of("ben")) as ben,
        MemoryServiceClient(running.address, api_key=key) as agent,
    ):
        conversation = await begins(ann)
        await is_answered(ann, agent, conversation)
        await shares(ann, ben, conversation)
        fork = await forks(ben, conversation)
        await is_summarised(ann, agent, conversation)
        await is_searched(ann, ben, conversation, fork)
        await is_handed_over(ann, ben, conversation)
        await is_deleted_and_restored(ann, ben, conversation)


async def begins(ann: MemoryServiceClient) -> str:
    conversation = await ann.create_conversation(metadata={"project": "travel"})
    await ann.append_message(conversation.id, "Which hotel in Lisbon did we choose for the conference?")
    (listed,) = [row async for row in ann.conversations()]
    assert listed.title == "Which hotel in Lisbon did we choose for"
    assert listed.last_message_preview is not None
    return conversation.id


async def is_answered(ann: MemoryServiceClient, agent: MemoryServiceClient, conversation: str) -> None:
    """Ann reads along, loses her connection after the first words, and comes back when everything is said."""
    context = await agent.get_context(conversation, budget=2000)
    assert context.messages[-1].content.startswith("Which hotel")
    async with agent.write_response(conversation, producer="travel-agent") as writer:
        following = ann.follow_response(conversation, writer.response.id)
        assert await writer.write(ANSWER)
        heard = (await anext(aiter(following))).text
        assert await writer.write("Two rooms, from 4 to 8 May.")
        answer = CreateAgentMessageRequest(role="assistant", content=f"{ANSWER}Two rooms, from 4 to 8 May.")
        (message,) = (await agent.append_agent_messages(conversation, [answer])).data
        writer.message_id = message.id
    rest = ann.follow_response(conversation, writer.response.id, after=following.last_event)
    heard += "".join([piece.text async for piece in rest])
    assert heard == answer.content
    assert rest.response is not None
    assert (rest.response.state, rest.response.message_id) == ("completed", message.id)
    assert [row.content async for row in ann.messages(conversation)][-1] == heard


async def shares(ann: MemoryServiceClient, ben: MemoryServiceClient, conversation: str) -> None:
    with pytest.raises(SessionNotFoundError):
        await ben.get_conversation(conversation)
    await ann.share_conversation(conversation, "ben", "writer")
    assert [row.id async for row in ben.conversations()] == [conversation]
    await ben.append_message(conversation, "And is breakfast included?")


async def forks(ben: MemoryServiceClient, conversation: str) -> str:
    (*_, last) = [row async for row in ben.messages(conversation)]
    other = CreateUserMessageRequest(content="And how do we get there by tram?")
    fork = await ben.fork_conversation(conversation, last.id, title="By tram", new_message=other)
    assert [row.content async for row in ben.messages(fork.id)][-1] == other.content
    assert [row.content async for row in ben.messages(conversation)][-1] == last.content
    assert [row.fork_id for row in (await ben.list_forks(fork.id)).data] == [conversation, fork.id]
    return fork.id


async def is_summarised(ann: MemoryServiceClient, agent: MemoryServiceClient, conversation: str) -> None:
    (*_, last) = [row async for row in ann.messages(conversation)]
    await agent.create_summary(
        conversation,
        title="Conference in Lisbon",
        summary="Ann and Ben stay at the Hotel Azulejo in May.",
        until_message_id=last.id,
        summarized_at=datetime(2026, 11, 21, tzinfo=UTC),
    )
    assert (await ann.get_conversation(conversation)).title == "Conference in Lisbon"
    assert [row.content async for row in ann.messages(conversation)][-1] == last.content


async def is_searched(ann: MemoryServiceClient, ben: MemoryServiceClient, conversation: str, fork: str) -> None:
    for user in (ann, ben):
        found = await until_found(user, "hotel azulejo", conversation)
        assert found.message.conversation_id in (conversation, fork)
    assert (await until_found(ben, "tram", fork)).message.content == "And how do we get there by tram?"


async def until_found(user: MemoryServiceClient, query: str, conversation: str) -> SearchResult:
    """The best answer once it is indexed, which is background work; the timeout of the test bounds it."""
    while not (found := (await user.search_messages(query, conversation_ids=[conversation])).data):  # noqa: ASYNC110
        await anyio.sleep(0.05)
    return found[0]


async def is_handed_over(ann: MemoryServiceClient, ben: MemoryServiceClient, conversation: str) -> None:
    await ann.transfer_ownership(conversation, "ben")
    (offer,) = (await ben.list_ownership_transfers()).data
    await ben.accept_ownership_transfer(offer.id)
    levels = {row.user_id: row.access_level for row in (await ann.list_memberships(conversation)).data}
    assert levels == {"ben": "owner", "ann": "manager"}


async def is_deleted_and_restored(ann: MemoryServiceClient, ben: MemoryServiceClient, conversation: str) -> None:
    await ann.delete_conversation(conversation)
    for user in (ann, ben):
        assert [row async for row in user.conversations()] == []
    await ben.restore_conversation(conversation)
    assert len([row async for row in ann.conversations()]) == 2
    actions = [entry.action async for entry in ben.audit(conversation)]
    assert len(actions) == len([action for action in actions if action])
    assert len(actions) >= 7
