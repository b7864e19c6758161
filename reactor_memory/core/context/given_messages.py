"""Messages as callers give them: values, texts, and dicts or objects of the SDKs of OpenAI, Anthropic and Gemini.

What is read here is checked afterwards like every message (`reactor_memory.core.validation`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeAlias, cast

from reactor_memory import forms
from reactor_memory.errors import InvalidMessageError
from reactor_memory.models import Message


class SdkObject(Protocol):
    """A message, or a whole response, of an SDK that is made with pydantic."""

    def model_dump(self) -> dict[str, Any]: ...


MessageLike: TypeAlias = Message | str | Mapping[str, Any] | SdkObject
"""A message: a `Message`, a text, or what OpenAI, Anthropic or Gemini take and give, as a dict or an object."""

MessagesLike: TypeAlias = MessageLike | Iterable[MessageLike]
"""One message or several, or a whole request of a provider: ``{"system": ..., "messages": [...]}``."""


def messages_of(given: MessagesLike, *, field: str = "messages") -> tuple[Message, ...]:
    """The messages that were given. A text is what the user said. A dict may be several messages: each result of a
    tool is one.

    Raises `InvalidMessageError`, which names the place in `field` and what would be right.
    """
    if isinstance(given, (Message, str)):
        return (_plain(given),)
    if isinstance(given, (list, tuple)) and {*map(type, given)} == {Message}:
        return tuple(cast("Iterable[Message]", given))
    if _is_one(given):
        return forms.read([(field, given)])
    items = _items(field, given)
    if all(isinstance(item, (Message, str)) for item in items):
        return tuple([_plain(item) for item in items])
    return forms.read([(f"{field}[{position}]", item) for position, item in enumerate(items)])


def answer_of(given: MessagesLike, *, field: str = "answer") -> tuple[Message, ...]:
    """What a model said: like `messages_of`, but a text is the model's, and so are blocks of Anthropic and parts of
    Gemini without a role.
    """
    if isinstance(given, str):
        return (Message.assistant(given),)
    if isinstance(given, Message):
        return (given,)
    is_one = _is_one(given)
    items: tuple[Any, ...] = (given,) if is_one else _items(field, given)
    if any(isinstance(item, str) for item in items):
        raise InvalidMessageError(field, "holds texts; join them into one")
    said = forms.said_by_model(items)
    return messages_of(said or (items[0] if is_one else items), field=field)


def message_of(given: MessageLike, *, field: str = "message") -> Message:
    """The one message that was given. A text is what the user said. Raises `InvalidMessageError`."""
    if isinstance(given, (Message, str)):
        return _plain(given)
    messages = messages_of(given, field=field)
    if len(messages) != 1:
        raise InvalidMessageError(field, f"holds {len(messages)} messages, must be one")
    return messages[0]


def _is_one(given: object) -> bool:
    """Whether this is no list. The objects of SDKs are iterables of pairs, so they are asked first."""
    return isinstance(given, Mapping) or callable(getattr(given, "model_dump", None))


def _items(field: str, given: object) -> tuple[Any, ...]:
    try:
        return tuple(cast("Iterable[Any]", given))
    except TypeError:
        raise forms.no_message(field, given, also=", or a list of them") from None


def _plain(given: Message | str) -> Message:
    return Message.user(given) if isinstance(given, str) else given
