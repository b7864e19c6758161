"""Members, and who owns a conversation."""

from __future__ import annotations

import pytest

from tests.acceptance.service.people import Answer, User

pytestmark = pytest.mark.anyio

UNKNOWN = "0190a000-0000-7000-8000-000000000000"
TRANSFERS = "/v1/user/ownership-transfers"


def memberships(conversation_id: str, user_id: str = "") -> str:
    return f"/v1/user/conversations/{conversation_id}/memberships" + (f"/{user_id}" if user_id else "")


async def members(user: User, conversation_id: str) -> dict[str, str]:
    rows = (await user.get(memberships(conversation_id))).data
    return {row["userId"]: row["accessLevel"] for row in rows}


async def offers(user: User, conversation_id: str, to: str) -> Answer:
    path = f"/v1/user/conversations/{conversation_id}/transfer-ownership"
    return await user.post(path, {"newOwnerUserId": to})


async def of_conversation(user: User, conversation_id: str) -> list[tuple[str, str]]:
    rows = (await user.get(TRANSFERS)).data
    return [(row["fromUserId"], row["toUserId"]) for row in rows if row["conversationId"] == conversation_id]


@pytest.mark.parametrize("level", ["writer", "reader", "manager"])
async def test_a_conversation_is_shared_at_a_level(alice: User, bob: User, level: str) -> None:
    conversation = (await alice.begins())["id"]
    member = await alice.shares(conversation, bob.name, level)
    assert (member["conversationId"], member["userId"], member["accessLevel"]) == (conversation, bob.name, level)
    assert member["createdAt"]
    assert (await bob.get(f"/v1/user/conversations/{conversation}")).body["accessLevel"] == level
    assert await members(alice, conversation) == {alice.name: "owner", bob.name: level}


async def test_a_member_gets_another_level(alice: User, bob: User) -> None:
    conversation = (await alice.begins())["id"]
    await alice.shares(conversation, bob.name, "reader")
    assert (await bob.post(f"/v1/user/conversations/{conversation}/messages", {"content": "hi"})).status == 403
    changed = await alice.patch(memberships(conversation, bob.name), {"accessLevel": "writer"})
    assert (changed.status, changed.body["accessLevel"]) == (200, "writer")
    await bob.says(conversation, "hi")


async def test_a_member_is_removed(alice: User, bob: User) -> None:
    conversation = (await alice.begins())["id"]
    await alice.shares(conversation, bob.name, "writer")
    assert (await alice.delete(memberships(conversation, bob.name))).status == 204
    assert await members(alice, conversation) == {alice.name: "owner"}
    assert (await bob.get(f"/v1/user/conversations/{conversation}")).status == 404


async def test_only_who_sees_a_conversation_can_share_it(alice: User, bob: User, carol: User) -> None:
    theirs = (await bob.begins())["id"]
    for conversation in (theirs, UNKNOWN):
        answer = await alice.post(memberships(conversation), {"userId": carol.name, "accessLevel": "reader"})
        assert answer.status == 404


async def test_a_reader_sees_the_members(alice: User, bob: User) -> None:
    conversation = (await alice.begins())["id"]
    await alice.shares(conversation, bob.name, "reader")
    assert await members(bob, conversation) == {alice.name: "owner", bob.name: "reader"}


async def test_a_writer_does_not_manage(alice: User, bob: User, carol: User) -> None:
    conversation = (await alice.begins())["id"]
    await alice.shares(conversation, bob.name, "writer")
    await alice.shares(conversation, carol.name, "reader")
    refused = [
        await bob.patch(memberships(conversation, carol.name), {"accessLevel": "writer"}),
        await bob.delete(memberships(conversation, carol.name)),
        await bob.post(memberships(conversation), {"userId": "dave", "accessLevel": "reader"}),
        await bob.delete(f"/v1/user/conversations/{conversation}"),
    ]
    assert [(answer.status, answer.code) for answer in refused] == [(403, "forbidden")] * 4
    assert (await bob.delete(memberships(conversation, bob.name))).status == 204


async def test_nobody_is_made_owner_by_sharing(alice: User, bob: User, carol: User) -> None:
    conversation = (await alice.begins())["id"]
    await alice.shares(conversation, bob.name, "manager")
    asked = [
        await bob.post(memberships(conversation), {"userId": carol.name, "accessLevel": "owner"}),
        await bob.patch(memberships(conversation, bob.name), {"accessLevel": "owner"}),
    ]
    assert [answer.status for answer in asked] == [422, 422]
    assert await members(alice, conversation) == {alice.name: "owner", bob.name: "manager"}


async def test_the_owner_neither_leaves_nor_is_removed(alice: User, bob: User) -> None:
    conversation = (await alice.begins())["id"]
    await alice.shares(conversation, bob.name, "manager")
    leaving = await alice.delete(memberships(conversation, alice.name))
    removed = await bob.delete(memberships(conversation, alice.name))
    assert [(answer.status, answer.code) for answer in (leaving, removed)] == [(409, "sole_owner"), (403, "forbidden")]
    assert (await members(bob, conversation))[alice.name] == "owner"


async def test_nobody_is_added_twice(alice: User, bob: User) -> None:
    conversation = (await alice.begins())["id"]
    await alice.shares(conversation, bob.name, "reader")
    again = await alice.post(memberships(conversation), {"userId": bob.name, "accessLevel": "writer"})
    assert (again.status, again.code) == (409, "already_member")


async def test_ownership_is_offered_to_a_member(alice: User, bob: User) -> None:
    conversation = (await alice.begins())["id"]
    await alice.shares(conversation, bob.name, "reader")
    assert (await offers(alice, conversation, bob.name)).status == 202
    assert await of_conversation(bob, conversation) == [(alice.name, bob.name)]
    again = await offers(alice, conversation, bob.name)
    assert (again.status, again.code) == (409, "transfer_pending")


async def test_only_the_owner_offers_ownership(alice: User, bob: User, carol: User) -> None:
    conversation = (await alice.begins())["id"]
    assert (await offers(bob, conversation, carol.name)).status == 404
    assert (await offers(alice, UNKNOWN, bob.name)).status == 404
    await alice.shares(conversation, bob.name, "manager")
    assert (await offers(bob, conversation, carol.name)).status == 403
    assert await of_conversation(alice, conversation) == []


async def test_access_is_checked_before_what_is_asked(alice: User, bob: User, carol: User) -> None:
    conversation = (await alice.begins())["id"]
    path = f"/v1/user/conversations/{conversation}/memberships"
    unusable = {"userId": "a\u0085b", "accessLevel": "reader"}
    for name in (bob.name, unusable["userId"]):
        assert (await offers(bob, conversation, name)).status == 404
    assert (await bob.post(path, unusable)).status == 404
    await alice.shares(conversation, bob.name, "writer")
    for name in (bob.name, unusable["userId"]):
        assert (await offers(bob, conversation, name)).status == 403
    assert (await bob.post(path, unusable)).status == 403
    for name in (alice.name, unusable["userId"]):
        refused = await offers(alice, conversation, name)
        assert refused.status == 422
    assert (await alice.post(path, unusable)).status == 422


async def test_who_accepts_is_the_owner(alice: User, bob: User, carol: User) -> None:
    conversation = (await alice.begins())["id"]
    await alice.shares(conversation, bob.name, "reader")
    transfer = (await offers(alice, conversation, bob.name)).body["id"]
    for user in (alice, carol):
        assert (await user.post(f"{TRANSFERS}/{transfer}/accept")).status == 404
    assert (await bob.post(f"{TRANSFERS}/{transfer}/accept")).status == 204
    assert await members(alice, conversation) == {bob.name: "owner", alice.name: "manager"}
    assert (await bob.post(f"{TRANSFERS}/{transfer}/accept")).status == 404
    assert (await bob.get(f"/v1/user/conversations/{conversation}")).body["ownerUserId"] == bob.name


async def test_offer_is_declined_taken_back_or_goes_with_the_member(alice: User, bob: User, carol: User) -> None:
    conversation = (await alice.begins())["id"]
    await alice.shares(conversation, bob.name, "reader")
    for user in (bob, alice):
        transfer = (await offers(alice, conversation, bob.name)).body["id"]
        assert (await carol.delete(f"{TRANSFERS}/{transfer}")).status == 404
        assert (await user.delete(f"{TRANSFERS}/{transfer}")).status == 204
        assert await of_conversation(bob, conversation) == []
    await offers(alice, conversation, bob.name)
    await alice.delete(memberships(conversation, bob.name))
    assert await of_conversation(alice, conversation) == []
