"""Going on from an earlier message."""

from __future__ import annotations

import pytest

from tests.acceptance.service.people import Agent, User, answer_of_agent, fork_path

pytestmark = pytest.mark.anyio

UNKNOWN = "0190a000-0000-7000-8000-000000000000"


async def talk(user: User, *texts: str) -> tuple[str, list[str]]:
    """A conversation with these messages, and their ids."""
    conversation = (await user.begins("Plans"))["id"]
    return conversation, [message["id"] for message in await user.says(conversation, *texts)]


async def test_a_fork_shares_what_stands_before_its_message(alice: User) -> None:
    base, (first, second, _) = await talk(alice, "one", "two", "three")
    fork = await alice.forks(base, second, title="Plan B")
    assert (fork["title"], fork["ownerUserId"], fork["accessLevel"]) == ("Plan B", alice.name, "owner")
    assert (fork["forkedAtConversationId"], fork["forkedAtMessageId"]) == (base, first)
    assert await alice.sees(fork["id"]) == ["one"]


async def test_a_fork_at_the_first_message_shares_nothing(alice: User) -> None:
    base, (first, *_) = await talk(alice, "one", "two", "three")
    fork = (await alice.forks(base, first))["id"]
    shown = (await alice.get(f"/v1/user/conversations/{fork}")).body
    assert (shown["forkedAtConversationId"], shown["forkedAtMessageId"]) == (base, None)
    assert await alice.sees(fork) == []


async def test_all_forks_of_a_conversation_are_listed(alice: User) -> None:
    base, (first, second, _) = await talk(alice, "one", "two", "three")
    forks = [(await alice.forks(base, second))["id"] for _ in range(2)]
    rows = (await alice.get(f"/v1/user/conversations/{forks[0]}/forks")).data
    assert [row["forkId"] for row in rows] == [row["conversationId"] for row in rows] == [base, *forks]
    assert [row["isCurrentFork"] for row in rows] == [False, True, False]
    assert (rows[0]["forkedFromConversationId"], rows[0]["forkedFromMessageId"]) == (None, None)
    for row in rows[1:]:
        assert (row["forkedFromConversationId"], row["forkedFromMessageId"]) == (base, first)


async def test_what_is_not_there_cannot_be_forked(alice: User, bob: User) -> None:
    base, (first, *_) = await talk(bob, "one")
    mine, _ = await talk(alice, "one")
    for path in (fork_path(UNKNOWN, first), fork_path(mine, UNKNOWN), fork_path(mine, first), fork_path(base, first)):
        assert (await alice.post(path, {})).status == 404
    for conversation in (UNKNOWN, base):
        assert (await alice.get(f"/v1/user/conversations/{conversation}/forks")).status == 404


async def test_only_what_a_user_said_can_be_forked(alice: User, agent: Agent) -> None:
    base, _ = await talk(alice, "one")
    (answer,) = await agent.adds(base, answer_of_agent("two"))
    refused = await alice.post(fork_path(base, answer["id"]), {})
    assert (refused.status, refused.code) == (422, "invalid")


async def test_messages_of_fork_alone_are_what_was_said_in_it(alice: User) -> None:
    base, (_, second, _) = await talk(alice, "one", "two", "three")
    fork = (await alice.forks(base, second))["id"]
    assert await alice.sees(fork, inherit=False) == []
    await alice.says(fork, "two, but better")
    assert await alice.sees(fork, inherit=False) == ["two, but better"]


async def test_no_branch_shows_what_another_one_says(alice: User) -> None:
    base, (_, second, _) = await talk(alice, "one", "two", "three")
    left = (await alice.forks(base, second, newMessage={"content": "left"}))["id"]
    right = (await alice.forks(base, second, newMessage={"content": "right"}))["id"]
    await alice.says(base, "four")
    await alice.says(left, "far left")
    assert await alice.sees(base) == ["one", "two", "three", "four"]
    assert await alice.sees(left) == ["one", "left", "far left"]
    assert await alice.sees(right) == ["one", "right"]


async def test_a_fork_begins_with_the_message_it_was_made_for(alice: User) -> None:
    base, (_, second) = await talk(alice, "one", "two")
    fork = (await alice.forks(base, second, newMessage={"content": "other", "metadata": {"k": 1}}))["id"]
    *_, last = (await alice.get(f"/v1/user/conversations/{fork}/messages")).data
    assert (last["content"], last["metadata"], last["seq"], last["conversationId"]) == ("other", {"k": 1}, 2, fork)


async def test_a_fork_of_a_fork_reads_as_one_conversation(alice: User) -> None:
    base, (_, second, _) = await talk(alice, "one", "two", "three")
    fork = (await alice.forks(base, second))["id"]
    _, also = await alice.says(fork, "deux", "trois")
    below = (await alice.forks(fork, also["id"]))["id"]
    await alice.says(below, "drei")
    seen, after = [], {}
    while after is not None:
        page = await alice.get(f"/v1/user/conversations/{below}/messages", limit=1, **after)
        seen += [(message["seq"], message["content"]) for message in page.data]
        after = {"after": page.body["nextCursor"]} if page.body["nextCursor"] else None
    assert seen == [(1, "one"), (2, "deux"), (3, "drei")]


async def test_an_inherited_message_can_be_forked_too(alice: User) -> None:
    base, (first, second) = await talk(alice, "one", "two")
    fork = (await alice.forks(base, second, newMessage={"content": "deux"}))["id"]
    again = await alice.forks(fork, first)
    assert (again["forkedAtMessageId"], await alice.sees(again["id"])) == (None, [])


async def test_members_of_a_conversation_are_members_of_its_forks(alice: User, bob: User) -> None:
    base, (first, _) = await talk(alice, "one", "two")
    fork = (await alice.forks(base, first))["id"]
    await alice.shares(fork, bob.name, "writer")
    of_base, of_fork = [
        [
            (row["userId"], row["accessLevel"])
            for row in (await bob.get(f"/v1/user/conversations/{one}/memberships")).data
        ]
        for one in (base, fork)
    ]
    assert of_base == of_fork == [(alice.name, "owner"), (bob.name, "writer")]
    theirs = await bob.forks(base, first)
    assert (theirs["ownerUserId"], theirs["accessLevel"]) == (alice.name, "writer")
