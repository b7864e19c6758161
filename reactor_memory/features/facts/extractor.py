"""The one place that asks a summarizer for facts and verifies them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

import anyio.to_thread
import msgspec

from reactor_memory.errors import SummarizationError
from reactor_memory.features.facts.evidence import verify_facts, verify_narrative
from reactor_memory.features.facts.provider_guard import BreakerOpenError, ProviderGuard
from reactor_memory.features.facts.talk import Talk
from reactor_memory.features.facts.working_state import is_state
from reactor_memory.models import Message, Value, is_kept_by_author
from reactor_memory.models.ledger import NOTHING_KNOWN, Extraction, Known

if TYPE_CHECKING:
    from reactor_memory.core.ports import Summarizer

logger = logging.getLogger(__name__)

ANSWERED = frozenset({"malformed", "truncated", "refused", "rejected", "too_long"})
"""Reasons for which an answer is useless: asking again will hardly give a better one. An outage is not among them."""


PATIENCE = 2
"""After so many useless answers about a run of messages, each of them paid for, the fallback reads it."""

AT_ONCE = frozenset({"timeout", "refused"})
"""Reasons for which the fallback reads at once: a slow model would be asked in vain again and again, and memory would
stay behind. What was too slow once is asked again later, what was refused is not.
"""


_VERIFICATION = "reactor_memory.features.facts.verification"
"""Imported where there is an answer of a model to judge."""


class Extracted(Value, frozen=True, kw_only=True):
    """What was found, by which summarizer, and in what: `messages` are redacted, as it read them. `is_provisional`: by
    the fallback, for the summarizer was too slow, and may be asked again.
    """

    extraction: Extraction
    summarizer: str
    prompt_version: str
    messages: tuple[Message, ...]
    is_provisional: bool = False


class Extractor:
    """Calls the summarizer under a deadline and keeps only what the messages prove.

    `fallback`, which must cost nothing, extracts instead when a cap on spending is reached, and when the summarizer
    gave `PATIENCE` useless answers in a row: memory then has what can be found without a model, until the session is
    rebuilt. Where it gave no answer in time, or refused one, the fallback extracts at once.
    """

    def __init__(
        self,
        summarizer: Summarizer,
        *,
        fallback: Summarizer,
        guard: ProviderGuard,
    ) -> None:
        self._summarizer = summarizer
        self._fallback = fallback
        self._guard = guard
        self._is_slow = False

    async def extract(
        self,
        session_id: str,
        talk: Talk,
        known: Known = NOTHING_KNOWN,
        *,
        failures: int = 0,
        is_anew: bool = False,
    ) -> Extracted:
        """Facts (verified or marked as not) and narrative of `talk`, for `session_id`, which pays. `failures`: how
        often it failed before this time. `is_anew`: memory has them already, so a summarizer that is too slow is no
        reason for the fallback.

        Facts are looked up in the redacted messages, and their spans count the characters of these. Summaries among
        the messages are not read: they are no originals. Nor is what an agent keeps for itself: memory is shown to all.
        Raises `SummarizationError`; `BreakerOpenError` if the provider was not called at all.
        """
        summarizer, extraction, read = self._summarizer, Extraction(), tuple[Message, ...]()
        is_late = False
        originals = _originals(talk)
        if originals:
            read, told = await self._guard.redacted(originals, known)
            answer = None
            try:
                answer = await self._extraction(session_id, read, told, is_last=failures + 1 >= PATIENCE)
                self._is_slow = self._is_slow and answer is None
            except SummarizationError as error:
                is_late = error.reason == "timeout" or (self._is_slow and isinstance(error, BreakerOpenError))
                self._is_slow = is_late
                if is_anew or not (is_late or error.reason in AT_ONCE):
                    raise
                logger.warning("the summarizer did not answer, another read", extra={"reason": error.reason})
            if answer is None:
                summarizer = self._fallback
                answer = await summarizer.summarize(read, known=told)
            prove = _found if summarizer.name == self._fallback.name else partial(_proven, known=told)
            extraction = _own(await anyio.to_thread.run_sync(prove, answer, read), talk)
        return Extracted(
            extraction=extraction,
            summarizer=summarizer.name,
            prompt_version=summarizer.prompt_version,
            messages=read,
            is_provisional=is_late,
        )

    async def read_offline(self, talk: Talk) -> Extracted:
        """What the fallback finds in `talk`, as `extract` would give it: nobody is asked."""
        originals = _originals(talk)
        read, extraction = tuple[Message, ...](), Extraction()
        if originals:
            read, _ = await self._guard.redacted(originals)
            found = await self._fallback.summarize(read)
            extraction = _own(await anyio.to_thread.run_sync(_found, found, read), talk)
        return Extracted(
            extraction=extraction,
            summarizer=self._fallback.name,
            prompt_version=self._fallback.prompt_version,
            messages=read,
        )

    async def _extraction(
        self, session_id: str, messages: Sequence[Message], known: Known, *, is_last: bool
    ) -> Extraction | None:
        """The answer of the summarizer; None if the fallback has to extract."""
        if await self._guard.is_spent(session_id):
            return None
        try:
            return await self._guard.call(
                session_id,
                lambda: self._summarizer.summarize(messages, known=known),
                tokens=lambda extraction: extraction.usage.total,
            )
        except SummarizationError as error:
            if not is_last or error.reason not in ANSWERED:
                raise
            logger.warning("the summarizer was of no use, another read", extra={"reason": error.reason})
            return None


def _originals(talk: Talk) -> list[Message]:
    """What can be read; nothing where it is only what was read before."""
    found = [each for each in talk.messages if each.role != "summary" and not is_kept_by_author(each)]
    return found if any((each.seq or 0) >= talk.first_seq for each in found) else []


def _own(extraction: Extraction, talk: Talk) -> Extraction:
    """Without what was read before: memory has it."""
    facts = tuple(fact for fact in extraction.facts if fact.source_seq >= talk.first_seq)
    return msgspec.structs.replace(extraction, facts=facts) if len(facts) < len(extraction.facts) else extraction


def parted(extracted: Extracted, ranges: Sequence[tuple[int, int]]) -> list[Extracted]:
    """What was found in messages of several ranges, range by range. A fact belongs where its message is, a sentence of
    the narrative to the last range that bears it out by itself. What it cost counts for the first.
    """
    answer, parts = extracted.extraction, list[Extracted]()
    narrative, headline = answer.narrative, answer.headline
    prose = import_module(f"{_VERIFICATION}.narrative_proof")
    for start, end in reversed(ranges):
        messages = tuple(each for each in extracted.messages if start <= (each.seq or 0) <= end)
        told = [each.text for each in prose.told_sentences(narrative, messages) if each.source_seq]
        narrative = " ".join(each for each in prose.split_sentences(narrative) if each not in told)
        title = prose.proven_narrative(headline, messages)
        headline = "" if title else headline
        facts = tuple(fact for fact in answer.facts if start <= fact.source_seq <= end)
        part = Extraction(facts=facts, narrative=" ".join(told), headline=title)
        parts.append(msgspec.structs.replace(extracted, extraction=part, messages=messages))
    first = parts[-1]
    parts[-1] = msgspec.structs.replace(first, extraction=msgspec.structs.replace(first.extraction, usage=answer.usage))
    return parts[::-1]


def _found(answer: Extraction, messages: Sequence[Message]) -> Extraction:
    """What the offline reader found: it states nothing of its own."""
    return msgspec.structs.replace(
        answer,
        facts=verify_facts(answer.facts, messages),
        narrative=verify_narrative(answer.narrative, messages),
        headline=verify_narrative(answer.headline, messages),
    )


def _proven(answer: Extraction, messages: Sequence[Message], *, known: Known) -> Extraction:
    """What the messages leave standing of a model's answer."""
    narrative = import_module(f"{_VERIFICATION}.narrative_proof")
    words = known.words()
    worded = [fact for fact in answer.facts if is_state(fact)]
    stated = [fact for fact in answer.facts if not is_state(fact)]
    proven = import_module(f"{_VERIFICATION}.proof").proven(verify_facts(stated, messages), messages, words)
    refused = import_module(f"{_VERIFICATION}.derived_proof").proven_items if worded else None
    return msgspec.structs.replace(
        answer,
        facts=(*proven, *(refused(worded, messages) if refused else ())),
        narrative=narrative.proven_narrative(answer.narrative, messages, words),
        headline=narrative.proven_narrative(answer.headline, messages, words),
    )
