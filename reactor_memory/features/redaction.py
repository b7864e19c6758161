"""What a redactor leaves of messages before they are summarised or indexed. The log keeps them as they are. Pure.

A redactor reads text and nothing else. So what is not text (images and files, metadata, the author) does not go on,
where a redactor is in force: of a content part that is no text, its kind is left.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec.structs import replace

from reactor_memory.errors import RedactionError
from reactor_memory.models import JsonObject, Message, ToolCall
from reactor_memory.models.ledger import Fact, Known, KnownNames
from reactor_memory.text.spans import decode, leaf_text

if TYPE_CHECKING:
    from reactor_memory.core.ports import Redactor

T = TypeVar("T")


def unredacted(text: str) -> str:
    """The redactor that takes nothing out."""
    return text


def redacted(messages: Sequence[Message], redactor: Redactor) -> tuple[Message, ...]:
    """The messages without what `redactor` takes out of their text, their names and the values of their JSON.

    Raises `RedactionError`.
    """
    return _each(messages, _message, redactor)


def redacted_known(known: Known, redactor: Redactor) -> Known:
    """What is known without what `redactor` takes out of its words. Raises `RedactionError`."""
    return Known(
        facts=_each(known.facts, _fact, redactor),
        names=_each(known.names, _names, redactor),
        state=_each(known.state, _fact, redactor),
    )


def _each(given: Iterable[T], clean: Callable[[T, Redactor], T], redactor: Redactor) -> tuple[T, ...]:
    if redactor is unredacted:
        return tuple(given)
    try:
        return tuple(clean(each, redactor) for each in given)
    except Exception as error:  # a redactor is anybody's code
        failure = RedactionError(type(error).__name__)
    # Outside of the handler: what a redactor raises may quote the text.
    raise failure


def _message(message: Message, redactor: Redactor) -> Message:
    return Message(
        role=message.role,
        content=_json_text(message.content, redactor),
        parts=tuple(_part(part, redactor) for part in message.parts),
        tool_calls=tuple(_call(call, redactor) for call in message.tool_calls),
        tool_call_id=message.tool_call_id,
        name=message.name and _text(message.name, redactor),
        visibility=message.visibility,
        created_at=message.created_at,
        seq=message.seq,
        message_id=message.message_id,
    )


def _fact(fact: Fact, redactor: Redactor) -> Fact:
    anchor, key, value = (_text(text, redactor) for text in (fact.anchor, fact.key, fact.value))
    return replace(fact, anchor=anchor, key=key, value=value)


def _names(names: KnownNames, redactor: Redactor) -> KnownNames:
    return KnownNames(anchor=_text(names.anchor, redactor), keys=tuple(_text(key, redactor) for key in names.keys))


def _call(call: ToolCall, redactor: Redactor) -> ToolCall:
    given = call.arguments
    arguments = _json_text(given, redactor) if isinstance(given, str) else _json(given, redactor)
    return ToolCall(id=call.id, name=call.name, arguments=arguments)


def _part(part: JsonObject, redactor: Redactor) -> JsonObject:
    text = part.get("text")
    if isinstance(text, str) and part.keys() <= {"type", "text"}:
        return {**part, "text": _json_text(text, redactor)}
    return {"type": str(part.get("type", "part"))}


def _json_text(text: str, redactor: Redactor) -> str:
    """Redacts a text and, if it is JSON, what stands in it: escapes hide words from whoever reads the text alone."""
    decoded = decode(text)
    if decoded is not None:
        try:
            clean = _json(decoded, redactor)
            text = text if clean == decoded else json.dumps(clean, ensure_ascii=False)
        except RecursionError:
            return ""  # nested too deeply to be sure of
    return _text(text, redactor)


def _json(value: Any, redactor: Redactor) -> Any:
    """The value with its texts, names and numbers redacted. A number of which something is taken becomes a text."""
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return {_text(str(name), redactor): _json(child, redactor) for name, child in items}
    if isinstance(value, list | tuple):
        return [_json(child, redactor) for child in cast("list[Any]", value)]
    if isinstance(value, str):
        return _json_text(value, redactor)
    text = leaf_text(value)
    clean = _text(text, redactor)
    return value if clean == text else clean


def _text(text: str, redactor: Redactor) -> str:
    if not text:
        return text
    clean = cast("object", redactor(text))
    if not isinstance(clean, str):
        raise TypeError
    return clean


def redacted_text(text: str, redactor: Redactor) -> str:
    """A text without what `redactor` takes out of it. Raises `RedactionError`."""
    return _each([text], _text, redactor)[0]
