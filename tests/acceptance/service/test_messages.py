"""What users and agents write, and who sees it."""

from __future__ import annotations

import pytest

from tests.acceptance.service.people import Agent, User, answer_of_agent, note_of_agent

pytestmark = pytest.mark.anyio

LONG = "Could you   please\nfind out when the next train to Lisbon leaves?"


def messages_of(conversation_id: str) -> str:
    return f"/v1/user/conversations/{conversation_id}/messages"


async def test_a_new_conversation_has_none(alice: User) -> None:
    answer = await alice.get(messages_of((await alice.begins())["id"]))
    assert (answer.status, answer.body) == (200, {"data": [], "nextCursor": None})


async def test_messages_come_in_the_order_of_their_appending(alice: User) -> None:
    conversation = (await alice.begins())["id"]
    written = await alice.says(conversation, "one", "two")
    answer = await alice.get(messages_of(conversation))
    assert answer.data == written
    assert [message["content"] for message in written] == ["one", "two"]
    for message in written:
        assert (message["role"], message["visibility"], message["channel"]) == ("user", "user", "HISTORY")
        assert (message["userId"], message["conversationId"]) == (alice.name, conversation)


async def test_messages_come_in_pages(alice: User) -> None:
    conversation = (await alice.begins())["id"]
    await alice.says(conversation, "1", "2", "3", "4", "5")
    seen, after = [], None
    for length in (2, 2, 1):
        page = await alice.get(messages_of(conversation), limit=2, **({"after": after} if after else {}))
        assert len(page.data) == length
        seen += [message["content"] for message in page.data]
        after = page.body["nextCursor"]
    assert (seen, after) == (["1", "2", "3", "4", "5"], None)


async def test_the_time_never_goes_back_and_the_number_always_grows(alice: User) -> None:
    written = await alice.says((await alice.begins())["id"], *"abcdef")
    assert [message["seq"] for message in written] == [1, 2, 3, 4, 5, 6]
    times = [message["createdAt"] for message in written]
    assert times == sorted(times)


async def test_what_an_agent_keeps_for_itself_is_memory(alice: User, agent: Agent) -> None:
    conversation = (await alice.begins())["id"]
    (message,) = await agent.adds(conversation, {**note_of_agent("likes trains"), "metadata": {"mood": "good"}})
    assert (message["channel"], message["content"], message["userId"]) == ("MEMORY", "likes trains", None)
    assert message["metadata"] == {"mood": "good"}


async def test_an_agent_sees_more_than_a_user(alice: User, agent: Agent) -> None:
    conversation = (await alice.begins())["id"]
    await alice.says(conversation, "hello")
    await agent.adds(conversation, note_of_agent("is polite"), answer_of_agent("Hello!"))
    assert await alice.sees(conversation) == ["hello", "Hello!"]
    assert await agent.lists(conversation) == ["hello", "is polite", "Hello!"]
    assert await agent.lists(conversation, channel="MEMORY") == ["is polite"]
    assert await agent.lists(conversation, channel="HISTORY") == ["hello", "Hello!"]


async def test_agents_do_not_see_what_others_keep_for_themselves(alice: User, agent: Agent, other_agent: Agent) -> None:
    conversation = (await alice.begins())["id"]
    await agent.adds(conversation, note_of_agent("of the first"))
    await other_agent.adds(conversation, note_of_agent("of the second"))
    assert await agent.lists(conversation, channel="MEMORY") == ["of the first"]
    assert await other_agent.lists(conversation) == ["of the second"]


async def test_a_conversation_is_called_after_what_its_user_said_first(alice: User, agent: Agent) -> None:
    conversation = (await alice.begins())["id"]
    await agent.adds(conversation, answer_of_agent("How can I help?"))
    await alice.says(conversation, LONG, "Or a bus?")
    shown = (await alice.get(f"/v1/user/conversations/{conversation}")).body
    assert shown["title"] == " ".join(LONG.split())[:40].rstrip()
    assert shown["lastMessagePreview"] == "Or a bus?"


async def test_messages_are_for_members(alice: User, bob: User) -> None:
    conversation = (await alice.begins())["id"]
    for path in (messages_of(conversation), messages_of("no such id"), messages_of("%00")):
        assert (await bob.get(path)).status == 404
        assert (await bob.post(path, {"content": "let me in"})).status == 404
    assert await alice.sees(conversation) == []


async def test_no_message_has_an_id_that_no_database_keeps(alice: User, agent: Agent) -> None:
    conversation = (await alice.begins())["id"]
    (only,) = await alice.says(conversation, "hello")
    behind = await agent.get(f"/v1/agent/conversations/{conversation}/context", afterMessageId="\0")
    before = await alice.post("/v1/user/search/messages", {"query": "hello", "before": "\0"})
    forked = await alice.post(f"/v1/user/conversations/{conversation}/messages/{only['id']}%00/fork", {})
    assert (behind.status, before.status, forked.status) == (400, 422, 404)


async def test_a_message_answers_one_that_its_writer_sees(alice: User, agent: Agent, other_agent: Agent) -> None:
    conversation, other = (await alice.begins())["id"], (await alice.begins())["id"]
    (first,), (foreign,) = await alice.says(conversation, "hello"), await alice.says(other, "elsewhere")
    (note,) = await agent.adds(conversation, note_of_agent("is polite"))
    said, written = messages_of(conversation), f"/v1/agent/conversations/{conversation}/messages"
    fork = f"{said}/{first['id']}/fork"
    for parent in ("absent", foreign["id"], note["id"]):
        body = {"content": "hi", "parentMessageId": parent}
        refused = [
            await alice.post(said, body),
            await other_agent.post(written, {"messages": [{"role": "assistant", **body}]}),
            await alice.post(fork, {"newMessage": body}),
        ]
        assert [(each.status, each.code) for each in refused] == [(422, "invalid")] * 3
        assert all("parentMessageId" in str(each.body["errors"]) for each in refused)
    assert (await alice.post(fork, {"newMessage": {"content": "hi", "parentMessageId": first["id"]}})).status == 422
    assert await alice.sees(conversation) == ["hello"]
    (answered,) = await agent.adds(conversation, {**answer_of_agent("Hi!"), "parentMessageId": note["id"]})
    assert answered["parentMessageId"] == note["id"]
    replied = await alice.post(said, {"content": "bye", "parentMessageId": answered["id"]})
    assert (replied.status, replied.body["parentMessageId"]) == (201, answered["id"])


async def test_a_context_has_whole_messages_and_their_parts(alice: User, agent: Agent) -> None:
    conversation = (await alice.begins())["id"]
    (first,) = await alice.says(conversation, "My order number is A-1042.")
    (kept,) = await agent.adds(conversation, {**note_of_agent("is polite"), "metadata": {"mood": "good"}})
    path = f"/v1/agent/conversations/{conversation}/context"
    shown = (await agent.get(path)).body["messages"]
    assert shown == [{**each, "part": "window"} for each in (first, kept)]
    assert (await agent.get(path, afterMessageId=first["id"])).body["messages"] == [{**kept, "part": "window"}]
    await alice.says(conversation, *(f"Tell me about river {number}, please." for number in range(30)))
    (answer,) = (await agent.adds(conversation, answer_of_agent("Later.")))[-1:]
    await agent.post(
        f"/v1/agent/conversations/{conversation}/summaries",
        {"title": "t", "summary": "They met.", "untilMessageId": first["id"], "summarizedAt": "2026-01-01T00:00:00Z"},
    )
    shown = (await agent.get(path, limit=2)).body["messages"]
    assert len(shown) == 2
    assert shown[-1] == {**answer, "part": "window"}
    memory = shown[0]
    assert (memory["id"], memory["conversationId"], memory["visibility"]) == (None, conversation, "agent")
    assert (memory["part"], memory["channel"]) in {("facts", "MEMORY"), ("narrative", "SUMMARY")}


async def test_a_result_of_a_tool_needs_no_call(alice: User, agent: Agent) -> None:
    conversation = (await alice.begins())["id"]
    await alice.says(conversation, "How long is the river?")
    (result,) = await agent.adds(conversation, {"role": "tool", "content": "7 km"})
    assert (result["role"], "toolCallId" in result) == ("tool", False)
    shown = (await agent.get(f"/v1/agent/conversations/{conversation}/context")).body["messages"]
    assert [(each["role"], each["content"]) for each in shown[1:]] == [("tool", "7 km")]
