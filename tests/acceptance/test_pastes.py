"""Long pastes leave no context half empty: 48 inputs of four kinds, as large as they come."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import pytest

from reactor_memory import Message, open_memory
from tests.acceptance.scenes import USER, save

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

LEAST_FILL = {600: 0.91, 1_000: 0.94, 1_500: 0.99}
"""What is left at a small budget holds neither a message nor the beginning of one."""
TEXT = "harbour ledger copper window season basket thunder village engine marble orchard signal"
WORDS = TEXT.split()
JAPANESE = "今日は港の倉庫で銅の帳簿を確認しました。窓の季節に籠を運び、雷の村で石を見ました。信号は午後に変わります。"


def prose(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=9)) + ". "


def log_line(chance: random.Random) -> str:
    return (
        f"2026-03-{chance.randint(10, 28)} WARN worker-{chance.randint(1, 9)} request {chance.getrandbits(48):012x}\n"
    )


def code(chance: random.Random) -> str:
    return f"def handler_{chance.randint(1, 999)}(request):\n    return request.get('key_{chance.randint(1, 99)}')\n"


KINDS: Mapping[str, Callable[[random.Random], str]] = {
    "japanese": lambda _: JAPANESE,
    "english": prose,
    "log": log_line,
    "code": code,
}


def pasted(kind: str, characters: int) -> str:
    chance, text = random.Random(4), ""
    while len(text) < characters:
        text += KINDS[kind](chance)
    return text[:characters]


def talk(kind: str, turn: int) -> list[Message]:
    if kind == "japanese":
        return [
            Message.user(f"質問{turn}：{JAPANESE[: 30 + turn % 20]}"),
            Message.assistant(f"回答{turn}：{JAPANESE[10:60]}"),
        ]
    chance = random.Random(turn)
    return [Message.user(f"Question {turn}: {prose(chance)}"), Message.assistant(f"Answer {turn}: {prose(chance) * 2}")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ago", [1, 2, 6])
async def test_a_long_paste_leaves_a_context_full(kind: str, ago: int) -> None:
    for characters in (3_000, 8_000, 15_000, 25_000):
        async with open_memory("memory://") as memory:
            said = [message for turn in range(36) for message in talk(kind, turn)]
            said[-2 * ago] = Message.user(f"See this:\n{pasted(kind, characters)}")
            await save(memory, "s", said)
            await memory.drain()
            for budget, least in LEAST_FILL.items():
                context = await memory.load_history("s", user_id=USER, budget=budget, message="Go on.", query="")
                assert context.report.total_tokens >= least * budget, (characters, budget)
