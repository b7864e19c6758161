"""What an error looks like on the wire: RFC 9457 problem details with a stable code.

An error tells what its own message tells (never text of messages); one that nobody expected tells nothing but the
request id, and is logged with it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from litestar import Response
from litestar.connection import Request
from litestar.exceptions import HTTPException, LitestarException
from msgspec import UNSET, UnsetType

from reactor_memory import errors
from reactor_memory.features.sharing.bodies import FieldProblem, Problem
from reactor_memory.models import Value
from reactor_memory.server.choices import choices
from reactor_memory.server.request_ids import request_id_of

log = logging.getLogger(__name__)

PROBLEM_JSON = "application/problem+json"

RETRY_AFTER_SECONDS = 1
STREAM_RETRY_SECONDS = 5


class Kind(Value, frozen=True, kw_only=True):
    """A kind of problem: its status, its code, and its title for people."""

    status: int
    code: str
    title: str


def _kind(status: int, code: str, title: str) -> Kind:
    return Kind(status=status, code=code, title=title)


MALFORMED = _kind(400, "malformed", "The request cannot be read")
BAD_PARAMETER = _kind(400, "bad_parameter", "A query parameter or header is not valid")
BAD_PAGE_TOKEN = _kind(400, "bad_page_token", "The page token is not one of this listing")
UNAUTHENTICATED = _kind(401, "unauthenticated", "Authentication is required")
FORBIDDEN = _kind(403, "forbidden", "Permission denied")
NOT_FOUND = _kind(404, "not_found", "Not found, or not visible to the caller")
METHOD_NOT_ALLOWED = _kind(405, "method_not_allowed", "The method is not allowed for this path")
NOT_ACCEPTABLE = _kind(406, "not_acceptable", "The answer has another media type than the request accepts")
REQUEST_TIMEOUT = _kind(408, "request_timeout", "The request did not arrive in time")
CONFLICT = _kind(409, "conflict", "The request conflicts with the current state")
IDEMPOTENCY_CONFLICT = _kind(409, "idempotency_conflict", "The idempotency key was used for another request")
IN_PROGRESS = _kind(409, "in_progress", "The same request is still in progress")
TOO_LARGE = _kind(413, "too_large", "The request is too large")
URI_TOO_LONG = _kind(414, "uri_too_long", "The address is too long")
UNSUPPORTED_MEDIA_TYPE = _kind(415, "unsupported_media_type", "The body must be JSON, not compressed")
INVALID = _kind(422, "invalid", "A value is not valid")
QUOTA_EXCEEDED = _kind(413, "quota_exceeded", "The quota is used up")
RATE_LIMITED = _kind(429, "rate_limited", "Too many requests")
INTERNAL = _kind(500, "internal", "Internal error")
NOT_SET_UP = _kind(501, "search_type_unavailable", "This kind of search is not configured")
UNAVAILABLE = _kind(503, "unavailable", "Temporarily unavailable")
FULL = _kind(507, "storage_full", "The storage is full")

KINDS = tuple(value for value in tuple(globals().values()) if isinstance(value, Kind))

_BY_STATUS = (
    {400: MALFORMED}
    | {kind.status: kind for kind in reversed(KINDS) if kind.status not in (400, 409)}
    | {409: CONFLICT}
)

_LARGE = frozenset({"bytes", "messages", "pieces"})
"""What the size of a request is counted in; what exceeds other limits, and metadata, is merely not acceptable."""


_WITHOUT_BODY = frozenset({"GET", "DELETE"})
"""Methods of requests in which nothing but the address can be wrong."""


class ProblemError(Exception):
    """A problem that a controller or a guard tells as it is."""

    def __init__(
        self,
        kind: Kind,
        detail: str,
        *,
        errors: Sequence[FieldProblem] = (),
        headers: Mapping[str, str] | None = None,
        code: str | None = None,
        left: int | UnsetType = UNSET,
        limit: int | UnsetType = UNSET,
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.code = code or kind.code
        self.detail = detail
        self.left = left
        self.limit = limit
        self.errors = tuple(errors)
        self.headers = dict(headers or {})


def not_found() -> ProblemError:
    """The one answer for what is not there, was deleted, or is none of the caller's business."""
    return ProblemError(NOT_FOUND, "there is nothing with this id that the caller may see")


def invalid(field: str, problem: str, kind: Kind = INVALID) -> ProblemError:
    return ProblemError(kind, f"{field}: {problem}", errors=[FieldProblem(field=field, problem=problem)])


def answer_error(request: Request[Any, Any, Any], error: Exception) -> Response[Problem]:
    """The answer to an exception, whatever it is."""
    problem = problem_of(error, _parameters(request))
    if problem.kind is INVALID and request.method in _WITHOUT_BODY:
        problem = ProblemError(BAD_PARAMETER, problem.detail, errors=problem.errors)
    return answer(problem, request_id_of(request.scope), error)


def _parameters(request: Request[Any, Any, Any]) -> dict[str, Any]:
    """The parameters of the handler, by their own names."""
    handler: Any = cast("dict[str, Any]", request.scope).get("route_handler")
    return {} if handler is None else handler.parsed_fn_signature.parameters


def answer(problem: ProblemError, request_id: str, cause: Exception | None = None) -> Response[Problem]:
    if problem.kind is INTERNAL:
        log.error("request failed", extra={"request_id": request_id}, exc_info=cause)
    body = Problem(
        title=problem.kind.title,
        status=problem.kind.status,
        code=problem.code,
        detail=problem.detail,
        request_id=request_id,
        errors=list(problem.errors) if problem.errors else UNSET,
        left=problem.left,
        limit=problem.limit,
    )
    return Response(body, status_code=problem.kind.status, media_type=PROBLEM_JSON, headers=problem.headers)


def problem_of(error: Exception, parameters: Mapping[str, Any] | None = None) -> ProblemError:
    """How an exception is told to a caller. `parameters` are those of the handler, by their own names."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, HTTPException):
        return _of_framework(error, parameters or {})
    for kinds, tell in _TELLING:
        if isinstance(error, kinds):
            return tell(cast("Any", error))
    return ProblemError(INTERNAL, "the request id names the record of what happened")


def _of_framework(error: HTTPException, parameters: Mapping[str, Any]) -> ProblemError:
    if error.status_code == 400 and isinstance(error.extra, list):
        return _of_parameters(cast("list[dict[str, Any]]", error.extra), parameters)
    kind = _BY_STATUS.get(error.status_code, INTERNAL)
    detail = _DETAILS.get(kind.status) or (kind.title if error.status_code >= 500 else error.detail)
    return ProblemError(kind, detail, headers=error.headers)


_DETAILS = {
    404: "the interface has no such address",
    405: "the header Allow says which methods this address knows",
}
"""What a caller may do where the framework only repeats the status."""


def _of_parameters(found: Sequence[Mapping[str, Any]], parameters: Mapping[str, Any]) -> ProblemError:
    """A path that no id fits is one that leads nowhere."""
    if any(entry.get("key") == "data" for entry in found):
        return ProblemError(MALFORMED, "a body is missing: send JSON")
    if any(entry.get("source") == "path" for entry in found):
        return not_found()
    fields = [_of_parameter(entry, parameters.get(str(entry.get("key", "")))) for entry in found]
    return ProblemError(BAD_PARAMETER, f"{fields[0].field}: {fields[0].problem}", errors=fields)


def _of_parameter(entry: Mapping[str, Any], parameter: Any) -> FieldProblem:
    """With its name on the wire."""
    key = str(entry.get("key", ""))
    if parameter is None:
        return FieldProblem(field=key, problem=explained(entry["message"], Any))
    name = getattr(parameter.kwarg_definition, "name", None) or key
    return FieldProblem(field=name, problem=explained(entry["message"], parameter.annotation))


_REPEATED = re.compile(r"^Invalid enum value .*$", re.DOTALL)


def explained(problem: str, annotation: Any, place: str = "") -> str:
    """What msgspec says is wrong at the place of a type, without the value that was sent."""
    if _REPEATED.match(problem):
        return f"must be one of {', '.join(choices(annotation, place))}"
    return problem[:200]


def _of_input(error: errors.InvalidInputError) -> ProblemError:
    if error.field == "session_id":
        return not_found()
    return invalid(_on_the_wire(error.field), error.problem)


def _of_limit(error: errors.LimitExceededError) -> ProblemError:
    problem = f"has {error.actual} {error.unit}, the limit is {error.limit}"
    is_large = error.unit in _LARGE and not error.field.endswith("metadata")
    kind = TOO_LARGE if is_large else INVALID
    return invalid(_on_the_wire(error.field), problem, kind)


def _of_quota(error: errors.QuotaExceededError) -> ProblemError:
    detail = f"{error.left} of {error.limit} {error.unit} are left: delete some"
    return ProblemError(QUOTA_EXCEEDED, detail, left=error.left, limit=error.limit)


def _of_page_token(error: errors.PageTokenError) -> ProblemError:
    return ProblemError(BAD_PAGE_TOKEN, "begin with the first page again")


def _on_the_wire(field: str) -> str:
    """The name of a field as a body has it: ``messages[0].toolCalls`` of ``messages[0].tool_calls``."""
    return _UNDERSCORE.sub(lambda found: found.group(1).upper(), field)


_UNDERSCORE = re.compile(r"_([a-z])")


def _of_position(error: errors.StreamPositionError) -> ProblemError:
    return invalid(error.field, error.problem, BAD_PARAMETER)


def _of_reason(error: errors.ResponseConflictError | errors.SharingConflictError) -> ProblemError:
    return ProblemError(CONFLICT, error.problem, code=error.reason)


def _of_streams(error: errors.TooManyStreamsError) -> ProblemError:
    return ProblemError(RATE_LIMITED, str(error), headers={"Retry-After": str(STREAM_RETRY_SECONDS)})


def _of_budget(error: errors.BudgetExceededError) -> ProblemError:
    return invalid("budget", f"is too small: the smallest that works is {error.minimum}")


def _of_grant(error: errors.NotGrantedError) -> ProblemError:
    return ProblemError(FORBIDDEN, f"this needs {error.needed}")


def _of_denied(error: errors.AccessDeniedError) -> ProblemError:
    return ProblemError(FORBIDDEN, f"this needs the access level {error.needed}: ask a manager of the conversation")


def _of_key(error: errors.IdempotencyConflictError) -> ProblemError:
    return ProblemError(IDEMPOTENCY_CONFLICT, "use a new key for a new request")


def _nothing(error: Exception) -> ProblemError:
    return not_found()


def _of_conflict(error: errors.SessionError) -> ProblemError:
    return ProblemError(CONFLICT, str(error))


def _unavailable(error: Exception) -> ProblemError:
    return ProblemError(
        UNAVAILABLE,
        "the database does not answer; with the same Idempotency-Key the request is safely repeated",
        headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
    )


def _full(error: errors.StoreFullError) -> ProblemError:
    return ProblemError(FULL, "the database has no space left; reading goes on")


def _of_search_type(error: errors.SearchTypeUnavailableError) -> ProblemError:
    return ProblemError(NOT_SET_UP, f"{error.field}: {error.problem}")


def _of_embedder(error: errors.EmbeddingError) -> ProblemError:
    return ProblemError(
        UNAVAILABLE,
        "nobody can tell now what the query means: search with searchType auto or keyword, or try again",
        headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
    )


_TELLING: tuple[tuple[type[Exception] | tuple[type[Exception], ...], Any], ...] = (
    (errors.PageTokenError, _of_page_token),
    (errors.StreamPositionError, _of_position),
    (errors.ResponseNotFoundError, _nothing),
    (errors.ResponseConflictError, _of_reason),
    (errors.TooManyStreamsError, _of_streams),
    (errors.SearchTypeUnavailableError, _of_search_type),
    (errors.EmbeddingError, _of_embedder),
    (errors.LimitExceededError, _of_limit),
    (errors.QuotaExceededError, _of_quota),
    (errors.InvalidInputError, _of_input),
    (errors.BudgetExceededError, _of_budget),
    (
        (
            errors.SessionNotFoundError,
            errors.SessionOwnershipError,
            errors.SessionDeletedError,
            errors.MessageNotFoundError,
            errors.MemberNotFoundError,
            errors.TransferNotFoundError,
        ),
        _nothing,
    ),
    (errors.AccessDeniedError, _of_denied),
    (errors.NotGrantedError, _of_grant),
    (errors.SharingConflictError, _of_reason),
    (errors.IdempotencyConflictError, _of_key),
    (errors.SessionError, _of_conflict),
    ((errors.StoreUnavailableError, errors.StoreClosedError), _unavailable),
    (errors.StoreFullError, _full),
)

EXCEPTION_HANDLERS: dict[int | type[Exception], Any] = {
    Exception: answer_error,
    HTTPException: answer_error,
    LitestarException: answer_error,
}
