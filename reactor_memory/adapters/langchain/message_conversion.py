"""Messages of LangChain as ours and back: the way there and back is the identity.

Texts, calls and results stand where every other door of the library finds them. What only LangChain knows (ids, kinds,
`additional_kwargs`, where the texts stand among the content blocks) is kept beside them as JSON text under
``metadata["langchain"]``: no limit of depth holds for it, no character is foreign to it, and no model sees it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, messages_from_dict
from langchain_core.messages.content import InvalidToolCall
from langchain_core.messages.tool import ToolCall as LangChainCall
from pydantic_core import PydanticSerializationError, to_jsonable_python

from reactor_memory.errors import InvalidMessageError
from reactor_memory.models import JsonObject, Message, Role, ToolCall, as_said, is_posted_summary

KEPT = "langchain"
"""The key of `Message.metadata` that holds what only LangChain knows."""

MOST_CHARACTERS = 12_000
"""More is not kept beside a message (the default limit of metadata is 16 KiB): what is largest is left out. A model is
sent the message whole all the same, as text, blocks and calls stand in it.
"""

_ROLES: dict[str, Role] = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
_CHAT_ROLES: dict[str, Role] = {"user": "user", "human": "user", "assistant": "assistant", "system": "system"}
_KINDS: dict[str, str] = {"user": "human", "assistant": "ai", "agent": "ai", "tool": "tool"}
_CALL_BLOCKS = ("tool_use", "tool_call", "function_call")
_APART = {"content", "name", "tool_calls", "invalid_tool_calls", "tool_call_id", "type", "artifact"}


def to_message(message: BaseMessage) -> Message:
    """The message as the library keeps it.

    Values that JSON lacks are kept in JSON's nearest form; an `artifact` that has none is left out. If the fields that
    only LangChain knows exceed `MOST_CHARACTERS` together, the largest of them is left out. Raises
    `InvalidMessageError` for a `RemoveMessage`, which is an order and no message.
    """
    if isinstance(message, RemoveMessage):
        raise InvalidMessageError("messages", "holds a RemoveMessage; what is stored stays, so take it out")
    text, parts, kept = _content(message)
    kept = _bounded(kept | _rest(message))
    metadata: JsonObject = {KEPT: json.dumps(kept, separators=(",", ":"))} if kept else {}
    if getattr(message, "status", None) == "error":
        metadata["is_error"] = True
    return Message(
        role=_role(message),
        content=text,
        parts=parts,
        tool_calls=tuple(_calls(message)),
        tool_call_id=getattr(message, "tool_call_id", None),
        name=message.name,
        metadata=metadata,
    )


def from_message(message: Message) -> BaseMessage:
    """The message as LangChain knows it; also one that came from elsewhere, or was shortened to fit a budget."""
    message = as_said(message)
    kept = kept_of(message)
    known = "ai" if is_posted_summary(message) else _KINDS.get(message.role, "system")
    kind = kept.pop("$kind", None) or known
    content = _content_again(message, kept.pop("$layout", None), kept.pop("$exact", None))
    data: dict[str, Any] = {"content": content, "name": message.name, **kept}
    if message.role == "tool":
        data["tool_call_id"] = message.tool_call_id
        data.setdefault("status", "error" if message.metadata.get("is_error") else "success")
    if kind in ("ai", "AIMessageChunk"):
        data["tool_calls"], data["invalid_tool_calls"] = _calls_again(message.tool_calls)
    return messages_from_dict([{"type": kind, "data": data}])[0]


def from_messages(messages: Iterable[Message]) -> list[BaseMessage]:
    return [from_message(message) for message in messages]


def kept_of(message: Message) -> JsonObject:
    """What is kept of a message because only LangChain knows it; empty for messages from elsewhere."""
    text = message.metadata.get(KEPT)
    return json.loads(text) if isinstance(text, str) else {}


def _role(message: BaseMessage) -> Role:
    """A role of the caller's own invention, and the result of a function (it answers no call by id), is an agent's."""
    kind = message.type.removesuffix("MessageChunk").lower()
    if kind == "chat":
        return _CHAT_ROLES.get(cast("str", getattr(message, "role", "")), "agent")
    return _ROLES.get(kind, "agent")


def _rest(message: BaseMessage) -> JsonObject:
    fields = type(message).model_fields
    given = message.model_dump(exclude=_APART).items()
    rest = {
        name: value
        for name, value in given
        if name not in fields or value != fields[name].get_default(call_default_factory=True)
    }
    kept = _jsonable(rest)
    if message.type not in _ROLES:
        kept["$kind"] = message.type
    return kept | _artifact(message)


def _jsonable(values: JsonObject) -> JsonObject:
    try:
        return to_jsonable_python(values, fallback=_type_of, inf_nan_mode="constants")
    except UnicodeEncodeError:  # half a surrogate pair in a key, which only JSON with escapes can say
        return json.loads(json.dumps(values, default=_type_of))


def _artifact(message: BaseMessage) -> JsonObject:
    artifact = getattr(message, "artifact", None)
    if artifact is None:
        return {}
    try:
        return {"artifact": to_jsonable_python(artifact)}
    except (PydanticSerializationError, UnicodeEncodeError):
        return {}


def _bounded(kept: JsonObject) -> JsonObject:
    sizes = {name: len(json.dumps(value)) for name, value in kept.items()}
    while sum(sizes.values()) > MOST_CHARACTERS:
        del sizes[max(sizes, key=lambda name: sizes[name])]
    return {name: kept[name] for name in sizes}


def _type_of(value: object) -> str:
    return f"<{type(value).__name__}>"


# -- content ----------------------------------------------------------------------------------------------------------


def _content(message: BaseMessage) -> tuple[str, tuple[JsonObject, ...], JsonObject]:
    """The text, the other blocks, and what puts them together again.

    A layout has an entry for each block: the length of a plain text, the length and the rest of a text block, None for
    a part, an object for a block that says once more which call was made. Text that databases cannot keep is kept
    twice: readable, and exact as JSON.
    """
    content = message.content
    arguments = {call["id"]: call["args"] for call in message.tool_calls} if isinstance(message, AIMessage) else {}
    blocks: list[Any] = [content] if isinstance(content, str) else content
    texts, parts, layout = list[str](), list[JsonObject](), list[Any]()
    for block in blocks:
        text = _text_of(block)
        if text is not None:
            texts.append(text)
            layout.append(len(text) if isinstance(block, str) else [len(text), block | {"text": None}])
        elif block.get("type") in _CALL_BLOCKS and block.get("id") in arguments:
            layout.append(_without_arguments(block, arguments[block["id"]]))
        else:
            parts.append(block)
            layout.append(None)
    kept: JsonObject = {} if isinstance(content, str) else {"$layout": layout}
    text = "".join(texts)
    storable = _storable(text)
    return storable, tuple(parts), kept if storable == text else kept | {"$exact": text}


def _without_arguments(block: JsonObject, arguments: JsonObject) -> JsonObject:
    """The block, but for its arguments if they are those of the call."""
    return (
        {"of": block["id"], "block": {key: None if key == "input" else block[key] for key in block}}
        if (block.get("input") == arguments)
        else {"block": block}
    )


def _text_of(block: str | JsonObject) -> str | None:
    if isinstance(block, str):
        return block
    text = block.get("text")
    return text if block.get("type") == "text" and isinstance(text, str) else None


def _storable(text: str) -> str:
    """The text, with a replacement for each character that no database keeps (NUL and lone surrogates)."""
    return text.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _content_again(message: Message, layout: list[Any] | None, exact: str | None) -> str | list[Any]:
    """The content as it was, or simply its text and parts if a budget took something away."""
    text = message.content if exact is None or len(exact) != len(message.content) else exact
    if layout is None:
        return text if not message.parts else list(_blocks(text, message.parts))
    whole = sum(_length(entry) for entry in layout) == len(text)
    if not whole or sum(entry is None for entry in layout) != len(message.parts):
        return list(_blocks(text, message.parts))
    arguments = {call.id: call.arguments for call in message.tool_calls}
    return list(_laid_out(text, iter(message.parts), layout, arguments))


def _length(entry: Any) -> int:
    """How much of the text belongs to the block."""
    match entry:
        case int():
            return entry
        case [int() as length, _]:
            return length
        case _:
            return 0


def _blocks(text: str, parts: Sequence[JsonObject]) -> Iterator[JsonObject]:
    if text:
        yield {"type": "text", "text": text}
    yield from parts


def _laid_out(
    text: str, parts: Iterator[JsonObject], layout: list[Any], arguments: dict[str, Any]
) -> Iterator[str | JsonObject]:
    position = 0
    for entry in layout:
        piece = text[position : position + _length(entry)]
        position += len(piece)
        if entry is None:
            yield next(parts)
        elif isinstance(entry, int):
            yield piece
        elif isinstance(entry, list):
            yield entry[1] | {"text": piece}
        else:
            yield entry["block"] | ({"input": arguments[entry["of"]]} if "of" in entry else {})


# -- tool calls -------------------------------------------------------------------------------------------------------


def _calls(message: BaseMessage) -> Iterator[ToolCall]:
    """The calls of the model, those that it wrote badly included: frameworks answer them, too."""
    if not isinstance(message, AIMessage):
        return
    for number, call in enumerate(message.tool_calls):
        yield ToolCall(
            id=call["id"] or f"call {number}",
            name=call["name"],
            arguments=call["args"],
            metadata=_call_metadata({key: value for key, value in call.items() if key not in ("name", "args")}),
        )
    for number, invalid in enumerate(message.invalid_tool_calls):
        yield ToolCall(
            id=invalid["id"] or f"invalid {number}",
            name=invalid["name"] or "",
            arguments=_storable(invalid["args"] or ""),
            metadata=_invalid_metadata(invalid),
        )


def _invalid_metadata(invalid: InvalidToolCall) -> JsonObject:
    """The call, but for arguments that are kept as they are."""
    rest = {name: value for name, value in invalid.items() if name != "args" or value != _storable(str(value))}
    return {KEPT: json.dumps({"invalid": rest})}


def _call_metadata(rest: JsonObject) -> JsonObject:
    usual = rest.keys() == {"id", "type"} and rest["id"]
    return {} if usual else {KEPT: json.dumps(to_jsonable_python(rest, fallback=_type_of))}


def _calls_again(calls: Iterable[ToolCall]) -> tuple[list[LangChainCall], list[InvalidToolCall]]:
    valid, invalid = list[LangChainCall](), list[InvalidToolCall]()
    for call in calls:
        text = call.metadata.get(KEPT)
        kept: JsonObject = json.loads(text) if isinstance(text, str) else {}
        if "invalid" in kept:
            known: Any = {"args": call.arguments, **kept["invalid"]}
            invalid.append(known)
        elif (arguments := _arguments(call)) is None:
            invalid.append(
                InvalidToolCall(
                    type="invalid_tool_call", name=call.name, args=str(call.arguments), id=call.id, error=None
                )
            )
        else:
            known = {"name": call.name, "args": arguments, "id": call.id, "type": "tool_call", **kept}
            valid.append(known)
    return valid, invalid


def _arguments(call: ToolCall) -> JsonObject | None:
    """The arguments as an object; None if the model did not write one."""
    if not isinstance(call.arguments, str):
        return call.arguments
    try:
        value = json.loads(call.arguments or "{}")
    except ValueError:
        return None
    return cast("JsonObject", value) if isinstance(value, dict) else None
