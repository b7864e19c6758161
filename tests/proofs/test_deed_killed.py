"""A process that is killed between a call and its result: memory tells the rest once, and the call as unknown."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from reactor_memory import Memory, Message, open_memory
from reactor_memory.models.ledger import INTERRUPTED_MARK
from reactor_memory.models.turns import INTERRUPTED
from tests.acceptance.scenes import USER, settings
from tests.proofs.deed_process import SAID
from tests.proofs.processes import module_process, rest

pytestmark = pytest.mark.anyio

Way = Literal["next turn", "resume and answer", "resume, and the result comes", "resume, and again"]


async def go_on(memory: Memory, way: Way) -> None:
    if way == "next turn":
        return
    async with memory.turn("s", resume=True, user_id=USER) as turn:
        assert turn.is_resumed
        assert [message.content for message in turn.messages()].count(SAID) == 1
        if way == "resume, and the result comes":
            await turn.add(Message.tool('{"status": "refunded", "amount_eur": 80}', tool_call_id="c2"))
        if way == "resume, and again":
            again = turn.messages()[-2].tool_calls[0]
            await turn.add(
                Message.assistant(tool_calls=[again]), Message.tool('{"status": "refunded"}', tool_call_id="c2")
            )
        turn.answer("It is cancelled.")


def check_memory(told: str, way: Way) -> None:
    refunds = [line for line in told.splitlines() if "refund_payment" in line]
    unknown = [line for line in refunds if INTERRUPTED_MARK.strip() in line]
    assert len(unknown) == (0 if way == "resume, and the result comes" else 1), told
    if way in ("next turn", "resume and answer"):
        assert refunds == unknown, told
        assert told.splitlines().count("cancel_order: A-1042 -> status=cancelled") == 1, told
    assert told.count(SAID) == 1
    assert "Sunny" not in "".join(refunds)


async def test_memory_of_a_killed_turn_tells_what_is_known(tmp_path: Path) -> None:
    await check_killed(tmp_path, "next turn")


@pytest.mark.slow
@pytest.mark.parametrize("way", ["resume and answer", "resume, and again", "resume, and the result comes"])
async def test_memory_of_a_turn_killed_and_taken_up(tmp_path: Path, way: Way) -> None:
    await check_killed(tmp_path, way)


async def check_killed(tmp_path: Path, way: Way) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    with module_process("tests.proofs.deed_process", url) as process:
        assert [line.strip() for line in rest(process)] == ["ack deed", "ack call"]
        assert process.wait() == -9
    async with open_memory(settings(url)) as memory:
        await go_on(memory, way)
        for number in range(14):
            talk = [Message.user(f"What is the weather like in town {number}?"), Message.assistant("Sunny.")]
            await memory.save_history("s", talk, user_id=USER)
        await memory.drain()
        small = await memory.load_history("s", user_id=USER, budget=250, query="")
        assert small.report.window_start_seq is not None
        assert small.report.window_start_seq > 8
        check_memory("\n".join(each.content for each in small.messages if each.seq is None), way)
        whole = [message.content for message in (await memory.load_history("s", user_id=USER, budget=4000)).messages]
    assert whole.count(SAID) == 1
    assert (INTERRUPTED in whole) == (way != "resume, and the result comes")
