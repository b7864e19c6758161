"""What pictures, documents and sound cost, by the rules that providers publish. Pure.

The rule is the one of the provider in whose form the part is: OpenAI counts tiles of a picture, or 85 tokens for one
of low detail, and ten tokens for a second of sound; Anthropic the area over 750, at most 1,600; Gemini 258 for each
tile and each page, and 32 for a second of sound. Sizes are read from the head of the data. What tells none costs what
is configured.
"""

from __future__ import annotations

import math
import re
from base64 import b64decode
from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias, cast
from urllib.parse import unquote

from reactor_memory.models import JsonObject

MOST_HEAD = 256 * 1024
"""Characters of base64 in which the size of a picture is looked for."""

LOW_DETAIL = 85
PAGE = {"openai": 1_000, "anthropic": 2_000, "gemini": 258}
"""Of a PDF. Anthropic names 1,500 to 3,000 for the text of a page, OpenAI its text and its picture."""

SECOND = {"openai": 10, "anthropic": 10, "gemini": 32}
MP3_BYTES = 16_000
"""Of a second, at the usual rate of 128 kbit."""

Provider: TypeAlias = Literal["openai", "anthropic", "gemini"]

_DATA_URL = re.compile(r"data:[\w.+/;=-]*,")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{1024,}={0,2}")
_BREAKS = re.compile(r"[\r\n]+")
_PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")
_SIZE_MARKERS = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
LEAST_LINE = 40
"""Characters of a line of base64: lists of words have shorter ones."""


class Size(NamedTuple):
    width: int
    height: int


def base64_of(text: str) -> str | None:
    """The bare base64 of a text that is a medium: with a head, line breaks and percent signs or without."""
    if len(text) < 1024:
        return None
    head = _DATA_URL.match(text)
    bare = text[head.end() :] if head else text
    if "%" in bare[:MOST_HEAD] or bare.endswith("%3D"):
        bare = unquote(bare)
    if "\n" in bare or "\r" in bare:
        joined, lines = _BREAKS.subn("", bare)
        if lines * LEAST_LINE > len(joined):
            return None
        bare = joined
    return bare if _BASE64.fullmatch(bare) else None


def tokens_of_part(part: JsonObject, media: str | None, otherwise: int) -> int:
    """Tokens of one medium of a part, by its base64; None: it stands elsewhere."""
    provider = _provider_of(part)
    if provider == "openai" and _detail(part) == "low":
        return LOW_DETAIL
    data = _decoded(media[:MOST_HEAD]) if media else b""
    if data.startswith(b"%PDF"):
        pages = len(_PAGE.findall(_decoded(media or "")))
        return PAGE[provider] * pages if pages else otherwise
    if (seconds := _seconds(part, data, media or "")) is not None:
        return math.ceil(seconds * SECOND[provider])
    size = _size(data)
    return otherwise if size is None else _PICTURES[provider](size)


def is_linked_picture(part: JsonObject) -> bool:
    """Whether the provider fetches a picture itself: its size is not known here."""
    match part:
        case {"type": "image_url", "image_url": {"url": str(url)}} | {"type": "input_image", "image_url": str(url)}:
            return not url.startswith("data:")
        case {"type": "image", "source": {"type": "url"}}:
            return True
        case _:
            return False


def _provider_of(part: JsonObject) -> Provider:
    if any(key in part for key in ("inline_data", "inlineData", "file_data", "fileData")):
        return "gemini"
    return "anthropic" if isinstance(part.get("source"), dict) else "openai"


def _detail(part: JsonObject) -> object:
    picture = part.get("image_url")
    return cast("JsonObject", picture).get("detail") if isinstance(picture, dict) else part.get("detail")


def _openai_picture(size: Size) -> int:
    scale = min(1, 2048 / max(size))
    width, height = size.width * scale, size.height * scale
    scale = min(1, 768 / min(width, height))
    tiles = math.ceil(width * scale / 512) * math.ceil(height * scale / 512)
    return LOW_DETAIL + 170 * tiles


def _anthropic_picture(size: Size) -> int:
    scale = min(1, 1568 / max(size))
    return min(1_600, math.ceil(size.width * scale * size.height * scale / 750))


def _gemini_picture(size: Size) -> int:
    if max(size) <= 384:
        return 258
    unit = max(256, min(768, math.floor(min(size) / 1.5)))
    return 258 * math.ceil(size.width / unit) * math.ceil(size.height / unit)


_PICTURES = {"openai": _openai_picture, "anthropic": _anthropic_picture, "gemini": _gemini_picture}


def _decoded(media: str) -> bytes:
    whole = media[: len(media) // 4 * 4].replace("-", "+").replace("_", "/")
    try:
        return b64decode(whole)
    except ValueError:
        return b""


def _size(data: bytes) -> Size | None:
    """Of a PNG, GIF, JPEG or WebP."""
    if data.startswith(b"\x89PNG") and data[12:16] == b"IHDR":
        return _sized(int.from_bytes(data[16:20]), int.from_bytes(data[20:24]))
    if data.startswith(b"GIF8"):
        return _sized(int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little"))
    if data.startswith(b"\xff\xd8"):
        return next(_jpeg_sizes(data), None)
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _webp_size(data)
    return None


def _sized(width: int, height: int) -> Size | None:
    return Size(width, height) if width and height else None


def _jpeg_sizes(data: bytes) -> Iterator[Size]:
    place = 2
    while place + 9 < len(data) and data[place] == 0xFF:
        if data[place + 1] in _SIZE_MARKERS:
            size = _sized(int.from_bytes(data[place + 7 : place + 9]), int.from_bytes(data[place + 5 : place + 7]))
            if size:
                yield size
            return
        place += 2 + max(2, int.from_bytes(data[place + 2 : place + 4]))


def _webp_size(data: bytes) -> Size | None:
    kind = data[12:16]
    if kind == b"VP8X":
        return _sized(1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little"))
    if kind == b"VP8 ":
        return _sized(int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(data[28:30], "little") & 0x3FFF)
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return _sized(1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF))
    return None


def _seconds(part: JsonObject, data: bytes, media: str) -> float | None:
    """Of sound: a WAV says its rate, of the others the usual one is taken."""
    length = len(media) * 3 / 4
    if data.startswith(b"RIFF") and data[8:12] == b"WAVE":
        rate = int.from_bytes(data[28:32], "little")
        return max(0.0, length - 44) / rate if rate else None
    if data.startswith((b"ID3", b"\xff\xfb", b"\xff\xf3", b"OggS", b"fLaC")) or (media and _is_sound(part)):
        return length / MP3_BYTES
    return None


def _is_sound(part: JsonObject) -> bool:
    media = part.get("inline_data") or part.get("inlineData")
    found = cast("JsonObject", media) if isinstance(media, dict) else {}
    kind = str(found.get("mime_type") or found.get("mimeType"))
    return part.get("type") in ("input_audio", "audio") or kind.startswith("audio/")
