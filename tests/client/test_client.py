"""The client against the service: every operation, in this process and over a socket."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import anyio
import httpx2
import pytest

from reactor_memory import errors
from reactor_memory.client import MemoryServiceClient
from reactor_memory.features.sharing.bodies import CreateAgentMessageRequest, CreateUserMessageRequest, ToolCallBody
from reactor_memory.models.turns import INTERRUPTED
from reactor_memory.server.openapi import document
from tests.server.processes import ROOT, ServiceProcess, environment, service, token_of
from tests.server.running import RunningService, running_service

pytestmark = pytest.mark.anyio

UNDER_OTHER_NAMES = {
    "stream_response_events": "follow_response",
    "refuse_ownership_transfer": "decline_ownership_transfer",
}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


class Clients:
    """Two users, an agent, and the same agent on behalf of the first user."""

    def __init__(self, ann: MemoryServiceClient, ben: MemoryServiceClient, agent: MemoryServiceClient) -> None:
        self.ann = ann
        self.ben = ben
        self.agent = agent
        self.for_ann = agent.acting_for("ann")


@pytest.fixture(scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningService]:
    async with running_service(f"sqlite:///{tmp_path_factory.mktemp('service')}/log.db") as running:
        yield running


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServiceProcess, str]]:
    """A service on a socket, and a key for it."""
    folder = tmp_path_factory.mktemp("process")
    url = f"sqlite:///{folder}/log.db"
    create = [sys.executable, "-m", "reactor_memory", "keys", "create", "--store", url, "--client", "assistant"]
    grant = ["--agent", "*", "--allow", "read,append,instruct,summarize,respond,on-behalf-of", "--json"]
    with service(url, folder) as process:
        made = subprocess.run([*create, *grant], env=environment(folder), capture_output=True, text=True, check=True)
        found = re.search(r"rm_\w{8}_\w+", made.stdout)
        assert found
        yield process, found[0]


@pytest.fixture(scope="module", params=["in this process", "over a socket"])
async def clients(request: pytest.FixtureRequest, running: RunningService) -> AsyncIterator[Clients]:
    if request.param == "over a socket":
        process, key = request.getfixturevalue("process")
        address = process.address
        tokens, transport = [token_of(name) for name in ("ann", "ben")], None
    else:
        address, key = "http://memory.test", await running.key("assistant")
        tokens, transport = [running.token(name) for name in ("ann", "ben")], httpx2.ASGITransport(running.app)
    async with (
        MemoryServiceClient(address, token=tokens[0], transport=transport) as ann,
        MemoryServiceClient(address, token=tokens[1], transport=transport) as ben,
        MemoryServiceClient(address, api_key=key, transport=transport) as agent,
    ):
        yield Clients(ann, ben, agent)


def in_python(operation_id: str) -> str:
    return re.sub("([A-Z])", lambda match: f"_{match[1].lower()}", operation_id)


def test_every_operation_has_a_method() -> None:
    described = {in_python(one["operationId"]) for item in document()["paths"].values() for one in item.values()}
    missing = {UNDER_OTHER_NAMES.get(name, name) for name in described} - set(dir(MemoryServiceClient))
    assert described
    assert missing == set()


async def test_the_service_tells_how_it_is(clients: Clients) -> None:
    assert (await clients.ann.get_health()).status == "ok"
    assert (await clients.ann.get_readiness()).status == "ready"


async def test_a_user_talks_shares_and_deletes(clients: Clients) -> None:
    ann, ben = clients.ann, clients.ben
    conversation = (await ann.create_conversation(title="Trip", metadata={"k": [1]})).id
    written = [await ann.append_message(conversation, text) for text in ("one", "two", "three")]
    assert [message async for message in ann.messages(conversation, page_size=2)] == written
    fork = await ann.fork_conversation(
        conversation, written[1].id, new_message=CreateUserMessageRequest(content="other")
    )
    assert [message.content async for message in ann.messages(fork.id)] == ["one", "other"]
    assert [message.content async for message in ann.messages(fork.id, inherit=False)] == ["other"]
    assert [row.is_current_fork for row in (await ann.list_forks(fork.id)).data] == [False, True]

    await ann.share_conversation(conversation, "ben", "reader")
    assert (await ann.update_membership(conversation, "ben", "manager")).access_level == "manager"
    assert (await ben.update_conversation(conversation, title="Journey")).title == "Journey"
    assert conversation in [row.id async for row in ben.conversations(query="journey", page_size=1)]
    offer = await ann.transfer_ownership(conversation, "ben")
    assert (await ben.list_ownership_transfers()).data == [offer]
    await ben.decline_ownership_transfer(offer.id)
    await ben.accept_ownership_transfer((await ann.transfer_ownership(conversation, "ben")).id)
    assert {row.user_id: row.access_level for row in (await ann.list_memberships(conversation)).data} == {
        "ben": "owner",
        "ann": "manager",
    }
    await ann.remove_membership(conversation, "ann")
    with pytest.raises(errors.SessionNotFoundError):
        await ann.get_conversation(conversation)

    await ben.delete_conversation(conversation)
    assert (await ben.restore_conversation(conversation)).id == conversation
    assert (await ben.get_conversation(conversation)).access_level == "owner"
    assert [entry.action async for entry in ben.audit(conversation, page_size=3)]


async def test_an_agent_reads_and_writes(clients: Clients) -> None:
    conversation = (await clients.ann.create_conversation()).id
    question = await clients.ann.append_message(conversation, "Which hotel?")
    answer = CreateAgentMessageRequest(role="assistant", content="The one by the river.")
    note = CreateAgentMessageRequest(role="agent", content="likes rivers", visibility="agent")
    (first, _) = (await clients.for_ann.append_agent_messages(conversation, [answer, note])).data
    assert [row.content async for row in clients.agent.agent_messages(conversation, page_size=1)] == [
        "Which hotel?",
        "The one by the river.",
        "likes rivers",
    ]
    assert (await clients.agent.list_agent_messages(conversation, channel="MEMORY")).data[0].content == "likes rivers"
    summary = await clients.agent.create_summary(
        conversation,
        title="Hotel",
        summary="They stay by the river.",
        until_message_id=first.id,
        summarized_at=datetime(2026, 11, 21, tzinfo=UTC),
    )
    assert summary.channel == "SUMMARY"
    context = await clients.agent.get_context(conversation, budget=1000, report=True)
    assert context.messages[-1].content == "likes rivers"
    assert context.tokens <= 1000
    assert context.report
    told = await clients.agent.get_context(conversation, summaries="always")
    assert any("They stay by the river." in message.content for message in told.messages)
    behind = await clients.agent.get_context(conversation, after_message_id=question.id, limit=1)
    assert [message.content for message in behind.messages] == ["The one by the river."]


async def test_an_agent_saves_step_by_step_and_goes_on(clients: Clients) -> None:
    """What is left of an agent that was killed at a call is shown with a result that says so."""
    conversation = (await clients.ann.create_conversation()).id
    await clients.ann.append_message(conversation, "Which hotel?")
    call = ToolCallBody(id="c1", name="look", arguments={})
    step = CreateAgentMessageRequest(role="assistant", content="", tool_calls=[call])
    for _ in range(2):
        await clients.for_ann.append_agent_messages(conversation, [step], idempotency_key="step-1")
    shown = (await clients.agent.get_context(conversation)).messages
    assert [message.role for message in shown] == ["user", "assistant", "tool"]
    assert shown[-1].content == INTERRUPTED
    result = CreateAgentMessageRequest(role="tool", content="by the river", tool_call_id="c1")
    await clients.for_ann.append_agent_messages(conversation, [result], idempotency_key="step-2")
    shown = (await clients.agent.get_context(conversation)).messages
    assert [message.content for message in shown] == ["Which hotel?", "", "by the river"]


async def test_a_key_does_the_deed_once(clients: Clients) -> None:
    conversation = (await clients.ann.create_conversation()).id
    twice = [await clients.ann.append_message(conversation, "hello", idempotency_key="k") for _ in range(2)]
    assert twice[0] == twice[1]
    with pytest.raises(errors.IdempotencyConflictError):
        await clients.ann.append_message(conversation, "something else", idempotency_key="k")
    forks = [await clients.ann.fork_conversation(conversation, twice[0].id, idempotency_key="f") for _ in range(2)]
    assert forks[0] == forks[1]


async def test_refusals_are_errors_of_their_meaning(clients: Clients) -> None:
    ann = clients.ann
    conversation = (await ann.create_conversation()).id
    await ann.append_message(conversation, "hello")
    await ann.share_conversation(conversation, "ben", "reader")
    with pytest.raises(errors.SharingConflictError) as conflict:
        await ann.share_conversation(conversation, "ben", "reader")
    assert conflict.value.reason == "already_member"
    with pytest.raises(errors.PageTokenError):
        await ann.list_messages(conversation, after="forged")
    with pytest.raises(errors.InvalidInputError) as invalid:
        await ann.append_message(conversation, "x", metadata={"reactor_memory.x": 1})
    assert "metadata" in invalid.value.field
    with pytest.raises(errors.ServiceError) as forbidden:
        await clients.ben.append_message(conversation, "hi")
    assert (forbidden.value.code, forbidden.value.status) == ("forbidden", 403)
    with pytest.raises(errors.ServiceError) as nobody:
        await ann.get_context(conversation)
    assert nobody.value.code == "forbidden"


async def test_names_in_any_script_go_over_the_wire(clients: Clients) -> None:
    user = "Jürgen Ω 👋"
    for_him = clients.agent.acting_for(user)
    conversation = (await for_him.create_conversation(title="Grüße 👋")).id
    for member in ("a b%2F?#é", "spiffe://corp/ns/bob"):
        await for_him.share_conversation(conversation, member, "reader")
        assert (await for_him.get_conversation(conversation)).owner_user_id == user
        await for_him.remove_membership(conversation, member)
    assert [row.user_id for row in (await for_him.list_memberships(conversation)).data] == [user]


async def test_a_response_is_followed_while_it_is_written(process: tuple[ServiceProcess, str]) -> None:
    running, key = process
    async with (
        MemoryServiceClient(running.address, token=token_of("ann")) as ann,
        MemoryServiceClient(running.address, api_key=key) as agent,
    ):
        conversation = (await ann.create_conversation()).id
        async with agent.write_response(conversation, producer="assistant") as writer:
            response = writer.response.id
            assert [row.id for row in (await ann.list_running_responses([conversation])).data] == [response]
            following = ann.follow_response(conversation, response)
            pieces = aiter(following)
            await writer.write("The hotel ")
            assert (await anext(pieces)).text == "The hotel "
            await writer.write("by the river.")
        rest = [piece.text async for piece in pieces]
        assert "".join(rest) == "by the river."
        assert following.response is not None
        assert following.response.state == "completed"
        again = ann.follow_response(conversation, response, after=1)
        assert "".join([piece.text async for piece in again]) == "by the river."
        assert [row.id for row in (await ann.list_responses(conversation)).data] == [response]


async def test_the_agent_of_the_examples_answers(process: tuple[ServiceProcess, str], tmp_path: Path) -> None:
    running, key = process
    async with MemoryServiceClient(running.address, token=token_of("ann")) as ann:
        conversation = (await ann.create_conversation()).id
        await ann.append_message(conversation, "Good morning")
        command = [sys.executable, str(ROOT / "examples" / "service_agent.py"), running.address, key, conversation]
        done = await anyio.run_process(command, env=environment(tmp_path), check=True)
        assert done.stdout.decode().split() == ["You", "said:", "Good", "morning"]
        (_, answer) = (await ann.list_messages(conversation)).data
        (response,) = (await ann.list_responses(conversation)).data
        assert (response.state, response.message_id) == ("completed", answer.id)


async def test_a_wish_to_stop_reaches_the_writer(process: tuple[ServiceProcess, str]) -> None:
    running, key = process
    async with (
        MemoryServiceClient(running.address, token=token_of("ann")) as ann,
        MemoryServiceClient(running.address, api_key=key) as agent,
    ):
        conversation = (await ann.create_conversation()).id
        async with agent.write_response(conversation) as writer:
            await ann.stop_response(conversation, writer.response.id)
            while await writer.write("more "):  # noqa: ASYNC110 - another process tells it
                await anyio.sleep(0.01)
        assert (await ann.get_response(conversation, writer.response.id)).state == "stopped"


async def test_the_newer_writer_supersedes_the_older_one(process: tuple[ServiceProcess, str]) -> None:
    running, key = process
    async with (
        MemoryServiceClient(running.address, token=token_of("ann")) as ann,
        MemoryServiceClient(running.address, api_key=key) as agent,
    ):
        conversation = (await ann.create_conversation()).id

        async def older() -> None:
            async with agent.write_response(conversation) as writer:
                await agent.start_response(conversation)
                while await writer.write("more "):  # noqa: ASYNC110 - another process tells it
                    await anyio.sleep(0.01)

        with pytest.raises(errors.ServiceError) as caught:
            await older()
        assert caught.value.code == "superseded"
