"""A summarizer that keeps the sentences with the most details, for a summary of a bounded size.

It stands in for a model where a rolling summary is measured offline: deterministic, and kinder than a model in one
respect, since it copies what it keeps and never rewords it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence

from reactor_memory.models import Message
from reactor_memory.models.ledger import NOTHING_KNOWN, Extraction, Known
from reactor_memory.text.spans import arguments_of, decode, leaves
from reactor_memory.text.words import read_sentences

MAX_LINE_CHARACTERS = 400

_FIELD = re.compile(r"(?<!\w)(\w++)=")


class SentenceSummarizer:
    """A `Summarizer` whose narrative is the lines worth most, `max_tokens` of them, in the order of the messages.

    A line is a sentence, a tool call or a tool result. A message of the role ``summary`` is an earlier narrative: its
    lines are taken as they are.
    """

    name = "sentences"
    prompt_version = "1"
    condenser = None

    def __init__(self, *, max_tokens: int, count: Callable[[str], int]) -> None:
        self._max_tokens = max_tokens
        self._count = count

    async def summarize(self, messages: Sequence[Message], *, known: Known = NOTHING_KNOWN) -> Extraction:
        found = (line[:MAX_LINE_CHARACTERS] for message in messages for line in _lines(message))
        return Extraction(narrative="\n".join(self._best(list(dict.fromkeys(found)))))

    async def aclose(self) -> None:
        """Nothing to give back."""

    def _best(self, lines: Sequence[str]) -> list[str]:
        """The lines with the most details for their length, the newer one first where they are equal."""
        tokens = [self._count("\n" + line) for line in lines]
        worth = [_details(line) / math.sqrt(cost) for line, cost in zip(lines, tokens, strict=True)]
        left, kept = self._max_tokens, set[int]()
        for index in sorted(range(len(lines)), key=lambda index: (worth[index], index), reverse=True):
            if worth[index] and tokens[index] <= left:
                left -= tokens[index]
                kept.add(index)
        return [lines[index] for index in sorted(kept)]


def _lines(message: Message) -> Iterator[str]:
    if message.role == "summary":
        yield from message.content.splitlines()
    elif message.role == "tool":
        yield _fields(message.name or "result", decode(message.content) or message.content)
    else:
        for sentence in read_sentences(message.content):
            yield " ".join(sentence.text.split())
        for call in message.tool_calls:
            yield _fields(call.name, arguments_of(call.arguments))


def _fields(title: str, value: object) -> str:
    """``book_table: restaurant=Luigi's; seats=2``"""
    named = (f"{leaf.path.rpartition('.')[2]}={leaf.text}" for leaf in leaves(value))
    return " ".join(f"{title}: {'; '.join(named)}".split())


def _details(line: str) -> int:
    """Fields of different names, for a listing repeats them; elsewhere names, numbers and days."""
    fields = set(_FIELD.findall(line))
    return len(fields) or sum(len(sentence.details) for sentence in read_sentences(line))
