"""The Studio as a process of its own, and a real Chromium that looks at it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("playwright", reason="the browser's tests: make test-studio installs what they need")

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.studio.stores import fill

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Opened(NamedTuple):
    """A Studio: the address that opens it once, and the one of its pages."""

    entry: str
    base: str


@contextmanager
def studio(store: Path, *options: str) -> Iterator[Opened]:
    """The real command over a database."""
    command = [sys.executable, "-m", "reactor_memory", "studio", "--store", store.name, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=store.parent) as process:
        assert process.stdout is not None
        entry = next(line.strip() for line in process.stdout if line.startswith("http"))
        try:
            yield Opened(entry, entry.partition("/enter")[0])
        finally:
            process.terminate()
            process.wait(10)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.fail("there is no Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("studio") / "agent.db")


@pytest.fixture(scope="session")
def looking(store: Path) -> Iterator[Opened]:
    """A Studio that only looks."""
    with studio(store) as opened:
        yield opened


@pytest.fixture(scope="session")
def known(browser: Browser, looking: Opened) -> Any:
    """The cookies of a browser that opened the printed address."""
    return entered(browser, looking)


def entered(browser: Browser, opened: Opened) -> Any:
    context = browser.new_context()
    page = context.new_page()
    page.goto(opened.entry)
    page.wait_for_url(f"{opened.base}/")
    state = context.storage_state()
    context.close()
    return state


class Watched(NamedTuple):
    """A page, and everything about it that must not be: errors, and requests to other hosts."""

    page: Page
    problems: list[str]


@contextmanager
def watched(
    browser: Browser, opened: Opened, state: Any, *, width: int = 1280, scheme: Any = "light", **options: Any
) -> Iterator[Watched]:
    context: BrowserContext = browser.new_context(
        viewport={"width": width, "height": 860}, color_scheme=scheme, storage_state=state, **options
    )
    page, problems = context.new_page(), list[str]()
    page.on("console", lambda message: problems.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on(
        "request",
        lambda request: None if request.url.startswith(opened.base) else problems.append(f"request: {request.url}"),
    )
    yield Watched(page, problems)
    context.close()


@pytest.fixture
def look(browser: Browser, looking: Opened, known: Any) -> Callable[..., Any]:
    return lambda **options: watched(browser, looking, known, **options)
