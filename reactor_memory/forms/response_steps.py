"""Items of OpenAI's Responses API as messages: what the model did in one step is several items and one message."""

from __future__ import annotations

from typing import Any, cast

from reactor_memory.errors import InvalidMessageError
from reactor_memory.forms.content_blocks import MessageContent, failed_by_flags, plain_text
from reactor_memory.forms.pieces import Pieces, kept_id, rest_of, result_id
from reactor_memory.forms.sdk_values import kinds_of
from reactor_memory.forms.storable import sendable
from reactor_memory.forms.written import unless_plain
from reactor_memory.models import JsonObject, Message, Role, frames

_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_SERVED_CALLS = ("computer_call", "local_shell_call", "shell_call", "apply_patch_call", "mcp_approval_request")
"""Calls of the API's own tools that the caller carries out, and answers by an output. So is, of whatever kind, what has
a `call_id`.
"""

_CALLED_WITH = ("action", "actions", "operation", "arguments", "code")
_ANSWERED_WITH = ("output", "result")
_OUTPUTS = frozenset(f"{call}_output" for call in (*_CALLS, *_SERVED_CALLS))

_NAMED_BY_ITEM = ("local_shell_call_output", "mcp_approval_response")
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_CONTENT = ("input_text", "output_text", "input_image", "input_file")
_NO_ITEMS = ("human", "ai", "text", "image", "image_url", "tool_use", "tool_result", "thinking", "message")


class ResponseSteps:
    """Puts the items of a step together. `add` and `finished` give the messages that are complete."""

    def __init__(self) -> None:
        self._pieces = Pieces("")
        self._frame: list[Any] = []
        self._has_message = False

    @staticmethod
    def is_item(item: JsonObject) -> bool:
        """Whether this is an item that no other form has."""
        kind = item.get("type")
        if isinstance(kind, str) and kind not in _NO_ITEMS:
            return True
        if "role" not in item:
            return item.keys() == {"id"}  # a reference to an item
        if str(item["role"]) not in _ROLES or "tool_calls" in item:
            return False
        kinds = kinds_of(item.get("content"))
        is_answer = kind == "message" and "stop_reason" not in item and "usage" not in item
        return any(each in _CONTENT for each in kinds) or (is_answer and {*kinds} <= {"refusal"})

    @staticmethod
    def is_call(item: JsonObject) -> bool:
        return item.get("type") in _CALLS

    @property
    def is_empty(self) -> bool:
        return not self._frame

    def awaits(self, item: JsonObject) -> bool:
        """Whether a message of the model, in the short form, belongs to the reasoning that came before it."""
        is_bare = bool(self._frame) and not self._has_message and not self._pieces.calls
        return is_bare and item.get("role") == "assistant" and "tool_calls" not in item

    def finished(self) -> list[Message]:
        if not self._frame:
            return []
        message = unless_plain(self._pieces.message("assistant", "openai_responses", self._frame))
        self.__init__()
        return [message]

    def add(self, where: str, given: JsonObject) -> list[Message]:
        item = cast("JsonObject", sendable(given))
        kind = str(item.get("type", "message" if "role" in item else "item_reference"))
        if kind == "message" and item.get("role") != "assistant":
            return [*self.finished(), _said_by_others(where, item)]
        if _is_result(item, kind):
            return [*self.finished(), _output(where, item, kind)]
        is_next = (self._has_message or self._pieces.calls) and kind in ("message", "reasoning")
        done = self.finished() if is_next else []
        self._frame.append(self._item(where, item, kind))
        return done

    def _item(self, where: str, item: JsonObject, kind: str) -> Any:
        pieces = self._pieces
        if kind == "message":
            self._has_message = True
            content = MessageContent("assistant", "openai_responses")
            content.pieces = pieces
            return {**rest_of(item, "content"), "content": content.of(f"{where}.content", item.get("content"))}
        if kind in _CALLS:
            key = _CALLS[kind]
            name = plain_text(f"{where}.name", item.get("name"))
            call_id = plain_text(f"{where}.id", item.get("call_id") if "call_id" in item else None)
            reference = pieces.call(call_id, name, _arguments(f"{where}.{key}", item.get(key)))
            return {**rest_of(item, "call_id", key), "call_id": pieces.call_id(), key: reference}
        if kind in _SERVED_CALLS or isinstance(item.get("call_id"), str):
            call_id = item.get("call_id") or item.get("id") or kind
            name = item.get("name") or kind.removesuffix("_call")
            key = next((key for key in _CALLED_WITH if item.get(key)), None)
            if key is None:
                reference = pieces.call(str(call_id), str(name), {})
                return {**rest_of(item, "type"), "type": {**reference, frames.EXACT: kind}}
            value: Any = item[key]
            if isinstance(value, (dict, str)):
                return {**rest_of(item, key), key: pieces.call(str(call_id), str(name), cast("JsonObject", value))}
            reference = pieces.call(str(call_id), str(name), {key: value})
            return {**rest_of(item, key), key: {**reference, frames.EXACT: value}}
        kept = {key: value for key, value in item.items() if value is not None}
        return pieces.part(kept, item)


def _said_by_others(where: str, item: JsonObject) -> Message:
    role = _ROLES[item["role"]]
    content = MessageContent(role, "openai_responses")
    shown = content.of(f"{where}.content", item.get("content"))
    frame = {**rest_of(item, "content"), "content": shown}
    return unless_plain(content.pieces.message(role, "openai_responses", [frame]))


def _is_result(item: JsonObject, kind: str) -> bool:
    """Whether the item answers a call. An output of the API's own that names none is a piece of what the model did."""
    if kind == "mcp_approval_response" or kind in _OUTPUTS:
        return True
    return kind.endswith("_output") and isinstance(item.get("call_id"), str)


def _output(where: str, item: JsonObject, kind: str) -> Message:
    key = "call_id"
    if kind == "mcp_approval_response":
        key = "approval_request_id"
    elif kind in _NAMED_BY_ITEM and "call_id" not in item:
        key = "id"
    call_id = item.get(key) or item.get("name")
    if not isinstance(call_id, str):
        raise InvalidMessageError(f"{where}.{key}", "is missing; a result names the call it answers")
    content = MessageContent("tool", "openai_responses")
    of_text = next((name for name in _ANSWERED_WITH if name in item), "output")
    output: Any = item.get(of_text)
    taken = [key, of_text]
    frame: JsonObject = {key: result_id(call_id) if item[key] else item[key]} if key in item else {}
    if isinstance(output, str) or (isinstance(output, list) and kind in _TEXT_OUTPUTS):
        frame[of_text] = content.of(f"{where}.{of_text}", cast("object", output))
    elif isinstance(output, dict):
        part = cast("JsonObject", output)
        frame[of_text] = content.pieces.part({"type": kind, **part}, part)
    elif output is not None:
        reference: JsonObject = content.pieces.part({"type": kind, "output": output})
        frame[of_text] = {**reference, frames.EXACT: cast("object", output)}
    elif of_text in item:
        frame[of_text] = None
    if kind == "mcp_approval_response":
        verdict = "approved" if item.get("approve") else "not approved"
        frame[frames.TEXT] = content.pieces.text(verdict)
    failed = {} if kind in ("function_call_output", "custom_tool_call_output") else failed_by_flags(item)
    frame = {**rest_of(item, *taken), **frame}
    text = frame.pop(frames.TEXT, None)
    if text is not None:
        frame["type"] = {**text, frames.EXACT: kind}
    message = content.pieces.message(
        "tool", "openai_responses", [frame], tool_call_id=kept_id(call_id), metadata=failed
    )
    return unless_plain(message)


_TEXT_OUTPUTS = ("function_call_output", "custom_tool_call_output")


def _arguments(where: str, given: Any) -> JsonObject | str:
    if given is not None and not isinstance(given, (str, dict)):
        raise InvalidMessageError(where, f"is a {type(given).__name__}, must be a dict")
    return {} if given is None else cast("JsonObject | str", given)
