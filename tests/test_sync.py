"""The library without awaiting: the same calls, wherever and from however many threads they come."""

from __future__ import annotations

import inspect
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from reactor_memory import InvalidInputError, Memory, Message, SessionOwnershipError, Settings, open_memory, sync
from reactor_memory.core.turn import Turn
from reactor_memory.errors import ConfigurationError, StoreClosedError
from reactor_memory.sync import SyncMemory, SyncTurn
from tests.scenes.tables import each_row

ROOT = Path(__file__).parents[1]


def settings(url: str) -> Settings:
    return Settings(store={"url": url})


@pytest.fixture(params=["memory://", "sqlite:///{}/memory.db"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SyncMemory]:
    with sync.open_memory(settings(request.param.format(tmp_path))) as memory:
        yield memory


def public(kind: type) -> set[str]:
    return {name for base in kind.__mro__[:-1] for name in vars(base) if not name.startswith("_")}


ALSO = {"memory", "container", "call", "entered", "close"}
"""What a `SyncMemory` has in its objects, and beside what a `Memory` has."""


def features(kind: type) -> dict[str, property]:
    return {name: each for name in public(kind) if isinstance(each := getattr(kind, name), property)}


def test_both_doors_have_the_same_calls_and_features() -> None:
    assert public(SyncMemory) == public(Memory)
    assert features(SyncMemory).keys() == features(Memory).keys()
    with sync.open_memory(settings("memory://")) as memory:
        assert {*vars(memory)} - {"_part", "_loop"} == ALSO
    assert inspect.signature(sync.open_memory).parameters == inspect.signature(open_memory).parameters


@each_row("name", sorted(public(Memory) - features(Memory).keys()))
def test_every_call_is_there_with_its_arguments(name: str) -> None:
    same_arguments(getattr(Memory, name), getattr(SyncMemory, name))


@each_row("name", sorted(features(Memory)))
def test_every_feature_is_there_with_its_calls(name: str, tmp_path: Path) -> None:
    on: dict[str, Any] = {"history": {"strategy": "progressive"}, "search": {"enabled": True}}
    with sync.open_memory(Settings(store={"url": "memory://"}, **on)) as memory:
        awaited, ours = type(getattr(memory.memory, name)), type(getattr(memory, name))
    calls = public(awaited) - {"manager"}
    assert public(ours) == calls, name
    for call in calls - features(awaited).keys() - {"tool"}:
        same_arguments(getattr(awaited, call), getattr(ours, call))


def same_arguments(theirs: Callable[..., Any], ours: Callable[..., Any]) -> None:
    assert [*inspect.signature(ours).parameters.values()] == [*inspect.signature(theirs).parameters.values()]
    assert not inspect.iscoroutinefunction(ours)


def test_a_turn_has_what_an_awaited_one_has() -> None:
    assert public(SyncTurn) >= public(Turn)
    for name in public(Turn) - features(Turn).keys() - {"stream"}:
        ours, awaited = (inspect.signature(vars(kind)[name]) for kind in (SyncTurn, Turn))
        assert ours.parameters == awaited.parameters


def test_features_are_called_without_awaiting(memory: SyncMemory) -> None:
    memory.save_history("s", ["I eat no peanuts.", Message.assistant("Noted.")], user_id="u")
    assert memory.pins.add("s", seq=1, user_id="u").text == "I eat no peanuts."
    assert [hit.seq for hit in memory.recall("s", "peanuts", user_id="u")] == [1]
    tool = memory.notes.tool("u", "agent")
    assert (tool.name, "append" in tool.operations) == ("manage_long_term_memory", True)
    assert {*tool.input_schema["properties"]} >= {"operation", "content"}
    assert "Keep notes" in tool.description
    assert "vegan" not in memory.notes.read("u", "agent").text
    tool(operation="append", content="vegan")
    assert memory.notes.read("u", "agent").text == "vegan"
    with pytest.raises(ConfigurationError, match=r"search\.enabled"):
        _ = memory.search


def test_tiers_tell_a_listener(tmp_path: Path) -> None:
    tiers = {"recent_count": 2, "condensed_count": 2, "auto_threshold": 4}
    told: list[str] = []
    on: dict[str, Any] = {"history": {"strategy": "progressive"}, "tiers": tiers}
    with sync.open_memory(Settings(store={"url": "memory://"}, **on)) as memory:
        assert memory.tiers.auto_threshold == 4
        memory.tiers.listen(lambda session_id, report: told.append(session_id))
        memory.save_history("s", [*["hi", Message.assistant("hello")] * 5])
        memory.drain()
    assert told == ["s"]


def test_a_conversation(memory: SyncMemory) -> None:
    saved = memory.save_history("s", [Message.user("hi"), Message.assistant("hello")], user_id="u")
    assert (saved.first_seq, saved.last_seq) == (1, 2)
    with memory.turn("s", Message.user("and now?"), user_id="u") as turn:
        assert [message.content for message in turn.messages()] == ["hi", "hello", "and now?"]
        assert turn.context.report.why(1).outcome == "kept"
        turn.answer("this")
    assert [message.content for message in memory.stream_messages("s", user_id="u")] == [
        "hi",
        "hello",
        "and now?",
        "this",
    ]
    assert memory.get_session("s", user_id="u").last_seq == 4
    assert memory.load_history("s", user_id="u").messages[-1].content == "this"


def test_a_streamed_answer_is_saved_when_it_is_complete(memory: SyncMemory) -> None:
    with memory.turn("s", Message.user("hi")) as turn:
        assert list(turn.stream(iter(["hel", "lo"]))) == ["hel", "lo"]
    assert memory.read_messages("s")[-1].content == "hello"


def test_a_stream_reads_all_pages(memory: SyncMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "PAGE", 2)
    memory.save_history("s", [Message.user(str(number)) for number in range(5)])
    assert [message.seq for message in memory.stream_messages("s", after=1)] == [2, 3, 4, 5]


def test_errors_come_as_they_are(memory: SyncMemory) -> None:
    memory.save_history("s", [Message.user("hi")], user_id="u")
    with pytest.raises(SessionOwnershipError):
        memory.load_history("s", user_id="other")
    with pytest.raises(InvalidInputError, match="limit: must be at least 1"):
        memory.list_sessions(limit=0)


def test_a_failing_turn_raises_its_error_and_keeps_the_question(memory: SyncMemory) -> None:
    for failure in (ValueError("no"), KeyboardInterrupt()):
        with pytest.raises(type(failure)) as raised, memory.turn("s", Message.user("hi")):
            raise failure
        assert raised.value is failure
    assert [message.content for message in memory.read_messages("s")] == ["hi", "hi"]


def test_a_turn_that_cannot_be_saved_says_so(memory: SyncMemory) -> None:
    with pytest.raises(InvalidInputError), memory.turn("s", Message.user("hi")) as turn:
        turn.answer("\0")


def test_other_parts_are_called_in_the_same_way(memory: SyncMemory) -> None:
    memory.save_history("s", [Message.user("hi")])
    assert memory.call(memory.container.message_store().check).problems == ()
    assert memory.call(memory.container.message_counter().of_text, "hello") == 1


@pytest.mark.anyio
async def test_it_works_inside_a_running_loop(tmp_path: Path) -> None:
    with sync.open_memory(settings(f"sqlite:///{tmp_path}/memory.db")) as memory:
        with memory.turn("s", Message.user("hi")) as turn:
            turn.answer("hello")
        assert len(memory.read_messages("s")) == 2


def test_a_call_from_inside_is_refused_without_awaiting_itself(memory: SyncMemory) -> None:
    with pytest.raises(RuntimeError, match="event loop thread"):
        memory.call(lambda: memory.read_messages("s"))
    assert memory.read_messages("s") == ()


def test_many_threads_share_it(memory: SyncMemory) -> None:
    def talk(number: int) -> None:
        for _ in range(10):
            with memory.turn("s", Message.user(f"from {number}")) as turn:
                turn.answer(f"to {number}")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(talk, range(8)))
    assert [message.seq for message in memory.read_messages("s")] == list(range(1, 161))
    messages = memory.load_history("s", budget=100_000).messages
    assert len(messages) == 160
    for asked, answered in zip(messages[::2], messages[1::2], strict=True):
        assert asked.content.replace("from", "to") == answered.content


def test_after_the_block_every_call_is_refused() -> None:
    with sync.open_memory(settings("memory://")) as memory:
        pass
    with pytest.raises(StoreClosedError):
        memory.get_session("s")
    with pytest.raises(StoreClosedError), memory.turn("s", Message.user("hi")):
        pass


def test_nothing_stays_behind() -> None:
    before = set(threading.enumerate())
    with pytest.raises(ValueError, match="mine"), sync.open_memory(settings("memory://")):
        raise ValueError("mine")
    with pytest.raises(ConfigurationError), sync.open_memory(settings("nowhere://")):
        pass
    assert {thread for thread in set(threading.enumerate()) - before if "portal" in thread.name} == set()


INTERRUPTED = """
import sys
import anyio
from reactor_memory import Message, Settings, sync

broken_off = anyio.Event()

async def wait_for_ever():
    await anyio.sleep(0.5)  # until the main thread waits for this call
    print("waiting", flush=True)
    try:
        await anyio.sleep_forever()
    finally:
        broken_off.set()

async def see_it_broken_off():
    with anyio.fail_after(30):
        await broken_off.wait()

try:
    with sync.open_memory(Settings(store={"url": sys.argv[1]})) as memory:
        try:
            with memory.turn("s", Message.user("hi")) as turn:
                memory.call(wait_for_ever)
        finally:
            memory.call(see_it_broken_off)
            kept = [message.content for message in memory.read_messages("s")]
except KeyboardInterrupt:
    print("interrupted", kept, flush=True)
"""


@pytest.mark.slow
def test_control_c_breaks_off_the_call_and_closes_everything(tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED, f"sqlite:///{tmp_path}/memory.db"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "waiting\n"
            process.send_signal(signal.SIGINT)
            assert process.stdout.read() == "interrupted ['hi']\n"
            assert process.wait(60) == 0
        finally:
            process.kill()
    assert not (tmp_path / "memory.db-wal").exists()
