"""A model's answer, and in quotations what it left out: a model that reads badly costs no memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import anyio.to_thread
from msgspec.structs import replace

from reactor_memory.features.facts.evidence import verify_facts
from reactor_memory.features.facts.quoting.record_keys import is_call
from reactor_memory.models import Message
from reactor_memory.models.ledger import NOTHING_KNOWN, Extraction, Fact, Known
from reactor_memory.text.words import read_sentences

if TYPE_CHECKING:
    from reactor_memory.core.ports import Condenser, Summarizer

REPEATED_SHARE = 0.6
"""A fact with so many of the words of a quotation, and all of its details, replaces the quotation."""


class SupplementedSummarizer:
    """What `model` finds, and of what `reader` finds in the same messages everything that no verified fact of the model
    says. `reader` must cost nothing. It fails as `model` does.
    """

    def __init__(self, model: Summarizer, reader: Summarizer) -> None:
        self._model = model
        self._reader = reader

    @property
    def condenser(self) -> Condenser | None:
        return self._model.condenser

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def prompt_version(self) -> str:
        return self._model.prompt_version

    async def summarize(self, messages: Sequence[Message], *, known: Known = NOTHING_KNOWN) -> Extraction:
        answer = await self._model.summarize(messages, known=known)
        found = await self._reader.summarize(messages)
        left_out = await anyio.to_thread.run_sync(lambda: tuple(_left_out(found.facts, answer.facts, messages)))
        return replace(
            answer,
            facts=(*answer.facts, *left_out),
            narrative=answer.narrative or found.narrative,
            headline=answer.headline or found.headline,
        )

    async def aclose(self) -> None:
        await self._model.aclose()
        await self._reader.aclose()


def _left_out(found: Iterable[Fact], given: Iterable[Fact], messages: Sequence[Message]) -> Iterator[Fact]:
    told: defaultdict[int, set[str]] = defaultdict(set)
    for fact in verify_facts(given, messages):
        if fact.verified:
            told[fact.source_seq].update(_words(f"{fact.anchor} {fact.key.replace('_', ' ')} {fact.value}"))
    return (fact for fact in found if is_call(fact) or not _is_repeated(fact, told))


def _is_repeated(fact: Fact, told: Mapping[int, set[str]]) -> bool:
    words = told.get(fact.source_seq, set[str]())
    sentences = read_sentences(fact.value)
    content = frozenset[str]().union(*(sentence.content for sentence in sentences))
    details = {detail for sentence in sentences for detail in sentence.details}
    return bool(content) and details <= words and len(content & words) >= REPEATED_SHARE * len(content)


def _words(text: str) -> Iterator[str]:
    return (word.folded for sentence in read_sentences(text) for word in sentence.words)
