"""From templates to pages. Text is data: it is escaped, and what would steer the reader is replaced."""

from __future__ import annotations

import hmac
import secrets
from functools import partial
from typing import Any
from urllib.parse import urlencode

import anyio.to_thread
from jinja2 import Environment, PackageLoader, StrictUndefined
from litestar import MediaType, Response

from reactor_memory.evaluation.markup import Markup, joined, tag
from reactor_memory.models import ToolCall
from reactor_memory.text.borders import cut
from reactor_memory.text.moments import moment_of
from reactor_memory.text.printable import printable


class Pages:
    """Renders templates, each in a thread: a page of 10,000 messages must not keep others waiting.

    `shared` is what every page shows. Forms that change something carry a token, which only whoever reads a page knows.
    """

    def __init__(self, **shared: Any) -> None:
        self._page_token = secrets.token_urlsafe(24)
        self._templates = Environment(
            loader=PackageLoader("reactor_memory.studio"),
            autoescape=True,
            finalize=_as_data,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        own = {"address": address, "moment": moment, "marked": marked, "page_token": self._page_token}
        names: dict[str, Any] = {**own, **shared}
        for name, value in names.items():
            self._templates.globals[name] = value
        filters: dict[str, Any] = {"clipped": clipped, "called": called}
        for name, value in filters.items():
            self._templates.filters[name] = value

    def is_from_a_page(self, token: object) -> bool:
        """Whether a form carries the token of a page."""
        return isinstance(token, str) and hmac.compare_digest(token.encode(), self._page_token.encode())

    async def show(self, template: str, *, part: str | None = None, status: int = 200, **values: Any) -> Response[str]:
        """The page, or only a `part` of it, a block of the template."""
        render = partial(self._rendered, template, part, values)
        body = await anyio.to_thread.run_sync(render)
        return Response(body, media_type=MediaType.HTML, status_code=status)

    def problem(self, status: int, problem: str) -> Response[str]:
        """What went wrong, as a page."""
        return Response(
            self._rendered("problem.html", None, {"problem": problem}), media_type=MediaType.HTML, status_code=status
        )

    def _rendered(self, template: str, part: str | None, values: dict[str, Any]) -> str:
        found = self._templates.get_template(template)
        if part is None:
            return found.render(values, template=template)
        return "".join(found.blocks[part](found.new_context(values)))


def _as_data(value: object) -> object:
    return printable(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def address(path: str, **query: object) -> str:
    """A path with those values of its query that are set."""
    given = {key: value for key, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


def moment(microseconds: int | None) -> str:
    """A time, in UTC, to the minute."""
    if microseconds is None:
        return ""
    at = moment_of(microseconds)
    return f"{microseconds} us" if at is None else f"{at:%Y-%m-%d %H:%M}"


def called(call: ToolCall) -> str:
    """A call of a tool as a reader sees it."""
    return f"{call.name}({call.arguments_text})"


def clipped(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    shown = cut(text, most)
    return f"{shown} … {len(text) - len(shown):,} more characters"


def marked(text: str, words: str) -> Markup:
    """`text` with the place where `words` stand marked."""
    before, found, after = text.partition(words) if words else (text, "", "")
    return joined(before, tag("mark", found), after) if found else joined(text)
