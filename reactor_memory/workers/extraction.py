"""The one place that calls a summarizer: breaker, deadline, verification."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import msgspec

from reactor_memory.errors import SummarizationError
from reactor_memory.ledger.evidence import verify_facts, verify_narrative
from reactor_memory.models import Extraction, Fact, Message
from reactor_memory.protocols import Summarizer
from reactor_memory.workers.breaker import CircuitBreaker


class BreakerOpenError(SummarizationError):
    """The provider failed too often in a row; it was not called."""

    def __init__(self, seconds: float) -> None:
        super().__init__("breaker_open", "not called, it failed too often", retry_after_seconds=seconds)


class Extractor:
    """Calls the summarizer under a deadline and lets only what its answer can prove through."""

    def __init__(self, summarizer: Summarizer, *, breaker: CircuitBreaker, timeout_seconds: float) -> None:
        self._summarizer = summarizer
        self._breaker = breaker
        self._timeout_seconds = timeout_seconds

    @property
    def name(self) -> str:
        return self._summarizer.name

    @property
    def prompt_version(self) -> str:
        return self._summarizer.prompt_version

    async def extract(self, messages: Sequence[Message], existing_facts: Sequence[Fact] = ()) -> Extraction:
        """Facts (verified or marked as not) and narrative of `messages`.

        Raises `SummarizationError`; `BreakerOpenError` if the provider was not called at all.
        """
        if not messages:
            return Extraction()
        if not self._breaker.try_acquire():
            raise BreakerOpenError(self._breaker.seconds_until_trial())
        answer = await self._call(messages, existing_facts)
        return msgspec.structs.replace(
            answer,
            facts=verify_facts(answer.facts, messages),
            narrative=verify_narrative(answer.narrative, messages),
            headline=verify_narrative(answer.headline, messages),
        )

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
