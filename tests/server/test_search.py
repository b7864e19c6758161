"""Search through the service: who finds what, and what nobody can find out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest

from reactor_memory.errors import EmbeddingError
from reactor_memory.features.search import wiring
from reactor_memory.features.search.models import MessageSearch
from reactor_memory.features.sharing.access import agents_of
from reactor_memory.features.sharing.principals import Grant, Principal
from reactor_memory.models import Message
from reactor_memory.settings.service_settings import ServiceSettings
from reactor_memory.testing import append_messages
from reactor_memory.wiring.service_container import ServiceContainer, open_service_container
from tests.doubles.fake_embedder import FakeEmbedder
from tests.server.callers import Service

pytestmark = pytest.mark.anyio


class Searchers:
    """The service, and what its users do."""

    def __init__(self, running: Service, container: ServiceContainer, embedder: FakeEmbedder) -> None:
        self.running = running
        self.container = container
        self.embedder = embedder

    async def call(self, method: str, path: str, user: str, body: object = None, *, agent: str | None = None) -> Any:
        caller = self.running.of(user) if agent is None else self.running.by(agent, user)
        answer = await caller.ask(method, f"/v1/{path}", body)
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
        await self.container.background_work().run_once()

    async def search(self, user: str, query: str, **body: object) -> Any:
        return await self.call("POST", "user/search/messages", user, {"query": query, **body})

    async def found(self, user: str, query: str, **body: object) -> list[str]:
        return [hit["message"]["content"] for hit in (await self.search(user, query, **body))["data"]]

    async def refused(self, user: str, body: object) -> tuple[int, str]:
        answer = await self.running.of(user).ask("POST", "/v1/user/search/messages", body)
        return answer.status_code, answer.json()["code"]


@pytest.fixture(scope="module")
def embedder() -> FakeEmbedder:
    return FakeEmbedder()


@pytest.fixture(scope="module")
async def container(store_url: str, embedder: FakeEmbedder) -> AsyncIterator[ServiceContainer]:
    patch = pytest.MonkeyPatch()
    patch.setattr(wiring, "SWEEP_SECONDS", 3600)
    settings = ServiceSettings(
        store={"url": store_url, "delete_grace_days": 30},
        summary={"enabled": True},
        search={"enabled": True},
    )
    async with open_service_container(settings, configure=lambda parts: parts.embedder.override(embedder)) as container:
        yield container
    patch.undo()


@pytest.fixture
def service(running: Service, container: ServiceContainer, embedder: FakeEmbedder) -> Searchers:
    embedder.failure = None
    return Searchers(running, container, embedder)


_names = map("user{}".format, count())


@pytest.fixture
def ann() -> str:
    return next(_names)


@pytest.fixture
def ben() -> str:
    return next(_names)


class TestWords:
    async def test_a_hit_tells_the_message_its_score_and_why(self, service: Searchers, ann: str) -> None:
        conversation = await service.converse(ann, "Tell me about your refund policy", "Thanks")
        await service.index()
        answer = await service.search(ann, "refund policies")
        [hit] = answer["data"]
        assert hit["message"]["conversationId"] == conversation
        assert hit["message"]["channel"] == "HISTORY"
        assert hit["highlights"] == "Tell me about your ⟦refund⟧ ⟦policy⟧"
        assert hit["score"] > 0
        assert answer["nextCursor"] is None

    async def test_what_was_just_said_is_found_without_explicit_indexing(self, service: Searchers, ann: str) -> None:
        await service.container.background_work().drain()
        await service.converse(ann, "a walrus")
        await service.container.background_work().drain()
        assert await service.found(ann, "walrus") == ["a walrus"]

    async def test_posted_summary_is_found_and_notes_of_agents_are_not(self, service: Searchers, ann: str) -> None:
        conversation = await service.converse(ann, "I want to return item 7")
        note = Message(role="assistant", content="secret refund policy note", visibility="agent")
        summary = Message(
            role="summary",
            content="They discussed the refund policy and how to return an item.",
            visibility="agent",
        )
        await append_messages(service.container.message_store(), conversation, [note, summary], user_id=ann)
        await service.index()
        [hit] = (await service.search(ann, "refund policy"))["data"]
        assert hit["message"]["channel"] == "SUMMARY"
        assert sorted(await service.found(ann, "return item")) == sorted(
            ["They discussed the refund policy and how to return an item.", "I want to return item 7"]
        )

    async def test_only_in_some_conversations(self, service: Searchers, ann: str, ben: str) -> None:
        one = await service.converse(ann, "alpha one")
        await service.converse(ann, "alpha two")
        foreign = await service.converse(ben, "alpha of another")
        await service.index()
        assert await service.found(ann, "alpha", conversationIds=[one]) == ["alpha one"]
        assert await service.found(ann, "alpha", conversationIds=[one, foreign, "nowhere"]) == ["alpha one"]
        assert await service.found(ann, "alpha", conversationIds=[foreign]) == []

    async def test_only_before_a_message(self, service: Searchers, ann: str, ben: str) -> None:
        conversation = await service.converse(ann, "alpha one")
        middle = await service.say(ann, conversation, "alpha two")
        await service.say(ann, conversation, "alpha three")
        await service.index()
        assert await service.found(ann, "alpha", before=middle) == ["alpha one"]
        assert await service.refused(ben, {"query": "alpha", "before": middle}) == (422, "invalid")

    async def test_an_agent_searches_for_a_user_where_its_grant_reaches(self, service: Searchers, ann: str) -> None:
        await service.converse(ann, "alpha sold", agent_name="sales")
        await service.converse(ann, "alpha private")
        await service.index()
        answer = await service.call("POST", "user/search/messages", ann, {"query": "alpha"}, agent="bot")
        assert len(answer["data"]) == 2
        grant = Grant(agent_names=("sales",), operations=("read",))
        agents = agents_of(Principal(user_id=ann, client_id="bot", grant=grant))
        search = MessageSearch(text="alpha", user_id=ann, agent_names=agents)
        hits = (await service.container.message_search().search(search)).hits
        assert [hit.message.content for hit in hits] == ["alpha sold"]

    async def test_pages_end_and_never_repeat_while_messages_come(self, service: Searchers, ann: str, ben: str) -> None:
        conversation = await service.converse(ann, *[f"alpha {number}" for number in range(5)])
        await service.index()
        first = await service.search(ann, "alpha", topK=2)
        await service.say(ann, conversation, "alpha alpha new")
        await service.index()
        second = await service.search(ann, "alpha", topK=2, cursor=first["nextCursor"])
        third = await service.search(ann, "alpha", topK=2, cursor=second["nextCursor"])
        pages = [[hit["message"]["content"] for hit in page["data"]] for page in (first, second, third)]
        assert sorted(text for page in pages for text in page) == [f"alpha {number}" for number in range(5)]
        assert third["nextCursor"] is None
        cursor = first["nextCursor"]
        assert await service.refused(ben, {"query": "alpha", "topK": 2, "cursor": cursor}) == (400, "bad_page_token")
        assert await service.refused(ann, {"query": "beta", "topK": 2, "cursor": cursor}) == (400, "bad_page_token")
        assert await service.refused(ann, {"query": "alpha", "cursor": cursor[:-2]}) == (400, "bad_page_token")

    async def test_no_query_is_an_order(self, service: Searchers, ann: str) -> None:
        await service.converse(ann, "alpha and beta")
        await service.index()
        for query in ('alpha" OR "', "alpha*", "NEAR(alpha)", "alpha\0", "alpha " + "x" * 100_000, "%alpha_"):
            assert await service.found(ann, query) == ["alpha and beta"]
        for query in ("*", "'; DROP TABLE messages", "\0", "!!!"):
            assert await service.found(ann, query) == []

    async def test_what_cannot_be_asked(self, service: Searchers, ann: str) -> None:
        assert await service.refused(ann, {"query": "  "}) == (422, "invalid")
        assert await service.refused(ann, {"query": "a", "topK": 0}) == (422, "invalid")
        assert await service.refused(ann, {"query": "a", "topK": 201}) == (422, "invalid")
        assert await service.refused(ann, {"query": "a", "searchType": "psychic"}) == (422, "invalid")
        assert await service.refused(ann, {"query": "a", "before": "\0"}) == (422, "invalid")


class TestCanaries:
    """A word for each user, which everybody looks for in every way."""

    async def test_no_canary_is_found_by_anybody_else(self, service: Searchers) -> None:
        canaries = {f"owner{number}": f"canary{number:02}" for number in range(6)}
        homes = {user: await service.converse(user, f"my word is {word}") for user, word in canaries.items()}
        await service.index()
        await self.check(service, canaries, {})
        await service.call(
            "POST",
            f"user/conversations/{homes['owner0']}/memberships",
            "owner0",
            {"userId": "owner1", "accessLevel": "reader"},
        )
        await self.check(service, canaries, {"owner1": {"canary00"}})
        message = (await service.call("GET", f"user/conversations/{homes['owner0']}/messages", "owner0"))["data"][0][
            "id"
        ]
        fork = await service.call(
            "POST",
            f"user/conversations/{homes['owner0']}/messages/{message}/fork",
            "owner0",
            {"newMessage": {"content": "canary00 again, in a fork"}},
        )
        await service.index()
        await self.check(service, canaries, {"owner1": {"canary00"}})
        assert await service.found("owner1", "canary00", conversationIds=[fork["id"]]) == ["canary00 again, in a fork"]
        await service.call("DELETE", f"user/conversations/{homes['owner0']}/memberships/owner1", "owner0")
        await self.check(service, canaries, {})
        await service.call("DELETE", f"user/conversations/{homes['owner2']}", "owner2")
        gone = {user: word for user, word in canaries.items() if user != "owner2"}
        await self.check(service, gone, {}, nowhere={"canary02"})
        await service.call("POST", f"user/conversations/{homes['owner2']}/restore", "owner2")
        await self.check(service, canaries, {})
        await service.container.erasure().erase(homes["owner3"], seq=1, user_id="owner3")
        await self.check(
            service, {user: word for user, word in canaries.items() if user != "owner3"}, {}, nowhere={"canary03"}
        )

    async def test_a_transfer_takes_the_canary_to_the_new_owner(self, service: Searchers, ann: str, ben: str) -> None:
        home = await service.converse(ann, "my word is canary")
        path = f"user/conversations/{home}"
        await service.call("POST", f"{path}/memberships", ann, {"userId": ben, "accessLevel": "reader"})
        await service.index()
        await service.call("POST", f"{path}/transfer-ownership", ann, {"newOwnerUserId": ben})
        [transfer] = (await service.call("GET", "user/ownership-transfers", ben))["data"]
        await service.call("POST", f"user/ownership-transfers/{transfer['id']}/accept", ben)
        await service.call("DELETE", f"{path}/memberships/{ann}", ben)
        assert await service.found(ben, "canary") == ["my word is canary"]
        assert await service.found(ann, "canary") == []

    async def test_an_answer_is_the_same_whatever_others_have(self, service: Searchers, ann: str, ben: str) -> None:
        await service.converse(ann, "canary and dog", "dog", "cat")
        await service.index()
        before = await service.search(ann, "canary dog", topK=1)
        await service.converse(ben, *["canary dog"] * 5)
        await service.index()
        after = await service.search(ann, "canary dog", topK=1)
        assert after["data"] == before["data"]

    async def check(
        self,
        service: Searchers,
        canaries: dict[str, str],
        shared: dict[str, set[str]],
        nowhere: set[str] = frozenset(),  # type: ignore
    ) -> None:
        for user in ("nobody", *canaries):
            for word in {*canaries.values(), *nowhere}:
                answer = await service.search(user, word)
                is_theirs = canaries.get(user) == word or word in shared.get(user, set())
                assert bool(answer["data"]) is is_theirs, (user, word)
                assert answer["nextCursor"] is None
                assert all(word in hit["message"]["content"] for hit in answer["data"])


class TestMeanings:
    async def test_words_and_meanings_answer_together(self, service: Searchers, ann: str, ben: str) -> None:
        conversation = await service.converse(ann, "my cat is ill", "a kitten needs a doctor", "the weather")
        await service.index()
        assert await service.found(ann, "cat") == ["my cat is ill", "a kitten needs a doctor"]
        assert await service.found(ann, "cat", searchType="keyword") == ["my cat is ill"]
        assert sorted(await service.found(ann, "cat", searchType="semantic")) == [
            "a kitten needs a doctor",
            "my cat is ill",
        ]
        assert await service.found(ben, "cat") == []
        shown = await service.call("GET", f"user/conversations/{conversation}", ann)
        assert shown["vectorizedAt"] is not None

    async def test_an_embedder_that_fails_leaves_words(self, service: Searchers, ann: str) -> None:
        conversation = await service.converse(ann, "my cat is ill")
        service.embedder.failure = EmbeddingError("unavailable", "is away")
        await service.index()
        assert await service.found(ann, "cat") == ["my cat is ill"]
        assert await service.refused(ann, {"query": "cat", "searchType": "semantic"}) == (503, "unavailable")
        shown = await service.call("GET", f"user/conversations/{conversation}", ann)
        assert shown["vectorizedAt"] is None
