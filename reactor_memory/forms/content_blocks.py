"""The content of a message of OpenAI or Anthropic: a text, or a list of blocks. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from reactor_memory.errors import InvalidMessageError
from reactor_memory.forms.pieces import Pieces, kept_id, rest_of, result_id
from reactor_memory.forms.sdk_values import plain
from reactor_memory.forms.storable import sendable
from reactor_memory.forms.written import unless_plain
from reactor_memory.models import Form, JsonObject, Message, Role, outcome_of

TEXTS = ("text", "input_text", "output_text")
_PICTURES = {"iVBOR": "image/png", "/9j/": "image/jpeg", "R0lG": "image/gif", "UklG": "image/webp"}
"""How the base64 of a picture begins."""


class MessageContent:
    """Reads the content of one message. `results` are those of tools that a user message of Anthropic brings along."""

    def __init__(self, role: Role, form: Form) -> None:
        # A model divides its text where it likes, also inside a sentence. The texts of others stand for themselves.
        self.pieces = Pieces("" if role == "assistant" else "\n")
        self.form: Form = form
        self.results: list[Message] = []

    def of(self, where: str, value: object) -> Any:
        """What the frame holds of the content."""
        if isinstance(value, str):
            return self.pieces.text(value) if value else value
        if value is None:
            return None
        if not isinstance(value, (list, tuple)):
            raise InvalidMessageError(where, f"is a {type(value).__name__}, must be a text or a list of parts")
        blocks = enumerate(cast("Sequence[object]", value))
        shown = [self._block(f"{where}[{position}]", each) for position, each in blocks]
        return [block for block in shown if block is not None]

    def pictures(self, given: Sequence[object]) -> list[Any]:
        """Pictures of Ollama: base64."""
        shown: list[Any] = []
        for each in given:
            data = str(sendable(each))
            media_type = next((kind for start, kind in _PICTURES.items() if data.startswith(start)), "image/png")
            source = {"type": "base64", "media_type": media_type, "data": data}
            self.pieces.part({"type": "image", "source": source})
            shown.append(self.pieces.of_part("source", "data"))
        return shown

    def _block(self, where: str, given: object) -> Any:
        if isinstance(given, str):
            return self.pieces.text(given) if given else given
        block = block_of(where, given)
        kind = block.get("type")
        if kind in TEXTS or (kind is None and "text" in block):
            text = plain_text(f"{where}.text", block.get("text"))
            return {**rest_of(block, "text"), "text": self.pieces.text(text) if text else text}
        if kind == "tool_use":
            return self._call(where, block)
        if kind == "tool_result":
            self.results.append(result_of(where, block))
            return None
        kept = {key: value for key, value in block.items() if value is not None and key != "cache_control"}
        return self.pieces.part(kept, block)

    def _call(self, where: str, block: JsonObject) -> Any:
        call_id, name = plain_text(f"{where}.id", block.get("id") or ""), plain_text(f"{where}.name", block.get("name"))
        given = block.get("input")
        if given is not None and not isinstance(given, (dict, str)):
            raise InvalidMessageError(f"{where}.arguments", f"is a {type(given).__name__}, must be a dict")
        reference = self.pieces.call(call_id, name, {} if given is None else cast("JsonObject | str", given))
        return {**rest_of(block, "id", "input"), "id": self.pieces.call_id(), "input": reference}


def result_of(where: str, block: JsonObject) -> Message:
    """A result of a tool in the form of Anthropic."""
    call_id = block.get("tool_use_id")
    if not isinstance(call_id, str):
        raise InvalidMessageError(f"{where}.tool_use_id", "is missing; a result names the call it answers")
    content = MessageContent("tool", "anthropic")
    frame = {**rest_of(block, "tool_use_id", "content"), "tool_use_id": result_id(call_id)}
    if "content" in block:
        frame["content"] = content.of(f"{where}.content", block["content"])
    failed = {"is_error": True} if block.get("is_error") else {}
    message = content.pieces.message(
        "tool", "anthropic", {"role": "user", "content": [frame]}, tool_call_id=kept_id(call_id), metadata=failed
    )
    return unless_plain(message)


def failed_by_flags(value: Any) -> JsonObject:
    """The metadata of a result that its protocol calls failed."""
    return {"is_error": True} if outcome_of(value, 2) == "failed" else {}


def block_of(where: str, given: object) -> JsonObject:
    value = plain(given)
    if not isinstance(value, Mapping):
        problem = f"is a {type(value).__name__}, must be a dict, such as {{'type': 'text', 'text': ...}}"
        raise InvalidMessageError(where, problem)
    return cast("JsonObject", sendable(dict(cast("Mapping[str, Any]", value))))


def system_texts(where: str, given: object) -> list[Message]:
    """The system messages of a request."""
    if isinstance(given, Mapping):
        given = cast("Mapping[str, Any]", given).get("parts")
    if given is None or isinstance(given, str):
        return [Message.system(given)] if given else []
    found: list[Message] = []
    for each in plain_list(where, given):
        content = MessageContent("system", "chat")
        block = block_of(where, {"type": "text", "text": each} if isinstance(each, str) else each)
        plain_text(where, block.get("text"))
        is_of_gemini = "type" not in block
        frame = {"role": "system", "content": content.of(where, [block])}
        message = content.pieces.message("system", "gemini" if is_of_gemini else "anthropic", frame)
        is_plain = is_of_gemini or block.keys() <= {"type", "text"}
        found.append(Message.system(message.content) if is_plain else message)
    return found


def plain_object(where: str, given: object) -> JsonObject:
    value = plain(given)
    if not isinstance(value, Mapping):
        raise InvalidMessageError(where, f"is a {type(value).__name__}, must be a dict")
    return dict(cast("Mapping[str, Any]", value))


def plain_text(where: str, given: object) -> str:
    if not isinstance(given, str):
        raise InvalidMessageError(where, f"is a {type(given).__name__}, must be a text")
    return given


def plain_list(where: str, given: object) -> Sequence[object]:
    if not isinstance(given, (list, tuple)):
        raise InvalidMessageError(where, f"is a {type(given).__name__}, must be a list")
    return cast("Sequence[object]", given)
