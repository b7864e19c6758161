"""Messages as records: what a model is given to read, in portions that it can take in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from reactor_memory.models import JsonObject, Message, Role, ToolCall
from reactor_memory.models.turns import with_interruptions
from reactor_memory.text.borders import border_before

if TYPE_CHECKING:
    from reactor_memory.core.ports import TokenCounter

_ESCAPED = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message or a part of one. `calls` names the tool that is called; then `text` holds the arguments."""

    seq: int
    role: Role
    name: str | None = None
    calls: str | None = None
    attached: tuple[str, ...] = ()
    text: str = ""


def to_json(value: Any) -> str:
    """JSON in which nothing can end a tag, open an entity or start a line: text exists only inside strings."""
    return msgspec.json.encode(value).decode().translate(_ESCAPED)


def records_of(messages: Sequence[Message]) -> Iterator[Record]:
    """One record for the text of each message, and one for each tool call. A result is named after its call; of a call
    with which a turn broke off, it says so.
    """
    tools = {call.id: call.name for message in messages for call in message.tool_calls}
    seq = 0
    for message in with_interruptions(messages, max((each.seq or 0 for each in messages), default=0)):
        seq = message.seq or seq
        name = message.name or tools.get(message.tool_call_id or "")
        record = Record(seq=seq, role=message.role, name=name)
        text, attached = _readable(message)
        if text or attached or not message.tool_calls:
            yield replace(record, text=text, attached=attached)
        for call in message.tool_calls:
            yield replace(record, text=_arguments_json(call), calls=call.name)


def chunks(messages: Sequence[Message], max_tokens: int, counter: TokenCounter) -> Iterator[tuple[Record, ...]]:
    """The records of `messages` in runs of at most `max_tokens` tokens of JSON.

    A record that is larger by itself is cut, at white space where there is any; its pieces keep the seq. One
    character is never cut, even if `max_tokens` cannot hold it.
    """
    chunk: list[Record] = []
    used = 0
    for record in records_of(messages):
        for piece, tokens in _pieces(record, max_tokens, counter):
            if chunk and used + tokens > max_tokens:
                yield tuple(chunk)
                chunk, used = [], 0
            chunk.append(piece)
            used += tokens
    if chunk:
        yield tuple(chunk)


def _readable(message: Message) -> tuple[str, tuple[str, ...]]:
    """The text of a message, that of its text parts included, and the kinds of its other parts."""
    texts = [message.content] if message.content else []
    attached: list[str] = []
    for part in message.parts:
        text = part.get("text")
        if isinstance(text, str) and part.keys() <= {"type", "text"}:
            texts.append(text)
        else:
            attached.append(_kind(part))
    return "\n".join(texts), tuple(attached)


def _kind(part: JsonObject) -> str:
    kind = part.get("type") or next(iter(part), "part")
    return str(kind)[:40]


def _arguments_json(call: ToolCall) -> str:
    return call.arguments if isinstance(call.arguments, str) else msgspec.json.encode(call.arguments).decode()


def _pieces(record: Record, max_tokens: int, counter: TokenCounter) -> Iterator[tuple[Record, int]]:
    tokens = counter.count(to_json(record)) + 1
    if tokens <= max_tokens or len(record.text) < 2:
        yield record, tokens
        return
    # A tenth is left for the fields around the text and for parts of it that are denser than others.
    parts = 1 + tokens * 10 // (max_tokens * 9)
    for text in _cut(record.text, -(-len(record.text) // parts)):
        yield from _pieces(replace(record, text=text), max_tokens, counter)


def _cut(text: str, size: int) -> Iterator[str]:
    """`text` in pieces of at most `size` characters, each but the last ending at white space if its end has any."""
    start = 0
    while len(text) - start > size:
        end = start + size
        margin = (end - size // 4, end)
        white = max(text.rfind(" ", *margin), text.rfind("\n", *margin))
        end = white + 1 if white > 0 else max(border_before(text, end), start + 1)
        yield text[start:end]
        start = end
    yield text[start:]
