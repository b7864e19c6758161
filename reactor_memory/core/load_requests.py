"""The arguments of a load, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

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


class LoadRequest(Value, frozen=True, kw_only=True):
    """The arguments of `ConversationManager.load_history`, checked."""

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
    session_id: str,
    user_id: str | None,
    message: MessageLike | None,
    *,
    limits: MessageLimits,
    budget: int | None,
    system: str | None,
    tools: Iterable[Any] | None,
    query: str | None,
    overflow: Literal["raise", "drop_memory"],
    agent_name: str | None = None,
    reader_id: str | None = None,
    summaries: PostedMode = "auto",
    before_seq: int | None = None,
) -> LoadRequest:
    """Raises `InvalidInputError` and `InvalidMessageError`, which name the argument."""
    check_session_id(session_id, creating=False)
    check_optional_id("user_id", user_id)
    check_optional_id("agent_name", agent_name)
    if budget is not None:
        check_position("budget", budget, least=1)
    if query is not None:
        check_is_text("query", query)
    if system is not None:
        check_is_text("system", system)
    if overflow not in ("raise", "drop_memory"):
        raise InvalidInputError("on_overflow", "must be raise or drop_memory")
    if summaries not in ("auto", "always"):
        raise InvalidInputError("summaries", "must be auto or always")
    if before_seq is not None:
        check_position("before_seq", before_seq, least=1)
    current = () if message is None else (message_of(message),)
    for each in current:
        check_message(each, limits)
    if current and current[0].role != "user":
        raise InvalidInputError("message", "must be the user message to come: use Message.user(...)")
    return LoadRequest(
        session_id=session_id,
        user_id=user_id,
        agent_name=agent_name,
        reader_id=reader_id,
        current=tuple(map(as_given, current)),
        budget=budget,
        system=system,
        tools=_checked_tools(tools),
        query=query,
        on_overflow=overflow,
        summaries=summaries,
        before_seq=before_seq,
    )


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
    given = () if tools is None else tools
    if isinstance(given, (str, Mapping)) or not isinstance(given, Iterable):
        raise InvalidInputError("tools", f"must be a list of declarations, is a {type(tools).__name__}")
    checked = tuple(cast("Iterable[Any]", given))
    for index, tool in enumerate(checked):
        try:
            msgspec.json.encode(tool)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"tools[{index}]", "must be a JSON object") from error
    return checked
