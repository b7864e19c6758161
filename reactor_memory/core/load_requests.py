"""The arguments of a load, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

import msgspec

from reactor_memory.core.bounds import checked
from reactor_memory.core.context.given_messages import MessageLike, MessagesLike, message_of, messages_of
from reactor_memory.core.validation import (
    MessageLimits,
    check_is_text,
    check_message,
    check_optional_id,
    check_position,
    check_session_id,
)
from reactor_memory.errors import InvalidInputError
from reactor_memory.models import Message, Value

if TYPE_CHECKING:
    from reactor_memory.models.ledger import PostedMode


class LoadArguments(TypedDict, total=False):
    """The arguments of every call that loads a context; each may be left out."""

    user_id: str | None
    """Who asks."""
    agent_name: str | None
    """With ``notes.enabled``, the context begins with the long-term notes that this agent keeps about the user."""
    budget: int | None
    """Tokens of the messages; None: ``context.max_tokens`` less the reserved output, `system` and `tools`."""
    system: str | None
    """The caller's system prompt, which is counted."""
    tools: Iterable[Any] | None
    """The declarations of the tools, which are counted."""
    query: str | None
    """Facts and older turns that answer it come back. None: those that hold what the message names and the context does
    not show; ``""``: nothing.
    """
    on_overflow: Literal["raise", "drop_memory"]
    summaries: PostedMode
    """What an agent posted is said where the context shows less than it covers and the strategy shows memory: ``auto``;
    ``always``: in every context.
    """
    reader_id: str | None
    """Messages that other agents keep for themselves (visibility ``agent``, another `author_id`) are left out."""
    before_seq: int | None
    """The messages from there on are not shown: for a turn that is stored already, and given here."""


class LoadRequest(Value, frozen=True, kw_only=True):
    """`LoadArguments`, checked, with the session and what follows it."""

    session_id: str
    user_id: str | None = None
    agent_name: str | None = None
    reader_id: str | None = None
    current: tuple[Message, ...] = ()
    budget: int | None = None
    system: str | None = None
    tools: tuple[Any, ...] = ()
    query: str | None = None
    on_overflow: Literal["raise", "drop_memory"] = "raise"
    summaries: PostedMode = "auto"
    before_seq: int | None = None


def load_request(
    session_id: str, message: MessageLike | None, arguments: LoadArguments, limits: MessageLimits
) -> LoadRequest:
    """Raises `InvalidInputError` and `InvalidMessageError`, which name the argument, and `TypeError` for one more."""
    check_session_id(session_id, creating=False)
    current = () if message is None else (message_of(message),)
    for each in current:
        check_message(each, limits)
    if current and current[0].role != "user":
        raise InvalidInputError("message", "must be the user message to come: use Message.user(...)")
    tools = arguments.get("tools")
    given: dict[str, Any] = {**arguments, "tools": () if tools is None else _checked_tools(tools)}
    request = LoadRequest(session_id=session_id, current=tuple(map(as_given, current)), **given)
    check_optional_id("user_id", request.user_id)
    if request.agent_name is not None:
        check_optional_id("agent_name", request.agent_name)
    if request.budget is not None:
        check_position("budget", request.budget, least=1)
    if request.before_seq is not None:
        check_position("before_seq", request.before_seq, least=1)
    if request.query is not None:
        check_is_text("query", request.query)
    if request.system is not None:
        check_is_text("system", request.system)
    if request.on_overflow not in ("raise", "drop_memory"):
        raise InvalidInputError("on_overflow", "must be raise or drop_memory")
    if request.summaries not in ("auto", "always"):
        raise InvalidInputError("summaries", "must be auto or always")
    return request


def with_traffic(request: LoadRequest, traffic: MessagesLike, limits: MessageLimits) -> LoadRequest:
    """The request of a turn that goes on."""
    following = checked_messages(traffic, "traffic", limits)
    if following and not request.current:
        raise InvalidInputError("traffic", "belongs to a turn: give its user message, too")
    return msgspec.structs.replace(request, current=(*request.current, *map(as_given, following)))


def checked_messages(given: MessagesLike, field: str, limits: MessageLimits) -> Sequence[Message]:
    """Messages that are not stored: the limit of a batch does not hold for them."""
    return checked(messages_of(given, field=field), limits, field=field)


def as_given(message: Message) -> Message:
    """The message without the fields that a store sets: its text may have changed since."""
    if message.seq is message.message_id is message.token_count is message.tokenizer is None:
        return message
    return msgspec.structs.replace(message, seq=None, message_id=None, token_count=None, tokenizer=None)


def _checked_tools(tools: Any) -> tuple[Any, ...]:
    """The declarations of the tools. They are counted as the JSON that the provider gets."""
    given = tools
    if isinstance(given, (str, Mapping)) or not isinstance(given, Iterable):
        raise InvalidInputError("tools", f"must be a list of declarations, is a {type(tools).__name__}")
    checked = tuple(cast("Iterable[Any]", given))
    for index, tool in enumerate(checked):
        try:
            msgspec.json.encode(tool)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"tools[{index}]", "must be a JSON object") from error
    return checked
