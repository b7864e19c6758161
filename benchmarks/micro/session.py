"""What the micro-benchmarks work on: the packaged sample, counted and extracted as the library does it.

Its lines are short, so `prose` makes longer messages of the same text for what depends on how many are kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from itertools import chain, count, cycle, islice
from pathlib import Path

from msgspec.structs import replace

from reactor_memory.core.context.draft import ContextLimits
from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.core.context.strategy import PlanRequest
from reactor_memory.evaluation.transcripts import read_lines
from reactor_memory.features.facts.evidence import verify_facts
from reactor_memory.features.facts.hierarchical import Hierarchical
from reactor_memory.features.facts.merge import refold
from reactor_memory.features.facts.summarizers.extractive import ExtractiveSummarizer
from reactor_memory.models import BranchRange, Message, Session, ToolCall
from reactor_memory.models.ledger import Fact, Ledger, Segment, Summary
from reactor_memory.models.requests import ContextRows
from reactor_memory.tokens.tiktoken_counter import TiktokenCounter

BUDGET = 4_000
COUNTER = MessageCounter(TiktokenCounter())
LIMITS = ContextLimits(budget=BUDGET, window_growth="tokens")
SEGMENT = 10
LENGTH = 200
"""Characters of a message of `prose`, about 50 tokens."""

SHORT, LONG = 200, 400
"""Messages that are extracted: with `SHORT` all of memory fits into the budget, with `LONG` lines are left out."""

QUESTION = Message.user("Which of the orders had oat milk, and when will it be ready?")


@cache
def log(size: int) -> tuple[Message, ...]:
    """The first `size` messages of the sample, begun again where it ends, as a store returns them."""
    with resources.as_file(resources.files("reactor_memory") / "data" / "orders.jsonl.gz") as sample:
        said = _counted(sample)
    return tuple(replace(message, seq=seq) for seq, message in enumerate(islice(cycle(said), size), start=1))


@cache
def _counted(sample: Path) -> Sequence[Message]:
    messages = chain.from_iterable(line.messages for line in read_lines(sample))
    return [replace(message, token_count=COUNTER.counted(message), tokenizer=COUNTER.name) for message in messages]


@cache
def prose(size: int) -> tuple[Message, ...]:
    """`size` stored messages of `LENGTH` characters, in turns of two; in each third turn, two more are a pair."""
    text = " ".join(message.content for message in log(1_000) if message.role != "tool")
    pieces = cycle(text[start : start + LENGTH] for start in range(0, len(text) - LENGTH, LENGTH))
    messages = islice(_turns(pieces), size)
    return tuple(
        replace(message, seq=seq, token_count=COUNTER.counted(message), tokenizer=COUNTER.name)
        for seq, message in enumerate(messages, start=1)
    )


def _turns(pieces: Iterator[str]) -> Iterator[Message]:
    for number in count():
        yield Message.user(next(pieces))
        if number % 3 == 0:
            call = ToolCall(id=f"call-{number}", name="look_up", arguments={"query": next(pieces)})
            yield Message.assistant(tool_calls=[call])
            yield Message.tool(next(pieces), tool_call_id=call.id)
        yield Message.assistant(next(pieces))


def segment() -> tuple[Message, ...]:
    """Messages that are extracted together."""
    return log(SEGMENT)


@cache
def ledger(size: int = LONG) -> Ledger:
    """What the offline summarizer finds in the first `size` messages."""
    return asyncio.run(_extracted(log(size)))


async def _extracted(messages: Sequence[Message]) -> Ledger:
    summarizer = ExtractiveSummarizer()
    segments: list[Segment] = []
    facts: list[Fact] = []
    for start in range(0, len(messages), SEGMENT):
        part = messages[start : start + SEGMENT]
        found = await summarizer.summarize(part)
        facts += verify_facts(found.facts, part)
        segments.append(
            Segment(
                conversation_id="s",
                start_seq=start + 1,
                end_seq=start + len(part),
                source_hash="",
                summarizer=summarizer.name,
                prompt_version=summarizer.prompt_version,
                narrative=found.narrative,
            )
        )
    return Ledger(segments=tuple(segments), facts=tuple(facts))


@cache
def summary(size: int = LONG) -> Summary:
    """The fold of `ledger`."""
    return refold(ledger(size), max_fact_tokens=8_000, max_narrative_tokens=500, count=COUNTER.of_text)


def plan_request(size: int) -> PlanRequest:
    """A load after `size` messages were extracted, by which the window moves: the dearest one."""
    messages = log(size + 2 * SEGMENT)
    last = len(messages)
    session = Session(
        session_id="s",
        group_id="s",
        owner_id=None,
        last_seq=last,
        branch=(BranchRange(conversation_id="s", start_seq=1),),
        created_at=0,
        updated_at=0,
    )
    return PlanRequest(
        session_id="s",
        rows=ContextRows(session=session, messages=messages[-100:], summary=summary(size)),
        limits=LIMITS,
        count=lambda message: COUNTER.of(message) + LIMITS.overhead,
        count_text=COUNTER.of_text,
    )


HIERARCHICAL = Hierarchical()
