"""`doctor` names whatever is wrong with a part of a plug-in, and `--deep` asks each part once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from reactor_memory.models import Message
from reactor_memory.models.ledger import Extraction
from reactor_memory.wiring.plugins import Plugin
from tests.acceptance.conftest import Finished, Run


class Counter:
    name = "odd"

    def __init__(self, answer: Any = 1) -> None:
        self._answer = answer

    def count(self, text: str) -> int:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


class Uncounting:
    name = "odd"


class Summarizer:
    name = "odd"
    prompt_version = "1"
    condenser = None

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    async def summarize(self, messages: Sequence[Message], *, known: Any = None) -> Any:
        return self._answer(messages)

    async def aclose(self) -> None: ...


class Embedder:
    name = "odd"
    dimensions = 2

    def __init__(self, *vectors: Sequence[float]) -> None:
        self._vectors = vectors

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Any:
        return self._vectors

    async def aclose(self) -> None: ...


Doctor = Callable[..., Finished]
COUNTER = {"REACTOR_MEMORY_TOKENS__COUNTER": "odd"}
SUMMARIZER = {"REACTOR_MEMORY_SUMMARY__PROVIDER": "odd"}
EMBEDDER = {"REACTOR_MEMORY_SEARCH__EMBEDDER": "odd", "REACTOR_MEMORY_SEARCH__ENABLED": "true"}


@pytest.fixture
def doctor(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Doctor:
    def doctor(plug_point: str, part: Any, variables: dict[str, str], *arguments: str, **more: Any) -> Finished:
        factory = part if callable(part) else lambda settings: part
        given = Plugin(name="odd", provides={plug_point: {"odd": factory}}, **more)
        monkeypatch.setattr(sys.modules[__name__], "announced", given, raising=False)
        found = (EntryPoint(name="odd", value=f"{__name__}:announced", group="reactor_memory.plugins"),)
        monkeypatch.setattr("reactor_memory.wiring.stores.discover", lambda: found)
        for name, value in ({"REACTOR_MEMORY_STORE__URL": "memory://"} | variables).items():
            monkeypatch.setenv(name, value)
        return run("doctor", "--json", *arguments)

    return doctor


@pytest.mark.parametrize(
    ("plug_point", "part", "variables", "problem"),
    [
        ("token_counter", Uncounting(), COUNTER, "its token_counter odd does not fit: it has no method count(text)"),
        ("token_counter", Counter(AttributeError("s3cret")), COUNTER, "a part fails with a AttributeError"),
        ("summarizer", Uncounting(), SUMMARIZER, "its summarizer odd does not fit: it has no attribute prompt_version"),
        ("embedder", Counter(), EMBEDDER, "its embedder odd does not fit: it has no attribute dimensions"),
        ("summarizer", lambda: None, SUMMARIZER, "cannot make the summarizer odd: TypeError"),
        ("no_point", Counter(), {}, "provides no_point, which is no plug point"),
    ],
)
def test_a_part_of_the_wrong_shape_is_a_problem(
    doctor: Doctor, plug_point: str, part: Any, variables: dict[str, str], problem: str
) -> None:
    found = doctor(plug_point, part, variables)
    assert (found.code, found.err) == (1, "")
    assert problem in found.out.replace('\\"', '"')
    assert "s3cret" not in found.out


@pytest.mark.parametrize(
    ("plug_point", "part", "variables", "problem"),
    [
        ("token_counter", Counter(0), COUNTER, "token_counter: counts 0 tokens in a word"),
        ("token_counter", Counter("2"), COUNTER, "token_counter: counts '2' tokens in a word"),
        ("summarizer", Summarizer(lambda messages: "text"), SUMMARIZER, "summarizer: a part fails with a AttributeE"),
        ("summarizer", Summarizer(lambda messages: 1 / 0), SUMMARIZER, "summarizer: a part fails with a ZeroDivision"),
        ("embedder", Embedder((1.0, 0.0)), EMBEDDER, "embedder: the answer holds other vec"),
        ("embedder", Embedder((1.0,), (1.0,)), EMBEDDER, "embedder: the answer holds other vec"),
        ("embedder", Embedder((2.0, 0.0), (1.0, 0.0)), EMBEDDER, "embedder: gives vectors that are not of length 1"),
    ],
)
def test_a_deep_look_names_a_part_that_answers_wrongly(
    doctor: Doctor, plug_point: str, part: Any, variables: dict[str, str], problem: str
) -> None:
    found = doctor(plug_point, part, variables, "--deep")
    assert (found.code, found.err) == (1, "")
    assert problem in found.out


def test_what_parts_answered_is_shown(doctor: Doctor) -> None:
    part = Summarizer(lambda messages: Extraction(narrative=f"{len(messages)} said"))
    assert "tried" not in doctor("summarizer", part, SUMMARIZER).out
    shown = dict(doctor("summarizer", part, SUMMARIZER, "--deep").json["database"])
    assert shown["tried: summarizer"] == "0 facts and 6 characters of narrative in two sentences"
    assert shown["tried: token_counter"].endswith(" tokens in a word")


def test_a_part_that_the_chat_server_selects_is_listed(doctor: Doctor) -> None:
    found = doctor("chat_agent", Uncounting(), {})
    assert found.code == 0
    assert "chat_server.agent (default) names another" in found.out
