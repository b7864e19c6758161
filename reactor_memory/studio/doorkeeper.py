"""Who may look: whoever opened the printed address once, from this machine, under this machine's own name.

A page of another site can neither read the Studio (Host is checked, against DNS rebinding; the cookie is of this site
only) nor change anything (a POST has to come from a page of the Studio, and `app` wants the token of one). No server on
another port of this machine gets the cookie: `hosts` gives each run a host of its own.
"""

from __future__ import annotations

import hmac
import secrets
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from litestar.types import ASGIApp, Message, Receive, Scope, Send

ENTRY = "/enter"
STATIC = "/static/"

POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)

ENTERED = b"""<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/">
<link rel="icon" href="/static/icon.svg"><title>Reactor Memory Studio</title>
<p><a href="/">Open the Studio</a></p></html>"""


class Doorkeeper:
    """An ASGI application in front of another.

    `host` is the only name under which it answers, with its port, such as ``127.31.2.77:8765``. The token works once;
    the browser that brings it is known by a cookie afterwards, as long as the process runs.
    """

    def __init__(self, app: ASGIApp, host: str) -> None:
        self._app = app
        self._host = host
        self._token: str | None = secrets.token_urlsafe(24)
        self._known = secrets.token_urlsafe(24)
        # Browsers send a cookie to every port of a host: a Studio before this one may have had the same.
        self._cookie = f"studio-{secrets.token_hex(4)}"

    @property
    def entry(self) -> str:
        """Path and query of the address that lets a browser in, once."""
        return f"{ENTRY}?token={self._token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        guarded = _with_headers(send)
        if headers.get(b"host", "").lower() != self._host:
            await _say(guarded, 421, "This is not the address of the Studio: open the one that the command printed.")
        elif scope["path"] == ENTRY:
            await self._enter(scope, guarded)
        elif not (self._is_known(headers) or scope["path"].startswith(STATIC)):
            remedy = "stop reactor-memory studio, start it again and open the address that it prints."
            await _say(guarded, 403, f"An address of the Studio opens once, in one browser. For another one, {remedy}")
        elif scope["method"] not in ("GET", "HEAD") and not self._is_own_page(headers):
            await _say(guarded, 403, "Only a page of the Studio may change something.")
        else:
            await self._app(scope, receive, guarded)

    async def _enter(self, scope: Scope, send: Send) -> None:
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if self._token is None or not hmac.compare_digest(given.encode(), self._token.encode()):
            await _say(
                send, 403, "This address was used already, or is not complete: start reactor-memory studio again."
            )
            return
        self._token = None
        cookie = f"{self._cookie}={self._known}; Path=/; HttpOnly; SameSite=Strict"
        # A page, and no redirect: a strict cookie does not come along where another site's link began.
        await _answer(send, 200, ENTERED, b"text/html; charset=utf-8", [(b"set-cookie", cookie.encode())])

    def _is_known(self, headers: dict[bytes, str]) -> bool:
        try:
            cookies = SimpleCookie(headers.get(b"cookie", ""))
        except CookieError:
            return False
        found = cookies.get(self._cookie)
        return found is not None and hmac.compare_digest(found.value.encode(), self._known.encode())

    def _is_own_page(self, headers: dict[bytes, str]) -> bool:
        return headers.get(b"origin", "") == f"http://{self._host}"


def _with_headers(send: Send) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *HEADERS]
        await send(message)

    return guarded


async def _say(send: Send, status: int, text: str) -> None:
    await _answer(send, status, text.encode() + b"\n", b"text/plain; charset=utf-8", [])


async def _answer(send: Send, status: int, body: bytes, kind: bytes, more: list[tuple[bytes, bytes]]) -> None:
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
