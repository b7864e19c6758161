"""Runs of an agent in one session, each in a process that kills itself (``SIGKILL``).

``URL KILLS``: so often a process of its own begins a run, and dies: in a tool, as the model is asked again, or a moment
later, while the next step is being stored. It prints ``ack NAME`` for what the SDK had handed to the session before it
asked the model again, and ``bad PROBLEM`` for an input that a model would refuse.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from typing import Any

from agents import Agent, ModelResponse, RunConfig, Runner, Usage, function_tool

from reactor_memory import open_memory
from reactor_memory.adapters.openai_agents import ReactorMemorySession
from tests.acceptance.scenes import USER, settings
from tests.adapters.openai_agents.scripted import ScriptedModel, calls, thinks
from tests.proofs.dying_processes import die, each_killed, say

STEPS = 3
BUDGET = 4000


def problems(items: list[dict[str, Any]]) -> list[str]:
    """What the Responses API refuses: a call or an output without the other, or two of one."""
    called = [item["call_id"] for item in items if item.get("type") == "function_call"]
    told = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    return [f"{name} {called.count(name)} calls {told.count(name)} outputs" for name in {*called, *told} if
            (called.count(name), told.count(name)) != (1, 1)]  # fmt: skip


class CallingModel(ScriptedModel):
    """Calls the tool `STEPS` times, two calls at once where the number of the run is even; then it dies."""

    def __init__(self, number: int, chance: random.Random) -> None:
        super().__init__()
        self._number = number
        self._chance = chance
        self._step = 0

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:  # noqa: A002
        items = [dict(item) for item in input]
        for problem in problems(items):
            say("bad", problem)
        prefix = f"r{self._number}-"
        for item in items:
            if str(item.get("call_id", "")).startswith(prefix) and item["type"] == "function_call_output":
                say("ack", item["call_id"])
        if self._step == STEPS:
            die()
        if self._step and self._number % 3 == 2:
            asyncio.get_running_loop().call_later(self._chance.random() * 0.006, die)
        self._step += 1
        names = [f"{prefix}{self._step}", *([f"{prefix}{self._step}b"] if self._number % 2 == 0 else [])]
        made = [calls("read", json.dumps({"name": name}), name) for name in names]
        return ModelResponse(output=[thinks("next"), *made], usage=Usage(), response_id=None)


async def run(url: str, number: int) -> None:
    chance = random.Random(number)

    @function_tool
    async def read(name: str) -> str:
        """Read a page."""
        if number % 3 == 1 and name.endswith("-2"):
            die()
        return f"page {name}"

    async with open_memory(settings(url)) as memory:
        session = ReactorMemorySession(memory, "s", user_id=USER, budget=BUDGET)
        agent = Agent(name="reader", model=CallingModel(number, chance), tools=[read])
        await Runner.run(agent, f"go on {number}", session=session, run_config=RunConfig(tracing_disabled=True))


if __name__ == "__main__":
    each_killed(int(sys.argv[2]), lambda number: run(sys.argv[1], number))
