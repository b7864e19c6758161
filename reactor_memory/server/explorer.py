"""What the service says of itself at its root, and a page to try its interface with.

The page is Swagger UI, from a package of this machine (extra `explorer`): nothing is loaded from other hosts.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from litestar import Controller, MediaType, Response, get
from litestar.params import FromPath
from litestar.response import File

from reactor_memory.server import problems
from reactor_memory.server.guards import PUBLIC
from reactor_memory.server.problems import NOT_FOUND, ProblemError
from reactor_memory.version import __version__

_ROOT = f"""\
Reactor Memory {__version__}: conversations and memory of LLM agents, over HTTP.

{{docs}}/v1/openapi.json  its description, OpenAPI 3.1
/v1/health        whether the process answers
/v1/ready         whether it can serve
"""

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Reactor Memory: the HTTP interface</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="page"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
"""

_START = """\
SwaggerUIBundle({ url: "v1/openapi.json", dom_id: "#page", deepLinking: true, validatorUrl: null });
"""

_POLICY = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
}
"""Swagger UI sets styles by itself; scripts come from here alone."""

_FILES = {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css"}


class ExplorerController(Controller):
    opt = {PUBLIC: True}

    @get("/", include_in_schema=False, media_type=MediaType.TEXT)
    async def get_root(self) -> str:
        missing = "" if _swagger_ui() else ", after pip install 'reactor-memory[explorer]'"
        return _ROOT.format(docs=f"/docs             try the interface in a browser{missing}\n")

    @get("/docs", include_in_schema=False)
    async def get_page(self) -> Response[str]:
        self._folder()
        return Response(_PAGE, media_type=MediaType.HTML, headers=_POLICY)

    @get("/docs/start.js", include_in_schema=False)
    async def get_start(self) -> Response[str]:
        return Response(_START, media_type="text/javascript")

    @get("/docs/{name:str}", include_in_schema=False)
    async def get_file(self, name: FromPath[str]) -> File:
        if name not in _FILES:
            raise problems.not_found()
        return File(self._folder() / name, media_type=_FILES[name], content_disposition_type="inline")

    def _folder(self) -> Path:
        """Where the files of Swagger UI lie. Raises `ProblemError` if they are not installed."""
        folder = _swagger_ui()
        if folder is None:
            raise ProblemError(NOT_FOUND, "this page needs a package: pip install 'reactor-memory[explorer]'")
        return folder


@cache
def _swagger_ui() -> Path | None:
    """The package is for another framework: its files are taken, and it is not imported."""
    found = find_spec("flask_swagger_ui")
    if found is None or not found.submodule_search_locations:
        return None
    return Path(found.submodule_search_locations[0]) / "dist"
