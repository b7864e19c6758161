"""The memory of an agent as a middleware: what the model sees, and what of a run is kept.

The state of the agent stays as it is. Before each call of the model the messages of the request are replaced by the
context of the session: its memory and its window, then the turn that goes on. At the end of a run the messages that it
added are saved, each under a key of its id, so that no retry, resumed run or crash between the two keeps one twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Annotated, Any, NotRequired, cast

from langchain.agents.middleware.types import AgentMiddleware, AgentState, ModelRequest, ModelResponse, PrivateStateAttr
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_config
from langgraph.runtime import Runtime

from reactor_memory.adapters.langchain.message_conversion import from_messages, to_message
from reactor_memory.adapters.loop_bridge import Crossing
from reactor_memory.errors import InvalidInputError
from reactor_memory.memory import Memory
from reactor_memory.models import JsonObject, Value
from reactor_memory.models.turns import in_exchanges

BEGINNING = ""
"""Stands for the id of the message before the first one."""


class MemoryState(AgentState[Any]):
    """`memory_saved_until` is the id of the message up to which the session has the messages of the state."""

    memory_saved_until: NotRequired[Annotated[str, PrivateStateAttr]]


class Scope(Value, frozen=True, kw_only=True):
    """Whose session a run belongs to."""

    session_id: str
    user_id: str | None


class ReactorMemoryMiddleware(AgentMiddleware[MemoryState, Any, Any]):
    """Gives each call of the model the context of the session, and saves what a run adds.

    A run belongs to the session `session_id`; without one, to that of the run: ``session_id`` of its context or of
    ``config["configurable"]``, else the ``thread_id``. `user_id` is who asks, found alike. `budget` (tokens) holds for
    the messages; without it, system prompt and tools are counted, too. `agent_name` is whose notes the context begins
    with, if ``notes.enabled``. Runs may be on any thread and event loop.

    A run that fails keeps nothing of its turn until a later run of its thread saves what the checkpoint has of it. A
    thread that is older than its middleware begins with the turn under way. Raises what `load_history` and
    `save_history` raise, and `InvalidInputError` for a run without a session.
    """

    state_schema = MemoryState

    def __init__(
        self,
        memory: Memory,
        *,
        session_id: str | None = None,
        user_id: str | None = None,
        agent_name: str | None = None,
        budget: int | None = None,
    ) -> None:
        super().__init__()
        self.tools = []
        self._memory = memory
        self._session_id = session_id
        self._user_id = user_id
        self._agent_name = agent_name
        self._budget = budget
        self._crossing = Crossing(memory.loop)

    # -- the hooks ----------------------------------------------------------------------------------------------

    def before_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Note where the run begins, if no run before it did."""
        return {"memory_saved_until": _saved_until(state)}

    async def abefore_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        return self.before_agent(state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        scope = self._scope(request.runtime)
        messages = self._crossing.call(lambda: self._context(request, scope))
        return handler(request.override(messages=cast("Any", messages)))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        scope = self._scope(request.runtime)
        messages = await self._crossing.acall(lambda: self._context(request, scope))
        return await handler(request.override(messages=cast("Any", messages)))

    def after_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        scope = self._scope(runtime)
        self._crossing.call(lambda: self._save(_unsaved(state), scope))
        return _all_saved(state)

    async def aafter_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        scope = self._scope(runtime)
        await self._crossing.acall(lambda: self._save(_unsaved(state), scope))
        return _all_saved(state)

    # -- what they do -------------------------------------------------------------------------------------------

    async def _context(self, request: ModelRequest[Any], scope: Scope) -> list[BaseMessage]:
        """What the model sees. What the state has before the current turn is saved first, so that nothing is missing
        between the two.
        """
        unsaved = _unsaved(request.state)
        turn_start = _turn_start(unsaved)
        await self._save(unsaved[:turn_start], scope)
        current = request.messages[_turn_start(request.messages) :] if turn_start < len(unsaved) else []
        context = await self._memory.load_history(
            scope.session_id,
            user_id=scope.user_id,
            agent_name=self._agent_name,
            message=to_message(current[0]) if current else None,
            traffic=map(to_message, current[1:]),
            budget=self._budget,
            system=request.system_prompt,
            tools=map(_declaration, request.tools),
        )
        return from_messages(in_exchanges(context.messages))

    async def _save(self, messages: Sequence[BaseMessage], scope: Scope) -> None:
        """One by one: a batch would be another one when it is repeated after more was added."""
        for message in messages:
            await self._memory.save_history(
                scope.session_id,
                [to_message(message)],
                user_id=scope.user_id,
                idempotency_key=_key_of(message),
                agent_name=self._agent_name,
            )

    def _scope(self, runtime: Runtime[Any]) -> Scope:
        context = cast("object", runtime.context)
        session_id = self._session_id or _named(context, "session_id") or _named(context, "thread_id")
        if session_id is None:
            problem = 'is missing: run the agent with config={"configurable": {"thread_id": ...}}'
            raise InvalidInputError("thread_id", problem)
        return Scope(session_id=session_id, user_id=self._user_id or _named(context, "user_id"))


def _named(context: object, name: str) -> str | None:
    """A value of the context of a run, else of its configuration."""
    if isinstance(context, Mapping):
        value = cast("Mapping[str, Any]", context).get(name)
    else:
        value = getattr(context, name, None)
    if value is None:  # LangGraph's server configures an empty user where nobody signed in
        value = get_config().get("configurable", {}).get(name) or None
    return None if value is None else str(value)


# -- which messages are new -------------------------------------------------------------------------------------------


def _saved_until(state: Any) -> str:
    """The id of the last message that the session has: as a run before noted, else the one before the input."""
    messages: Sequence[BaseMessage] = state["messages"]
    noted = state.get("memory_saved_until")
    if noted == BEGINNING or any(message.id == noted for message in messages if noted):
        return noted
    start = _input_start(messages)
    return (messages[start - 1].id or BEGINNING) if start else BEGINNING


def _unsaved(state: Any) -> Sequence[BaseMessage]:
    messages: Sequence[BaseMessage] = state["messages"]
    saved_until = _saved_until(state)
    if saved_until == BEGINNING:
        return messages
    position = next(index for index, message in enumerate(messages) if message.id == saved_until)
    return messages[position + 1 :]


def _all_saved(state: Any) -> dict[str, Any] | None:
    messages: Sequence[BaseMessage] = state["messages"]
    return {"memory_saved_until": messages[-1].id or BEGINNING} if messages else None


def _input_start(messages: Sequence[BaseMessage]) -> int:
    """Where the newest input begins: with the messages since the model or a tool had the word before it."""
    start = _turn_start(messages)
    while start and not isinstance(messages[start - 1], (AIMessage, ToolMessage)):
        start -= 1
    return start


def _turn_start(messages: Sequence[BaseMessage]) -> int:
    """Where the newest user message stands; behind the last message if there is none."""
    for index in range(len(messages) - 1, -1, -1):
        if isinstance(messages[index], HumanMessage):
            return index
    return len(messages)


def _key_of(message: BaseMessage) -> str | None:
    """The key under which a message is saved once. Every message in the state of an agent has an id."""
    return f"langchain {blake2b(message.id.encode(), digest_size=24).hexdigest()}" if message.id else None


def _declaration(tool: BaseTool | dict[str, Any]) -> JsonObject:
    return convert_to_openai_tool(tool) if isinstance(tool, BaseTool) else tool
