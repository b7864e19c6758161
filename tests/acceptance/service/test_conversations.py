"""Beginning, finding and deleting conversations, as users do it."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.acceptance.service.people import User

pytestmark = pytest.mark.anyio

CONVERSATIONS = "/v1/user/conversations"
FIELDS = {
    "id", "title", "ownerUserId", "createdAt", "updatedAt", "lastMessagePreview", "accessLevel", "metadata",
    "agentName", "forkedAtConversationId", "forkedAtMessageId", "vectorizedAt", "conversationGroupId",
}  # fmt: skip
UNKNOWN = "0190a000-0000-7000-8000-000000000000"


@pytest.mark.parametrize("metadata", [{}, {"project": "apollo", "tags": ["a", 1, None]}])
async def test_a_new_conversation_belongs_to_its_user(alice: User, metadata: dict[str, object]) -> None:
    answer = await alice.post(CONVERSATIONS, {"title": "Plans", "metadata": metadata})
    assert answer.status == 201
    assert (answer.body["title"], answer.body["metadata"]) == ("Plans", metadata)
    assert (answer.body["ownerUserId"], answer.body["accessLevel"]) == (alice.name, "owner")
    assert answer.body["createdAt"] == answer.body["updatedAt"]
    assert datetime.fromisoformat(answer.body["createdAt"]).tzinfo is not None
    assert answer.body["lastMessagePreview"] is None


async def test_a_conversation_has_these_fields(alice: User) -> None:
    conversation = await alice.begins("Plans")
    answer = await alice.get(f"{CONVERSATIONS}/{conversation['id']}")
    assert (answer.status, answer.body) == (200, conversation)
    assert set(answer.body) == FIELDS


async def test_a_list_has_all_of_them(newcomer: User) -> None:
    begun = [(await newcomer.begins(title))["id"] for title in ("one", "two")]
    answer = await newcomer.get(CONVERSATIONS)
    assert [row["id"] for row in answer.data] == begun[::-1]
    assert answer.body["nextCursor"] is None


async def test_a_list_comes_in_pages(newcomer: User) -> None:
    begun = [(await newcomer.begins(title))["id"] for title in ("one", "two", "three")]
    first = await newcomer.get(CONVERSATIONS, limit=2)
    rest = await newcomer.get(CONVERSATIONS, limit=2, after=first.body["nextCursor"])
    assert [row["id"] for row in first.data + rest.data] == begun[::-1]
    assert (len(first.data), rest.body["nextCursor"]) == (2, None)


async def test_a_list_is_searched_by_title_and_metadata(newcomer: User) -> None:
    alpha = await newcomer.begins("Project Alpha")
    beta = await newcomer.begins("Beta", metadata={"parent": "ALPHA centauri"})
    await newcomer.begins("Gamma")
    answer = await newcomer.get(CONVERSATIONS, query="alpha")
    assert {row["id"] for row in answer.data} == {alpha["id"], beta["id"]}


async def test_who_is_no_member_finds_nothing(alice: User, bob: User) -> None:
    conversation = await bob.begins("Private")
    theirs = await alice.get(f"{CONVERSATIONS}/{conversation['id']}")
    unknown = await alice.get(f"{CONVERSATIONS}/{UNKNOWN}")
    assert (theirs.status, theirs.code, unknown.status, unknown.code) == (404, "not_found", 404, "not_found")
    assert {**theirs.body, "requestId": ""} == {**unknown.body, "requestId": ""}


async def test_what_is_deleted_is_gone(alice: User) -> None:
    conversation = await alice.begins("Plans")
    path = f"{CONVERSATIONS}/{conversation['id']}"
    assert (await alice.delete(path)).status == 204
    assert (await alice.get(path)).status == 404
    assert (await alice.get(f"{path}/messages")).status == 404
    assert (await alice.delete(path)).status == 404


async def test_nobody_deletes_what_is_none_of_theirs(alice: User, bob: User) -> None:
    conversation = await bob.begins("Private")
    path = f"{CONVERSATIONS}/{conversation['id']}"
    assert (await alice.delete(path)).status == 404
    assert (await alice.delete(f"{CONVERSATIONS}/{UNKNOWN}")).status == 404
    assert (await bob.get(path)).status == 200


async def test_root_goes_with_its_forks_and_fork_with_its_branch(alice: User) -> None:
    root = (await alice.begins("Plans"))["id"]
    (first,) = await alice.says(root, "hello")
    fork = (await alice.forks(root, first["id"], newMessage={"content": "hi"}))["id"]
    (own,) = (await alice.get(f"{CONVERSATIONS}/{fork}/messages")).data
    below = (await alice.forks(fork, own["id"]))["id"]
    other = (await alice.forks(root, first["id"]))["id"]

    assert (await alice.delete(f"{CONVERSATIONS}/{fork}")).status == 204
    assert [(await alice.get(f"{CONVERSATIONS}/{one}")).status for one in (root, fork, below, other)] == [
        200, 404, 404, 200,
    ]  # fmt: skip
    assert (await alice.delete(f"{CONVERSATIONS}/{root}")).status == 204
    assert [(await alice.get(f"{CONVERSATIONS}/{one}")).status for one in (root, other)] == [404, 404]


async def test_members_and_messages_stay_until_the_time_to_restore_ends(alice: User, bob: User) -> None:
    conversation = (await alice.begins("Plans"))["id"]
    path = f"{CONVERSATIONS}/{conversation}"
    await alice.says(conversation, "hello")
    await alice.shares(conversation, bob.name, "reader")
    await alice.delete(path)
    assert (await bob.get(path)).status == 404
    assert (await bob.post(f"{path}/restore")).status == 404
    assert (await alice.post(f"{path}/restore")).status == 200
    assert await bob.sees(conversation) == ["hello"]


async def test_the_list_shows_roots_or_the_newest_branch_of_each(newcomer: User) -> None:
    other = (await newcomer.begins("Other"))["id"]
    root = (await newcomer.begins("Plans"))["id"]
    _, second = await newcomer.says(root, "one", "two")
    older = (await newcomer.forks(root, second["id"]))["id"]
    newest = (await newcomer.forks(root, second["id"]))["id"]
    await newcomer.says(newest, "two, but better")
    listed = {
        mode: [row["id"] for row in (await newcomer.get(CONVERSATIONS, mode=mode)).data]
        for mode in ("all", "roots", "latest-fork")
    }
    assert set(listed["all"]) == {other, root, older, newest}
    assert set(listed["roots"]) == {other, root}
    assert listed["latest-fork"] == [newest, other]
    refused = await newcomer.get(CONVERSATIONS, mode="newest")
    assert refused.status == 400
    assert "must be one of all, latest-fork, roots" in refused.body["detail"]
