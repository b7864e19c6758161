"""The summarizer that asks a Gemini model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import anyio.to_thread
from msgspec.structs import replace

from reactor_memory.models import Extraction, Fact, Message, Usage
from reactor_memory.protocols import TokenCounter
from reactor_memory.reading import sentences
from reactor_memory.summarizers.answer import parse_answer
from reactor_memory.summarizers.gemini_client import GeminiClient
from reactor_memory.summarizers.prompt import PROMPT_VERSION, Request, build_request
from reactor_memory.summarizers.records import Record, chunks

_LEAST_ROOM = 256


class GeminiSummarizer:
    """Extracts facts and a narrative with `model`; a run longer than `max_input_tokens` takes several questions.

    `timeout_seconds` bounds each question, `max_output_tokens` each answer (thoughts included). `counter` measures
    what is sent and the narrative that is kept; Gemini's own tokenizer counts somewhat differently.
    """

    def __init__(
        self,
        model: str,
        api_key: str,
        *,
        counter: TokenCounter,
        base_url: str | None = None,
        timeout_seconds: float = 60.0,
        max_narrative_tokens: int = 500,
        max_input_tokens: int = 32_000,
        max_output_tokens: int = 8192,
    ) -> None:
        self._name = f"gemini:{model}"
        self._counter = counter
        self._max_narrative_tokens = max_narrative_tokens
        self._max_input_tokens = max_input_tokens
        self._client = GeminiClient(
            model,
            api_key,
            base_url=base_url,
            timeout_seconds=timeout_seconds,
            max_output_tokens=max_output_tokens,
        )

    @property
    def name(self) -> str:
        return self._name

    @property
    def prompt_version(self) -> str:
        return PROMPT_VERSION

    async def summarize(self, messages: Sequence[Message], *, existing_facts: Sequence[Fact] = ()) -> Extraction:
        """What `messages` say. Facts that cite none of them are left out.

        Raises `SummarizationError`; if one of several questions fails, all of it fails.
        """
        # Counting the tokens of a megabyte takes a good part of a second.
        requests = await anyio.to_thread.run_sync(self._requests, messages, existing_facts)
        extractions = [await self._ask(request) for request in requests]
        return self._joined(extractions, messages)

    async def aclose(self) -> None:
        await self._client.aclose()

    def _requests(self, messages: Sequence[Message], existing_facts: Sequence[Fact]) -> list[Request]:
        def request(records: Sequence[Record]) -> Request:
            return build_request(records, existing_facts, max_narrative_tokens=self._max_narrative_tokens)

        empty = request(())
        used = self._counter.count(empty.instruction) + self._counter.count(empty.document)
        room = max(self._max_input_tokens - used, _LEAST_ROOM)
        return [request(chunk) for chunk in chunks(messages, room, self._counter)]

    async def _ask(self, request: Request) -> Extraction:
        reply = await self._client.ask(request)
        return replace(parse_answer(reply.text), usage=reply.usage)

    def _joined(self, extractions: Sequence[Extraction], messages: Sequence[Message]) -> Extraction:
        roles = {message.seq: message.role for message in messages}
        cited = (fact for extraction in extractions for fact in extraction.facts if fact.source_seq in roles)
        return Extraction(
            facts=tuple(replace(fact, said_by=roles[fact.source_seq]) for fact in cited),
            narrative=self._clipped(" ".join(extraction.narrative for extraction in extractions)),
            headline=next((extraction.headline for extraction in extractions if extraction.headline), ""),
            usage=_total(extraction.usage for extraction in extractions),
        )

    def _clipped(self, narrative: str) -> str:
        """As many whole sentences from the start as `max_narrative_tokens` hold."""
        clipped = ""
        for sentence in sentences(narrative):
            longer = f"{clipped} {sentence}".strip()
            if self._counter.count(longer) > self._max_narrative_tokens:
                break
            clipped = longer
        return clipped


def _total(usages: Iterable[Usage]) -> Usage:
    listed = list(usages)
    return Usage(
        tokens_read=sum(usage.tokens_read for usage in listed),
        tokens_written=sum(usage.tokens_written for usage in listed),
    )
