"""Shorter texts from any summarizer, the offline one above all: what matters of its facts and narrative."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import anyio.to_thread

from reactor_memory.features.facts.evidence import verify_facts, verify_narrative
from reactor_memory.features.facts.plain_text import plain
from reactor_memory.features.facts.rendering import render_facts
from reactor_memory.features.tiers.portions import Count, shortened
from reactor_memory.models import Message
from reactor_memory.models.ledger import Condensed, Extraction
from reactor_memory.text.borders import cut
from reactor_memory.text.spans import sentences
from reactor_memory.text.words import read_sentences

if TYPE_CHECKING:
    from reactor_memory.core.ports import Summarizer

MAX_LINE_CHARACTERS = 240
NARRATED = 2.0
"""The worth of a sentence of the narrative, where a decision is worth 3 (`Fact.worth`)."""

LEAST, PER_DETAIL, MOST_DETAILS = 1.0, 0.4, 5
"""A line of an earlier text is worth more, the more details (names, numbers, days) it has."""


class _Line(NamedTuple):
    worth: float
    text: str


class ExtractionCondenser:
    """`Condenser` over a `Summarizer`, which reads what was said; lines of earlier texts compete with what it found.

    Every line is one that an earlier text had, or that messages prove. The prompt is for models: here it changes
    nothing.
    """

    def __init__(self, summarizer: Summarizer, *, count: Count) -> None:
        self._summarizer = summarizer
        self._count = count

    async def condense(self, messages: Sequence[Message], *, prompt: str, max_tokens: int) -> Condensed:
        said = [message for message in messages if message.role != "summary"]
        found = await self._summarizer.summarize(said) if said else Extraction()
        text = await anyio.to_thread.run_sync(self._text, messages, said, found, max_tokens)
        return Condensed(text=text, usage=found.usage)

    def _text(self, messages: Sequence[Message], said: Sequence[Message], found: Extraction, max_tokens: int) -> str:
        texts = [message.content for message in messages if message.role == "summary"]
        earlier = [_earlier(line) for text in texts for line in self._lines(text, max_tokens // 4)]
        lines = [*earlier, *self._found(found, said)]
        return "\n".join(self._best(_once(lines), max_tokens)) or _beginnings(said, max_tokens, self._count)

    def _lines(self, text: str, most: int) -> Iterator[str]:
        """The lines of an earlier text, less its own remark on what was left out. Of a line of more than `most` tokens
        the sentences, or what fits of them: else a text of one long line would be lost whole.
        """
        for line in map(plain, text.splitlines()):
            if line and not _is_remark(line):
                fits = self._count(line) <= most
                yield from [line] if fits else (shortened(each, most, self._count) for each in sentences(line))

    def _found(self, found: Extraction, said: Sequence[Message]) -> Iterator[_Line]:
        for sentence in sentences(verify_narrative(found.narrative, said)):
            yield _Line(NARRATED, plain(sentence))
        for line in render_facts(verify_facts(found.facts, said), count=self._count):
            yield _Line(line.value, line.text)

    def _best(self, lines: Sequence[_Line], max_tokens: int) -> Iterator[str]:
        """The lines worth most, in their order; of equal ones the newer. The last line says how many are missing."""
        tokens = [self._count("\n" + line.text) for line in lines]
        room = max_tokens if sum(tokens) <= max_tokens else max_tokens - self._count("\n" + _left_out(len(lines)))
        kept: set[int] = set()
        for place in sorted(range(len(lines)), key=lambda place: (lines[place].worth, place), reverse=True):
            if tokens[place] <= room:
                kept.add(place)
                room -= tokens[place]
        yield from (line.text for place, line in enumerate(lines) if place in kept)
        if kept and len(kept) < len(lines):
            yield _left_out(len(lines) - len(kept))


def _earlier(line: str) -> _Line:
    details = sum(len(sentence.details) for sentence in read_sentences(line))
    return _Line(LEAST + PER_DETAIL * min(details, MOST_DETAILS), line)


def _once(lines: Sequence[_Line]) -> list[_Line]:
    """Of what is said twice, the later one."""
    last = {line.text: place for place, line in enumerate(lines)}
    return [line for place, line in enumerate(lines) if last[line.text] == place]


def _left_out(count: int) -> str:
    return f"(lines left out for their length: {count})"


def _is_remark(line: str) -> bool:
    return line.startswith(_left_out(0).partition("0")[0])


def _beginnings(said: Sequence[Message], max_tokens: int, count: Count) -> str:
    """Where nothing stands out: how the messages begin."""
    told = f"Messages without a detail to keep: {len(said)}."
    for message in said:
        longer = f"{told}\n{cut(plain(message.content), MAX_LINE_CHARACTERS)}"
        if count(longer) > max_tokens:
            break
        told = longer if plain(message.content) else told
    return told
