"""What an agent can read again, find and note by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from reactor_memory import Memory, Message, SessionOwnershipError, ToolCall, open_memory
from reactor_memory.adapters.session_tools import SessionTool, session_tools
from reactor_memory.models.memory_tools import MEMORY_TOOLS

pytestmark = pytest.mark.anyio

LOG = "".join(f"line {number}: value {number * 7}\n" for number in range(1, 1_001))


@pytest.fixture
async def memory() -> AsyncIterator[Memory]:
    async with open_memory("memory://") as memory:
        await memory.save_history(
            "s",
            [
                Message.user("Find the leak.", created_at=1_700_000_000_000_000),
                Message.assistant(
                    "I look.",
                    tool_calls=[
                        ToolCall(id="a", name="read_file", arguments={"path": "app.log"}),
                        ToolCall(id="b", name="bash", arguments={"cmd": "df"}),
                    ],
                ),
                Message.tool(LOG, tool_call_id="a"),
                Message.tool("the disk sda1 is full", tool_call_id="b"),
                Message.assistant("The disk is full."),
            ],
            user_id="u1",
        )
        yield memory


def tools_of(memory: Memory, user_id: str | None = "u1", agent_name: str | None = None) -> dict[str, SessionTool]:
    tools = session_tools(memory, "s", user_id=user_id, agent_name=agent_name)
    return {tool.name: tool for tool in tools}


async def test_a_message_is_read_whole_and_by_lines(memory: Memory) -> None:
    read = tools_of(memory)["memory_read"]
    whole = await read(seq=4)
    assert whole.endswith("the disk sda1 is full")
    assert whole.startswith("[message 4: tool, 20")
    some = await read(seq="#3", lines="120-122")
    assert some.splitlines()[1:] == ["line 120: value 840", "line 121: value 847", "line 122: value 854"]
    assert (await read(seq=3, lines=7)).splitlines()[1:] == ["line 7: value 49"]


async def test_a_long_message_tells_how_to_go_on(memory: Memory) -> None:
    read = tools_of(memory)["memory_read"]
    beginning = await read(seq=3)
    assert len(beginning) < 17_000
    assert beginning.splitlines()[-1].startswith("[… more; ask for lines ")
    assert beginning.splitlines()[-1].endswith("-1001]")


async def test_a_call_comes_with_its_results(memory: Memory) -> None:
    text = await tools_of(memory)["memory_read"](seq=2)
    assert '[call read_file {"path":"app.log"}]' in text
    assert "line 1: value 7" in text
    assert "the disk sda1 is full" in text


async def test_a_search_is_narrowed_by_place_and_tool(memory: Memory) -> None:
    search = tools_of(memory)["memory_search"]
    assert "sda1" in await search(words="disk")
    assert "#4" in await search(words="disk", tool="bash")
    assert "#5" not in await search(words="disk", tool="bash")
    assert await search(words="disk", tool="read_file") == "Nothing found."
    assert "#4" not in await search(words="disk", after=4)


async def test_a_note_stands_in_contexts_until_replaced_or_removed(memory: Memory) -> None:
    note = tools_of(memory)["memory_note"]
    for text in ("1. look\n2. mend", "1. mend"):
        assert await note(key="plan", text=text) == "Kept."
        assert await note(key="open", text="restart the host") == "Kept."
    shown = [message.content for message in (await memory.load_history("s", user_id="u1", budget=500)).part("pins")]
    assert [text.splitlines()[2:] for text in shown] == [["1. mend"], ["restart the host"]]
    assert await note(key="plan", text=None) == "Removed."
    assert len((await memory.load_history("s", user_id="u1", budget=500)).part("pins")) == 1


@pytest.mark.parametrize("how", ["withdraw", "erase"])
async def test_a_note_goes_with_what_it_may_tell_of(memory: Memory, how: str) -> None:
    await tools_of(memory)["memory_note"](key="plan", text="the disk sda1 is full")
    if how == "withdraw":
        await memory.withdraw("s", user_id="u1")
    else:
        await memory.save_history("s", [Message.user("thanks")], user_id="u1")
        await memory.erasure.erase("s", seq=4, user_id="u1")
    assert await memory.pins.list("s", user_id="u1") == ()


async def test_a_fork_takes_along_notes_that_were_there(memory: Memory) -> None:
    await tools_of(memory)["memory_note"](key="plan", text="mend")
    before = await memory.fork("s", at_seq=3, user_id="u1")
    behind = await memory.fork("s", at_seq=6, user_id="u1")
    assert await memory.pins.list(before.session_id, user_id="u1") == ()
    assert len(await memory.pins.list(behind.session_id, user_id="u1")) == 1


async def test_what_others_keep_for_themselves_is_not_read(memory: Memory) -> None:
    private = Message.assistant("between us: sesame", visibility="agent", author_id="a1")
    hidden = Message.system("never say sesame", visibility="system")
    await memory.save_history("s", [private, hidden], user_id="u1")
    for seq in (6, 7):
        assert "sesame" not in await tools_of(memory, agent_name="a2")["memory_read"](seq=seq)
    assert "sesame" in await tools_of(memory, agent_name="a1")["memory_read"](seq=6)


async def test_a_stranger_reads_nothing(memory: Memory) -> None:
    with pytest.raises(SessionOwnershipError):
        await memory.read_messages("s", user_id="u2")
    for name, arguments in (("memory_read", {"seq": 4}), ("memory_search", {"words": "disk"})):
        answer = await tools_of(memory, "u2")[name](**arguments)
        assert answer.startswith("Error: ")
        assert "sda1" not in answer


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("memory_read", {"seq": 99}, "seq"),
        ("memory_read", {"seq": "x"}, "seq"),
        ("memory_read", {"seq": True}, "seq"),
        ("memory_read", {}, "seq"),
        ("memory_read", {"seq": 3, "lines": "9-2"}, "lines"),
        ("memory_read", {"seq": 3, "line": 4}, "arguments"),
        ("memory_search", {"words": 5}, "words"),
        ("memory_search", {"words": "x", "limit": 0}, "limit"),
        ("memory_note", {"key": "", "text": "x"}, "key"),
        ("memory_note", {"key": "plan", "text": " "}, "text"),
        ("memory_note", {"key": "plan"}, "text"),
    ],
)
async def test_what_is_wrong_is_an_answer_that_names_it(
    memory: Memory, tool: str, arguments: dict[str, object], named: str
) -> None:
    assert (await tools_of(memory)[tool](**arguments)).startswith(f"Error: {named}")


async def test_declarations_have_the_form_of_each_provider(memory: Memory) -> None:
    for tool in session_tools(memory, "s"):
        assert tool.to_openai()["function"]["parameters"] == tool.input_schema
        assert tool.to_openai_responses()["name"] == tool.name
        assert tool.to_anthropic()["input_schema"] == tool.input_schema
        assert tool.to_gemini()["parameters_json_schema"] == tool.input_schema


@pytest.mark.parametrize("name", sorted(MEMORY_TOOLS))
async def test_what_an_agent_asked_its_memory_is_no_deed(memory: Memory, name: str) -> None:
    call = ToolCall(id="m", name=name, arguments={"key": "plan", "text": "book the zeppelin", "seq": 41})
    real = ToolCall(id="m", name="book_boat", arguments={"name": "Freya"})
    asked = [Message.assistant(tool_calls=[call]), Message.tool("the zeppelin, #41", tool_call_id="m")]
    done = [Message.assistant(tool_calls=[real]), Message.tool('{"booking": "B-77"}', tool_call_id="m")]
    await memory.save_history("s", [*asked, *done, *asked], user_id="u1")
    talk = [each for number in range(15) for each in (Message.user(f"and {number}?"), Message.assistant("yes"))]
    await memory.save_history("s", talk, user_id="u1")
    await memory.summarize("s", user_id="u1")
    told = " ".join(fact.value for fact in await memory.facts.list("s", user_id="u1"))
    assert "zeppelin" not in told
    assert "Freya" in told
    assert "B-77" in told
