"""The file format: what is written is read again, and what is wrong is named with its line."""

from __future__ import annotations

import gzip
import json
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.errors import ImportFormatError
from reactor_memory.evaluation.transcripts import read_lines, to_line
from reactor_memory.models import Message, ToolCall

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "formats.md"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
json_objects = st.dictionaries(st.text(), json_values, max_size=3)
tool_calls = st.builds(
    ToolCall, id=st.text(), name=st.text(), arguments=json_objects | st.text(), metadata=json_objects
)
messages = st.builds(
    Message,
    role=st.sampled_from(["user", "assistant", "system", "tool", "agent", "summary"]),
    content=st.text(),
    parts=st.lists(json_objects, max_size=2).map(tuple),
    tool_calls=st.lists(tool_calls, max_size=2).map(tuple),
    tool_call_id=st.none() | st.text(),
    name=st.none() | st.text(),
    metadata=json_objects,
    visibility=st.sampled_from(["user", "agent", "system"]),
    author_id=st.none() | st.text(),
    created_at=st.none() | st.integers(-(2**63), 2**63 - 1),
)


def write(path: Path, *lines: object) -> Path:
    path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    return path


def session_with(**message: object) -> dict[str, object]:
    return {"id": "s", "messages": [{"role": "user", "content": "hi"}, {"role": "user", "content": "x", **message}]}


@given(st.lists(messages, max_size=4), st.text(min_size=1))
def test_what_is_written_is_read_again(written: list[Message], session_id: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sessions.jsonl")
        path.write_bytes(to_line(session_id, written) * 2)
        assert [(line.session_id, list(line.messages)) for line in read_lines(path)] == [(session_id, written)] * 2


def test_only_what_is_set_is_written() -> None:
    built = "".join(["us", "er"])  # equal to the default, yet another object
    message = Message.user("hi", visibility=built, created_at=1_770_000_000_000_001, seq=4, token_count=1)
    assert json.loads(to_line("s", [message])) == {
        "id": "s",
        "messages": [{"role": "user", "content": "hi", "at": "2026-02-02T02:40:00.000001+00:00"}],
    }


def test_packed_files_and_blank_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "packed"
    path.write_bytes(gzip.compress(b"\n" + to_line("a", [Message.user("1")]) + b"  \n" + to_line("b", [])))
    assert [(line.where, line.session_id) for line in read_lines(path)] == [(f"{path}:2", "a"), (f"{path}:4", "b")]


def test_other_times_and_offsets_are_understood(tmp_path: Path) -> None:
    path = write(tmp_path / "f", session_with(at="2026-02-02T03:40:00+01:00"), session_with(at="2026-02-02T02:40:00Z"))
    assert {line.messages[1].created_at for line in read_lines(path)} == {1_770_000_000_000_000}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "is not valid JSON"),
        ('{"id": "s", "messages": []} {}', "is not valid JSON"),
        ("[1]", "Expected `object`, got `array`"),
        ('{"id": "s"}', "missing required field `messages`"),
        ('{"messages": []}', "missing required field `id`"),
        (json.dumps(session_with(role="robot")), "messages[1].role: must be one of user, assistant, system, tool"),
        (json.dumps(session_with(content=None)), "messages[1].content: Expected `str`, got `null`"),
        (json.dumps(session_with(tool_call=[])), "messages[1]: Object contains unknown field `tool_call`"),
        (json.dumps(session_with(tool_calls=[{"id": "c"}])), "messages[1].tool_calls[0]: Object missing required"),
        (json.dumps(session_with(at="yesterday")), "messages[1].at: must be a time with its offset"),
        (json.dumps(session_with(at="2026-02-02T08:00:08")), "messages[1].at: must be a time with its offset"),
        ('{"id": "\\ud800", "messages": []}', "is not valid JSON"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, problem: str) -> None:
    path = tmp_path / "sessions.jsonl"
    path.write_bytes(to_line("fine", [Message.user("hi")]) + line.encode() + b"\n")
    with pytest.raises(ImportFormatError) as caught:
        list(read_lines(path))
    assert str(caught.value).startswith(f"{path}:2: ")
    assert problem in str(caught.value)
    assert "robot" not in str(caught.value)


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b'{"id": "\xff", "messages": []}\n')
    with pytest.raises(ImportFormatError, match=re.escape(f"{path}:1: ")):
        list(read_lines(path))


def test_a_packed_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    path = tmp_path / "f.gz"
    path.write_bytes(gzip.compress(to_line("s", [Message.user("hi")]))[:-12])
    with pytest.raises(ImportFormatError, match="damaged or not complete"):
        list(read_lines(path))


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(ImportFormatError, match=re.escape(f"{path}: cannot be read")):
            list(read_lines(path))


def test_broken_probes_are_named_when_they_are_asked_for(tmp_path: Path) -> None:
    (line,) = read_lines(write(tmp_path / "f", {"id": "s", "messages": [], "probes": [{"anchor": []}]}))
    with pytest.raises(ImportFormatError, match="question"):
        line.probes()


def test_the_example_of_the_documentation_is_in_the_format(tmp_path: Path) -> None:
    example = re.search(r"```json\n(.*?)```", DOCUMENTATION.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    (line,) = read_lines(write(tmp_path / "f", json.loads(example[1])))
    assert [message.role for message in line.messages] == ["user", "assistant", "tool", "assistant"]
    assert line.probes()[0].value == ("latte",)
