"""The agents of this server, made anew for every request.

An agent that is kept between requests, with the session as a part of it, would sooner or later answer one session
with the memory of another.
"""

from __future__ import annotations

import logging
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from starlette.exceptions import HTTPException

from reactor_memory import Memory, ReactorMemoryError
from reactor_memory.adapters.langchain import LongTermMemoryTool, ReactorMemoryMiddleware

log = logging.getLogger(__name__)

AGENTS = {
    "assistant": "You are a helpful assistant.",
    "travel": "You plan journeys. Ask for dates and preferences before you propose anything.",
}
"""The system prompt of each agent, by its id."""


def check_agent(agent_id: str) -> None:
    """404 for an agent that this server does not have."""
    if agent_id not in AGENTS:
        raise HTTPException(404, f"no such agent; there are {', '.join(AGENTS)}")


async def answer(
    memory: Memory, model: BaseChatModel, *, user_id: str, agent_id: str, session_id: str, text: str
) -> str:
    """One turn: what is said goes into the session. 502 if the model fails; errors of the memory go on."""
    agent = _agent(memory, model, user_id, agent_id, session_id)
    try:
        state = await agent.ainvoke({"messages": [HumanMessage(text)]})
    except ReactorMemoryError:
        raise
    except Exception as error:
        log.warning("the model failed with %s", type(error).__name__)
        raise HTTPException(502, "the model did not answer; say it again") from None
    return state["messages"][-1].text


def _agent(memory: Memory, model: BaseChatModel, user_id: str, agent_id: str, session_id: str) -> Any:
    notes = LongTermMemoryTool(memory, user_id, agent_id)
    middleware = ReactorMemoryMiddleware(memory, session_id=session_id, user_id=user_id, agent_name=agent_id)
    return create_agent(model, [notes], system_prompt=AGENTS[agent_id], middleware=[middleware])
