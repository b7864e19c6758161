"""The application of the Studio: its pages, its two files, and what it says when something is wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from litestar import Litestar, Request, Response
from litestar.di import Provide
from litestar.exceptions import HTTPException, PermissionDeniedException, ValidationException
from litestar.static_files import create_static_files_router  # pyright: ignore[reportUnknownVariableType]

from reactor_memory.errors import ReactorMemoryError, SessionError, SessionNotFoundError
from reactor_memory.studio.acts import act
from reactor_memory.studio.chat_page import chat_page, say
from reactor_memory.studio.context_page import context_page
from reactor_memory.studio.eval_page import eval_page, evaluate_file, evaluate_session
from reactor_memory.studio.session_list import sessions
from reactor_memory.studio.session_page import session_page
from reactor_memory.studio.studio import Studio

log = logging.getLogger(__name__)

HERE = Path(__file__).parent
LARGEST_FILE = 256 * 1024**2
PAGE_TOKEN = "page_token"  # noqa: S105 (the name of a field)


def create_app(studio: Studio) -> Litestar:
    """The pages. Whoever is let in sees everything (`reactor_memory.studio.doorkeeper` is to stand in front)."""

    def provide() -> Studio:
        return studio

    async def require_page(request: Request[Any, Any, Any]) -> None:
        """Raises `PermissionDeniedException` for a form that is from no page."""
        if request.method == "POST" and not studio.pages.is_from_a_page((await request.form()).get(PAGE_TOKEN)):
            raise PermissionDeniedException("This form is from no page of this Studio. Reload the page, and try again.")

    return Litestar(
        before_request=require_page,
        route_handlers=[
            sessions,
            session_page,
            act,
            context_page,
            chat_page,
            say,
            eval_page,
            evaluate_session,
            evaluate_file,
            create_static_files_router(path="/static", directories=[HERE / "static"]),
        ],
        dependencies={"studio": Provide(provide, sync_to_thread=False)},
        exception_handlers={
            HTTPException: _error_page(studio),
            ReactorMemoryError: _error_page(studio),
            Exception: _error_page(studio),
        },
        request_max_body_size=LARGEST_FILE,
        openapi_config=None,
        logging_config=None,
        debug=False,
    )


def _error_page(studio: Studio) -> Callable[[Request[Any, Any, Any], Exception], Any]:
    """A page that says what went wrong. Of a defect it says nothing: that is in the log, without what was read."""

    def handler(request: Request[Any, Any, Any], error: Exception) -> Response[str]:
        status, problem = _problem_of(error)
        return studio.pages.problem(status, problem)

    return handler


def _wrong_value(found: dict[str, str]) -> str:
    """What is wrong with a value of an address or of a form, by its name."""
    message = found.get("message", "")
    problem = "must be a whole number" if "int" in message and "got" in message else message[:1].lower() + message[1:]
    return f"{found.get('key', 'a value')}: {problem}"


def _problem_of(error: Exception) -> tuple[int, str]:
    if isinstance(error, SessionNotFoundError):
        return 404, "There is no session with this id."
    if isinstance(error, SessionError):
        return 409, str(error)
    if isinstance(error, ReactorMemoryError):
        return 400, str(error)
    if isinstance(error, ValidationException):
        return 400, "; ".join(map(_wrong_value, cast("list[dict[str, str]]", error.extra or []))) or error.detail
    if isinstance(error, HTTPException):
        return error.status_code, error.detail or "This cannot be answered."
    log.error("a page failed", extra={"reason": type(error).__name__})
    return 500, f"This page failed ({type(error).__name__}). The process goes on; -v logs more."
