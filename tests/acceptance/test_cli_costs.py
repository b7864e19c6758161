"""Whoever looks into a store pays nothing unasked: no model is called by the commands that look, nor by the Studio."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from reactor_memory.settings.settings import Settings
from reactor_memory.studio import serving
from tests.acceptance.conftest import Run, small_talk, write_sessions

LOOKS = (["sessions"], ["show", "s1"], ["context", "s1", "--budget", "700"], ["facts", "s1"], ["pins", "s1"])


class Model(HTTPServer):
    """Refuses every request, and counts them."""

    asked = 0

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Refusing)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Refusing(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Model)
        self.server.asked += 1
        self.send_response(400)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    """The summaries are made by a model."""
    with Model() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("REACTOR_MEMORY_SUMMARY__PROVIDER", "openai")
        for name, value in (("BASE_URL", server.address), ("MODEL", "m"), ("API_KEY", "k")):
            monkeypatch.setenv(f"REACTOR_MEMORY_MODELS__OPENAI__{name}", value)
        yield server
        server.shutdown()


def test_looking_asks_no_model(run: Run, folder: Path, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_SUMMARY__LAZY_TIMEOUT_SECONDS", "0.1")
    monkeypatch.setenv("REACTOR_MEMORY_BACKGROUND__POLL_SECONDS", "0.01")
    run("import", write_sessions(folder / "f.jsonl", {"s1": small_talk(60)}))
    for command in LOOKS:
        assert run(*command).code == 0, command
    assert model.asked == 0
    run("summarize", "s1")
    assert model.asked > 0, "the model would have been there"


def studio_of(run: Run, patch: pytest.MonkeyPatch, *options: str) -> tuple[bool, str]:
    """Whether the Studio works in the background with these options, and what it prints."""
    given: list[Settings] = []

    async def opened(settings: Settings, *, ready: Any, **_: Any) -> None:
        given.append(settings)
        ready("http://127.0.0.1:1/")

    patch.setattr(serving, "run", opened)
    printed = run("studio", *options).out
    return given[0].background.enabled, printed


def test_the_studio_works_unasked_only_offline(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("migrate")
    works = {options: studio_of(run, monkeypatch, *options) for options in ((), ("--write",), ("--background",))}
    assert {options: each[0] for options, each in works.items()} == {
        (): False,
        ("--write",): True,
        ("--background",): True,
    }
    assert all("No summaries" not in each[1] for each in works.values())


def test_the_studio_asks_before_it_pays(run: Run, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    run("migrate")
    for options in ((), ("--write",)):
        works, printed = studio_of(run, monkeypatch, *options)
        assert not works
        assert "No summaries are made here, as they may cost something; --background" in printed
    works, printed = studio_of(run, monkeypatch, "--write", "--background")
    assert works
    assert "No summaries" not in printed


def test_an_embedder_that_costs_counts_too(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("migrate")
    monkeypatch.setenv("REACTOR_MEMORY_SEARCH__EMBEDDER", "openai")
    assert not studio_of(run, monkeypatch, "--write")[0]
