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


@given(st.text(max_size=60))
def test_any_text_is_opened(text: str) -> None:
    value = decode(text)
    assert value is not None or opened(text) == OpenedResult(text)
