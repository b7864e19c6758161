"""The log of a service in JSON: fields of the library, and nothing that others filled in."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from reactor_memory.cli.service_log import JsonLine


def line(name: str, message: str, *arguments: object, **fields: object) -> str:
    record = logging.LogRecord(name, logging.ERROR, "file.py", 1, message, arguments, sys.exc_info())
    record.__dict__.update(fields)
    return JsonLine().format(record)


def raised() -> None:
    try:
        raise KeyError("canary of the cause")
    except KeyError as error:
        raise ValueError("canary: what somebody said") from error


def test_line_is_an_object_with_the_fields_of_the_record() -> None:
    entry = json.loads(line("reactor_memory.background", "summary work %s", "parked", session_id="s-1", attempts=5))
    assert entry.pop("time").endswith("+00:00")
    assert entry == {
        "level": "error",
        "logger": "reactor_memory.background",
        "message": "summary work parked",
        "session_id": "s-1",
        "attempts": 5,
    }


@pytest.mark.parametrize("name", ["reactor_memory.server.problems", "asyncio"])
def test_of_exceptions_their_types_and_places_are_told(name: str) -> None:
    try:
        raised()
    except ValueError:
        told = line(name, "request failed")
    entry = json.loads(told)
    assert [each["type"] for each in entry["exception"]] == ["ValueError", "KeyError"]
    assert entry["exception"][0]["at"][-1].endswith(" raised")
    assert "canary" not in told


def test_what_other_libraries_fill_in_is_left_out() -> None:
    told = line("asyncio", "Task exception was never retrieved\nfuture: ValueError('canary')")
    assert json.loads(told)["message"] == "Task exception was never retrieved"
    assert json.loads(line("httpx2", "GET %s", "https://host/?key=canary"))["message"] == "GET %s"
