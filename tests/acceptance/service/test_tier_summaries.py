"""The summaries of tiers over HTTP, the group of a conversation, and who said a message."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import httpx2
import pytest

from tests.server.listening import listening_service
from tests.server.running import running_service

pytestmark = pytest.mark.anyio


async def test_each_has_its_level_count_range_and_time(tmp_path: Path) -> None:
    tiers = {"recent_count": 4, "condensed_count": 4, "auto_threshold": 8}
    sections: dict[str, Any] = {"history": {"strategy": "progressive"}, "tiers": tiers}
    async with (
        listening_service(tmp_path, **sections) as service,
        httpx2.AsyncClient(base_url=service.address, timeout=60) as client,
    ):
        manager = service.container.conversation_manager()
        for number in range(10):
            said = [{"role": "user", "content": f"question {number}"}, {"role": "assistant", "content": "noted"}]
            await manager.save_history("s", said, user_id="ann")
        await service.container.tiers().summarize("s", user_id="ann")
        path = "/v1/user/conversations/s/tiers"
        told = (await client.get(path, headers=service.user("ann"))).json()["data"]
        assert [(each["level"], each["startSeq"], each["endSeq"], each["messageCount"]) for each in told] == [
            ("compressed", 1, 12, 12),
            ("condensed", 13, 16, 4),
        ]
        assert all(each["startedAt"] <= each["endedAt"] <= each["createdAt"] and each["text"] for each in told)
        assert (await client.get(path, headers=service.user("bob"))).status_code == 404


async def test_forks_share_the_group_of_their_root() -> None:
    async with running_service("memory://") as service:
        transport = httpx2.ASGITransport(app=cast("Any", service.app))
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://service", headers=service.user("ann")
        ) as ann:
            begun = (await ann.post("/v1/user/conversations", json={"title": "trip"})).json()
            assert begun["conversationGroupId"] == begun["id"]
            listed = (await ann.get("/v1/user/conversations")).json()["data"]
            assert [each["conversationGroupId"] for each in listed] == [begun["id"]]


async def test_message_posted_by_a_key_alone_is_of_no_user() -> None:
    async with running_service("memory://") as service:
        transport = httpx2.ASGITransport(app=cast("Any", service.app))
        async with httpx2.AsyncClient(transport=transport, base_url="http://service") as client:
            ann, key = service.user("ann"), {"X-API-Key": await service.key("helper")}
            begun = (await client.post("/v1/user/conversations", json={}, headers=ann)).json()["id"]
            path, body = f"/v1/agent/conversations/{begun}/messages", {"messages": [{"role": "user", "content": "hi"}]}
            for headers, said_by in ((key, None), (key | ann, "ann")):
                (posted,) = (await client.post(path, json=body, headers=headers)).json()["data"]
                assert posted["userId"] == said_by
