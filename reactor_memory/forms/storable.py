"""Whatever a model or a tool made, as JSON that every store keeps and every client can send. Pure.

What JSON has no word for takes its nearest form: NaN and infinities become texts, half a surrogate pair the replacement
character, objects of Python what they say of themselves. A NUL is JSON, but no text that databases keep: it stays in
what the provider gets back, and a replacement stands in the fields of the message.
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, is_dataclass
from datetime import date, time
from decimal import Decimal
from enum import Enum
from hashlib import blake2b
from typing import Any, cast
from uuid import UUID

import msgspec

MOST_LEVELS = 500
"""Deeper is not kept: neither JSON of other languages nor ours reads much more."""

MOST_INTEGER_BITS = 4096
_HALF_PAIR = re.compile("[\ud800-\udfff]")


def storable_text(text: str) -> str:
    """The text with a replacement for NUL and for each half of a surrogate pair."""
    return sendable_text(text).replace("\0", "\ufffd") if "\0" in text or not text.isascii() else text


def sendable_text(text: str) -> str:
    return text if text.isascii() else _HALF_PAIR.sub("\ufffd", text)


def sendable(value: Any, levels: int = MOST_LEVELS) -> Any:
    """`value` as JSON that can be stored and sent; `value` itself where it is that already."""
    kind = cast("type[object]", type(value))
    if kind is str:
        return sendable_text(value)
    if kind is bool or value is None:
        return value
    if kind is int:
        return value if value.bit_length() <= MOST_INTEGER_BITS else f"[an integer of {value.bit_length()} bits]"
    if kind is float:
        return value if math.isfinite(value) else _not_finite(value)
    if levels <= 0:
        return f"[what is nested deeper than {MOST_LEVELS} levels is left out]"
    if kind is list:
        return [sendable(each, levels - 1) for each in value]
    if kind is dict:
        return {
            sendable_text(key) if type(key) is str else str(key): sendable(each, levels - 1)
            for key, each in value.items()
        }
    return sendable(_as_json(value), levels - 1)


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _as_json(value: Any) -> Any:
    """What an object of Python says of itself; its type where it says nothing."""
    if (dump := getattr(value, "model_dump", None)) is not None and callable(dump):
        return dump()
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(cast("Any", value))
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bytes | bytearray | memoryview):
        return b64encode(bytes(cast("bytes", value))).decode()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal | UUID):
        return str(value)
    return _of_collection(value)


def _of_collection(value: Any) -> Any:
    for kind in (str, int, float):
        if isinstance(value, kind):  # a subclass
            return kind(value)
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    if isinstance(value, Sequence | Set):
        return list(cast("Sequence[Any]", value))
    return f"<{type(value).__name__}>"


def storable(value: Any, levels: int = MOST_LEVELS) -> Any:
    """What `sendable` made, without NUL, and no deeper than `levels`: what lies deeper is its JSON text."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, list | dict) and levels <= 0:
        return _json(value).replace("\\u0000", "\ufffd")
    if isinstance(value, list):
        return [storable(each, levels - 1) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        found = cast("dict[str, Any]", value)
        return {key.replace("\0", "\ufffd"): storable(each, levels - 1) for key, each in found.items()}
    return value


def short(text: str, most: int = 255) -> str:
    """The text, or its beginning and a digest: two long ones stay two."""
    if len(text) <= most:
        return text
    return (text[: max(0, most - 33)] + "~" + blake2b(text.encode(), digest_size=16).hexdigest())[-most:]


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
