"""A load counts what is new to it and nothing that is stored: counts were made once, at the append."""

from __future__ import annotations

from pathlib import Path

import pytest
from dependency_injector import providers

from reactor_memory import Container, Message, ToolCall, open_memory
from tests.acceptance.scenes import USER, scripted, settings
from tests.scenes.fixtures_stores import memory_or_sqlite

pytestmark = pytest.mark.anyio

MARK = "kept as it was stored"


class CountingCounter:
    """Counts words, and remembers every text that it was given."""

    name = "words"

    def __init__(self) -> None:
        self.texts: list[str] = []

    def count(self, text: str) -> int:
        self.texts.append(text)
        return len(text.split())


url = memory_or_sqlite


def conversation() -> list[Message]:
    """Twenty turns with every kind of text that a message can hold; each text is marked."""
    turns: list[Message] = []
    for number in range(20):
        call = ToolCall(id=f"call {number}", name="look_up", arguments={"what": MARK})
        turns += [
            Message.user(f"{MARK} A-{number:04}", name=MARK),
            Message.assistant(tool_calls=[call]),
            Message.tool(f"{MARK} found", tool_call_id=call.id),
            Message.assistant(f"{MARK} answer", parts=({"type": "reasoning", "text": MARK},)),
        ]
    return turns


@pytest.mark.parametrize("enabled", [True, False], ids=["hierarchical", "take_last"])
async def test_assembling_tokenizes_no_stored_message(url: str, enabled: bool) -> None:
    counter = CountingCounter()

    def configure(container: Container) -> None:
        container.token_counter.override(providers.Object(counter))
        container.summarizer.override(providers.Object(scripted()))

    async with open_memory(settings(url, summary={"enabled": enabled}), configure=configure) as memory:
        await memory.save_history("s", conversation(), user_id=USER)
        await memory.drain()
        assert any(MARK in text for text in counter.texts), "an append counts"
        counter.texts.clear()
        for budget in (None, 2000, 200, 60, None):
            context = await memory.load_history(
                "s", user_id=USER, message=Message.user("what now?"), budget=budget, query="answer found"
            )
            assert any(message.seq is not None for message in context.messages)
        async with memory.turn("s", Message.user("and then?"), user_id=USER, budget=300) as turn:
            call = ToolCall(id="new", name="look_up", arguments={})
            turn.add(Message.assistant(tool_calls=[call]), Message.tool("nothing", tool_call_id="new"))
            assert turn.messages()[-1].content == "nothing"
            assert "what now?" in counter.texts
            assert turn.messages()[-1].content == "nothing"
            assert counter.texts.count("and then?") == counter.texts.count("nothing") == 1, "a turn counts its own once"
            marked = [text for text in counter.texts if MARK in text]
            assert len(marked) <= 5
            quoting = "Recalled from earlier in this conversation:"
            assert all(text.startswith(quoting) for text in marked), "what recall quotes is no stored text"


async def test_rows_of_another_tokenizer_are_counted_on_the_fly(tmp_path: Path) -> None:
    """What a store counted under another name says nothing here; the budget holds all the same."""

    class OtherCounter(CountingCounter):
        name = "others"

        def count(self, text: str) -> int:
            return 0

    def before(container: Container) -> None:
        container.token_counter.override(providers.Object(OtherCounter()))

    def after(container: Container) -> None:
        container.token_counter.override(providers.Object(CountingCounter()))

    off = settings(f"sqlite:///{tmp_path / 'memory.db'}", summary={"enabled": False})
    async with open_memory(off, configure=before) as memory:
        await memory.save_history("s", conversation(), user_id=USER)
    async with open_memory(off, configure=after) as memory:
        context = await memory.load_history("s", user_id=USER, budget=60)
    assert context.report.total_tokens <= 60
    assert 0 < len(context.messages) < 12
