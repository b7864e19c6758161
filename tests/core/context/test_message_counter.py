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
