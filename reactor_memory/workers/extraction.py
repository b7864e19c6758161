"""The one place that calls a summarizer: redaction, caps, breaker, deadline, verification."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import anyio.to_thread
import msgspec

from reactor_memory.errors import RedactionError, SummarizationError
from reactor_memory.ledger.evidence import verify_facts, verify_narrative
from reactor_memory.models import Extraction, Fact, Message, Value
from reactor_memory.protocols import Redactor, Summarizer
from reactor_memory.redaction import redacted, redacted_facts
from reactor_memory.workers.breaker import CircuitBreaker
from reactor_memory.workers.spending import SpendingCaps


class BreakerOpenError(SummarizationError):
    """The provider failed too often in a row; it was not called."""

    def __init__(self, seconds: float) -> None:
        super().__init__("breaker_open", "not called, it failed too often", retry_after_seconds=seconds)


class Extracted(Value, frozen=True, kw_only=True):
    """What was found, by which summarizer, and in what: `messages` are redacted, as it read them."""

    extraction: Extraction
    summarizer: str
    prompt_version: str
    messages: tuple[Message, ...]


class Extractor:
    """Calls the summarizer under a deadline and lets only what its answer can prove through.

    Where a cap on spending is reached, `fallback` reads instead, which must cost nothing.
    """

    def __init__(
        self,
        summarizer: Summarizer,
        *,
        fallback: Summarizer,
        redactor: Redactor,
        caps: SpendingCaps,
        breaker: CircuitBreaker,
        timeout_seconds: float,
    ) -> None:
        self._summarizer = summarizer
        self._fallback = fallback
        self._redactor = redactor
        self._caps = caps
        self._breaker = breaker
        self._timeout_seconds = timeout_seconds

    async def extract(
        self, session_id: str, messages: Sequence[Message], existing_facts: Sequence[Fact] = ()
    ) -> Extracted:
        """Facts (verified or marked as not) and narrative of `messages`, for `session_id`, which pays.

        Facts are looked up in the redacted messages, and their spans count the characters of these. Raises
        `SummarizationError`; `BreakerOpenError` if the provider was not called at all.
        """
        summarizer = self._summarizer
        extraction, read = Extraction(), tuple[Message, ...]()
        if messages:
            read, known = await self._redacted(messages, existing_facts)
            if await self._caps.are_reached(session_id):
                summarizer = self._fallback
                answer = await summarizer.summarize(read, existing_facts=known)
            else:
                answer = await self._guarded(session_id, read, known)
            extraction = _proven(answer, read)
        return Extracted(
            extraction=extraction, summarizer=summarizer.name, prompt_version=summarizer.prompt_version, messages=read
        )

    async def _redacted(
        self, messages: Sequence[Message], facts: Sequence[Fact]
    ) -> tuple[tuple[Message, ...], tuple[Fact, ...]]:
        """Both as the redactor leaves them. A redactor may take its time: it works in a thread."""
        try:
            with anyio.fail_after(self._timeout_seconds):
                return await anyio.to_thread.run_sync(self._redact, messages, facts, abandon_on_cancel=True)
        except RedactionError as error:
            failure = SummarizationError("redaction", f"not called, the redactor failed with {error.reason}")
        except TimeoutError:
            failure = SummarizationError("redaction", "not called, the redactor did not answer in time")
        raise failure

    def _redact(
        self, messages: Sequence[Message], facts: Sequence[Fact]
    ) -> tuple[tuple[Message, ...], tuple[Fact, ...]]:
        return redacted(messages, self._redactor), redacted_facts(facts, self._redactor)

    async def _guarded(
        self, session_id: str, messages: Sequence[Message], existing_facts: Sequence[Fact]
    ) -> Extraction:
        """The answer of the provider; what it cost is noted, also where it was of no use."""
        if not self._breaker.try_acquire():
            raise BreakerOpenError(self._breaker.seconds_until_trial())
        try:
            answer = await self._call(messages, existing_facts)
        except SummarizationError as error:
            await self._caps.note(session_id, error.tokens)
            raise
        await self._caps.note(session_id, answer.usage.total)
        return answer

    async def _call(self, messages: Sequence[Message], existing_facts: Sequence[Fact]) -> Extraction:
        try:
            with anyio.fail_after(self._timeout_seconds):
                answer = await self._summarizer.summarize(messages, existing_facts=existing_facts)
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


def _proven(answer: Extraction, messages: Sequence[Message]) -> Extraction:
    return msgspec.structs.replace(
        answer,
        facts=verify_facts(answer.facts, messages),
        narrative=verify_narrative(answer.narrative, messages),
        headline=verify_narrative(answer.headline, messages),
    )
