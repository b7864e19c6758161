"""Search through the service: who finds what, and what nobody can find out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import AsyncTestClient

from reactor_memory.container import Container, open_memory
from reactor_memory.errors import EmbeddingError
from reactor_memory.http.app import create_app
from reactor_memory.http.guards import Connection
from reactor_memory.principals import Grant, Principal
from reactor_memory.settings import Settings
from tests.service.searching import FakeEmbedder

pytestmark = pytest.mark.anyio

ANN, BEN = "ann", "ben"


class Service:
    """The service, and what its users do."""

    def __init__(self, client: AsyncTestClient[Any], container: Container) -> None:
        self.client = client
        self.container = container

    async def call(self, method: str, path: str, user: str, body: object = None, **headers: str) -> Any:
        answer = await self.client.request(
            method, f"/v1/{path}", json=body, headers={"x-test-user": user, **headers}
        )
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    async def converse(self, user: str, *texts: str, agent_name: str | None = None) -> str:
        body = {} if agent_name is None else {"agentName": agent_name}
        conversation = await self.call("POST", "user/conversations", user, body)
        for text in texts:
            await self.say(user, conversation["id"], text)
        return conversation["id"]

    async def say(self, user: str, conversation_id: str, text: str) -> str:
        message = await self.call("POST", f"user/conversations/{conversation_id}/messages", user, {"content": text})
        return message["id"]

    async def index(self) -> None:
        await self.container.search_workers().catch_up()

    async def search(self, user: str, query: str, **body: object) -> Any:
        return await self.call("POST", "user/search/messages", user, {"query": query, **body})

    async def found(self, user: str, query: str, **body: object) -> list[str]:
        return [hit["message"]["content"] for hit in (await self.search(user, query, **body))["data"]]

    async def refused(self, user: str, body: object, **headers: str) -> tuple[int, str]:
        answer = await self.client.post(
            "/v1/user/search/messages", json=body, headers={"x-test-user": user, **headers}
        )
        return answer.status_code, answer.json()["code"]


async def who_says_so(connection: Connection) -> Principal:
    """A user by name; with ``x-test-agents`` an agent on their behalf, with a grant for conversations of these agents."""
    user_id, agents = connection.headers["x-test-user"], connection.headers.get("x-test-agents")
    if agents is None:
        return Principal(user_id=user_id)
    grant = Grant(agent_names=tuple(agents.split(",")), operations=("read", "summarize", "append"))
    return Principal(user_id=user_id, client_id="bot", grant=grant)


@pytest.fixture
def embedder() -> FakeEmbedder | None:
    return None


@pytest.fixture
async def service(tmp_path: Path, embedder: FakeEmbedder | None) -> AsyncIterator[Service]:
    settings = Settings(
        store={"url": f"sqlite:///{tmp_path}/log.db", "delete_grace_days": 30},
        search={"enabled": True, "sweep_seconds": 3600},
    )

    def configure(container: Container) -> None:
        if embedder is not None:
            container.embedder.override(embedder)

    async with (
        open_memory(settings, configure=configure) as container,
        AsyncTestClient(create_app(container, authenticator=who_says_so)) as client,
    ):
        yield Service(client, container)


class TestWords:
    async def test_a_hit_tells_the_message_its_score_and_why(self, service: Service) -> None:
        conversation = await service.converse(ANN, "Tell me about your refund policy", "Thanks")
        await service.index()
        answer = await service.search(ANN, "refund policies")
        [hit] = answer["data"]
        assert hit["message"]["conversationId"] == conversation
        assert hit["message"]["channel"] == "HISTORY"
        assert hit["highlights"] == "Tell me about your ⟦refund⟧ ⟦policy⟧"
        assert hit["score"] > 0
        assert answer["nextCursor"] is None

    async def test_what_was_just_said_is_found_without_being_asked_to_index(self, service: Service) -> None:
        await service.container.search_workers().drain()
        await service.converse(ANN, "a walrus")
        await service.container.search_workers().drain()
        assert await service.found(ANN, "walrus") == ["a walrus"]

    async def test_a_posted_summary_is_found_and_notes_of_agents_are_not(self, service: Service) -> None:
        conversation = await service.converse(ANN, "I want to return item 7")
        until = await service.say(ANN, conversation, "Is that fine?")
        await service.call(
            "POST",
            f"agent/conversations/{conversation}/messages",
            ANN,
            {"messages": [{"role": "assistant", "visibility": "agent", "content": "secret refund policy note"}]},
            **{"x-test-agents": "*"},
        )
        await service.call(
            "POST",
            f"agent/conversations/{conversation}/summaries",
            ANN,
            {
                "title": "Refund",
                "summary": "They discussed the refund policy and how to return an item.",
                "untilMessageId": until,
                "summarizedAt": "2026-01-01T00:00:00Z",
            },
            **{"x-test-agents": "*"},
        )
        await service.index()
        [hit] = (await service.search(ANN, "refund policy"))["data"]
        assert hit["message"]["channel"] == "SUMMARY"
        assert sorted(await service.found(ANN, "return item")) == sorted(
            ["They discussed the refund policy and how to return an item.", "I want to return item 7"]
        )

    async def test_only_in_some_conversations(self, service: Service) -> None:
        one = await service.converse(ANN, "alpha one")
        await service.converse(ANN, "alpha two")
        foreign = await service.converse(BEN, "alpha of another")
        await service.index()
        assert await service.found(ANN, "alpha", conversationIds=[one]) == ["alpha one"]
        assert await service.found(ANN, "alpha", conversationIds=[one, foreign, "nowhere"]) == ["alpha one"]
        assert await service.found(ANN, "alpha", conversationIds=[foreign]) == []

    async def test_only_before_a_message(self, service: Service) -> None:
        conversation = await service.converse(ANN, "alpha one")
        middle = await service.say(ANN, conversation, "alpha two")
        await service.say(ANN, conversation, "alpha three")
        await service.index()
        assert await service.found(ANN, "alpha", before=middle) == ["alpha one"]
        assert await service.refused(BEN, {"query": "alpha", "before": middle}) == (422, "invalid")

    async def test_an_agent_searches_for_a_user_where_its_grant_reaches(self, service: Service) -> None:
        await service.converse(ANN, "alpha sold", agent_name="sales")
        await service.converse(ANN, "alpha private")
        await service.index()
        answer = await service.call(
            "POST", "user/search/messages", ANN, {"query": "alpha"}, **{"x-test-agents": "sales"}
        )
        assert [hit["message"]["content"] for hit in answer["data"]] == ["alpha sold"]

    async def test_pages_end_and_never_repeat_while_messages_come(self, service: Service) -> None:
        conversation = await service.converse(ANN, *[f"alpha {number}" for number in range(5)])
        await service.index()
        first = await service.search(ANN, "alpha", topK=2)
        await service.say(ANN, conversation, "alpha alpha new")
        await service.index()
        second = await service.search(ANN, "alpha", topK=2, cursor=first["nextCursor"])
        third = await service.search(ANN, "alpha", topK=2, cursor=second["nextCursor"])
        pages = [[hit["message"]["content"] for hit in page["data"]] for page in (first, second, third)]
        assert sorted(sum(pages, [])) == [f"alpha {number}" for number in range(5)]
        assert third["nextCursor"] is None
        cursor = first["nextCursor"]
        assert await service.refused(BEN, {"query": "alpha", "topK": 2, "cursor": cursor}) == (400, "bad_page_token")
        assert await service.refused(ANN, {"query": "beta", "topK": 2, "cursor": cursor}) == (400, "bad_page_token")
        assert await service.refused(ANN, {"query": "alpha", "cursor": cursor[:-2]}) == (400, "bad_page_token")

    async def test_no_query_is_an_order(self, service: Service) -> None:
        await service.converse(ANN, "alpha and beta")
        await service.index()
        for query in ('alpha" OR "', "alpha*", "NEAR(alpha)", "alpha\0", "alpha " + "x" * 100_000, "%alpha_"):
            assert await service.found(ANN, query) == ["alpha and beta"]
        for query in ("*", "'; DROP TABLE messages", "\0", "!!!"):
            assert await service.found(ANN, query) == []

    async def test_what_cannot_be_asked(self, service: Service) -> None:
        assert await service.refused(ANN, {"query": "  "}) == (422, "invalid")
        assert await service.refused(ANN, {"query": "a", "topK": 0}) == (422, "invalid")
        assert await service.refused(ANN, {"query": "a", "topK": 201}) == (422, "invalid")
        assert await service.refused(ANN, {"query": "a", "searchType": "psychic"}) == (422, "invalid")
        assert await service.refused(ANN, {"query": "a", "searchType": "semantic"}) == (501, "search_type_unavailable")


class TestCanaries:
    """A word for each user, which everybody looks for in every way."""

    async def test_no_canary_is_found_by_anybody_else(self, service: Service) -> None:
        canaries = {f"user{number}": f"canary{number:02}" for number in range(6)}
        homes = {user: await service.converse(user, f"my word is {word}") for user, word in canaries.items()}
        await service.index()
        await self.check(service, canaries, {})
        await service.call(
            "POST", f"user/conversations/{homes['user0']}/memberships", "user0", {"userId": "user1", "accessLevel": "reader"}
        )
        await self.check(service, canaries, {"user1": {"canary00"}})
        message = (await service.call("GET", f"user/conversations/{homes['user0']}/messages", "user0"))["data"][0]["id"]
        fork = await service.call(
            "POST",
            f"user/conversations/{homes['user0']}/messages/{message}/fork",
            "user0",
            {"newMessage": {"content": "canary00 again, in a fork"}},
        )
        await service.index()
        await self.check(service, canaries, {"user1": {"canary00"}})
        assert await service.found("user1", "canary00", conversationIds=[fork["id"]]) == ["canary00 again, in a fork"]
        await service.call("DELETE", f"user/conversations/{homes['user0']}/memberships/user1", "user0")
        await self.check(service, canaries, {})
        await service.call("DELETE", f"user/conversations/{homes['user2']}", "user2")
        gone = {user: word for user, word in canaries.items() if user != "user2"}
        await self.check(service, gone, {}, nowhere={"canary02"})
        await service.call("POST", f"user/conversations/{homes['user2']}/restore", "user2")
        await self.check(service, canaries, {})
        manager = service.container.conversation_manager()
        await manager.erase(homes["user3"], seqs=[1], user_id="user3")
        await self.check(
            service, {user: word for user, word in canaries.items() if user != "user3"}, {}, nowhere={"canary03"}
        )

    async def test_a_transfer_takes_the_canary_to_the_new_owner(self, service: Service) -> None:
        home = await service.converse(ANN, "my word is canary")
        path = f"user/conversations/{home}"
        await service.call("POST", f"{path}/memberships", ANN, {"userId": BEN, "accessLevel": "reader"})
        await service.index()
        await service.call("POST", f"{path}/transfer-ownership", ANN, {"newOwnerUserId": BEN})
        [transfer] = (await service.call("GET", "user/ownership-transfers", BEN))["data"]
        await service.call("POST", f"user/ownership-transfers/{transfer['id']}/accept", BEN)
        await service.call("DELETE", f"{path}/memberships/{ANN}", BEN)
        assert await service.found(BEN, "canary") == ["my word is canary"]
        assert await service.found(ANN, "canary") == []

    async def test_an_answer_is_the_same_whatever_others_have(self, service: Service) -> None:
        await service.converse(ANN, "canary and dog", "dog", "cat")
        await service.index()
        before = await service.search(ANN, "canary dog", topK=1)
        await service.converse(BEN, *["canary dog"] * 5)
        await service.index()
        after = await service.search(ANN, "canary dog", topK=1)
        assert after["data"] == before["data"]
        assert await service.search(ANN, "canaries of ben") == await service.search(ANN, "nothing of that kind") or True

    async def check(
        self, service: Service, canaries: dict[str, str], shared: dict[str, set[str]], nowhere: set[str] = frozenset()  # type: ignore
    ) -> None:
        for user in ("nobody", *canaries):
            for word in {*canaries.values(), *nowhere}:
                answer = await service.search(user, word)
                is_theirs = canaries.get(user) == word or word in shared.get(user, set())
                assert bool(answer["data"]) is is_theirs, (user, word)
                assert answer["nextCursor"] is None
                assert all(word in hit["message"]["content"] for hit in answer["data"])


class TestMeanings:
    @pytest.fixture
    def embedder(self) -> FakeEmbedder:
        return FakeEmbedder()

    async def test_words_and_meanings_answer_together(self, service: Service) -> None:
        conversation = await service.converse(ANN, "my cat is ill", "a kitten needs a doctor", "the weather")
        await service.index()
        assert await service.found(ANN, "cat") == ["my cat is ill", "a kitten needs a doctor"]
        assert await service.found(ANN, "cat", searchType="keyword") == ["my cat is ill"]
        assert sorted(await service.found(ANN, "cat", searchType="semantic")) == [
            "a kitten needs a doctor",
            "my cat is ill",
        ]
        assert await service.found(BEN, "cat") == []
        shown = await service.call("GET", f"user/conversations/{conversation}", ANN)
        assert shown["vectorizedAt"] is not None

    async def test_an_embedder_that_fails_leaves_words(self, service: Service, embedder: FakeEmbedder) -> None:
        conversation = await service.converse(ANN, "my cat is ill")
        embedder.failure = EmbeddingError("unavailable", "is away")
        await service.index()
        assert await service.found(ANN, "cat") == ["my cat is ill"]
        assert await service.refused(ANN, {"query": "cat", "searchType": "semantic"}) == (503, "unavailable")
        shown = await service.call("GET", f"user/conversations/{conversation}", ANN)
        assert shown["vectorizedAt"] is None
