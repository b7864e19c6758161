"""What stands between the library and a provider: redaction, caps, breaker, deadline."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.to_thread

from reactor_memory.errors import RedactionError, SummarizationError
from reactor_memory.features.facts.spending_caps import SpendingCaps
from reactor_memory.features.redaction import redacted, redacted_known
from reactor_memory.models import Message
from reactor_memory.models.ledger import NOTHING_KNOWN, Known
from reactor_memory.providers.breaker import CircuitBreaker

if TYPE_CHECKING:
    from reactor_memory.core.ports import Redactor

T = TypeVar("T")


class BreakerOpenError(SummarizationError):
    """The provider failed too often in a row; it was not called."""

    def __init__(self, seconds: float) -> None:
        super().__init__("breaker_open", "not called, it failed too often", retry_after_seconds=seconds)


class ProviderGuard:
    """All questions to the provider go through here. `timeout_seconds` bounds the redactor and each answer."""

    def __init__(
        self, *, redactor: Redactor, caps: SpendingCaps, breaker: CircuitBreaker, timeout_seconds: float
    ) -> None:
        self._redactor = redactor
        self._caps = caps
        self._breaker = breaker
        self._timeout_seconds = timeout_seconds

    async def redacted(
        self, messages: Sequence[Message], known: Known = NOTHING_KNOWN
    ) -> tuple[tuple[Message, ...], Known]:
        """The messages and names after redaction. A redactor may take long, so it works in a thread."""
        try:
            with anyio.fail_after(self._timeout_seconds):
                return await anyio.to_thread.run_sync(self._redact, messages, known, abandon_on_cancel=True)
        except RedactionError as error:
            failure = SummarizationError("redaction", f"not called, the redactor failed with {error.reason}")
        except TimeoutError:
            failure = SummarizationError("redaction", "not called, the redactor did not answer in time")
        raise failure

    async def is_spent(self, session_id: str) -> bool:
        """Whether a cap on spending is reached for the session: then a summarizer that costs nothing has to do."""
        return await self._caps.are_reached(session_id)

    async def call(self, session_id: str, ask: Callable[[], Awaitable[T]], *, tokens: Callable[[T], int]) -> T:
        """The answer of the provider; `tokens` gives its cost, which is recorded even if the answer is useless.

        Raises `SummarizationError`; `BreakerOpenError` if the provider was not called at all.
        """
        if not self._breaker.try_acquire():
            raise BreakerOpenError(self._breaker.seconds_until_trial())
        try:
            answer = await self._in_time(ask)
        except SummarizationError as error:
            await self._caps.note(session_id, error.tokens)
            raise
        await self._caps.note(session_id, tokens(answer))
        return answer

    def _redact(self, messages: Sequence[Message], known: Known) -> tuple[tuple[Message, ...], Known]:
        return redacted(messages, self._redactor), redacted_known(known, self._redactor)

    async def _in_time(self, ask: Callable[[], Awaitable[T]]) -> T:
        try:
            with anyio.fail_after(self._timeout_seconds):
                answer = await ask()
        except TimeoutError as error:
            self._breaker.failed()
            raise SummarizationError("timeout", f"no answer within {self._timeout_seconds:g} seconds") from error
        except Exception:
            self._breaker.failed()
            raise
        except BaseException:
            self._breaker.abandoned()
            raise
        self._breaker.succeeded()
        return answer
