"""What all summarizers with a language model have in common; only the client differs."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

import anyio
import anyio.to_thread
from msgspec.structs import replace

from reactor_memory.errors import SummarizationError
from reactor_memory.features.facts.summarizers.answer import parse_answer, parse_condensed
from reactor_memory.features.facts.summarizers.prompt import PROMPT_VERSION, build_condense_request, build_request
from reactor_memory.features.facts.summarizers.records import Record, chunks, records_of
from reactor_memory.models import Message
from reactor_memory.models.ledger import NOTHING_KNOWN, Condensed, Extraction, Known, Usage
from reactor_memory.providers.questions import Reply, Request
from reactor_memory.text.spans import sentences

if TYPE_CHECKING:
    from reactor_memory.core.ports import Condenser, TokenCounter

LEAST_ROOM = 256
_SHARE_OF_TIME = 0.98
"""The share of the caller's deadline that is used: a call that the deadline stops can no longer report its cost."""


class ModelClient(Protocol):
    """Asks one model of one provider. Never repeats by itself a question that was answered; follows no redirect."""

    async def ask(self, request: Request) -> Reply:
        """The answer to `request`. Raises `SummarizationError` if there is none."""
        ...

    async def aclose(self) -> None:
        """Close the connections. Questions asked later fail."""
        ...


class LanguageModelSummarizer:
    """Extracts facts and a narrative by asking `client`; a run longer than `max_input_tokens` takes several questions.
    Questions are made and answers are read in a thread.

    `counter` measures what is sent and the narrative that is kept; the tokenizer of the model may count differently.
    """

    def __init__(
        self,
        name: str,
        client: ModelClient,
        *,
        counter: TokenCounter,
        max_narrative_tokens: int,
        max_input_tokens: int,
    ) -> None:
        self._name = name
        self._client = client
        self._counter = counter
        self._max_narrative_tokens = max_narrative_tokens
        self._max_input_tokens = max_input_tokens

    @property
    def name(self) -> str:
        return self._name

    @property
    def prompt_version(self) -> str:
        return PROMPT_VERSION

    @property
    def condenser(self) -> Condenser:
        return self

    @property
    def counter(self) -> TokenCounter:
        return self._counter

    @property
    def max_narrative_tokens(self) -> int:
        return self._max_narrative_tokens

    @property
    def max_input_tokens(self) -> int:
        return self._max_input_tokens

    async def summarize(self, messages: Sequence[Message], *, known: Known = NOTHING_KNOWN) -> Extraction:
        """What `messages` say. Facts that cite none of them are left out.

        Raises `SummarizationError`; if one of several questions fails, or a deadline of the caller is near, all of it
        fails.
        """
        # Counting the tokens of a megabyte takes a good part of a second.
        requests = await anyio.to_thread.run_sync(self._requests, messages, known)
        extractions: list[Extraction] = []
        failure = SummarizationError("timeout", "no answer in time")
        with anyio.CancelScope(deadline=end_of_time()):
            try:
                for request in requests:
                    extractions.append(await self._ask(request))  # noqa: PERF401 (an answer before a failure counts)
                return await anyio.to_thread.run_sync(self._joined, extractions, messages)
            except SummarizationError as error:
                failure = error
        failure.tokens += total_of(extractions).total
        raise failure

    async def condense(self, messages: Sequence[Message], *, prompt: str, max_tokens: int) -> Condensed:
        """What `messages` say, in a text as `prompt` wants it. One question, however long they are."""
        request = await anyio.to_thread.run_sync(
            lambda: build_condense_request(tuple(records_of(messages)), prompt, max_tokens=max_tokens)
        )
        reply, usage = await self.reply_to(request)
        with at_the_cost_of(usage):
            return Condensed(text=await anyio.to_thread.run_sync(parse_condensed, usable(reply)), usage=usage)

    async def aclose(self) -> None:
        await self._client.aclose()

    def _requests(self, messages: Sequence[Message], known: Known) -> list[Request]:
        def request(records: Sequence[Record]) -> Request:
            return build_request(records, known, max_narrative_tokens=self._max_narrative_tokens)

        room = max(self._max_input_tokens - self.tokens_of(request(())), LEAST_ROOM)
        return [request(chunk) for chunk in chunks(messages, room, self._counter)]

    async def _ask(self, request: Request) -> Extraction:
        reply, usage = await self.reply_to(request)
        with at_the_cost_of(usage):
            return replace(await anyio.to_thread.run_sync(_extraction, reply), usage=usage)

    async def reply_to(self, request: Request) -> tuple[Reply, Usage]:
        """The reply, and what it cost, estimated where the provider does not tell."""
        reply = await self._client.ask(request)
        if reply.usage.total:
            return reply, reply.usage
        return reply, await anyio.to_thread.run_sync(self._estimated, request, reply)

    def _estimated(self, request: Request, reply: Reply) -> Usage:
        return Usage(tokens_read=self.tokens_of(request), tokens_written=self._counter.count(reply.text))

    def tokens_of(self, request: Request) -> int:
        return self._counter.count(request.instruction) + self._counter.count(request.document)

    def _joined(self, extractions: Sequence[Extraction], messages: Sequence[Message]) -> Extraction:
        roles = {message.seq: message.role for message in messages}
        cited = (fact for extraction in extractions for fact in extraction.facts if fact.source_seq in {0, *roles})
        return Extraction(
            facts=tuple(replace(fact, said_by=roles.get(fact.source_seq, fact.said_by)) for fact in cited),
            narrative=self.clipped(" ".join(extraction.narrative for extraction in extractions)),
            headline=next((extraction.headline for extraction in extractions if extraction.headline), ""),
            usage=total_of(extractions),
        )

    def clipped(self, narrative: str) -> str:
        """As many whole sentences from the start as `max_narrative_tokens` hold."""
        clipped = ""
        for sentence in sentences(narrative):
            longer = f"{clipped} {sentence}".strip()
            if self._counter.count(longer) > self._max_narrative_tokens:
                break
            clipped = longer
        return clipped


def end_of_time() -> float:
    """When to give up, a little before the deadline of the caller."""
    now = anyio.current_time()
    return now + _SHARE_OF_TIME * (anyio.current_effective_deadline() - now)


def _extraction(reply: Reply) -> Extraction:
    """The extraction in the answer; of one that was cut off, everything that is whole."""
    if reply.failure is not None and reply.failure.reason == "truncated":
        with suppress(SummarizationError):
            return parse_answer(reply.text)
    return parse_answer(usable(reply))


def usable(reply: Reply) -> str:
    if reply.failure is not None:
        raise reply.failure
    return reply.text


@contextmanager
def at_the_cost_of(usage: Usage) -> Generator[None]:
    """Adds what a useless answer cost to the error."""
    try:
        yield
    except SummarizationError as error:
        error.tokens = usage.total
        raise


def total_of(extractions: Iterable[Extraction]) -> Usage:
    usages = [extraction.usage for extraction in extractions]
    return Usage(
        tokens_read=sum(usage.tokens_read for usage in usages),
        tokens_written=sum(usage.tokens_written for usage in usages),
    )
