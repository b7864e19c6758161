"""Checks of what callers give, so that all other code can trust its values.

Every store can keep a checked value and give it back unchanged. Errors name the field and the remedy, never the text.
Checking a plain message costs about a microsecond.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from hashlib import blake2b
from operator import attrgetter
from typing import Any, cast, get_args

import msgspec

from reactor_memory.errors import InvalidInputError, InvalidMessageError, LimitExceededError
from reactor_memory.models import AS_TEXT, LARGEST, Form, Given, Message, Role, ToolCall, Value, Visibility

MAX_ID_LENGTH = 255
"""Characters of a session id, a user id or an idempotency key: they stand in the keys of tables."""

MAX_INTEGER_BITS = 4096
"""Python and databases refuse to print or read far longer integers."""

_UNPRINTABLE = r"\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Characters that control, break a line, or turn the direction of what follows: what they hide nobody could tell from
another id.
"""

ID_PATTERN = rf"^(?!\.{{1,2}}$)[^{_UNPRINTABLE}]{{1,{MAX_ID_LENGTH}}}$"
"""What an id may be, so that the part of a path can hold it: everything but ``.`` and ``..``, which clients and proxies
resolve, whatever their encoding.
"""


class MessageLimits(Value, frozen=True, kw_only=True):
    """How large a batch may be. Bytes are those of UTF-8, of structured values as JSON.

    `max_metadata_depth` and `max_json_depth` (content parts, arguments of tool calls) count nested objects and lists.
    `max_session_bytes` is for a line of a file that is imported.
    """

    max_batch_messages: int = 1000
    max_content_bytes: int = 4 * 1024 * 1024
    max_parts_bytes: int = 16 * 1024 * 1024
    max_metadata_bytes: int = 16 * 1024
    max_metadata_depth: int = 8
    max_json_depth: int = 64
    max_tool_calls: int = 128
    max_id_length: int = 255
    max_session_bytes: int = 32 * 1024 * 1024


SETTABLE = ("max_content_bytes", "max_batch_messages", "max_session_bytes")
"""The limits that are settings."""


def check_session_id(value: object, *, creating: bool) -> None:
    """Raises `InvalidInputError`. When `creating`, the mark of forks is refused: only `fork` makes such ids."""
    if type(value) is not str or not _is_id(value):
        _check_id("session_id", value)
    if creating and "~" in str(value):
        raise InvalidInputError("session_id", "must not contain ~, which marks forks; use another character")


def check_optional_id(field: str, value: object) -> None:
    """Raises `InvalidInputError`. None is allowed: nobody in particular, no key."""
    if value is not None and (type(value) is not str or not _is_id(value)):
        _check_id(field, value)


def check_user_and_agent(user_id: object, agent_name: object) -> None:
    """Raises `InvalidInputError`. What belongs to a user and an agent needs both."""
    _check_id("user_id", user_id)
    _check_id("agent_name", agent_name)


def check_object(field: str, value: object, limits: MessageLimits) -> None:
    """Raises `InvalidInputError` for what does not come back from a store as it was, and `LimitExceededError`."""
    _check_object(field, value, limits.max_json_depth, "max_json_depth")
    _check_limit(field, _json_size(value), limits.max_content_bytes, "bytes", "max_content_bytes")


def check_messages(messages: Sequence[Message], limits: MessageLimits, *, field: str = "messages") -> None:
    """Raises `InvalidMessageError` or `LimitExceededError`, and `InvalidInputError` for an empty batch."""
    check_count(messages, limits, field=field)
    for position, message in enumerate(messages):
        check_message(message, limits, field=f"{field}[{position}]")


def check_count(messages: Sequence[Message], limits: MessageLimits, *, field: str = "messages") -> None:
    """Raises `InvalidInputError` for an empty batch, and `LimitExceededError`."""
    if not messages:
        raise InvalidInputError(field, "is empty; give at least one message")
    _check_limit(field, len(messages), limits.max_batch_messages, "messages", "max_batch_messages")


def check_message(message: Message, limits: MessageLimits, *, field: str = "message") -> None:
    """Raises `InvalidMessageError` or `LimitExceededError`."""
    if type(message) is not Message:
        raise InvalidMessageError(field, f"is a {_type_name(message)}, must be a Message")
    role, content = message.role, message.content
    if type(role) is not str or role not in _ROLES or message.visibility != "user":
        _check_kind(message, field)
    if type(content) is not str or not content.isascii() or "\0" in content or len(content) > limits.max_content_bytes:
        _check_content(f"{field}.content", content, limits)
    if message.name is not None:
        check_label(f"{field}.name", message.name, limits)
    if message.author_id is not None:
        check_label(f"{field}.author_id", message.author_id, limits)
    if message.tool_call_id is not None:
        check_label(f"{field}.tool_call_id", message.tool_call_id, limits)
    if message.created_at is not None:
        _check_time(f"{field}.created_at", message.created_at)
    _check_structured(message, limits, field)


def fingerprint(messages: Sequence[Message]) -> str:
    """Identifies what the caller gave: equal for equal messages, whatever the order of keys.

    What a store sets (`seq`, `message_id`, `token_count`, `tokenizer`) does not count. `created_at` does: take the
    fingerprint before the current time is filled in, or a repeated batch differs from itself.
    """
    return blake2b(_CANONICAL.encode([*map(_given, messages)]), digest_size=16).hexdigest()


def new_message_id(now: int, random: Callable[[int], bytes] = os.urandom) -> str:
    """A UUID version 7 (RFC 9562, 5.7; microseconds as in 6.2, method 3) for the time `now`, in microseconds UTC.

    `random` gives that many random bytes.
    """
    milliseconds, microseconds = divmod(now, 1000)
    time_bits = (milliseconds & 0xFFFF_FFFF_FFFF) << 16 | 0x7000 | microseconds * 4096 // 1000
    random_bits = int.from_bytes(random(8)) & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
    text = f"{time_bits:016x}{random_bits:016x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


_SET_BY_THE_STORE = ("seq", "message_id", "token_count", "tokenizer")
_fields = attrgetter(*(name for name in Message.__struct_fields__ if name not in (*_SET_BY_THE_STORE, "given")))


def _given(message: Message) -> tuple[Any, ...]:
    """A text is the same, whoever wrote it."""
    framed = message.given is not None and message.given.frame is not None
    return (*_fields(message), message.given) if framed else _fields(message)


_CANONICAL = msgspec.json.Encoder(order="deterministic")
_ROLES = frozenset(get_args(Role))
_VISIBILITIES = frozenset(get_args(Visibility))
_FORMS = frozenset(get_args(Form))
_HALF_PAIR = r"\ud800-\udfff"
_UNUSABLE = re.compile(f"[{_UNPRINTABLE}{_HALF_PAIR}]")
_is_id = re.compile(rf"(?!\.{{1,2}}\Z)[^{_UNPRINTABLE}{_HALF_PAIR}]{{1,{MAX_ID_LENGTH}}}").fullmatch
"""Nearly every load asks twice, and nearly always it is one; `_problem_of_id` says what is wrong with another text."""


def is_id(text: str) -> bool:
    """Whether it may be the id of a user, of a session or of an agent."""
    return _problem_of_id(text) is None


def _check_id(field: str, value: object) -> None:
    if type(value) is not str:
        raise InvalidInputError(field, f"is a {_type_name(value)}, must be a str")
    problem = _problem_of_id(value)
    if problem is not None:
        raise InvalidInputError(field, problem)


def _problem_of_id(value: str) -> str | None:
    if not 1 <= len(value) <= MAX_ID_LENGTH:
        return f"has {len(value)} characters, must have 1 to {MAX_ID_LENGTH}"
    if _UNUSABLE.search(value):
        return "contains a control character, or one that changes the direction; use printable characters"
    if value in (".", ".."):
        return "is a step in a path; use another id"
    return None


def _check_kind(message: Message, field: str) -> None:
    if type(message.role) is not str or message.role not in _ROLES:
        raise InvalidMessageError(f"{field}.role", f"must be one of {', '.join(sorted(_ROLES))}")
    if type(message.visibility) is not str or message.visibility not in _VISIBILITIES:
        raise InvalidMessageError(f"{field}.visibility", f"must be one of {', '.join(sorted(_VISIBILITIES))}")


def _check_content(field: str, value: str, limits: MessageLimits) -> None:
    size = check_text(field, value)
    _check_limit(field, size, limits.max_content_bytes, "bytes", "max_content_bytes")


def check_label(field: str, value: str, limits: MessageLimits) -> None:
    """Raises `InvalidInputError` for what no store can keep as part of a key, and `LimitExceededError`."""
    check_text(field, value)
    _check_limit(field, len(value), limits.max_id_length, "characters", "max_id_length")


def check_text(field: str, value: object) -> int:
    """The bytes of the text. Raises `InvalidMessageError` for what no store can keep as one."""
    if type(value) is not str:
        raise InvalidMessageError(field, f"is a {_type_name(value)}, must be a str")
    if "\0" in value:
        raise InvalidMessageError(field, "contains a NUL character, which databases cannot keep; remove it")
    if value.isascii():
        return len(value)
    try:
        return len(value.encode())
    except UnicodeEncodeError:
        raise InvalidMessageError(field, "contains a lone surrogate, which is no character; remove it") from None


def _check_time(field: str, value: object) -> None:
    if type(value) is not int or not -LARGEST - 1 <= value <= LARGEST:
        raise InvalidMessageError(field, "must be microseconds since the epoch, UTC, as an int of 64 bits")


def _check_structured(message: Message, limits: MessageLimits, field: str) -> None:
    if message.metadata != {}:
        check_metadata(f"{field}.metadata", message.metadata, limits)
    if message.parts != ():
        _check_parts(f"{field}.parts", message.parts, limits)
    if message.tool_calls != ():
        _check_tool_calls(f"{field}.tool_calls", message.tool_calls, limits)
    if message.given is not None and message.given != AS_TEXT:
        _check_given(f"{field}.given", message, limits)


def _check_given(field: str, message: Message, limits: MessageLimits) -> None:
    given = message.given
    if type(given) is not Given or given.form not in _FORMS:
        raise InvalidMessageError(field, f"must be a Given in the form of one of {', '.join(sorted(_FORMS))}")
    try:
        size = _json_size(given.frame)
    except (TypeError, ValueError, RecursionError):
        raise InvalidMessageError(field, "must hold JSON values") from None
    _check_limit(field, size, limits.max_parts_bytes, "bytes", "max_parts_bytes")
    if not _fits(message, given):
        raise InvalidMessageError(field, "does not fit the message; leave it out")


def _fits(message: Message, given: Given) -> bool:
    """Whether the message has the pieces of which the form of its provider is filled."""
    from reactor_memory.forms.exchanges import in_own_form

    try:
        written = in_own_form(message) if message.blocks else None
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return False
    is_form = isinstance(written, list if given.form == "openai_responses" else dict)
    return is_form or (not written and written != "")


def check_metadata(field: str, value: object, limits: MessageLimits) -> None:
    """Raises `InvalidMessageError` or `LimitExceededError`."""
    _check_object(field, value, limits.max_metadata_depth, "max_metadata_depth")
    _check_limit(field, _json_size(value), limits.max_metadata_bytes, "bytes", "max_metadata_bytes")


def _check_parts(field: str, parts: object, limits: MessageLimits) -> None:
    for position, part in enumerate(_items(field, parts)):
        _check_object(f"{field}[{position}]", part, limits.max_json_depth, "max_json_depth")
    _check_limit(field, _json_size(parts), limits.max_parts_bytes, "bytes", "max_parts_bytes")


def _check_tool_calls(field: str, calls: object, limits: MessageLimits) -> None:
    items = _items(field, calls)
    _check_limit(field, len(items), limits.max_tool_calls, "tool calls", "max_tool_calls")
    for position, call in enumerate(items):
        where = f"{field}[{position}]"
        if type(call) is not ToolCall:
            raise InvalidMessageError(where, f"is a {_type_name(call)}, must be a ToolCall")
        _check_tool_call(where, call, limits)


def _check_tool_call(field: str, call: ToolCall, limits: MessageLimits) -> None:
    check_label(f"{field}.id", call.id, limits)
    check_label(f"{field}.name", call.name, limits)
    if type(call.arguments) is str:
        _check_content(f"{field}.arguments", call.arguments, limits)
    else:
        _check_object(f"{field}.arguments", call.arguments, limits.max_json_depth, "max_json_depth")
        size = _json_size(call.arguments)
        _check_limit(f"{field}.arguments", size, limits.max_content_bytes, "bytes", "max_content_bytes")
    if call.metadata != {}:
        check_metadata(f"{field}.metadata", call.metadata, limits)


def _items(field: str, value: object) -> Sequence[object]:
    if not isinstance(value, (tuple, list)):
        raise InvalidMessageError(field, f"is a {_type_name(value)}, must be a tuple")
    return value  # pyright: ignore[reportUnknownVariableType]


def _check_object(field: str, value: object, max_depth: int, setting: str) -> None:
    if type(value) is not dict:
        raise InvalidMessageError(field, f"is a {_type_name(value)}, must be a dict")
    _JsonCheck(field, max_depth, setting).check(value)  # pyright: ignore[reportUnknownArgumentType]


class _JsonCheck:
    """Walks a JSON value. Exact types only: a subclass would come back as its base."""

    def __init__(self, field: str, max_depth: int, setting: str) -> None:
        self._field = field
        self._max_depth = max_depth
        self._setting = setting

    def check(self, value: Any, depth: int = 0) -> None:
        kind = cast("type[object]", type(value))
        if kind is str:
            check_text(self._field, value)
        elif kind is dict or kind is list:
            self._check_container(value, depth + 1)
        elif kind is int or kind is float:
            self._check_number(value)
        elif value is not None and kind is not bool:
            problem = f"holds a {kind.__name__}, must hold JSON values: dict, list, str, int, float, bool, None"
            raise InvalidMessageError(self._field, problem)

    def _check_container(self, value: dict[Any, Any] | list[Any], depth: int) -> None:
        _check_limit(self._field, depth, self._max_depth, "nested levels", self._setting)
        if isinstance(value, dict):
            for key in value:
                if type(key) is not str:
                    raise InvalidMessageError(self._field, f"has a key that is a {_type_name(key)}, must be a str")
                check_text(self._field, key)
            value = list(value.values())
        for item in value:
            self.check(item, depth)

    def _check_number(self, value: float) -> None:
        if isinstance(value, int):
            if value.bit_length() > MAX_INTEGER_BITS:
                raise InvalidMessageError(self._field, "holds an integer that is too long; give it as text")
        elif not math.isfinite(value):
            raise InvalidMessageError(self._field, "holds NaN or an infinity, which JSON does not have; use None")


def _json_size(value: object) -> int:
    return len(msgspec.json.encode(value))


def _check_limit(field: str, actual: int, limit: int, unit: str, setting: str) -> None:
    if actual > limit:
        raise LimitExceededError(field, actual=actual, limit=limit, unit=unit, setting=setting_of(setting))


def setting_of(limit: str) -> str | None:
    """The setting that raises a limit."""
    return f"limits.{limit}" if limit in SETTABLE else None


def _type_name(value: object) -> str:
    return type(value).__name__


def check_is_text(field: str, value: object) -> None:
    """Raises `InvalidInputError` for anything but a string."""
    if not isinstance(value, str):
        raise InvalidInputError(field, f"must be a text, is a {type(value).__name__}")


def check_position(field: str, value: object, *, least: int = 0) -> None:
    """A whole number that every store can hold."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidInputError(field, f"must be a whole number, is a {type(value).__name__}")
    if not least <= value <= LARGEST:
        raise InvalidInputError(field, f"must be at least {least} and at most {LARGEST}")
