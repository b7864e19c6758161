"""Lines of JSON in a result stand as what they say: level and message, or fields."""

from __future__ import annotations

import json

import pytest

from reactor_memory.features.facts.quoting.json_lines import shown_record, told_part
from tests.features.facts.quoting.reading import calls, lines, result, user


def log_line(text: str) -> str:
    told = lines(user("Show me the logs."), calls(("c1", "read_logs", {"pod": "api-7f9"})), result(text))
    return next(line for line in told if line.startswith("read_logs"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            '{"ts":"10:00","level":"error","msg":"refused","host":"db-2"}\n{"level":"warn","msg":"retrying in 5s"}',
            'error: "refused" (host=db-2); warn: "retrying in 5s"',
        ),
        (
            '{"event": "declined", "level": "warning", "order": "A-5"}\n{"event": "closed", "level": "info"}',
            'warning: "declined" (order=A-5); info: "closed"',
        ),
        (
            'api-1 | {"level":"error","message":"no memory"}\napi-1 | {"level":"info","message":"restarted"}',
            'error: "no memory"; info: "restarted"',
        ),
        (
            '2026-05-12T10:00:00Z {"level":50,"msg":"timeout"}\n2026-05-12T10:00:09Z {"level":30,"msg":"ok"}',
            'level=50: "timeout"; level=30: "ok"',
        ),
        (
            '{"severity":"ERROR","textPayload":"quota","resource":{"type":"k8s"}}\n{"severity":"INFO","textPayload":"ok"}',
            'ERROR: "quota"; INFO: "ok"',
        ),
        (
            '{"id": 1, "name": "Anna", "total": 45}\n{"id": 2, "name": "Boris", "total": 62}',
            "id=1, name=Anna, total=45; id=2, name=Boris, total=62",
        ),
    ],
)
def test_records_on_lines_are_shown_by_what_they_say(text: str, shown: str) -> None:
    assert log_line(text).endswith(f" -> {shown}")


def test_of_a_long_record_level_and_message_are_kept() -> None:
    record = {"ts": "10:00", "level": "error", "msg": "disk full", "trace": "ab" * 200}
    assert log_line(f"{json.dumps(record)}\n{json.dumps(record | {'level': 'info', 'msg': 'ok'})}").endswith(
        ' -> error: "disk full"; info: "ok"'
    )


def test_a_long_message_is_cut_with_a_mark() -> None:
    record = json.dumps({"level": "error", "msg": "disk full " * 40})
    told = log_line(f"{record}\n{record}")
    assert 'disk full …"' in told
    assert '"msg"' not in told


@pytest.mark.parametrize("line", ['x = {"a": 1} + y', '"version": "1.2.0"', "{'a': 1}", '{"a": 1', "plain"])
def test_what_is_no_record_stays_as_it_is(line: str) -> None:
    assert (told_part(line, 200), shown_record(line)) == (line, "")


def test_a_field_of_an_error_fails_no_log() -> None:
    told = log_line('{"error": null, "msg": "saved"}\n{"failed": 0, "msg": "done"}')
    assert "(failed)" not in told
