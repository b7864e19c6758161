"""A message under construction: what it holds, in order, and the frame of what the provider gave. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from reactor_memory.forms.storable import sendable, sendable_text, short, storable, storable_text
from reactor_memory.models import Form, Given, JsonObject, Message, Role, ToolCall, frames

LEVELS = 60
"""Of nested objects and lists in a part or in arguments; what lies deeper is kept as its JSON text."""

_BIG = 40


class Pieces:
    """Takes the blocks of a message one by one; each method gives what the frame holds in the place of the block.

    `joint` stands between two texts.
    """

    def __init__(self, joint: str) -> None:
        self._joint = joint
        self._texts: list[str] = []
        self._length = 0
        self.parts: list[JsonObject] = []
        self.calls: list[ToolCall] = []
        self._call_id = ""

    @property
    def content(self) -> str:
        return self._joint.join(self._texts)

    @property
    def is_empty(self) -> bool:
        return not (self._texts or self.parts or self.calls)

    def text(self, given: str) -> Any:
        sent, kept = sendable_text(given), storable_text(given)
        start = self._length + (len(self._joint) if self._texts else 0)
        self._texts.append(kept)
        self._length = start + len(kept)
        reference: JsonObject = {frames.TEXT: [start, self._length]}
        return reference if kept == sent else {**reference, frames.EXACT: sent}

    def part(self, given: JsonObject, written: JsonObject | None = None, *, name: Callable[[str], str] = str) -> Any:
        """A block that is no text and no call. `written`: how the provider wrote it, if not as it is kept; `name` gives
        the keys of what is kept.
        """
        kept = storable(given, LEVELS)
        number = len(self.parts)
        self.parts.append(kept)
        if written is None or written == kept:
            return {frames.PART: number} if kept == given else {frames.PART: number, frames.EXACT: given}
        return {frames.PART: number, frames.WRITTEN: _without_held(written, kept, (number,), name)}

    def of_part(self, *path: str) -> Any:
        """A value in the part that was added last."""
        return {frames.PART: [len(self.parts) - 1, *path]}

    def call(self, call_id: str, name: str, arguments: JsonObject | str, metadata: JsonObject | None = None) -> Any:
        number = len(self.calls)
        kept: JsonObject | str
        if isinstance(arguments, str):
            sent, kept = sendable_text(arguments), storable_text(arguments)
        else:
            sent = sendable(arguments)
            kept = storable(sent) if _levels(sent) <= LEVELS else storable_text(msgspec.json.encode(sent).decode())
            raw = sent.get("_raw")
            if isinstance(raw, str) and len(sent) == 1:  # what requests make of a text that is no JSON object
                kept = storable_text(raw)
        call = ToolCall(
            id=short(storable_text(call_id)),
            name=short(storable_text(name)),
            arguments=kept,
            metadata=storable(metadata or {}, 8),
        )
        self.calls.append(call)
        self._call_id = sendable_text(call_id)
        reference: JsonObject = {frames.ARGUMENTS: number}
        if isinstance(arguments, str):
            reference[frames.AS_TEXT] = 1
        again = kept if isinstance(arguments, str) else arguments_of(call)
        return reference if again == sent else {**reference, frames.EXACT: sent}

    def call_id(self) -> Any:
        """The id of the call that was added last."""
        number = len(self.calls) - 1
        is_kept = self.calls[number].id == self._call_id
        return {frames.CALL_ID: number} if is_kept else {frames.CALL_ID: number, frames.EXACT: self._call_id}

    def message(self, role: Role, form: Form, frame: Any, **fields: Any) -> Message:
        return Message(
            role=role,
            content=self.content,
            parts=tuple(self.parts),
            tool_calls=tuple(self.calls),
            given=Given(form=form, frame=frame),
            **fields,
        )


def _without_held(written: Any, kept: Any, path: tuple[Any, ...], name: Callable[[str], str]) -> Any:
    """`written` with references for what stands in the part, too, and is long."""
    if not isinstance(written, dict) or not isinstance(kept, dict):
        return frames.verbatim(written)
    shown: JsonObject = {}
    of_part = cast("JsonObject", kept)
    for key, value in cast("JsonObject", written).items():
        held = of_part.get(name(key))
        if isinstance(held, str) and len(held) >= _BIG and value == held:
            shown[key] = {frames.PART: [*path, name(key)]}
        else:
            shown[key] = _without_held(value, held, (*path, name(key)), name)
    return {frames.VERBATIM: cast("JsonObject", written)} if any(key.startswith("§") for key in shown) else shown


def _levels(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_levels, cast("JsonObject", value).values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_levels, cast("list[Any]", value)), default=0)
    return 0


def arguments_of(call: ToolCall) -> JsonObject:
    """The arguments as an object; text that is no JSON object goes through unread, under `_raw`."""
    if not isinstance(call.arguments, str):
        return call.arguments
    if not call.arguments.strip():
        return {}
    value = json_value(call.arguments)
    return cast("JsonObject", value) if isinstance(value, dict) else {"_raw": call.arguments}


def json_value(text: str) -> object:
    """What `text` says as JSON, or the text itself."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def result_id(given: object) -> Any:
    """What a frame holds of the id by which a result names its call."""
    is_kept = not isinstance(given, str) or given == kept_id(given)
    return {frames.RESULT_ID: 1} if is_kept else {frames.RESULT_ID: 1, frames.EXACT: sendable_text(str(given))}


def kept_id(given: str) -> str:
    return short(storable_text(given))


def rest_of(given: Mapping[str, Any], *taken: str) -> JsonObject:
    """What a frame holds of the keys that nobody took."""
    rest = {str(key): sendable(value) for key, value in given.items() if key not in taken}
    shown = frames.verbatim(rest)
    return shown if frames.VERBATIM not in shown else {}
