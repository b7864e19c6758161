"""Whatever is done to a file of any form: it is read, or refused in one line."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

import pytest

from reactor_memory.core.validation import MessageLimits
from reactor_memory.errors import ImportFormatError
from reactor_memory.evaluation.session_files import reader
from reactor_memory.imports.importer import check_files
from tests.imports.samples import SAMPLES, as_text

LIMITS = MessageLimits(max_session_bytes=200_000)
FEW, MANY = 20, 1_400
"""Damaged files of each form, in every run and in the long proofs."""

Chance: TypeAlias = random.Random
Damage: TypeAlias = Callable[[bytes, Chance], bytes]

TOKENS = (b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"null", b"1e308", b"-1", b"\xff", b"\0", b"\n", b"\\ud800")
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**63, 10**30, 1.5, 1e308, -1e308, "", "x", "\0", "\ud800", "9" * 5000),
    *([], {}, [[]], [{}], {"": None}, {"role": "user"}, "2026-13-01", "2026-01-02T03:04:05", ["a"], [None]),
)
KEYS = ("role", "content", "id", "type", "lc", "kwargs", "mapping", "parts", "messages", "input", "body", "created_at")


def some_bytes(content: bytes, chance: Chance) -> bytes:
    """With a few bytes taken out, put in, changed or doubled."""
    text = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(text) + 1)
        match chance.randrange(5):
            case 0:
                del text[at : at + chance.randint(1, 20)]
            case 1:
                text[at:at] = chance.choice(TOKENS)
            case 2:
                text[at : at + 1] = bytes([chance.randrange(256)])
            case 3:
                text[at:at] = text[at : at + chance.randint(1, 400)]
            case _:
                del text[at:]
    return bytes(text)


def a_value(content: bytes, chance: Chance) -> bytes:
    """With a value of the JSON changed, taken out, renamed, or put somewhere else."""
    try:
        lines = [json.loads(content)]
    except ValueError:
        try:
            lines = [json.loads(line) for line in content.splitlines()]
        except ValueError:
            return some_bytes(content, chance)
    for _ in range(chance.randint(1, 3)):
        number = chance.randrange(len(lines))
        lines[number] = changed(lines[number], chance)
    return "\n".join(json.dumps(line, indent=chance.choice([None, None, 2])) for line in lines).encode()


def changed(value: Any, chance: Chance) -> Any:
    if not value or not isinstance(value, (dict, list)) or chance.random() < 0.15:
        return chance.choice(VALUES)
    if isinstance(value, list):
        return of_list(cast("list[Any]", value), chance)
    return of_object(cast("dict[str, Any]", value), chance)


def of_list(value: list[Any], chance: Chance) -> Any:
    at = chance.randrange(len(value))
    return [*value[:at], *replaced(value[at], chance), *value[at + 1 :]]


def of_object(value: dict[str, Any], chance: Chance) -> Any:
    key = chance.choice(list(value))
    rest = {each: value[each] for each in value if each != key}
    match chance.randrange(6):
        case 0:
            return rest
        case 1:
            return rest | {chance.choice(KEYS): value[key]}
        case 2:
            return value | {chance.choice(KEYS): chance.choice(VALUES)}
        case _:
            return value | {key: changed(value[key], chance)}


def replaced(value: Any, chance: Chance) -> list[Any]:
    match chance.randrange(6):
        case 0:
            return []
        case 1:
            return [value, value]
        case 2:
            return [[value]]
        case _:
            return [changed(value, chance)]


def packed(content: bytes, chance: Chance) -> bytes:
    """Packed, and perhaps damaged then."""
    text = gzip.compress(content, mtime=0)
    return some_bytes(text, chance) if chance.random() < 0.8 else text


def recoded(content: bytes, chance: Chance) -> bytes:
    text = content.decode("utf-8", "replace").encode("utf-16")
    return some_bytes(text, chance)


DAMAGES: tuple[Damage, ...] = (some_bytes, a_value, a_value, a_value, packed, recoded)


def refused(read: Callable[[], object]) -> str:
    """Why a file was refused; nothing if it was read."""
    try:
        read()
    except ImportFormatError as error:
        return str(error)
    return ""


def damaged_files(name: str, count: int) -> Mapping[str, bytes]:
    """By a name that says how to make one again."""
    files: dict[str, bytes] = {}
    for seed in range(count):
        chance = random.Random(f"{name} {seed}")
        files[f"{name} {seed}"] = chance.choice(DAMAGES)(SAMPLES[name], chance)
    return files


def check(path: Path, name: str, count: int) -> None:
    path.write_bytes(SAMPLES[name])
    assert refused(lambda: check_files([path], LIMITS, leave_out=lambda error: None)) == ""
    for case, content in damaged_files(name, count).items():
        path.write_bytes(content)
        try:
            told = refused(lambda: check_files([path], LIMITS, leave_out=lambda error: None))
            refused(lambda: [line.probes() for line in reader("auto", max_bytes=LIMITS.max_session_bytes)(path)])
        except Exception as error:
            raise AssertionError(f"{case} ends in {error!r}") from error
        assert "\n" not in told, case


@pytest.mark.parametrize("name", SAMPLES)
def test_a_damaged_file_is_read_or_refused(tmp_path: Path, name: str) -> None:
    check(tmp_path / "file", name, FEW)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SAMPLES)
def test_many_damaged_files_are_read_or_refused(tmp_path: Path, name: str) -> None:
    check(tmp_path / "file", name, MANY)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[{"lc":1,"id":[],"kwargs":{}}]', "is in no known form"),
        ('[{"lc":1,"id":7,"kwargs":{}}]', "is in no known form"),
        ('[{"type":"remove","data":{"content":""}}]', "RemoveMessage"),
        (as_text([{"mapping": {"a": {"message": {"author": {"role": "user"}, "content": {"parts": ["x"]},
                                                 "create_time": 1e308}}}}]), "create_time"),
        (as_text([{"mapping": {"a": {"message": {"author": {"role": "user"}, "content": {"parts": ["x"]},
                                                 "create_time": -1e18}}}}]), "create_time"),
        ('[{"role":"user","content":' + "[" * 100_000, "nested too deeply"),
        ('[{"role":"user","content":"x","created_at":1e400}]', "created_at|out of range"),
        ('[{"role":"user","content":"x","created_at":' + "9" * 100_000 + "}]", "out of range"),
    ],
)  # fmt: skip
def test_values_that_no_form_has_are_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(ImportFormatError, match=told):
        check_files([path], LIMITS)


def test_blank_lines_are_few(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b'{"id": "a", "messages": [{"role": "user", "content": "x"}]}\n' + b"\n" * 20_000)
    with pytest.raises(ImportFormatError, match="10002: is blank"):
        check_files([path], LIMITS)
    path.write_text(f"[{'[],' * 20_000}[]]")
    with pytest.raises(ImportFormatError, match="conversations without a message"):
        check_files([path], LIMITS)
