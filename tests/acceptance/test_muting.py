"""A thing or a category is muted: contexts are silent about it, the ledger keeps it, and it can be undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from reactor_memory import Memory, Message
from reactor_memory.errors import InvalidInputError, SessionNotFoundError, SessionOwnershipError
from tests.acceptance.conftest import Run, write_sessions
from tests.acceptance.scenes import USER, agent_memory, memory_blocks, save, scripted, talk

pytestmark = pytest.mark.anyio

THING = "order 5"


async def blocks(memory: Memory, session_id: str = "s") -> str:
    context = await memory.load_history(session_id, user_id=USER)
    return "\n".join(message.content for message in memory_blocks(context.messages))


async def test_muted_thing_stays_silent_until_it_is_unmuted() -> None:
    async with agent_memory(scripted()) as memory:
        await save(memory, "s", talk(60))
        await memory.drain()
        assert await memory.facts.mute("s", anchor=THING, user_id=USER)
        assert not await memory.facts.mute("s", anchor=THING, user_id=USER)
        assert "A-0005" not in await blocks(memory)
        assert "A-0007" in await blocks(memory)
        assert THING not in {each.anchor for each in await memory.facts.list("s", user_id=USER)}
        (silent,) = [
            each for each in await memory.facts.trace("s", user_id=USER, everything=True) if each.fact.anchor == THING
        ]
        assert (silent.muted, silent.retracted) == (True, False)
        await memory.facts.rebuild("s", user_id=USER)
        await save(memory, "s", talk(20, start=61))
        await memory.drain()
        fork = await memory.fork("s", at_seq=50, user_id=USER)
        await memory.summarize(fork.session_id, user_id=USER)
        assert "A-0005" not in await blocks(memory, fork.session_id) + await blocks(memory)
        assert await memory.facts.unmute("s", anchor=THING, user_id=USER)
        assert not await memory.facts.unmute("s", anchor=THING, user_id=USER)
        assert "A-0005" in await blocks(memory)
        assert "A-0005" not in await blocks(memory, fork.session_id)


async def test_muted_category_covers_what_comes_later() -> None:
    async with agent_memory(scripted()) as memory:
        await save(memory, "s", talk(60))
        await memory.drain()
        assert await memory.facts.mute("s", category="GENERAL", user_id=USER)
        await save(memory, "s", talk(20, start=61))
        await memory.drain()
        assert await memory.facts.list("s", user_id=USER) == ()
        assert "A-00" not in await blocks(memory)
        assert await memory.facts.unmute("s", category="GENERAL", user_id=USER)
        assert "A-0061" in str(await memory.facts.list("s", user_id=USER))


async def test_corrected_fact_is_silent_while_muted() -> None:
    async with agent_memory(scripted()) as memory:
        await save(memory, "s", talk(60))
        await memory.drain()
        await memory.facts.correct("s", fact=(THING, "number"), value="B-77", user_id=USER)
        await memory.facts.mute("s", anchor=THING, user_id=USER)
        assert "B-77" not in await blocks(memory)
        await memory.facts.unmute("s", anchor=THING, user_id=USER)
        assert "B-77" in await blocks(memory)


async def test_mute_of_a_thing_goes_with_its_erased_message() -> None:
    async with agent_memory(scripted()) as memory:
        await save(memory, "s", talk(60))
        await memory.drain()
        await memory.facts.mute("s", anchor=THING, user_id=USER)
        await memory.erasure.erase("s", seq=5, user_id=USER)
        await memory.drain()
        assert not await memory.facts.unmute("s", category="STATE", user_id=USER)
        with pytest.raises(InvalidInputError, match="anchor"):
            await memory.facts.mute("s", anchor=THING, user_id=USER)


async def test_wrong_mutes_are_refused_by_name() -> None:
    async with agent_memory(scripted()) as memory:
        await save(memory, "s", [Message.user("hello")])
        mute = memory.facts.mute
        for arguments, field in (
            ({}, "category"),
            ({"category": "STATE", "anchor": THING}, "category"),
            ({"category": "state"}, "category"),
            ({"category": 5}, "category"),
            ({"anchor": ""}, "anchor"),
            ({"anchor": 5}, "anchor"),
            ({"anchor": "nothing"}, "anchor"),
        ):
            with pytest.raises(InvalidInputError, match=f"^{field}: "):
                await mute("s", user_id=USER, **arguments)  # pyright: ignore[reportArgumentType]
        with pytest.raises(SessionOwnershipError):
            await mute("s", category="STATE", user_id="mallory")
        with pytest.raises(SessionNotFoundError):
            await mute("other", category="STATE", user_id=USER)
    async with agent_memory(scripted(), summary={"mode": "full"}) as memory:
        await save(memory, "s", talk(60))
        await memory.drain()
        with pytest.raises(InvalidInputError, match=r"^summary\.mode: "):
            await memory.facts.mute("s", category="STATE", user_id=USER)


def test_the_command_mutes_and_unmutes(run: Run, folder: Path) -> None:
    said = [Message.user(f"My phone number is 555-01{n:02}") if n % 2 else Message.assistant("ok") for n in range(40)]
    run("import", write_sessions(folder / "f.jsonl", {"s": said}))
    run("summarize", "s")
    anchor = run("facts", "s", "--json").json[0]["anchor"]
    assert run("mute", "s", "--anchor", anchor).out == "muted\n"
    assert run("mute", "s", "--anchor", anchor).out == "was muted before\n"
    assert anchor not in {each["anchor"] for each in run("facts", "s", "--json").json}
    assert {each["muted"] for each in run("facts", "s", "--all", "--json").json if each["anchor"] == anchor} == {True}
    assert "(muted)" in run("facts", "s", "--all").out
    assert run("mute", "s", "--anchor", anchor, "--undo", "--json").json == {"muted": False, "changed": True}
    assert run("mute", "s").err.startswith("error: category: give either category or anchor")
