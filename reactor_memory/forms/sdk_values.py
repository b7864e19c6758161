"""What the SDKs of OpenAI, Anthropic, google-genai and Ollama give: objects that are made with pydantic, whole
responses, and pieces of an answer that name no role.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from reactor_memory.errors import InvalidMessageError
from reactor_memory.models import JsonObject

_HOLDERS: dict[str, tuple[str | int, ...]] = {
    "choices": ("choices", 0, "message"),
    "candidates": ("candidates", 0, "content"),
    "output": ("output",),
    "input": ("input",),
    "message": ("message",),
}
"""Where a whole response, or a request to OpenAI's Responses, holds its messages, by a key that only it has."""
_BLOCKS = ("text", "thinking", "redacted_thinking", "tool_use")
_PARTS = ("text", "function_call", "functionCall", "inline_data", "inlineData")


_AS_SENT = ("openai", "anthropic")
"""SDKs that send back their own objects without what their API did not set, and under its names."""


def plain(given: object) -> object:
    """An object of an SDK as its dict, as the SDK would send it back; everything else as it is."""
    dump = getattr(given, "model_dump", None)
    if not callable(dump):
        return given
    if any(base.__module__.partition(".")[0] in _AS_SENT for base in type(given).__mro__):
        return dump(mode="json", by_alias=True, exclude_unset=True, exclude=_not_sent(given), warnings=False)
    return dump()


def _not_sent(value: Any) -> Any:
    """What an SDK puts beside what its API gave, such as parsed JSON, in the form of `exclude` of pydantic."""
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return {place: inner for place, each in enumerate(items) if (inner := _not_sent(each))}
    if not callable(getattr(value, "model_dump", None)):
        return None
    own: Any = getattr(value, "__api_exclude__", None) or ()
    inside = {name: inner for name, each in value if (inner := _not_sent(each))}
    return {**inside, **(cast("JsonObject", own) if isinstance(own, Mapping) else dict.fromkeys(own, True))}


def kinds_of(content: object) -> list[str]:
    """The types of the blocks of a content; of a text none."""
    if not isinstance(content, (list, tuple)):
        return []
    blocks = map(plain, cast("Sequence[object]", content))
    return [str(cast("JsonObject", block).get("type")) for block in blocks if isinstance(block, Mapping)]


def misuse(given: object) -> str:
    """What to do with something that is no message yet, to be added to an error."""
    if hasattr(given, "__await__"):
        return "; await it first"
    return "; pass the texts of a stream through turn.stream()" if hasattr(given, "__aiter__") else ""


def holder_of(item: Mapping[str, Any]) -> str | None:
    """The key under which `item`, which is no message itself, holds messages."""
    return None if "role" in item or "type" in item else next((key for key in _HOLDERS if key in item), None)


def held(where: str, item: JsonObject, holder: str) -> tuple[str, object]:
    """The messages of a response with their place: the first answer, where several were asked for."""
    found: Any = item
    for key in _HOLDERS[holder]:
        where += f"[{key}]" if isinstance(key, int) else f".{key}"
        try:
            found = cast("Any", plain(found))[key]
        except (LookupError, TypeError):
            found = None
    if not found:
        raise InvalidMessageError(where, "is missing; the response holds no message")
    return where, found


def said_by_model(given: Sequence[object]) -> JsonObject | None:
    """The message that blocks of Anthropic or parts of Gemini make together; None if they are something else."""
    pieces = [plain(each) for each in given]
    if pieces and all(_is_block(piece) for piece in pieces):
        return {"role": "assistant", "content": pieces}
    if pieces and all(_is_part(piece) for piece in pieces):
        return {"role": "model", "parts": pieces}
    return None


def _is_block(piece: object) -> bool:
    return isinstance(piece, Mapping) and "role" not in piece and cast("JsonObject", piece).get("type") in _BLOCKS


def _is_part(piece: object) -> bool:
    if not isinstance(piece, Mapping):
        return False
    part = cast("JsonObject", piece)
    is_named = "role" in part or "type" in part or holder_of(part)
    return not is_named and any(part.get(key) is not None for key in _PARTS)
