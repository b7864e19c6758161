"""What the result of a tool says, without what protocols put around it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple, cast

from reactor_memory.text.spans import decode

_ENVELOPE = frozenset({"content", "iserror", "is_error", "structuredcontent", "_meta", "meta", "role", "type"})
_BLOCK = frozenset({"type", "text", "annotations", "citations", "cache_control", "id", "index", "_meta"})
_STREAMS = ("stdout", "output", "stderr")
_EXITS = ("exit_code", "exitcode", "returncode", "return_code", "exit_status")
_CODE = re.compile(r"-?\d{1,10}")


class OpenedResult(NamedTuple):
    """A JSON value, or a text; and whether what stood around it says that the call failed."""

    value: object
    is_error: bool = False


def opened(result: str) -> OpenedResult:
    """What a result says.

    Blocks of text (``{"content": [{"type": "text", "text": "..."}], "isError": false}``, as tools of the model context
    protocol answer) are their text, or the JSON that it is. What a process wrote, beside the code that it ended with,
    is a text.
    """
    value = decode(result)
    if isinstance(value, Mapping):
        return _of_record(_lowered(cast(object, value)), cast(object, value))
    told = _text_of_blocks(value)
    return OpenedResult(result if value is None else value) if told is None else OpenedResult(_decoded(told))


def _of_record(fields: Mapping[str, object], value: object) -> OpenedResult:
    if fields.keys() <= _ENVELOPE:
        told, structured = _text_of_blocks(fields.get("content")), fields.get("structuredcontent")
        if told is not None or isinstance(structured, Mapping):
            is_error = True in (fields.get("iserror"), fields.get("is_error"))
            return OpenedResult(structured if isinstance(structured, Mapping) else _decoded(told or ""), is_error)
    streams = [text for name in _STREAMS if isinstance(text := fields.get(name), str)]
    codes = [code for each in (fields, _lowered(fields.get("metadata"))) for name in _EXITS if (code := each.get(name))]
    if streams and codes and not any(isinstance(each, list) for each in fields.values()):
        is_error = any(_CODE.fullmatch(str(code)) and int(str(code)) for code in codes)
        return OpenedResult("\n".join(filter(None, streams)), is_error)
    return OpenedResult(value)


def _lowered(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        return {}
    return {str(key).lower(): each for key, each in cast("Mapping[object, object]", value).items()}


def _decoded(text: str) -> object:
    value = decode(text)
    return text if value is None else value


def _text_of_blocks(value: object) -> str | None:
    """The texts of a list of blocks; None for any other list."""
    blocks = cast("list[object]", value) if isinstance(value, list) else []
    typed = [each for each in map(_fields, blocks) if isinstance(each.get("type"), str)]
    texts = [each["text"] for each in typed if each["type"] == "text" and each.keys() <= _BLOCK]
    if not texts or len(typed) < len(blocks) or not all(isinstance(text, str) for text in texts):
        return None
    return "\n".join(cast("list[str]", texts))


def _fields(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}
