"""A model's answer, and in quotations what it left out: a model that reads badly costs no memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio.to_thread
from msgspec.structs import replace

from reactor_memory.features.facts.evidence import verify_facts
from reactor_memory.features.facts.quoting.record_keys import is_call
from reactor_memory.models import Message
from reactor_memory.models.ledger import NOTHING_KNOWN, Extraction, Fact, Known

if TYPE_CHECKING:
    from reactor_memory.core.ports import Condenser, Summarizer


M = TypeVar("M", bound="Summarizer")


class BesideReader(Generic[M]):
    """A model, and a reader of the same messages, which must cost nothing."""

    def __init__(self, model: M, reader: Summarizer) -> None:
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

    async def aclose(self) -> None:
        await self._model.aclose()
        await self._reader.aclose()


class SupplementedSummarizer(BesideReader["Summarizer"]):
    """What the model finds, and of what the reader finds in the same messages everything that no statement of the model
    covers. It fails as the model does.
    """

    async def summarize(self, messages: Sequence[Message], *, known: Known = NOTHING_KNOWN) -> Extraction:
        answer = await self._model.summarize(messages, known=known)
        found = await self._reader.summarize(messages)
        added = await anyio.to_thread.run_sync(lambda: tuple(left_out(found.facts, answer.facts, messages, known)))
        return replace(
            answer,
            facts=(*answer.facts, *added),
            narrative=answer.narrative or found.narrative,
            headline=answer.headline or found.headline,
        )


def left_out(found: Iterable[Fact], given: Iterable[Fact], messages: Sequence[Message], known: Known) -> Iterator[Fact]:
    """What the reader found and no statement of the model covers. Calls always stay."""
    proof = import_module("reactor_memory.features.facts.verification.proof")
    told = proof.proven(verify_facts(given, messages), messages, known.words())
    said, calls = [fact for fact in found if not is_call(fact)], [fact for fact in found if is_call(fact)]
    yield from proof.left_out(said, [fact for fact in told if not fact.salience])
    yield from calls
