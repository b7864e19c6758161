"""What stands for an old result of a running turn, for long arguments of its call, and for a whole exchange. Pure.

The log keeps all of it; `handle`, the seq of the message, is how it is read again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from reactor_memory.core.context.current_turn import Count
from reactor_memory.core.context.excerpts import HEAD_SHARE, LONG_ARGUMENTS
from reactor_memory.models import JsonObject, Message, ToolCall, is_reasoning
from reactor_memory.text.borders import border_after, cut

LINE = 160
"""Characters of a line that a stub quotes."""

MOST_LINES = 4
"""So many lines that later steps used are quoted."""

VALUES = 300
"""Characters of the values in a stub or a log line that nothing else shows."""

WORDS = 80
"""Characters of a log line for what the model said, and for the arguments of each call."""

OUTCOME = 100
"""Characters of a log line for the outcome of each call."""

USERS_WORDS = 600
"""Characters of a log line for what the user said."""

_NEAR = 0.97
_TRIES = 6
_TAIL = 20_000
_FAULT = re.compile(
    r"^[^\S\n]*(?:E[^\S\n]+)?\W{0,3}(?:[\w.]{0,60}(?:error|exception)|fatal|failed|failure|panic|denied|rejected)\b[^\n]{0,400}",
    re.IGNORECASE | re.MULTILINE,
)


def reading_of(handle: int | None, tool: str | None) -> str:
    """How the whole is read again: by the tool of that name, if the model has it."""
    if handle is None:
        return ""
    return f"{tool}({handle})" if tool else f"message {handle}"


def stub_of(message: Message, reading: str, used: Sequence[str], values: Iterable[str]) -> Message:
    """The result without its text: its size, its first line, the lines that hold values which later steps `used`, the
    last line that reports a fault and the last of all, and of `values` what is not in these lines.
    """
    text = message.content
    lines = _quoted_lines(text, used)
    quoted = "\n".join(lines)
    also = _joined([value for value in values if value not in quoted], VALUES)
    shows = f"; {reading} shows all" if reading else ""
    size = [_number(len(text), "character"), _number(text.count("\n") + 1, "line")]
    size += [_number(len(message.parts), "part")] if message.parts else []
    mark = f"[cleared: {', '.join(size)}{shows}]"
    content = "\n".join(filter(None, (mark, quoted, f"| also: {also}" if also else "")))
    return msgspec.structs.replace(message, content=content, parts=(), token_count=None, tokenizer=None)


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _quoted_lines(text: str, used: Sequence[str]) -> list[str]:
    places = [0, *_places(text, used)[:MOST_LINES], _fault_place(text), len(text.rstrip()) - 1]
    lines: dict[int, str] = {}
    for place in places:
        if place < 0:
            continue
        start = text.rfind("\n", 0, place) + 1
        if start not in lines and (line := _line_around(text, start, place)):
            lines[start] = line
    return [lines[start] for start in sorted(lines)]


def _places(text: str, used: Sequence[str]) -> list[int]:
    """Where the used values stand, one place a line."""
    found: dict[int, int] = {}
    for value in used:
        place = text.find(value)
        if place >= 0:
            found.setdefault(text.rfind("\n", 0, place), place)
    return list(found.values())


def _fault_place(text: str) -> int:
    tail = max(0, len(text) - _TAIL)
    last = -1
    for fault in _FAULT.finditer(text, tail):
        last = fault.start()
    return last


def _line_around(text: str, start: int, place: int) -> str:
    """The line from `start` on, or what stands around `place` if that is far behind its beginning."""
    end = text.find("\n", place)
    end = len(text) if end < 0 else end
    if place - start > LINE // 2:
        start = border_after(text, max(start, place - LINE // 4))
    return cut(text[start : min(end, start + 2 * LINE)].strip(), LINE)


def _joined(values: Sequence[str], most: int) -> str:
    shown: list[str] = []
    for value in values:
        most -= len(value) + 1
        if most < 0:
            break
        shown.append(value)
    return " ".join(shown)


def can_cut_arguments(message: Message) -> bool:
    """Whether arguments of its calls may be shown in part: what a provider has signed, it takes back as it was."""
    return bool(message.tool_calls) and not any(map(is_reasoning, message.parts))


def with_short_arguments(message: Message, reading: str) -> Message:
    """The message with the long values in the arguments of its calls cut: JSON with the same keys."""
    calls = tuple([call if call.metadata else _short(call, reading) for call in message.tool_calls])
    if calls == message.tool_calls:
        return message
    return msgspec.structs.replace(message, tool_calls=calls, token_count=None, tokenizer=None)


def _short(call: ToolCall, reading: str) -> ToolCall:
    arguments = call.arguments
    if isinstance(arguments, str):
        if len(arguments) <= LONG_ARGUMENTS:
            return call
        try:
            short = _short_object(msgspec.json.decode(arguments, type=JsonObject), reading)
        except (msgspec.DecodeError, RecursionError):
            short = {"…": _cut_mark(len(arguments), reading)}
        return msgspec.structs.replace(call, arguments=json_of(short))
    if len(json_of(arguments)) <= LONG_ARGUMENTS:
        return call
    return msgspec.structs.replace(call, arguments=_short_object(arguments, reading))


def _short_object(arguments: JsonObject, reading: str) -> JsonObject:
    """Of values that are longer than their part of what is allowed, a text keeps its beginning."""
    share = max(40, LONG_ARGUMENTS // max(1, len(arguments)))
    return {key: _short_value(value, share, reading) for key, value in arguments.items()}


def _short_value(value: Any, share: int, reading: str) -> Any:
    text = value if isinstance(value, str) else json_of(value)
    if len(text) <= share:
        return value
    mark = _cut_mark(len(text), reading)
    return f"{cut(text, share // 2)} {mark}" if isinstance(value, str) else mark


def _cut_mark(characters: int, reading: str) -> str:
    return f"[cut: {characters:,} characters{f'; {reading}' if reading else ''}]"


def log_line(messages: Sequence[Message], handle: int | None, values: Sequence[str] = ()) -> str:
    """An exchange in one line: its place, what was said, each call with the outcome of its results."""
    results: dict[str | None, str] = {}
    pieces: list[str] = [f"#{handle}"] if handle is not None else []
    for message in messages:
        if message.role == "tool":
            results[message.tool_call_id] = outcome_of(message.content)
    for message in messages:
        if message.role == "user":
            pieces.append(f"user: {one_line(message.content, USERS_WORDS)}")
        elif message.role != "tool" and message.content:
            pieces.append(one_line(message.content, WORDS))
        for call in message.tool_calls:
            arguments = call.arguments if isinstance(call.arguments, str) else json_of(call.arguments)
            outcome = results.get(call.id, "")
            pieces.append(f"[{call.name} {one_line(arguments, WORDS)}]{f' => {outcome}' if outcome else ''}")
    line = " ".join(pieces)
    also = _joined([value for value in values if value not in line], VALUES)
    return f"{line} | {also}" if also else line


def outcome_of(text: str) -> str:
    """The last line of a result that reports a fault, else its last line."""
    place = _fault_place(text)
    if place < 0:
        place = text.rstrip().rfind("\n") + 1
    end = text.find("\n", place + 1)
    return one_line(text[place : len(text) if end < 0 else end], OUTCOME)


def one_line(text: str, most: int) -> str:
    short = " ".join(text[: 4 * most].split())
    return cut(short, most) + "…" if len(short) > most or len(text) > 4 * most else short


def head_and_tail(message: Message, most: int, cost: Count, whole: int, reading: str) -> Message | None:
    """The beginning and the end of a text of `whole` tokens in at most `most`; None if they hold nothing of it."""
    text = message.content
    characters = int(len(text) * most / max(1, whole) * _NEAR)
    for _ in range(_TRIES):
        head = cut(text, int(HEAD_SHARE * characters))
        tail = text[border_after(text, len(text) - max(0, characters - len(head))) :]
        gone = len(text) - len(head) - len(tail)
        mark = f"[… {gone:,} characters left out{f'; {reading} shows all' if reading else ''} …]"
        content = "\n".join(filter(None, (head.rstrip(), mark, tail.lstrip())))
        shown = msgspec.structs.replace(message, content=content, token_count=None, tokenizer=None)
        tokens = cost(shown)
        if tokens <= most:
            return shown if tokens < whole else None
        characters = int(characters * min(0.9, _NEAR * most / tokens))
    return None


def json_of(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError):
        return str(value)
