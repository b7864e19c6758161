"""What another server on this machine gets from a browser that has entered the Studio: nothing to come in with."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from playwright.sync_api import Browser

from tests.studio.conftest import Opened, entered, studio
from tests.studio.stores import fill


class Hostile:
    """A server of somebody else on this machine, what it was sent, and what its page does."""

    def __init__(self) -> None:
        self.received: list[dict[str, str]] = []
        self.page = "<!doctype html><title>hostile</title>"
        self.port = 0

    @contextmanager
    def serving(self) -> Iterator[None]:
        hostile = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hostile.received.append({name.lower(): value for name, value in self.headers.items()})
                body = hostile.page.encode()
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object, **kwargs: object) -> None:
                """Nothing."""

        with ThreadingHTTPServer(("0.0.0.0", 0), Handler) as server:
            self.port = server.server_port
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                yield
            finally:
                server.shutdown()
                thread.join()


@pytest.fixture
def hostile() -> Iterator[Hostile]:
    server = Hostile()
    with server.serving():
        yield server


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    with studio(fill(tmp_path_factory.mktemp("hostile") / "agent.db"), "--write") as opened:
        yield opened


@pytest.fixture(scope="module")
def state(browser: Browser, opened: Opened) -> object:
    return entered(browser, opened)


def content_of(base: str, headers: dict[str, str]) -> int:
    """The status that a client that is no browser gets, which sends what it likes."""
    return httpx.get(f"{base}/session?id=trip", headers=headers).status_code


def test_it_gets_no_cookie_and_no_access(browser: Browser, opened: Opened, state: object, hostile: Hostile) -> None:
    context = browser.new_context(storage_state=state)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"{opened.base}/")
    hosts = [f"http://{name}:{hostile.port}/" for name in ("127.0.0.1", "localhost", "studio.localhost", "127.0.0.2")]
    for address in hosts:
        page.goto(address)
        page.goto(f"{opened.base}/")
        page.evaluate("address => { location.href = address }", address)  # as a link would
        page.wait_for_url(address)
        page.go_back()
    context.close()
    assert len(hostile.received) >= 2 * len(hosts)
    assert [headers["cookie"] for headers in hostile.received if "cookie" in headers] == []
    assert not any(opened.base in headers.get("referer", "") for headers in hostile.received)
    for headers in hostile.received:
        own = {"host": httpx.URL(opened.base).netloc.decode(), "origin": opened.base}
        assert content_of(opened.base, headers | own) == 403
    assert httpx.get(opened.base, headers={"host": f"127.0.0.1:{httpx.URL(opened.base).port}"}).status_code == 421


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_its_page_cannot_write(browser: Browser, opened: Opened, state: object, hostile: Hostile, name: str) -> None:
    form = "".join(
        f'<input name="{field}" value="{value}">'
        for field, value in {"id": "trip", "act": "erase", "seq": 5, "confirmed": "true"}.items()
    )
    hostile.page = (
        f'<!doctype html><form method="post" action="{opened.base}/session/act">{form}<button>Win</button></form>'
    )
    context = browser.new_context(storage_state=state)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"http://{name}:{hostile.port}/")
    with page.expect_response(f"{opened.base}/session/act") as answer:
        page.get_by_role("button").click()
    assert answer.value.status == 403
    page.goto(f"{opened.base}/session?id=trip")
    assert "nothing of it is left" not in page.locator("#m5").inner_text()
    context.close()


def test_a_cookie_alone_writes_nothing(opened: Opened, state: dict[str, list[dict[str, str]]]) -> None:
    """Even who has the cookie and forges Origin: the token of a page is missing."""
    cookies = {cookie["name"]: cookie["value"] for cookie in state["cookies"]}
    form = {"id": "trip", "act": "erase", "seq": "5", "confirmed": "true"}
    with httpx.Client(base_url=opened.base, cookies=cookies, headers={"origin": opened.base}) as client:
        assert client.get("/session?id=trip").status_code == 200
        assert client.post("/session/act", data=form).status_code == 403
        assert client.post("/session/act", data=form | {"page_token": "guessed"}).status_code == 403
        assert "nothing of it is left" not in client.get("/session?id=trip&seq=5").text
