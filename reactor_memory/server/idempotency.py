"""Requests that may be repeated: with the same ``Idempotency-Key``, the deed is done once and the answer is the first.

What is created gets ids that follow from caller, key and request, so a repetition finds what an attempt left behind
that died before its answer was kept. Only answers that tell of success are kept: a request that failed did nothing,
and its repetition is a new attempt.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import msgspec
from litestar import Response

from reactor_memory.core.log.branches import group_of
from reactor_memory.database.database import Database
from reactor_memory.database.deadlines import within
from reactor_memory.errors import StoreError
from reactor_memory.features.sharing import answered_requests
from reactor_memory.features.sharing.access import Access
from reactor_memory.features.sharing.principals import AnsweredRequest, Principal
from reactor_memory.models import Value
from reactor_memory.server.problems import (
    BAD_PARAMETER,
    IDEMPOTENCY_CONFLICT,
    IN_PROGRESS,
    RETRY_AFTER_SECONDS,
    ProblemError,
    invalid,
)

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock

D = TypeVar("D")
T = TypeVar("T")

HEADER = "Idempotency-Key"
PATTERN = "^[\\x21-\\x7e]{1,255}$"

LEASE_MICROSECONDS = 30_000_000
"""After so long without an answer an attempt counts as dead, and a repetition takes its place."""

RELEASE_SECONDS = 0.5
"""A request that failed waits no longer for its key to be released."""

KEPT_MICROSECONDS = 24 * 3_600_000_000
"""How long an answer is remembered."""

_KEY = re.compile("[\\x21-\\x7e]{1,255}")


def checked_key(key: str) -> str:
    """Raises `ProblemError` for a header that no client would send on purpose."""
    if _KEY.fullmatch(key) is None:
        raise invalid(HEADER, "must be 1 to 255 visible ASCII characters", BAD_PARAMETER)
    return key


class KeyedRequest(Value, frozen=True, kw_only=True):
    """A request as it counts for its repetition: what is asked (`operation`, with other ids of the path) with what.

    `status` is the one of its answer, which tells of the group of `conversation_id`, or of one that is new.
    """

    principal: Principal
    operation: tuple[str, ...]
    conversation_id: str | None = None
    body: msgspec.Struct | None = None
    status: int = 201

    @property
    def fingerprint(self) -> str:
        asked = (self.operation, self.conversation_id, self.body)
        return blake2b(_CANONICAL.encode(asked), digest_size=16).hexdigest()


class AnsweredRequests:
    """Does what is asked once for each key."""

    def __init__(self, *, database: Database, access: Access, clock: Clock) -> None:
        self._database = database
        self._access = access
        self._clock = clock

    async def once(
        self,
        key: str | None,
        asked: KeyedRequest,
        deed: Callable[[str | None], Awaitable[D]],
        serialized: Callable[[D], T],
    ) -> Response[T]:
        """What `deed` comes to, `serialized`, now or when it was first asked for. The deed gets the key that the ids of
        what it creates are to be made from (None: any).

        Raises `ProblemError` for a key of another request, and for one that is being worked on, and
        `SessionNotFoundError` if the first answer tells of a conversation that is none of the caller's business any
        more.
        """
        if key is None:
            return Response(serialized(await deed(None)), status_code=asked.status)
        request = self._request(checked_key(key), asked)
        known = await self._database.write(
            answered_requests.claim_request,
            request,
            now=request.created_at,
            forget_before=request.created_at - KEPT_MICROSECONDS,
        )
        if known is not None:
            return await self._replay(request, known, asked.principal)
        answer = serialized(await self._done(request, deed))
        await self._database.write(answered_requests.answer_request, _answered(request, asked, answer))
        return Response(answer, status_code=asked.status)

    async def _done(self, request: AnsweredRequest, deed: Callable[[str | None], Awaitable[D]]) -> D:
        try:
            return await deed(f"{request.request_key} {request.fingerprint}")
        except BaseException:
            # Also while being cancelled, or late: a key that stays claimed would refuse the repetition until its lease
            # is over.
            with anyio.CancelScope(shield=True), within(RELEASE_SECONDS, anew=True), suppress(StoreError):
                await self._database.write(answered_requests.release_request, request.principal_id, request.request_key)
            raise

    async def _replay(self, request: AnsweredRequest, known: AnsweredRequest, principal: Principal) -> Response[Any]:
        if known.fingerprint != request.fingerprint:
            raise ProblemError(IDEMPOTENCY_CONFLICT, "the key was used before for another request: use a new one")
        if known.status is None:
            raise ProblemError(
                IN_PROGRESS,
                "the same request is being worked on: repeat it later for its answer",
                headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
            )
        if known.body is None:
            return Response(None, status_code=known.status)
        if known.group_id is not None:
            await self._access.check_visible(principal, known.group_id)
        return Response(msgspec.Raw(known.body.encode()), status_code=known.status)

    def _request(self, key: str, asked: KeyedRequest) -> AnsweredRequest:
        now = self._clock()
        return AnsweredRequest(
            principal_id=asked.principal.principal_id,
            request_key=key,
            user_id=asked.principal.user_id,
            group_id=None if asked.conversation_id is None else group_of(asked.conversation_id),
            fingerprint=asked.fingerprint,
            lease_until=now + LEASE_MICROSECONDS,
            created_at=now,
        )


def _answered(request: AnsweredRequest, asked: KeyedRequest, answer: object) -> AnsweredRequest:
    """What is kept of an answer. One that tells of a conversation that is new is the first of its group."""
    body = None if answer is None else msgspec.json.encode(answer).decode()
    group_id = request.group_id or getattr(answer, "id", None)
    return msgspec.structs.replace(request, status=asked.status, body=body, group_id=group_id)


_CANONICAL = msgspec.json.Encoder(order="deterministic")
