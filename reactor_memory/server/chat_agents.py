"""Who answers in the chat server: a model with the memory behind it, or an agent with tools that a plug-in brings."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Protocol

from reactor_memory.core.validation import is_id
from reactor_memory.features.chat.chat_model import ChatModel
from reactor_memory.memory import Memory
from reactor_memory.models import Message, Value
from reactor_memory.server import problems
from reactor_memory.server.problems import ProblemError
from reactor_memory.settings.service_sections import ServedAgent
from reactor_memory.wiring.service_container import ServiceContainer

MODEL = "model"
"""The name of the agent that asks the chat model of `chat.provider`, without tools."""


class Asked(Value, frozen=True, kw_only=True):
    """What a user says to an agent in a session; `system` is the prompt that the settings give the agent."""

    user_id: str
    agent_id: str
    session_id: str
    message: str
    system: str | None = None


class ChatAgent(Protocol):
    """Answers in the chat server: the plug point `chat_agent`. One for all users, agents and sessions: what belongs to
    one of them is made anew for each turn.
    """

    def answer(self, memory: Memory, asked: Asked) -> AsyncGenerator[str]:
        """The answer piece by piece; the turn is stored when it ends. Raises `ChatModelError` if the model fails, and
        what the memory raises. Closing the generator stops the answer.
        """
        ...


class ModelAgent:
    """Asks `model` in a turn of the memory, with the notes of the agent about the user in the context."""

    def __init__(self, model: Callable[[], ChatModel]) -> None:
        self._model = model

    async def answer(self, memory: Memory, asked: Asked) -> AsyncGenerator[str]:
        turn_of = memory.turn(
            asked.session_id,
            Message.user(asked.message),
            user_id=asked.user_id,
            agent_name=asked.agent_id,
            system=asked.system,
        )
        async with (
            turn_of as turn,
            aclosing(self._model().stream(turn.messages(), system=asked.system)) as pieces,
        ):
            async for piece in turn.stream(pieces):
                yield piece


class ChatAgents:
    """The agents that the settings name; `usual` answers where they name nobody else."""

    def __init__(
        self, known: Mapping[str, ServedAgent], *, any_agent: bool, usual: ChatAgent, named: Mapping[str, ChatAgent]
    ) -> None:
        self._known = known
        self._any_agent = any_agent
        self._usual = usual
        self._named = named

    @property
    def ids(self) -> list[str]:
        return list(self._known)

    def check(self, agent_id: str) -> ServedAgent:
        """Raises `ProblemError`: 404 for an agent that there is not."""
        found = self._known.get(agent_id)
        if found is not None:
            return found
        if self._any_agent and is_id(agent_id):
            return ServedAgent()
        raise ProblemError(problems.NOT_FOUND, f"there is no such agent; there are: {', '.join(self._known) or 'none'}")

    def of(self, agent_id: str) -> tuple[ChatAgent, str | None]:
        """Who answers, and the system prompt."""
        found = self.check(agent_id)
        return self._named.get(found.agent or "", self._usual), found.system or None


def agents_of(container: ServiceContainer, agent: ChatAgent | None = None) -> ChatAgents:
    """Made by the settings; `agent` answers where they say nothing else. Raises `ConfigurationError` for a name that no
    plug-in provides.
    """
    settings = container.service_settings()
    asked = settings.chat_server
    system = settings.chat.system
    names = {asked.agent, *(each.agent for each in asked.agents.values() if each.agent)}
    named: dict[str, ChatAgent] = {MODEL: ModelAgent(container.chat_model)}
    for name in sorted(names - {MODEL}):
        make = container.conditions().factory("chat_agent", name, key="chat_server.agent")
        named[name] = make(settings)
    known = {name: each.model_copy(update={"system": each.system or system}) for name, each in asked.agents.items()}
    return ChatAgents(known, any_agent=asked.any_agent, usual=agent or named[asked.agent], named=named)
