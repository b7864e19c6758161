"""`make check-supply` fails for what it is there for."""

from __future__ import annotations

import http.server
import threading
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

import pytest

from tests.house.picture import CHECKOUT
from tests.house.supply import LOCKS, pins_in, problems, unlocked, without_licence, yanked
from tests.scenes.tables import each_row

HASHED = "thing==1.0 \\\n    --hash=sha256:00\nother[extra]==2.0 ; python_version < '3.12' \\\n    --hash=sha256:00\n"


def test_the_locks_of_this_checkout_are_complete_and_licensed() -> None:
    locked = {pin.name for name in LOCKS for pin in pins_in((CHECKOUT / name).read_text(encoding="utf-8"))}
    assert len(locked) > 100
    assert list(problems(CHECKOUT, distributions(), is_offline=True)) == []


@each_row(
    "project, lock, told",
    [
        ({"dependencies": ["thing>=1", "Other[extra]"]}, HASHED, []),
        ({"dependencies": ["missing>=1"]}, HASHED, ["missing>=1 (dependencies) stands in no lock: run make lock"]),
        ({"optional-dependencies": {"http": ["gone"]}}, HASHED, ["gone (http) stands in no lock: run make lock"]),
        ({"dependencies": ["thing"]}, "thing>=1.0\n", ["thing (dependencies) stands in no lock: run make lock"]),
        ({"dependencies": ["thing"]}, "thing==1.0\n", ["thing has no hash in requirements.lock"]),
        ({"dependencies": ["thing"]}, f"{HASHED}more==1\n", ["more has no hash in requirements.lock"]),
    ],
)
def test_a_dependency_without_a_lock_is_named(project: dict[str, Any], lock: str, told: list[str]) -> None:
    assert list(unlocked(project, {"requirements.lock": lock})) == told


@each_row(
    "metadata, is_licensed",
    [
        ("", False),
        ("License: UNKNOWN\n", False),
        ("License-Expression: \nClassifier: Topic :: Software Development\n", False),
        ("License-Expression: MIT\n", True),
        ("License: BSD\n", True),
        ("License-File: LICENSE\n", True),
        ("Classifier: License :: OSI Approved :: MIT License\n", True),
    ],
)
def test_a_package_without_a_licence_is_named(tmp_path: Path, metadata: str, is_licensed: bool) -> None:
    folder = tmp_path / "a_thing-1.0.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.4\nName: a_thing\nVersion: 1.0\n{metadata}\n")
    installed = [Distribution.at(folder)]
    assert list(without_licence({"a-thing"}, installed)) == ([] if is_licensed else ["a-thing 1.0 names no licence"])
    assert list(without_licence({"other"}, installed)) == []


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One that yanked version 1.0 of a thing."""
    folder = tmp_path / "simple" / "a-thing"
    folder.mkdir(parents=True)
    links = ""
    for version, mark in (("1.0", ' data-yanked="it loses data"'), ("1.1", "")):
        wheel = f"a_thing-{version}-py3-none-any.whl"
        with zipfile.ZipFile(folder / wheel, "w") as archive:
            told = f"Metadata-Version: 2.1\nName: a-thing\nVersion: {version}\n"
            archive.writestr(f"a_thing-{version}.dist-info/METADATA", told)
            archive.writestr(f"a_thing-{version}.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            archive.writestr(f"a_thing-{version}.dist-info/RECORD", "")
        links += f'<a href="{wheel}"{mark}>{wheel}</a>\n'
    (folder / "index.html").write_text(f"<!doctype html><body>{links}</body>")

    class Files(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(tmp_path))

        def log_message(self, *args: object, **kwargs: object) -> None:
            """Nothing."""

    for name in ("UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_OFFLINE", "UV_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://127.0.0.1:{server.server_port}/simple")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield
        server.shutdown()
        thread.join()


@pytest.mark.usefixtures("registry")
def test_a_yanked_release_is_named(tmp_path: Path) -> None:
    lock = tmp_path / "fake.lock"
    lock.write_text("a-thing==1.1\n")
    assert list(yanked(lock)) == []
    lock.write_text("a-thing==1.0\n")
    assert list(yanked(lock)) == ['a-thing==1.0 is yanked (reason: "it loses data") in fake.lock']


def test_a_registry_that_does_not_answer_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_OFFLINE", "1")
    (tmp_path / "pyproject.toml").write_text("[project]\ndependencies = ['thing']\n")
    for name in LOCKS:
        (tmp_path / name).write_text(HASHED)
    (told,) = problems(tmp_path, [], is_offline=False)
    assert told.startswith("the registry did not answer for requirements.lock")
    assert list(problems(tmp_path, [], is_offline=True)) == []
