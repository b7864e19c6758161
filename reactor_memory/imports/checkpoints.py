"""Checkpoints of LangGraph: the messages of the newest one of a thread.

No code of a checkpoint is run: objects are read as the values that they were made of, and pickles not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from reactor_memory.core.context.given_messages import messages_of
from reactor_memory.imports.conversation import FormError, Row
from reactor_memory.imports.langchain_messages import in_form_of_openai, is_of_langchain
from reactor_memory.models import JsonObject, Message
from reactor_memory.text.bounded_json import UNLIMITED, decoded, most_values

CHANNEL = "messages"

_OBJECTS = range(6)
"""Codes of objects: packed are the module, the name of the class, and what it is made of."""

_SNAPSHOT = 7
"""The code of a value that stands for itself."""


class _Checkpoint(msgspec.Struct):
    channel_values: dict[str, msgspec.Raw]


_JSON = msgspec.json.Decoder(_Checkpoint)
_JSON_VALUE = msgspec.json.Decoder()
_PACKED = msgspec.msgpack.Decoder(_Checkpoint)


def messages(row: Row, max_bytes: int) -> Sequence[Message]:
    """Raises `FormError` for a checkpoint that was written by another serializer than LangGraph's own."""
    given = row.text()
    if row.kind == "msgpack":
        packed = _unpacked_checkpoint(given).channel_values.get(CHANNEL)
        found: Any = [] if packed is None else _Unpacker(max_bytes).value(bytes(packed))
    elif row.kind == "json":
        text = decoded(given, _JSON, max_bytes).channel_values.get(CHANNEL)
        found = [] if text is None else decoded(bytes(text), _JSON_VALUE, max_bytes)
    else:
        raise FormError("is encrypted or pickled; expected a checkpoint in msgpack or JSON")
    if not isinstance(found, list):
        raise FormError(f"the channel {CHANNEL} holds no list of messages")
    return messages_of([_in_form_of_openai(each) for each in cast("list[Any]", found)])


def _unpacked_checkpoint(given: bytes) -> _Checkpoint:
    try:
        return _PACKED.decode(given)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        raise FormError("is not valid msgpack") from None


def _in_form_of_openai(item: Any) -> Any:
    return in_form_of_openai(item) if is_of_langchain(item) else item


class _Unpacker:
    """Unpacks a value, as long as all that it holds are no more values than fit into `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self._left = most_values(max_bytes) if max_bytes != UNLIMITED else None
        self._decoder = msgspec.msgpack.Decoder(ext_hook=self._object)

    def value(self, packed: bytes) -> Any:
        if self._left is not None:
            self._left -= _values(packed, self._left)
        try:
            return self._decoder.decode(packed)
        except msgspec.DecodeError:
            raise FormError("is not valid msgpack") from None

    def _object(self, code: int, data: memoryview) -> Any:
        """What an object was made of; a message of LangChain is a dict with its type."""
        value = self.value(bytes(data))
        if code == _SNAPSHOT:
            return value
        packed = cast("list[Any]", value) if code in _OBJECTS and isinstance(value, list) else []
        made_of: Any = packed[2] if len(packed) > 2 else None
        return cast("JsonObject", made_of) if isinstance(made_of, dict) else str(made_of)


def _values(packed: bytes, most: int) -> int:
    """How many values a text of msgpack holds. Raises `FormError` for more than `most`."""
    found = at = 0
    while at < len(packed):
        at += _size(packed, at)
        found += 1
        if found > most:
            raise FormError("holds more values than fit (limits.max_session_bytes)")
    return found


_NUMBERS = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8, 0xCA: 4, 0xCB: 8}
_FIXED = _NUMBERS | {0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17, 0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}
"""Bytes behind the first: of numbers, small objects, and heads of lists and mappings."""

_BYTES = {0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0), 0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1)}
_SIZED = _BYTES | {0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0)}
"""Bytes of the size behind the first, and further ones, before so many bytes: of texts and objects."""


def _size(packed: bytes, at: int) -> int:
    """Bytes of the value at a place; of a list or a mapping those of its head."""
    first = packed[at]
    if 0xA0 <= first <= 0xBF:
        return 1 + (first & 0x1F)
    if first in _SIZED:
        width, more = _SIZED[first]
        return 1 + width + more + int.from_bytes(packed[at + 1 : at + 1 + width])
    return 1 + _FIXED.get(first, 0)
