"""What a result says without what protocols put around it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.text.opened_results import OpenedResult, opened
from reactor_memory.text.spans import decode

BLOCK = {"type": "text", "text": "saved to /srv/a.txt"}
SAID = "saved to /srv/a.txt"


@pytest.mark.parametrize(
    "result",
    [
        {"content": [BLOCK], "isError": False},
        {"content": [BLOCK]},
        {"content": [{**BLOCK, "annotations": None}], "_meta": {"took": 3}},
        [BLOCK],
        {"stdout": SAID, "stderr": "", "returncode": 0},
        {"output": SAID, "metadata": {"exit_code": 0, "duration_seconds": 0.4}},
    ],
)
def test_a_text_is_taken_out_of_its_envelope(result: object) -> None:
    assert opened(json.dumps(result)) == OpenedResult(SAID)


def test_json_inside_a_block_is_read() -> None:
    inner = {"id": "T-14", "state": "open"}
    for result in (
        {"content": [{"type": "text", "text": json.dumps(inner)}]},
        {"content": [], "structuredContent": inner},
    ):
        assert opened(json.dumps(result)).value == inner


@pytest.mark.parametrize(
    "result",
    [
        {"content": [BLOCK], "isError": True},
        {"content": [BLOCK], "is_error": True},
        {"stdout": "", "stderr": "no such file", "exitCode": 2},
        {"output": "killed", "metadata": {"exit_code": 137}},
        {"stdout": "1 failed", "stderr": "", "returncode": -9},
    ],
)
def test_the_envelope_says_that_a_call_failed(result: object) -> None:
    assert opened(json.dumps(result)).is_error


@pytest.mark.parametrize(
    "result",
    [
        [{"type": "text", "title": "A note"}],
        {"content": [BLOCK], "total": 5},
        {"content": "plain"},
        {"output": "42"},
        {"stdout": "a", "exit_code": 0, "files": ["b"]},
        [],
        {"type": "text"},
        [{"type": "text", "text": "a"}, {"id": 7}],
    ],
)
def test_what_is_no_envelope_stays_as_it_is(result: object) -> None:
    assert opened(json.dumps(result)) == OpenedResult(decode(json.dumps(result)))


@pytest.mark.parametrize(
    ("result", "value"),
    [
        (
            "{'id': 'CU-881', 'ok': False, 'total': 9.50, 'left': None}",
            {"id": "CU-881", "ok": False, "total": "9.50", "left": None},
        ),
        ("[{'n': -3}, {'n': ('a', 'b')}]", [{"n": "-3"}, {"n": ["a", "b"]}]),
        (
            '{"items": [{"id": "I-1", "v": 7}, {"id": "I-2", "v": 1.50}, {"id": "I-',
            [{"id": "I-1", "v": "7"}, {"id": "I-2", "v": "1.50"}],
        ),
        ("<order><ref>MI-5</ref><rooms>14</rooms></order>", {"ref": "MI-5", "rooms": "14"}),
        (
            "<?xml version='1.0'?><a><i n='1'/><i>x</i><s:fault>no</s:fault></a>",
            {"i": [{"n": "1"}, "x"], "fault": "no"},
        ),
    ],
)
def test_records_in_other_forms_are_read(result: str, value: object) -> None:
    assert opened(result).value == value


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (
            "<html><head><title>Limits</title><style>p{}</style></head><p>Up to <b>600</b> a minute.</p></html>",
            "Limits\nUp to 600 a minute.",
        ),
        ("<!DOCTYPE html><h1>429 Too Many Requests</h1><hr>nginx</html>", "429 Too Many Requests\nnginx"),
        ("<table><tr><td>Nord</td><td>9120</td></tr></table>", "Nord\n9120"),
        ("\x1b[32m✔\x1b[0m build", "✔ build"),
        ("Loading 12%\rLoading 99%\rLoaded 3 files\r\ndone", "Loaded 3 files\ndone"),
    ],
)
def test_a_page_and_a_terminal_tell_what_is_seen(result: str, text: str) -> None:
    assert opened(result).value == text


@pytest.mark.parametrize(
    "result",
    [
        '{"level":"info"}\n{"level":"error"}',
        '{"a": 1} and more',
        "[INFO] it's on",
        "{it's {{ templated }}",
        "<a@b.example> wrote: hi>",
        "a < b </",
        "['open",
        "[('Ann', 3), ('Ben', 4)]",
        "{'re': '\\d'}",
    ],
)
def test_a_text_that_only_looks_so_stays_a_text(result: str) -> None:
    assert opened(result).value == result


@given(
    st.sampled_from(["{", "[", "<a>", "<html>", "{'", '{"a":', "<!--", "\x1b["]),
    st.text(alphabet="{}[]<>/'\",:a1 -\r\n", max_size=60),
)
def test_no_text_is_too_odd_to_be_opened(begin: str, rest: str) -> None:
    assert opened(begin + rest).is_error is False


@given(st.text(alphabet=st.characters(blacklist_characters="<{[\x1b\r"), max_size=60))
def test_any_text_is_opened(text: str) -> None:
    value = decode(text)
    assert value is not None or opened(text) == OpenedResult(text)
