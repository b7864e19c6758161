"""One long turn by many processes, each of which kills itself (``SIGKILL``) after a step of it.

``URL KILLS``: so often a process of its own opens the database, checks what the last one left, goes on with the turn,
and dies: after it was told that a step is stored, or a moment later, while the next one is being stored. It prints
``ack NAME`` for what it was told is stored, and ``bad PROBLEM``.
"""

from __future__ import annotations

import asyncio
import random
import sys

import anyio

from reactor_memory import Memory, Message, ToolCall, open_memory
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.verification import verify
from tests.acceptance.scenes import USER, settings
from tests.proofs.dying_processes import die, each_killed, say
from tests.proofs.provider_rules import provider_problems

QUESTION = "Which of the three hundred pages names the boiler?"
BUDGET = 3000


def call(number: int) -> Message:
    return Message.assistant(tool_calls=[ToolCall(id=f"c{number}", name="read", arguments={"page": number})])


def result(number: int) -> Message:
    return Message.tool(f"page {number} names valve {number * 7919 % 1000}", tool_call_id=f"c{number}")


def check(memory: Memory, what: str, context: Context) -> None:
    count = memory.container.message_counter().of
    for problem in (*provider_problems(context), *verify(context, count=count)):
        say("bad", what, problem)
    if what != "load" and QUESTION not in [message.content for message in context.messages]:
        say("bad", what, "does not show the question")


async def go_on(url: str, number: int, chance: random.Random) -> None:
    """Step `number`: a call and its result, together or one after the other."""
    async with open_memory(settings(url)) as memory:
        if number:
            check(memory, "load", await memory.load_history("s", user_id=USER, budget=BUDGET))
        async with memory.turn("s", QUESTION, user_id=USER, budget=BUDGET, resume=True) as turn:
            check(memory, "turn", turn.current_context())
            if number % 3:
                await turn.add(call(number), result(number))
                say("ack", f"call{number}")
            else:
                await turn.add(call(number))
                say("ack", f"call{number}")
                if number % 2:
                    die()
                await turn.add(result(number))
            say("ack", f"result{number}")
            check(memory, "step", turn.current_context())
            if number % 4 == 3:
                asyncio.get_running_loop().call_later(chance.random() * 0.004, die)
                await turn.add(call(number + 1_000), result(number + 1_000))
                await anyio.sleep_forever()
            die()


if __name__ == "__main__":
    each_killed(int(sys.argv[2]), lambda number: go_on(sys.argv[1], number, random.Random(number)))
