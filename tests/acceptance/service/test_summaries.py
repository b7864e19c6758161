"""What an agent tells of a conversation in its own words, and what is found again."""

from __future__ import annotations

import anyio
import pytest

from tests.acceptance.service.people import Agent, Answer, User, answer_of_agent, note_of_agent

pytestmark = pytest.mark.anyio

SUMMARY = "They asked about the refund policy for a returned item."


async def posts(caller: User | Agent, conversation_id: str, until: str, **fields: object) -> Answer:
    body = {"title": "Refund", "summary": SUMMARY, "untilMessageId": until, "summarizedAt": "2026-11-21T10:00:00Z"}
    return await caller.post(f"/v1/agent/conversations/{conversation_id}/summaries", {**body, **fields})


async def finds(user: User, query: str, **fields: object) -> list[str]:
    answer = await user.post("/v1/user/search/messages", {"query": query, **fields})
    return [hit["message"]["content"] for hit in answer.data]


async def until_found(user: User, query: str, **fields: object) -> list[str]:
    """What is found once it is indexed, which is background work; the timeout of the test bounds it."""
    while not (found := await finds(user, query, **fields)):  # noqa: ASYNC110 - the index tells nobody
        await anyio.sleep(0.02)
    return found


async def talk(user: User, *texts: str) -> tuple[str, list[str]]:
    conversation = (await user.begins("Shop"))["id"]
    return conversation, [message["id"] for message in await user.says(conversation, *texts)]


async def test_a_summary_is_a_message_that_users_do_not_see(alice: User, agent: Agent) -> None:
    conversation, (only,) = await talk(alice, "I want to return an item")
    answer = await posts(agent, conversation, only)
    assert (answer.status, answer.body["channel"], answer.body["userId"]) == (201, "SUMMARY", None)
    assert (answer.body["content"], answer.body["conversationId"]) == (SUMMARY, conversation)
    assert await alice.sees(conversation) == ["I want to return an item"]
    assert await agent.lists(conversation, channel="SUMMARY") == [SUMMARY]


async def test_a_summary_gives_the_conversation_its_title(alice: User, agent: Agent) -> None:
    conversation, (only,) = await talk(alice, "I want to return an item")
    await posts(agent, conversation, only, title="  Refund\nof an item ")
    assert (await alice.get(f"/v1/user/conversations/{conversation}")).body["title"] == "Refund of an item"


async def test_context_tells_a_summary_in_place_of_what_it_covers(alice: User, agent: Agent) -> None:
    conversation, ids = await talk(alice, *(f"{number}. {'and so on ' * 10}" for number in range(1, 31)))
    await posts(agent, conversation, ids[19])
    shown = (await agent.get(f"/v1/agent/conversations/{conversation}/context", budget=300)).body
    assert any(SUMMARY in message["content"] for message in shown["messages"])


async def test_a_short_context_says_a_summary_when_asked(alice: User, agent: Agent) -> None:
    conversation, (only,) = await talk(alice, "I want to return an item")
    await posts(agent, conversation, only)
    path = f"/v1/agent/conversations/{conversation}/context"
    assert SUMMARY not in str((await agent.get(path)).body)
    shown = (await agent.get(path, summaries="always")).body
    assert [SUMMARY in message["content"] for message in shown["messages"]] == [True, False]
    refused = await agent.get(path, summaries="never")
    assert refused.status == 400
    assert "auto" in str(refused.body)


async def test_users_post_no_summaries(alice: User) -> None:
    conversation, (only,) = await talk(alice, "I want to return an item")
    answer = await posts(alice, conversation, only)
    assert (answer.status, answer.code) == (403, "forbidden")


@pytest.mark.parametrize("field", ["title", "summary", "untilMessageId", "summarizedAt"])
async def test_a_summary_is_complete(alice: User, agent: Agent, field: str) -> None:
    conversation, (only,) = await talk(alice, "I want to return an item")
    answer = await posts(agent, conversation, only, **{field: ""})
    assert (answer.status, answer.body["errors"][0]["field"]) == (422, field)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("summary", "\0"),
        ("summary", " \u200b"),
        ("untilMessageId", "\0"),
        ("summarizedAt", "0001-01-01T00:00:00+14:00"),
        ("summarizedAt", "9999-12-31T23:59:59-12:00"),
    ],
)
async def test_what_no_summary_can_say(alice: User, agent: Agent, field: str, value: str) -> None:
    conversation, (only,) = await talk(alice, "I want to return an item")
    answer = await posts(agent, conversation, only, **{field: value})
    assert (answer.status, answer.body["errors"][0]["field"]) == (422, field)


async def test_a_summary_ends_at_a_message_of_its_conversation(alice: User, agent: Agent) -> None:
    conversation, _ = await talk(alice, "I want to return an item")
    _, (other,) = await talk(alice, "something else")
    assert (await posts(agent, conversation, other)).status == 422


async def test_a_user_finds_what_was_said(newcomer: User, agent: Agent) -> None:
    conversation, (only,) = await talk(newcomer, "I wants to return an item")
    await agent.adds(conversation, answer_of_agent("Our refund policy: 30 days."))
    await posts(agent, conversation, only)
    assert "Our refund policy: 30 days." in await until_found(newcomer, "refund policy")
    assert await until_found(newcomer, "return item", topK=10)


async def test_a_search_stays_in_the_conversations_that_are_named(newcomer: User) -> None:
    one, _ = await talk(newcomer, "alpha one")
    await talk(newcomer, "alpha two")
    assert await until_found(newcomer, "alpha", conversationIds=[one], searchType="keyword") == ["alpha one"]


async def test_what_begins_a_fork_is_found(newcomer: User) -> None:
    conversation, ids = await talk(newcomer, "by train", "by plane")
    fork = await newcomer.forks(conversation, ids[1], newMessage={"content": "by omnibus"})
    await until_found(newcomer, "omnibus", conversationIds=[fork["id"]])


async def test_nobody_finds_what_is_none_of_theirs(alice: User, bob: User, agent: Agent) -> None:
    conversation, _ = await talk(bob, "zanzibar is my password")
    await agent.adds(conversation, note_of_agent("zanzibar is kept for me"))
    assert await until_found(bob, "zanzibar") == ["zanzibar is my password"]
    assert await finds(alice, "zanzibar") == []
    assert await finds(alice, "zanzibar", conversationIds=[conversation]) == []
