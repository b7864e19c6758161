"""Bodies as the messages that they add: in the words of the service, or as a provider takes and gives them."""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from reactor_memory.core.context.given_messages import messages_of
from reactor_memory.errors import InvalidInputError
from reactor_memory.features.sharing import bodies
from reactor_memory.features.sharing.messages import NewMessage
from reactor_memory.models import Message
from reactor_memory.server.limits import BodyLimits
from reactor_memory.text import bounded_json
from reactor_memory.text.bounded_files import UnreadableError

_JSON: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_EITHER = "leave it out, or the other one: a request has one of them"
_NOBODY_SETS = ("author_id", "created_at")


def of_user(data: bodies.CreateUserMessageRequest, limits: BodyLimits, field: str = "") -> NewMessage:
    """`field` is what leads to the message in the body, with the dot. Raises `InvalidInputError`, with the field."""
    _check_one(f"{field}content", data.content, f"{field}given", data.given)
    limits.check_metadata(data.metadata, f"{field}metadata")
    if not data.given:
        new = NewMessage(content=data.content or "")
    else:
        found = _given(f"{field}given", data.given, limits)
        if len(found) != 1 or (found[0].role, found[0].visibility) != ("user", "user"):
            raise InvalidInputError(f"{field}given", "must be one message of the user, without results of tools")
        (new,) = found
    limits.check_content(new.content, f"{field}content")
    return msgspec.structs.replace(
        new, metadata=new.metadata | (data.metadata or {}), parent_message_id=data.parent_message_id
    )


def of_agent(data: bodies.CreateAgentMessagesRequest, limits: BodyLimits) -> list[NewMessage]:
    """Raises `InvalidInputError`, with the field."""
    _check_one("messages", data.messages, "given", data.given)
    if data.given:
        found = _given("given", data.given, limits)
        for position, new in enumerate(found):
            limits.check_content(new.content, f"given[{position}].content")
            limits.check_metadata(new.metadata, f"given[{position}].metadata")
    else:
        found = [_as_told(each, limits, f"messages[{place}].") for place, each in enumerate(data.messages or ())]
    limits.check_count(len(found), "given" if data.given else "messages")
    return found


def _as_told(given: bodies.CreateAgentMessageRequest, limits: BodyLimits, field: str) -> NewMessage:
    limits.check_content(given.content, f"{field}content")
    limits.check_metadata(given.metadata, f"{field}metadata")
    return NewMessage(
        content=given.content,
        role=given.role,
        visibility=given.visibility,
        metadata=given.metadata or {},
        parent_message_id=given.parent_message_id,
        parts=tuple(given.parts),
        tool_calls=tuple(map(bodies.tool_call, given.tool_calls)),
        tool_call_id=given.tool_call_id,
        name=given.name,
    )


def _check_one(field: str, value: object, other: str, value_of_other: object) -> None:
    if value is not msgspec.UNSET and value_of_other is not msgspec.UNSET:
        raise InvalidInputError(other, f"stands beside {field}; {_EITHER}")
    if value is msgspec.UNSET and value_of_other is msgspec.UNSET:
        raise InvalidInputError(field, f"is missing; give it, or {other}")


def _given(field: str, raw: msgspec.Raw, limits: BodyLimits) -> list[NewMessage]:
    """What a provider takes or gives. How many values it holds is known before they are made."""
    try:
        value = bounded_json.decoded(bytes(raw), _JSON, limits.max_message_bytes)
    except UnreadableError:
        most = bounded_json.most_values(limits.max_message_bytes)
        raise InvalidInputError(field, f"is nested too deeply, or holds more than {most} values") from None
    return [_new(f"{field}[{place}]", message) for place, message in enumerate(messages_of(value, field=field))]


def _new(field: str, message: Message) -> NewMessage:
    for name in _NOBODY_SETS:
        if getattr(message, name) is not None:
            raise InvalidInputError(f"{field}.{name}", "is set by the service; leave it out")
    if message.role not in get_args(bodies.MessageRole):
        raise InvalidInputError(f"{field}.role", f"must be one of {', '.join(get_args(bodies.MessageRole))}")
    fields = (name for name in NewMessage.__struct_fields__ if name != "parent_message_id")
    return NewMessage(**{name: getattr(message, name) for name in fields})
