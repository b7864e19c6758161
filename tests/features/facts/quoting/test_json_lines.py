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
        (
            'NOT SENT {"to":"bob@x.org","subject":"Plan"}\nNOT SENT {"to":"eve@x.org","subject":"Plan"}',
            '"NOT SENT {"to":"bob@x.org","subject":"Plan"}"; "NOT SENT {"to":"eve@x.org","subject":"Plan"}"',
        ),
        ('18:30 {"name":"Yoga"}\n19:30 {"name":"Judo"}', '"18:30 {"name":"Yoga"}"; "19:30 {"name":"Judo"}"'),
        (
            '{"level":"error","msg":"disk\u2028full"}\n{"level":"info","msg":"ok"}',
            'error: "disk full"; info: "ok"',
        ),
        (
            '{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"status":"half"}\n{"a":2}',
            "a=1, b=2, c=3, d=4, e=5, status=half, …; a=2",
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


def test_a_field_inside_another_is_not_what_a_record_says() -> None:
    record = {"ctx": {"msg": "inner ok"}, "trace": "ab" * 200, "level": "error", "msg": "disk full"}
    assert log_line(f"{json.dumps(record)}\n{json.dumps(record)}").endswith(' -> error: "disk full"')


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


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("refund_order", '{"success":false,"error":"order is locked"}\n{"trace":"t-1"}'),
        ("run_job", '{"level":"info","msg":"a"}\n{"level":"info","msg":"b"}\nProcess exited with code 1'),
        ("create_job", '{"error":"quota exceeded","id":"J-9"}\n{"hint":"retry later"}'),
        ("send_sms", '{"status":"failed","to":"1"}\n{"status":"failed","to":"2"}'),
        ("send_sms", '{"success":false,"message":"order locked","time":"10:00"}\n{"trace":"t-1"}'),
        ("get_job", '{"error":"no such job"}\n{"hint":"list them first"}'),
        ("migrate", 'ERROR: {"step":"migrate"}\nSKIPPED: {"step":"seed"}'),
    ],
)
def test_a_call_fails_by_the_first_record_and_its_exit(tool: str, text: str) -> None:
    assert any("(failed)" in line for line in lines(calls(("c1", tool, {"id": "O-9"})), result(text)))


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("get_logs", '{"ts":"10:00","error":"timeout"}\n{"ts":"10:01","path":"/x"}'),
        ("run_command", '{"level":"error","error":"disk full","msg":"halt"}\n{"level":"info","msg":"up"}'),
        ("list_jobs", '{"job":1,"status":"failed"}\n{"job":2,"status":"ok"}'),
        ("get_requests", '{"path":"/x","status":404}\n{"path":"/y","status":200}'),
        ("send_sms", '{"status":"sent","to":"1"}\n{"status":"sent","to":"2"}'),
    ],
)
def test_events_and_things_that_were_read_fail_no_call(tool: str, text: str) -> None:
    assert not any("(failed)" in line for line in lines(calls(("c1", tool, {"id": "O-9"})), result(text)))
