"""Content parts in the forms that providers take.

A part of the provider's own form goes through as it is. Texts and pictures of the other forms are converted. Reasoning
can be read only by the provider that made it, so it is left out elsewhere; for everything else a mark stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, cast

from reactor_memory.models import JsonObject, is_reasoning

NOT_SHOWN = "[content that cannot be shown here]"
"""Stands for a part that a provider does not take, or not in this place."""

_ANTHROPIC_PICTURES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_GEMINI_KEYS = (
    "text",
    "inline_data",
    "inlineData",
    "file_data",
    "fileData",
    "executable_code",
    "code_execution_result",
)


class Picture(NamedTuple):
    """Where a picture is, or what it is: a URL, or base64 text of a media type."""

    url: str = ""
    media_type: str = ""
    data: str = ""

    @property
    def as_url(self) -> str:
        return self.url or f"data:{self.media_type};base64,{self.data}"


class Form(NamedTuple):
    """What a provider takes in one place: which parts are its own, and how it writes texts and pictures."""

    is_own: Callable[[JsonObject], bool]
    text: Callable[[str], JsonObject]
    picture: Callable[[Picture], JsonObject | None]

    def of(self, parts: Iterable[JsonObject]) -> list[JsonObject]:
        """The parts as the provider takes them here."""
        return [shown for part in parts if (shown := self._converted(part)) is not None]

    def _converted(self, part: JsonObject) -> JsonObject | None:
        if self.is_own(part):
            return part
        if is_reasoning(part):
            return None
        if (words := _words(part)) is not None:
            return self.text(words) if words.strip() else None
        picture = picture_of(part)
        return (self.picture(picture) if picture else None) or self.text(NOT_SHOWN)


def _words(part: JsonObject) -> str | None:
    if part.get("type") == "audio":
        audio = part.get("audio")
        transcript = cast("JsonObject", audio).get("transcript") if isinstance(audio, dict) else None
        return transcript if isinstance(transcript, str) and transcript else None
    words = part.get("text")
    is_text = part.get("type", "text") in ("text", "input_text", "output_text")
    return words if is_text and isinstance(words, str) else None


def picture_of(part: JsonObject) -> Picture | None:
    match part:
        case {"type": "image_url", "image_url": {"url": str(url)}} | {"type": "input_image", "image_url": str(url)}:
            return _from_url(url)
        case {"type": "image", "source": {"type": "base64", "media_type": str(media_type), "data": str(data)}}:
            return Picture(media_type=media_type, data=data)
        case {"type": "image", "source": {"type": "url", "url": str(url)}} | {"type": "image", "url": str(url)}:
            return _from_url(url)
        case {"type": "image", "base64": str(data), "mime_type": str(media_type)}:
            return Picture(media_type=media_type, data=data)
        case {"inlineData": {"mimeType": str(media_type), "data": str(data)}} if media_type.startswith("image/"):
            return Picture(media_type=media_type, data=data)
        case {"inline_data": {"mime_type": str(media_type), "data": str(data)}} if media_type.startswith("image/"):
            return Picture(media_type=media_type, data=data)
        case _:
            return None


def _from_url(url: str) -> Picture:
    head, comma, data = url.partition(";base64,")
    if comma and head.startswith("data:"):
        return Picture(media_type=head.removeprefix("data:"), data=data)
    return Picture(url=url)


def _has(required: Mapping[str, str]) -> Callable[[JsonObject], bool]:
    """Whether a part is of one of these types and has the key that such a part cannot lack."""
    return lambda part: required.get(str(part.get("type")), "") in part


def _gemini_own(part: JsonObject) -> bool:
    return "type" not in part and any(key in part for key in _GEMINI_KEYS)


def _text(kind: str) -> Callable[[str], JsonObject]:
    return lambda words: {"type": kind, "text": words}


def _gemini_text(words: str) -> JsonObject:
    return {"text": words}


def _no_picture(picture: Picture) -> None:
    return None


def _openai_picture(picture: Picture) -> JsonObject:
    return {"type": "image_url", "image_url": {"url": picture.as_url}}


def _responses_picture(picture: Picture) -> JsonObject:
    return {"type": "input_image", "image_url": picture.as_url, "detail": "auto"}


def _anthropic_picture(picture: Picture) -> JsonObject | None:
    if picture.url:
        return {"type": "image", "source": {"type": "url", "url": picture.url}}
    if picture.media_type not in _ANTHROPIC_PICTURES:
        return None
    return {
        "type": "image",
        "source": {"type": "base64", "media_type": picture.media_type, "data": picture.data},
    }


def _gemini_picture(picture: Picture) -> JsonObject:
    if picture.url:
        return {"file_data": {"file_uri": picture.url}}
    return {"inline_data": {"mime_type": picture.media_type, "data": picture.data}}


OPENAI_USER = Form(
    _has({"image_url": "image_url", "input_audio": "input_audio", "file": "file"}), _text("text"), _openai_picture
)
OPENAI_ASSISTANT = Form(_has({"refusal": "refusal"}), _text("text"), _no_picture)
OPENAI_TEXT = Form(_has({}), _text("text"), _no_picture)
RESPONSES_INPUT = Form(_has({"input_image": "type", "input_file": "type"}), _text("input_text"), _responses_picture)
_ANTHROPIC_INPUT = {"image": "source", "document": "source", "search_result": "source"}
ANTHROPIC_USER = Form(_has({**_ANTHROPIC_INPUT, "container_upload": "file_id"}), _text("text"), _anthropic_picture)
ANTHROPIC_RESULT = Form(_has(_ANTHROPIC_INPUT), _text("text"), _anthropic_picture)
ANTHROPIC_ASSISTANT = Form(
    _has(
        {
            "text": "citations",
            "thinking": "signature",
            "redacted_thinking": "data",
            "server_tool_use": "id",
            "web_search_tool_result": "tool_use_id",
            "web_fetch_tool_result": "tool_use_id",
            "code_execution_tool_result": "tool_use_id",
        }
    ),
    _text("text"),
    _no_picture,
)
GEMINI = Form(_gemini_own, _gemini_text, _gemini_picture)
