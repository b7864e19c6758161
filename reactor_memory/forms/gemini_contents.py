"""Contents of Gemini, of google-genai or in the JSON of the API, as messages. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from reactor_memory.errors import InvalidMessageError
from reactor_memory.forms.content_blocks import failed_by_flags, plain_list, plain_object, plain_text
from reactor_memory.forms.pieces import Pieces, kept_id, rest_of, result_id
from reactor_memory.forms.sdk_values import plain
from reactor_memory.forms.storable import sendable
from reactor_memory.forms.written import unless_plain
from reactor_memory.models import JsonObject, Message, Role, frames

_CAPITAL = re.compile("(?<=[a-z])([A-Z])")


def messages_of_content(where: str, item: JsonObject, role: Role) -> list[Message]:
    """The results that a content brings along, then the message, unless nothing of it is left. Calls and results that
    have no id get their names as ids, so that they find each other.
    """
    content = _Content(where, role)
    rest = rest_of({key: value for key, value in item.items() if value is not None}, "parts")
    for position, given in enumerate(plain_list(f"{where}.parts", item["parts"])):
        content.add(f"{where}.parts[{position}]", given)
    results = [
        unless_plain(_with_frame(message, {**rest, "parts": message.given.frame}, joined=place > 0))
        if message.given is not None
        else message
        for place, message in enumerate(content.results)
    ]
    if results and content.pieces.is_empty and not content.shown:
        return results
    frame = {**rest, "parts": content.shown}
    if results:
        frame[frames.JOINED] = 1
    return [*results, unless_plain(content.pieces.message(role, "gemini", frame))]


def _with_frame(message: Message, frame: JsonObject, *, joined: bool) -> Message:
    if message.given is None:
        return message
    given = msgspec.structs.replace(message.given, frame={**frame, frames.JOINED: 1} if joined else frame)
    return msgspec.structs.replace(message, given=given)


class _Content:
    def __init__(self, where: str, role: Role) -> None:
        self.pieces = Pieces("" if role == "assistant" else "\n")
        self.shown: list[Any] = []
        self.results: list[Message] = []
        self._seen: Counter[str] = Counter()

    def add(self, where: str, given: object) -> None:
        if isinstance(given, str):
            self.shown.append(self.pieces.text(given))
            return
        written = _part_of(where, given)
        part = _snake(written)
        call_key = next((key for key in ("function_call", "functionCall") if written.get(key) is not None), None)
        result_key = next(
            (key for key in ("function_response", "functionResponse") if written.get(key) is not None), None
        )
        if call_key is not None:
            self.shown.append(self._call(f"{where}.function_call", written, call_key, part.get("thought_signature")))
        elif result_key is not None:
            self.results.append(self._result(f"{where}.function_response", written, result_key))
        elif isinstance(part.get("text"), str) and not part.get("thought"):
            self.shown.append(self._text(written, part))
        else:
            self.shown.append(self.pieces.part(part, written, name=_snake_key))

    def _text(self, written: JsonObject, part: JsonObject) -> Any:
        """A signature goes back beside a text, which may be empty: what stands beside a text is a part of its own."""
        text = part["text"]
        reference = self.pieces.text(text) if text or len(part) == 1 else text
        frame: JsonObject = {**rest_of(written, "text"), "text": reference}
        if len(part) > 1:
            beside: JsonObject = self.pieces.part({**part, "text": ""})
            return {frames.PART: beside[frames.PART], frames.WRITTEN: frame}
        return frame

    def _call(self, where: str, written: JsonObject, key: str, signature: object) -> Any:
        call = plain_object(where, written[key])
        name = plain_text(f"{where}.name", call.get("name"))
        arguments = call.get("args")
        if arguments is not None and not isinstance(arguments, (dict, str)):
            raise InvalidMessageError(f"{where}.arguments", f"is a {type(arguments).__name__}, must be a dict")
        call_id = call.get("id") or self._id_by_name(name)
        metadata: JsonObject = {"thought_signature": signature} if signature else {}
        reference = self.pieces.call(
            plain_text(f"{where}.id", call_id),
            name,
            cast("JsonObject", {} if arguments is None else arguments),
            metadata,
        )
        frame = rest_of(call, "args", "id")
        if call.get("id"):
            frame["id"] = self.pieces.call_id()
        elif "id" in call:
            frame["id"] = call["id"]
        if "args" in call:
            frame["args"] = reference
        else:  # the call has its place among the blocks all the same
            frame["name"] = {**reference, frames.EXACT: name}
        return {**rest_of(written, key), key: frame}

    def _result(self, where: str, written: JsonObject, key: str) -> Message:
        response = plain_object(where, written[key])
        pieces = Pieces("\n")
        name = plain_text(f"{where}.name", response.get("name")) if not response.get("id") else ""
        call_id = response.get("id") or self._id_by_name(name)
        frame = rest_of(response, "response", "id", "parts")
        if response.get("id"):
            frame["id"] = result_id(response["id"])
        if response.get("response") is not None:
            frame["response"] = _response(where, response["response"], pieces)
        elif "response" in response:
            frame["response"] = None
        if "parts" in response:
            files = plain_list(f"{where}.parts", response["parts"] or ())
            frame["parts"] = [self._file(where, each, pieces) for each in files]
        return pieces.message(
            "tool",
            "gemini",
            [{**rest_of(written, key), key: frame}],
            tool_call_id=kept_id(plain_text(f"{where}.id", call_id)),
            metadata=failed_by_flags(response.get("response")),
        )

    def _file(self, where: str, given: object, pieces: Pieces) -> Any:
        written = _part_of(where, given)
        return pieces.part(_snake(written), written, name=_snake_key)

    def _id_by_name(self, name: str) -> str:
        """The same for the n-th call and the n-th result of a name in a content."""
        self._seen[name] += 1
        return name if self._seen[name] == 1 else f"{name}-{self._seen[name]}"


def _response(where: str, given: object, pieces: Pieces) -> Any:
    """The result as the message has it: a text alone as it is, everything else as JSON text."""
    response = plain_object(where, given)
    if response.keys() == {"result"}:
        value = response["result"]
        return {"result": pieces.text(value) if isinstance(value, str) else _as_json_text(value, pieces)}
    return _as_json_text(response, pieces)


def _as_json_text(value: object, pieces: Pieces) -> Any:
    sent = sendable(value)
    reference: JsonObject = pieces.text(msgspec.json.encode(sent).decode())
    return {**reference, frames.DECODED: 1}


def _part_of(where: str, given: object) -> JsonObject:
    """A part as its provider wrote it, without what is not there."""
    value = plain(given) if not isinstance(given, str) else {"text": given}
    if not isinstance(value, Mapping):
        raise InvalidMessageError(where, f"is a {type(value).__name__}, must be a dict, such as {{'text': ...}}")
    part = cast("JsonObject", sendable(dict(cast("Mapping[str, Any]", value))))
    return _without_nothing(part)


def _without_nothing(part: JsonObject) -> JsonObject:
    """What models of SDKs write as null, they mean as not there."""
    return {
        key: {inner: value[inner] for inner in value if value[inner] is not None} if key in _FILES else value
        for key, value in part.items()
        if value is not None
    }


_FILES = ("inline_data", "inlineData", "file_data", "fileData")


def _snake(part: JsonObject) -> JsonObject:
    """A part with the keys of google-genai."""
    snake = {_snake_key(key): value for key, value in part.items()}
    for key in ("inline_data", "file_data"):
        if isinstance(snake.get(key), Mapping):
            snake[key] = {_snake_key(inner): value for inner, value in snake[key].items()}
    return snake


def _snake_key(key: str) -> str:
    return _CAPITAL.sub(r"_\1", key).lower()
