"""The memory of an agent as a middleware: what the model sees, and what of a run is kept.

The state of the agent stays as it is. Before each call of the model the messages of the request are replaced by the
context of the session: its memory and its window, then the turn that goes on. What a run adds is kept step by step: the
input when it begins, each answer of the model before its tools run, each result before the next call; what the state no
longer holds is taken back (`thread_log`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Annotated, Any, NotRequired, cast
from uuid import UUID

from langchain.agents.middleware.types import AgentMiddleware, AgentState, ModelRequest, ModelResponse, PrivateStateAttr
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_config
from langgraph.runtime import Runtime

from reactor_memory.adapters.langchain.message_conversion import from_messages, to_message
from reactor_memory.adapters.langchain.thread_log import ThreadLog, logs_of
from reactor_memory.adapters.loop_bridge import Crossing
from reactor_memory.errors import InvalidInputError
from reactor_memory.memory import Memory
from reactor_memory.models import JsonObject, Value
from reactor_memory.models.tool_roles import HINTS, hints_in
from reactor_memory.models.turns import in_exchanges

BEGINNING = ""
"""Stands for the id of the message before the first one."""


LATEST = 6
"""So many checkpoints are asked for the thread of a state that does not name it: the newest are of the run itself."""


class MemoryState(AgentState[Any]):
    """`memory_saved_until` is the id of the message up to which the session has the messages of the state, and
    `memory_thread` marks what was kept of the thread. It outlives no checkpointer: a state that begins anew takes back
    nothing of what others said in its session. `memory_beside` names runs of the thread that the state never held.
    """

    memory_saved_until: NotRequired[Annotated[str, PrivateStateAttr]]
    memory_thread: NotRequired[Annotated[str, PrivateStateAttr]]
    memory_beside: NotRequired[Annotated[list[str], PrivateStateAttr]]


class Scope(Value, frozen=True, kw_only=True):
    """Whose session a run belongs to; `depth` names its graph among those that call one another."""

    session_id: str
    user_id: str | None
    depth: str = ""


class ReactorMemoryMiddleware(AgentMiddleware[MemoryState, Any, Any]):
    """Gives each call of the model the context of the session, and saves what a run adds.

    A run belongs to the session `session_id`; without one, to that of the run: ``session_id`` of its context or of
    ``config["configurable"]``, else the ``thread_id``. `user_id` is who asks, found alike. `budget` (tokens) holds for
    the messages; without it, system prompt and tools are counted, too. `agent_name` is whose notes the context begins
    with, if ``notes.enabled``. Runs may be on any thread and event loop.

    A run that fails or is killed keeps its steps. Messages that leave the state (`RemoveMessage`, a run from an earlier
    checkpoint) or have other words under their id leave the session, too: what stood before others is erased. An agent
    that another one with memory calls (a sub-agent) has a session of its own, as long as none is named for it. A
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
        """Note where the run begins, if no run before it did, and keep its input."""
        known = _thread_of(state)
        if known is None and _is_kept():
            with suppress(NotImplementedError):  # a checkpointer that is asked with await
                known = _thread_in(_checkpointer().list(_latest(), limit=LATEST))
        scope = self._scope(runtime)
        known = known or self._crossing.call(lambda: self._thread_with(state, scope))
        noted = {"memory_saved_until": _saved_until(state), "memory_thread": known or _begun_by(state)}
        at = _loaded_at(runtime)
        self._crossing.call(lambda: self._follow({**state, **noted}, scope, begins=True, loaded_at=at))
        return noted

    async def abefore_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        known = _thread_of(state)
        if known is None and _is_kept():
            with suppress(NotImplementedError):
                known = _thread_in([each async for each in _checkpointer().alist(_latest(), limit=LATEST)])
        scope = self._scope(runtime)
        known = known or await self._crossing.acall(lambda: self._thread_with(state, scope))
        noted = {"memory_saved_until": _saved_until(state), "memory_thread": known or _begun_by(state)}
        at = _loaded_at(runtime)
        await self._crossing.acall(lambda: self._follow({**state, **noted}, scope, begins=True, loaded_at=at))
        return noted

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        scope = self._scope(request.runtime)
        messages = self._crossing.call(lambda: self._context(request, scope))
        try:
            return handler(request.override(messages=cast("Any", messages)))
        except BaseException:
            self._log(request.state, scope).end(*_new(request.state))
            raise

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        scope = self._scope(request.runtime)
        messages = await self._crossing.acall(lambda: self._context(request, scope))
        try:
            return await handler(request.override(messages=cast("Any", messages)))
        except BaseException:
            self._log(request.state, scope).end(*_new(request.state))
            raise

    def after_model(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Keep what the model said before its tools run."""
        scope = self._scope(runtime)
        self._crossing.call(lambda: self._follow(state, scope))
        return None

    async def aafter_model(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        scope = self._scope(runtime)
        await self._crossing.acall(lambda: self._follow(state, scope))
        return None

    def after_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        scope = self._scope(runtime)
        return self._crossing.call(lambda: self._end(state, scope))

    async def aafter_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        scope = self._scope(runtime)
        return await self._crossing.acall(lambda: self._end(state, scope))

    # -- what they do -------------------------------------------------------------------------------------------

    async def _thread_with(self, state: Any, scope: Scope) -> str | None:
        """An agent that is a node of a graph keeps no name of its thread, and the first message may be gone."""
        ids = {message.id for message in state["messages"] if message.id}
        return await logs_of(self._memory).thread_with(self._memory, scope.session_id, scope.user_id, ids)

    async def _context(self, request: ModelRequest[Any], scope: Scope) -> list[BaseMessage]:
        """What the model sees: the log before the current turn, and the turn as the request has it."""
        await self._follow(request.state, scope)
        current = request.messages[_turn_start(request.messages) :]
        context = await self._memory.load_history(
            scope.session_id,
            user_id=scope.user_id,
            agent_name=self._agent_name,
            message=to_message(current[0]) if current else None,
            traffic=map(to_message, current[1:]),
            budget=self._budget,
            system=request.system_prompt,
            tools=map(_declaration, request.tools),
            before_seq=self._log(request.state, scope).first_seq(current[0]) if current else None,
        )
        return from_messages(in_exchanges(context.messages))

    async def _follow(self, state: Any, scope: Scope, *, begins: bool = False, loaded_at: int | None = None) -> None:
        """Keep the state as it is now."""
        alone, beside = begins and _is_replay(), state.get("memory_beside") or ()
        log, new = self._log(state, scope), _new(state)
        await log.follow(*new, begins=begins, alone=alone, beside=beside, loaded_at=loaded_at)

    async def _end(self, state: Any, scope: Scope) -> dict[str, Any] | None:
        """Keep the state as the run leaves it, and note what was beside."""
        await self._follow(state, scope)
        log = self._log(state, scope)
        beside = await log.beside(*_new(state), state.get("memory_beside") or ())
        log.end(*_new(state))
        messages: Sequence[BaseMessage] = state["messages"]
        return {"memory_saved_until": messages[-1].id or BEGINNING, "memory_beside": beside} if messages else None

    def _log(self, state: Any, scope: Scope) -> ThreadLog:
        logs, thread = logs_of(self._memory), _thread_of(state) or ""
        return logs.of(
            self._memory,
            scope.session_id,
            scope.user_id,
            thread,
            agent_name=self._agent_name,
            depth=scope.depth,
        )

    def _scope(self, runtime: Runtime[Any]) -> Scope:
        context = cast("object", runtime.context)
        session_id = self._session_id or _named(context, "session_id") or _named(context, "thread_id")
        if session_id is None:
            problem = 'is missing: run the agent with config={"configurable": {"thread_id": ...}}'
            raise InvalidInputError("thread_id", problem)
        user_id, depth = self._user_id or _named(context, "user_id"), _graph_of_run()
        if not self._session_id and logs_of(self._memory).is_inside(session_id, depth):
            session_id = f"{session_id}.{blake2b(depth.encode(), digest_size=8).hexdigest()}"
        return Scope(session_id=session_id, user_id=user_id, depth=depth)


def _named(context: object, name: str) -> str | None:
    """A value of the context of a run, else of its configuration."""
    if isinstance(context, Mapping):
        value = cast("Mapping[str, Any]", context).get(name)
    else:
        value = getattr(context, name, None)
    if value is None:  # LangGraph's server configures an empty user where nobody signed in
        value = get_config().get("configurable", {}).get(name) or None
    return None if value is None else str(value)


# -- where a run is ---------------------------------------------------------------------------------------------------


def _configured() -> Mapping[str, Any]:
    return get_config().get("configurable", {})


def _graph_of_run() -> str:
    """The name of the graph inside the graphs that called it; empty for the outermost."""
    return str(_configured().get("checkpoint_ns") or "").rpartition("|")[0]


def _loaded_at(runtime: Runtime[Any]) -> int | None:
    """When the state of the run was loaded, in microseconds since the epoch, as its first checkpoint tells; None if it
    tells nothing, as with no checkpointer.
    """
    checkpoint_id = getattr(getattr(runtime, "execution_info", None), "checkpoint_id", None)
    try:
        made = UUID(str(checkpoint_id))
    except ValueError:
        return None
    ticks = made.time_low << 28 | made.time_mid << 12 | made.time_hi_version & 0xFFF  # of version 6
    return (ticks - _TICKS_BEFORE_EPOCH) // 10 if made.version == 6 else None


_TICKS_BEFORE_EPOCH = 0x01B21DD213814000
"""From the beginning of the Gregorian calendar, in tenths of microseconds."""


def _is_replay() -> bool:
    """Whether the run begins at a checkpoint that was named, not at the newest one."""
    return _configured().get("__pregel_replay_state") is not None


def _is_kept() -> bool:
    return _checkpointer() is not None and bool(_configured().get("thread_id"))


def _checkpointer() -> Any:
    return _configured().get("__pregel_checkpointer")


def _latest() -> Any:
    return {"configurable": {"thread_id": _configured().get("thread_id"), "checkpoint_ns": _graph_of_run()}}


def _thread_of(state: Any) -> str | None:
    return state.get("memory_thread")


def _begun_by(state: Any) -> str:
    """What marks a thread that has no mark: an input that failed and is repeated is the same one."""
    messages: Sequence[BaseMessage] = state["messages"]
    return blake2b(str(messages[0].id if messages else "").encode(), digest_size=8).hexdigest()


def _thread_in(checkpoints: Iterable[Any]) -> str | None:
    """The thread that one of its checkpoints names: a run may begin before the first one that does."""
    values = (each.checkpoint.get("channel_values", {}) for each in checkpoints)
    return next((each["memory_thread"] for each in values if each.get("memory_thread")), None)


# -- which messages are new -------------------------------------------------------------------------------------------


def _saved_until(state: Any) -> str:
    """The id of the last message that the session has: as a run before noted, else the one before the input."""
    messages: Sequence[BaseMessage] = state["messages"]
    noted = state.get("memory_saved_until")
    if noted == BEGINNING or any(message.id == noted for message in messages if noted):
        return noted
    start = _input_start(messages)
    return (messages[start - 1].id or BEGINNING) if start else BEGINNING


def _new(state: Any) -> tuple[Sequence[BaseMessage], int]:
    """The messages of the state, and from where on they are of this run."""
    messages: Sequence[BaseMessage] = state["messages"]
    saved_until = _saved_until(state)
    if saved_until == BEGINNING:
        return messages, 0
    return messages, 1 + next(index for index, message in enumerate(messages) if message.id == saved_until)


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


def _declaration(tool: BaseTool | dict[str, Any]) -> JsonObject:
    """With the hints of MCP, which LangChain's adapters keep as the metadata of a tool."""
    if not isinstance(tool, BaseTool):
        return tool
    return {**convert_to_openai_tool(tool), **({HINTS: hints} if (hints := hints_in(tool.metadata)) else {})}
