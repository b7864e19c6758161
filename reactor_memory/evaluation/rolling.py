"""The usual memory of agents, as a baseline: one summary in prose, and the newest messages that fit beside it.

When the messages after the summary outgrow the window, the oldest turns leave it, and a summarizer writes the summary
anew from the summary so far and what left: a summary of a summary. Nothing else is kept of them. Everything runs on the
same manager, workers and stores as the library's own memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.to_thread
from dependency_injector import providers

from reactor_memory.core.context.blocks import Block
from reactor_memory.core.context.draft import Draft
from reactor_memory.core.context.newest_turns import newest_turns
from reactor_memory.core.context.strategy import Plan, PlanRequest
from reactor_memory.errors import SummarizationError
from reactor_memory.evaluation.sentences import SentenceSummarizer
from reactor_memory.evaluation.units import MAX_LINE_CHARACTERS
from reactor_memory.features.facts.frames import NARRATIVE
from reactor_memory.features.facts.jobs import put_successor, successor
from reactor_memory.features.facts.prose import render_narrative
from reactor_memory.features.redaction import redacted
from reactor_memory.models import Message, Value
from reactor_memory.models.leases import Lease
from reactor_memory.models.ledger import Summary, SummaryHead
from reactor_memory.providers.asked_models import ANSWER_SECONDS
from reactor_memory.settings.settings import Settings
from reactor_memory.text.spans import sentences
from reactor_memory.wiring.container import Container

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock, MessageStore, Redactor, Summarizer, SummaryStore

MESSAGE_SHARE = 0.1
"""Of the budget, kept free for the message to come."""

FRAME_TOKENS = 40
"""What the header of the summary and its overhead take, at most."""


class RollingLimits(Value, frozen=True, kw_only=True):
    """How a budget is shared out, in tokens."""

    summary_tokens: int
    window_tokens: int

    @classmethod
    def of(cls, settings: Settings) -> RollingLimits:
        budget = settings.context.max_tokens - settings.context.reserved_output_tokens
        summary = settings.summary.max_narrative_tokens
        return cls(summary_tokens=summary, window_tokens=budget - summary - FRAME_TOKENS - int(budget * MESSAGE_SHARE))


class RollingStrategy:
    """The summary, then every message that it does not cover."""

    reads_summaries = True

    def __call__(self, request: PlanRequest) -> Plan:
        summary = request.rows.summary or SummaryHead()
        window = [message for message in request.rows.messages if (message.seq or 0) > summary.covered_seq]
        first = (window[0].seq or 1) if window else summary.covered_seq + 1
        draft = Draft(
            strategy="rolling",
            session_id=request.session_id,
            blocks=(Block(frame=NARRATIVE, lines=render_narrative(summary.narrative, count=request.count_text)),),
            window=tuple(window),
            unread=((summary.covered_seq + 1, first - 1),) if first > summary.covered_seq + 1 else (),
            covered_seq=summary.covered_seq,
            freshness="fresh" if summary.covered_seq else "none",
        )
        return Plan(draft=draft)


class RollingJob:
    """Moves what the window has no room for into the summary. `cost` is that of a message, overhead included."""

    def __init__(
        self,
        *,
        messages: MessageStore,
        summaries: SummaryStore,
        summarizer: Summarizer,
        clock: Clock,
        limits: RollingLimits,
        cost: Callable[[Message], int],
        count_text: Callable[[str], int],
        redactor: Redactor,
        timeout_seconds: float,
    ) -> None:
        self._messages = messages
        self._summaries = summaries
        self._summarizer = summarizer
        self._clock = clock
        self._limits = limits
        self._cost = cost
        self._count_text = count_text
        self._redactor = redactor
        self._timeout_seconds = timeout_seconds

    async def step(self, lease: Lease) -> int | None:
        """Rewrite the summary with the turns that leave the window, if any have to."""
        summary = await self._summaries.get_summary_head(lease.session_id) or SummaryHead()
        messages = await self._uncovered(lease.session_id, summary.covered_seq)
        window = newest_turns(messages, 0, len(messages), self._limits.window_tokens, self._cost)
        leaving = messages[: window.start]
        if not leaving:
            return None
        narrative = await self._rewritten(summary.narrative, leaving)
        written = Summary(narrative=narrative, covered_seq=leaving[-1].seq or summary.covered_seq)
        return await put_successor(self._summaries, lease, successor(summary, written, self._clock()))

    async def _uncovered(self, session_id: str, covered_seq: int) -> list[Message]:
        found: list[Message] = []
        while True:
            rows = await self._messages.read_background(session_id, after=covered_seq)
            session, page = rows.session, rows.messages
            found += page
            if not page or (page[-1].seq or 0) >= session.last_seq:
                return found
            covered_seq = page[-1].seq or 0

    async def _rewritten(self, narrative: str, leaving: Sequence[Message]) -> str:
        before = [Message(role="summary", content=narrative, seq=leaving[0].seq)] if narrative else []
        read = await anyio.to_thread.run_sync(redacted, leaving, self._redactor)
        try:
            with anyio.fail_after(self._timeout_seconds):
                answer = await self._summarizer.summarize([*before, *read])
        except TimeoutError as error:
            raise SummarizationError("timeout", f"no answer within {self._timeout_seconds:g} seconds") from error
        return "\n".join(self._fitting(_readable_lines(answer.narrative)))

    def _fitting(self, lines: Iterable[str]) -> Iterator[str]:
        """The first of the lines, up to the size of the summary."""
        left = self._limits.summary_tokens
        for line in lines:
            left -= self._count_text("\n" + line)
            if left < 0:
                return
            yield line


def install(container: Container) -> None:
    """Make the container keep a rolling summary of `summary.max_narrative_tokens`, in contexts of
    `context.max_tokens`; call it before anything is made.

    The summary is written by the summarizer of the settings. The offline one of the library makes facts and next to no
    prose; a `SentenceSummarizer` takes its place.
    """
    settings = container.settings()
    limits, counter = RollingLimits.of(settings), container.message_counter()
    if settings.summary.provider == "extractive":
        summarizer = SentenceSummarizer(max_tokens=limits.summary_tokens, count=counter.of_text)
        _override(container.summarizer, providers.Object(summarizer))

    def cost(message: Message) -> int:
        return counter.of(message) + settings.tokens.overhead_per_message

    job = providers.Singleton(
        RollingJob,
        messages=container.message_store,
        summaries=container.summary_store,
        summarizer=container.summarizer,
        clock=container.clock,
        limits=limits,
        cost=cost,
        count_text=counter.of_text,
        redactor=container.redactor,
        timeout_seconds=settings.model(settings.summary.provider).timeout_seconds or ANSWER_SECONDS,
    )
    _override(container.job, job)
    _override(container.strategy, providers.Object(RollingStrategy()))


def _readable_lines(narrative: str) -> Iterator[str]:
    """The lines of a narrative; a paragraph that is too long to be taken in at once, sentence by sentence."""
    for line in narrative.splitlines():
        yield from [line] if len(line) <= MAX_LINE_CHARACTERS else sentences(line)


def _override(provider: object, by: object) -> None:
    cast("Any", provider).override(by)
