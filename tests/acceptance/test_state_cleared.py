"""What ends with the messages that the working state rests on, or with a word of the user: everywhere, and for good."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from dependency_injector import providers

from reactor_memory import Container, Memory, Message, open_memory
from reactor_memory.features.facts.summarizers.editing import EditingSummarizer
from reactor_memory.features.facts.summarizers.extractive import ExtractiveSummarizer
from reactor_memory.features.facts.summarizers.language_model import LanguageModelSummarizer
from reactor_memory.models.ledger import Usage
from reactor_memory.providers.questions import Reply, Request
from reactor_memory.tokens.estimate import EstimateCounter
from tests.acceptance.scenes import USER, memory_blocks, save, settings

pytestmark = pytest.mark.anyio

TALK = [
    Message.user("Please book a hotel in Porto for 3 nights."),
    Message.assistant("I will look for one."),
    Message.user("My sister Ana comes along."),
    Message.assistant("Noted."),
]
CHAT = [said for number in range(12) for said in (Message.user(f"Hm {number}."), Message.assistant("Well."))]
ITEMS = (("open", "book a hotel in Porto for 3 nights", "1"), ("decision", "Ana comes along", "3"))


class Noting:
    """A model that keeps two items of the first messages, and nothing more."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def ask(self, request: Request) -> Reply:
        self.requests.append(request)
        lines = " ".join(json.loads(request.document)["lines"])
        state = [
            {"name": "", "kind": kind, "text": text, "lines": line, "ended": ""}
            for kind, text, line in ITEMS
            if text.split()[0].capitalize() in lines or text in lines
        ]
        return Reply(json.dumps({"drop": "", "state": state}), Usage())

    async def aclose(self) -> None: ...

    @property
    def told(self) -> str:
        """The states that it was given."""
        return " ".join(item for each in self.requests for item in json.loads(each.document).get("state", ()))


@asynccontextmanager
async def noted(url: str = "memory://") -> AsyncGenerator[tuple[Memory, Noting]]:
    model = Noting()

    def configure(container: Container) -> None:
        asked = LanguageModelSummarizer(
            "m", model, counter=EstimateCounter(), max_narrative_tokens=99, max_input_tokens=8_000
        )
        container.summarizer.override(providers.Object(EditingSummarizer(asked, ExtractiveSummarizer())))

    counted: dict[str, Any] = {"trigger_message_count": 4, "recent_message_count": 2, "segment_message_count": 2}
    counted |= {"provider": "openai", "question_message_count": 4}
    models = {"openai": {"model": "m", "api_key": "k"}}
    async with open_memory(settings(url, summary=counted, models=models), configure=configure) as memory:
        await save(memory, "s", [*TALK, *CHAT[:8]])
        await memory.drain()
        assert await items(memory) == ["book a hotel in Porto for 3 nights", "Ana comes along"]
        model.requests.clear()
        yield memory, model


async def items(memory: Memory, session_id: str = "s") -> list[str]:
    found = await memory.facts.list(session_id, user_id=USER)
    return [each.value.partition(": ")[2] for each in found if each.anchor == "working state"]


async def shown(memory: Memory, session_id: str = "s") -> str:
    context = await memory.load_history(session_id, user_id=USER)
    return "\n".join(block.content for block in memory_blocks(context.messages))


async def go_on(memory: Memory, session_id: str = "s") -> None:
    await memory.facts.rebuild(session_id, user_id=USER)
    await memory.drain()
    await save(memory, session_id, CHAT[8:])
    await memory.drain()


async def erase(memory: Memory) -> None:
    await memory.erasure.erase("s", seq=1, user_id=USER)


async def clear(memory: Memory) -> None:
    await memory.archive("s", user_id=USER, until_seq=2, clear=True)


async def retract_words(memory: Memory) -> None:
    (fact,) = [
        each
        for each in await memory.facts.list("s", user_id=USER)
        if "Porto" in each.value and each.key.startswith("quote")
    ]
    await memory.facts.retract("s", fact=(fact.anchor, fact.key), user_id=USER)


async def retract_item(memory: Memory) -> None:
    await memory.facts.retract("s", fact=("working state", "state.1a"), user_id=USER)


Ends = Callable[[Memory], Awaitable[None]]


@pytest.mark.parametrize("end", [erase, clear, retract_words, retract_item])
async def test_item_goes_and_the_other_stays(end: Ends) -> None:
    async with noted() as (memory, _):
        await end(memory)
        assert await items(memory) == ["Ana comes along"]
        block = await shown(memory)
        assert "open: book a hotel" not in block
        assert "decision (user): Ana comes along" in block


@pytest.mark.parametrize("end", [erase, clear, retract_words, retract_item])
async def test_it_is_not_told_to_the_model_again(end: Ends) -> None:
    async with noted() as (memory, model):
        await end(memory)
        await memory.drain()
        model.requests.clear()
        await go_on(memory)
        assert model.requests
        assert "Porto" not in model.told
        assert "open: book a hotel" not in await shown(memory)


async def test_retracted_item_leaves_the_words_of_messages() -> None:
    async with noted() as (memory, _):
        await retract_item(memory)
        assert "Please book a hotel in Porto for 3 nights." in await shown(memory)


async def test_restored_messages_bring_it_back() -> None:
    async with noted() as (memory, _):
        await clear(memory)
        await memory.restore("s", user_id=USER)
        assert await items(memory) == ["book a hotel in Porto for 3 nights", "Ana comes along"]


async def test_muted_state_is_silent_until_it_is_unmuted() -> None:
    async with noted() as (memory, _):
        await memory.facts.mute("s", anchor="working state", user_id=USER)
        assert "(derived" not in await shown(memory)
        await memory.facts.unmute("s", anchor="working state", user_id=USER)
        assert "(derived" in await shown(memory)


async def test_fork_made_before_loses_it_too() -> None:
    async with noted() as (memory, _):
        fork = await memory.fork("s", at_seq=9, user_id=USER)
        await memory.drain()
        assert "Porto" in " ".join(await items(memory, fork.session_id))
        await erase(memory)
        assert await items(memory, fork.session_id) == ["Ana comes along"]


@pytest.mark.parametrize("whole", ["user", "session"])
async def test_nothing_of_it_is_left_in_the_database(whole: str, tmp_path: Any) -> None:
    async with noted(f"sqlite:///{tmp_path}/m.db") as (memory, _):
        if whole == "user":
            assert (await memory.erasure.erase_user(USER)).is_scrubbed
        else:
            await memory.delete("s", user_id=USER)
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"Porto" not in stored


async def test_erased_item_is_not_left_in_the_database(tmp_path: Any) -> None:
    async with noted(f"sqlite:///{tmp_path}/m.db") as (memory, _):
        await erase(memory)
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"Porto" not in stored
    assert b"Ana comes along" in stored


async def test_an_item_that_is_corrected_stays_of_its_kind() -> None:
    async with noted() as (memory, _):
        known = {each.value: each for each in await memory.facts.list("s", user_id=USER)}
        fact = known["open: book a hotel in Porto for 3 nights"]
        now = await memory.facts.correct("s", fact=(fact.anchor, fact.key), value="book for 5 nights", user_id=USER)
        assert now.value == "open: book for 5 nights"
        assert await items(memory) == ["book for 5 nights", "Ana comes along"]
        assert "open: book for 5 nights" in await shown(memory)
