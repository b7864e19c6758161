import base64
import random

import pytest

from reactor_memory.core.context.message_counter import LONGEST_LINE, MessageCounter, message_tokens
from reactor_memory.models import Message, ToolCall


class CharacterCounter:
    name = "characters"

    def count(self, text: str) -> int:
        return len(text)


def tokens(message: Message, **options: int) -> int:
    return message_tokens(message, CharacterCounter(), **options)


PIXELS = base64.b64encode(random.Random(7).randbytes(3000)).decode()


def test_content_and_name_count():
    assert tokens(Message.user("hello", name="ann")) == 8


def test_an_empty_message_costs_nothing_but_its_overhead():
    assert tokens(Message.assistant()) == 0


def test_the_id_of_a_call_does_not_count():
    assert tokens(Message.tool("ok", tool_call_id="call-1")) == 2


def test_calls_count_by_name_and_arguments_as_sent():
    calls = [ToolCall(id="1", name="find", arguments={"a": 1}), ToolCall(id="2", name="get", arguments='{ "a" :')]
    assert tokens(Message.assistant(tool_calls=calls)) == len('find{"a":1}') + len('get{ "a" :')


def test_a_text_part_counts_by_its_text():
    assert tokens(Message.user("", parts=({"type": "text", "text": "hello"}, {"text": "you"}))) == 8


def test_other_parts_count_by_their_json():
    part = {"type": "thinking", "text": "hm", "signature": "abc"}
    assert tokens(Message.assistant(parts=(part,))) == len('{"type":"thinking","text":"hm","signature":"abc"}')


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image", "source": {"type": "base64", "data": PIXELS}},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXELS}"}},
        {"inline_data": {"mime_type": "image/png", "data": PIXELS}},
        {"frames": [PIXELS]},
    ],
)
def test_media_count_as_configured_wherever_they_stand(part: dict[str, object]):
    assert 100 <= tokens(Message.user("", parts=(part,)), media_part_tokens=100) < 200


def test_two_images_in_a_part_count_twice():
    assert tokens(Message.user("", parts=({"a": PIXELS, "b": PIXELS},)), media_part_tokens=50) == 100 + len(
        '{"a":"","b":""}'
    )


def test_long_prose_is_no_media():
    prose = "words and more words " * 100
    assert tokens(Message.user("", parts=({"type": "note", "body": prose},))) > len(prose)


def test_a_line_is_counted_once_and_nothing_large_is_remembered():
    counted: list[str] = []

    class Watched(CharacterCounter):
        def count(self, text: str) -> int:
            counted.append(text)
            return len(text)

    counter = MessageCounter(Watched())
    line, page = "x" * LONGEST_LINE, "x" * (LONGEST_LINE + 1)
    assert [counter.of_text(text) for text in (line, page, line, page)] == 2 * [len(line), len(page)]
    assert counted == [line, page, page]


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + width.to_bytes(4) + height.to_bytes(4) + bytes(2000)


def jpeg(width: int, height: int) -> bytes:
    frame = b"\xff\xc0\0\x11\x08" + height.to_bytes(2) + width.to_bytes(2)
    return b"\xff\xd8\xff\xe0\0\x04ab" + frame + bytes(2000)


def wav(seconds: int) -> bytes:
    head = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0" + (8000).to_bytes(4, "little") + (8000).to_bytes(4, "little")
    return head + bytes(12) + bytes(8000 * seconds)


def openai(data: bytes, **fields: str) -> dict[str, object]:
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    return {"type": "image_url", "image_url": {"url": url, **fields}}


def anthropic(data: bytes, kind: str = "image") -> dict[str, object]:
    text = base64.b64encode(data).decode()
    return {"type": kind, "source": {"type": "base64", "media_type": "image/png", "data": text}}


def gemini(data: bytes, mime_type: str = "image/png") -> dict[str, object]:
    return {"inline_data": {"mime_type": mime_type, "data": base64.b64encode(data).decode()}}


PDF = b"%PDF-1.7\n" + b"<< /Type /Page >>\n<< /Type /Pages >>\n" * 3 + bytes(2000)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (openai(png(1024, 1024)), 765),
        (openai(png(2048, 4096)), 1105),
        (openai(png(4096, 8192), detail="low"), 85),
        ({"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}}, 85),
        ({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}, 1024),
        (anthropic(png(200, 200)), 54),
        (anthropic(jpeg(1000, 1000)), 1334),
        (anthropic(png(4000, 4000)), 1600),
        (anthropic(PDF, "document"), 6000),
        (gemini(png(300, 300)), 258),
        (gemini(png(768, 768)), 258 * 4),
        (gemini(PDF, "application/pdf"), 3 * 258),
        (gemini(wav(5), "audio/wav"), 160),
        ({"type": "input_audio", "input_audio": {"data": base64.b64encode(wav(5)).decode(), "format": "wav"}}, 50),
    ],
)
def test_media_count_by_the_rule_of_their_provider(part: dict[str, object], expected: int):
    plain = tokens(Message.user("", parts=(part,)), media_part_tokens=0, by_rule=False)
    assert tokens(Message.user("", parts=(part,))) - plain == expected
    assert tokens(Message.user("", parts=(part,)), media_part_tokens=7, by_rule=False) - plain == 7


@pytest.mark.parametrize("joint", ["\n", "\r\n", "%0A"])
def test_base64_is_known_in_lines_and_with_percent_signs(joint: str):
    data = base64.b64encode(random.Random(7).randbytes(3000)).decode()
    lines = joint.join(data[start : start + 76] for start in range(0, len(data), 76))
    for text in (lines, data.replace("+", "%2B").replace("/", "%2F"), f"data:image/png;base64,{lines}"):
        assert tokens(Message.user("", parts=({"type": "x", "data": text},))) < 1100


def test_a_list_of_words_is_no_medium():
    words = "\n".join(["word"] * 400)
    assert tokens(Message.user("", parts=({"type": "x", "data": words},))) > len(words)
