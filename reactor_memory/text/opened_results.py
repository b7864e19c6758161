"""What the result of a tool says, without what protocols put around it. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from json import JSONDecoder
from typing import NamedTuple, cast

from reactor_memory.text.marked_up import is_marked_up, told_by
from reactor_memory.text.spans import decode

MOST_READ = 20_000
"""Characters that are read of what is no whole JSON."""

_ENVELOPE = frozenset({"content", "iserror", "is_error", "structuredcontent", "_meta", "meta", "role", "type"})
_BLOCK = frozenset({"type", "text", "annotations", "citations", "cache_control", "id", "index", "_meta"})
_STREAMS = ("stdout", "output", "stderr")
_EXITS = ("exit_code", "exitcode", "returncode", "return_code", "exit_status")
_PAIR = re.compile(
    r'"(?P<name>[^"\\\n]{1,60})"\s{0,4}:\s{0,4}(?:"(?P<text>[^"\\\n]{0,400})"|(?P<other>-?\d[\d.eE+-]{0,30}|true|false))'
)
_BEGINS = re.compile(r'(?:\[\s{0,40})?\{\s{0,40}"')
_COLOUR = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
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
    return OpenedResult(_written_otherwise(result) if value is None else value) if told is None else _of_text(told)


def _of_record(fields: Mapping[str, object], value: object) -> OpenedResult:
    if fields.keys() <= _ENVELOPE:
        told, structured = _text_of_blocks(fields.get("content")), fields.get("structuredcontent")
        if told is not None or isinstance(structured, Mapping):
            is_error = True in (fields.get("iserror"), fields.get("is_error"))
            inside = OpenedResult(structured) if isinstance(structured, Mapping) else _of_text(told or "")
            return OpenedResult(inside.value, is_error or inside.is_error)
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


def _of_text(text: str) -> OpenedResult:
    value = decode(text)
    return OpenedResult(_written_otherwise(text) if value is None else value)


def _written_otherwise(text: str) -> object:
    """What a text says that is not JSON: a literal of Python, the beginning of JSON that was cut, XML or a
    page, else the text as a terminal shows it.
    """
    bare = text.strip()
    value: object = None
    if bare[:1] in ("{", "["):
        value = _literal(bare) or _begun(bare[:MOST_READ])
    elif is_marked_up(bare):
        value = told_by(bare)
    return value or _as_shown(text)


def _literal(text: str) -> object:
    """A dict of Python or a list of some, with its numbers as they were written. Rows without names stay a text."""
    if len(text) > MOST_READ or "'" not in text or "\\" in text:
        return None
    try:
        node = ast.parse(text, mode="eval").body
        lines = [line.encode() for line in text.split("\n")]
        rows = node.elts if isinstance(node, ast.List) else [node]
        return _of_node(node, lines) if rows and all(isinstance(row, ast.Dict) for row in rows) else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _of_node(node: ast.expr, lines: Sequence[bytes]) -> object:
    match node:
        case ast.Dict(keys=keys, values=values):
            names = [_of_node(key, lines) if key else "" for key in keys]
            return {str(name): _of_node(value, lines) for name, value in zip(names, values, strict=True)}
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return [_of_node(each, lines) for each in elements]
        case ast.Constant(value=str() | bool() | None):
            return node.value
        case _ if node.lineno == node.end_lineno:
            return lines[node.lineno - 1][node.col_offset : node.end_col_offset].decode(errors="replace")
        case _:
            return ""


def _begun(text: str) -> object:
    """The values of JSON that was cut, in records that end where a name comes again."""
    if not _is_cut(text):
        return None
    records: list[dict[str, str]] = [{}]
    for place in _PAIR.finditer(text):
        if place["name"] in records[-1]:
            records.append({})
        records[-1][place["name"]] = place["text"] if place["text"] is not None else place["other"]
    return records if records[0] else None


def _is_cut(text: str) -> bool:
    """Whether a text begins as JSON and no value of JSON ends in it. Lines of JSON are none."""
    try:
        JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return _BEGINS.match(text) is not None
    return False


def _as_shown(text: str) -> str:
    """Without signs that colour a terminal, and without what was overwritten on a line (a bar of progress)."""
    if "\x1b" not in text and "\r" not in text:
        return text
    plain = _COLOUR.sub("", text).replace("\r\n", "\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in plain.split("\n"))


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
