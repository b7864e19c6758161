"""Which error an answer stands for that refuses what was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from reactor_memory import errors
from reactor_memory.client.retries import may_pass
from reactor_memory.features.sharing.bodies import Problem
from reactor_memory.models import Value
from reactor_memory.providers.failures import retry_after_header


class Failure(Value, frozen=True, kw_only=True):
    """Why a call gave no answer. `passing`: the same call may succeed later, after `asked_seconds` if they are told."""

    error: errors.ReactorMemoryError
    passing: bool = False
    asked_seconds: float | None = None


class CallSubject(Value, frozen=True, kw_only=True):
    """What a call was about: the conversation or the transfer in question, where nothing else can be missing, and the
    key of a POST.
    """

    conversation_id: str | None = None
    transfer_id: str | None = None
    idempotency_key: str = ""


def refusal(status: int, headers: Mapping[str, str], body: bytes, asked: CallSubject) -> Failure:
    """What an answer stands for that is no success."""
    problem = problem_of(status, headers, body)
    error = _KNOWN.get(problem.code, _other)(problem, asked)
    error.add_note(f"request {problem.request_id}")
    return Failure(
        error=error, passing=may_pass(problem.status, problem.code), asked_seconds=retry_after_header(headers)
    )


def unreachable(error: Exception) -> Failure:
    """No answer came. What the transport says is left out: it may quote the address."""
    problem = f"memory service: gave no answer, {type(error).__name__}; the outcome is unknown"
    return Failure(error=errors.StoreUnavailableError(problem), passing=True)


def problem_of(status: int, headers: Mapping[str, str], body: bytes) -> Problem:
    """The problem that an answer tells, or one for the answer of something else, such as a proxy."""
    try:
        return msgspec.json.decode(body, type=Problem)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        detail = "the answer is none of a memory service: look at the address, and at what stands before it"
        request_id = headers.get("x-request-id", "unknown")
        return Problem(title="Unreadable", status=status, code="unreadable", detail=detail, request_id=request_id)


def _other(problem: Problem, asked: CallSubject) -> errors.ReactorMemoryError:
    return errors.ServiceError(problem.code, problem.detail, status=problem.status, request_id=problem.request_id)


def _not_found(problem: Problem, asked: CallSubject) -> errors.ReactorMemoryError:
    if asked.conversation_id is not None:
        return errors.SessionNotFoundError(asked.conversation_id)
    if asked.transfer_id is not None:
        return errors.TransferNotFoundError(asked.transfer_id)
    return _other(problem, asked)


def _invalid(problem: Problem, asked: CallSubject) -> errors.ReactorMemoryError:
    if not problem.errors:
        return _other(problem, asked)
    return errors.InvalidInputError(problem.errors[0].field, problem.errors[0].problem)


def _bad_page_token(problem: Problem, asked: CallSubject) -> errors.ReactorMemoryError:
    return errors.PageTokenError()


def _sharing_conflict(problem: Problem, asked: CallSubject) -> errors.ReactorMemoryError:
    return errors.SharingConflictError(asked.conversation_id or "", problem.code, problem.detail)


def _idempotency_conflict(problem: Problem, asked: CallSubject) -> errors.ReactorMemoryError:
    return errors.IdempotencyConflictError(asked.conversation_id or "", asked.idempotency_key)


def _unavailable(problem: Problem, asked: CallSubject) -> errors.ReactorMemoryError:
    return errors.StoreUnavailableError(problem.detail)


def _full(problem: Problem, asked: CallSubject) -> errors.ReactorMemoryError:
    return errors.StoreFullError(problem.detail)


_KNOWN: dict[str, Callable[[Problem, CallSubject], errors.ReactorMemoryError]] = {
    "not_found": _not_found,
    "invalid": _invalid,
    "bad_parameter": _invalid,
    "bad_page_token": _bad_page_token,
    "already_member": _sharing_conflict,
    "transfer_pending": _sharing_conflict,
    "sole_owner": _sharing_conflict,
    "not_a_member": _sharing_conflict,
    "parent_deleted": _sharing_conflict,
    "idempotency_conflict": _idempotency_conflict,
    "unavailable": _unavailable,
    "storage_full": _full,
}
