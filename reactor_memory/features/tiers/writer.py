"""Asks for the texts of a step: redacted, in portions, through the guard of the provider, and not too long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import anyio.to_thread

from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.errors import SummarizationError
from reactor_memory.features.facts.provider_guard import ProviderGuard
from reactor_memory.features.tiers.classification import Level
from reactor_memory.features.tiers.plan import Writing
from reactor_memory.features.tiers.portions import CUT, portions, shortened
from reactor_memory.models import Message, Value, is_kept_by_author
from reactor_memory.models.ledger import Condensed, Usage

if TYPE_CHECKING:
    from reactor_memory.core.ports import Condenser

MOST_ROUNDS = 4
"""So often texts of texts are made of what is too long for one question; each round shortens at least by half."""


KEPT = "An agent kept something for itself."


class TextForm(Value, frozen=True, kw_only=True):
    """How the texts of a tier are wanted, and how long they may be."""

    prompt: str
    max_tokens: int


class TextForms(Value, frozen=True, kw_only=True):
    """How texts are wanted, and how many tokens of the conversation one question may hold."""

    by_level: Mapping[Level, TextForm]
    chunk_tokens: int


class TierWriter:
    """Writes the texts of tiers. Where a cap on spending is reached, `fallback` does, which must cost nothing."""

    def __init__(
        self,
        condenser: Condenser,
        *,
        fallback: Condenser,
        guard: ProviderGuard,
        counter: MessageCounter,
        forms: TextForms,
    ) -> None:
        self._condenser = condenser
        self._fallback = fallback
        self._guard = guard
        self._counter = counter
        self._forms = forms

    async def write(self, session_id: str, writing: Writing) -> Condensed:
        """The text for `writing`; `session_id` pays for it. Raises `SummarizationError`."""
        form = self._forms.by_level[writing.kind]
        read, _ = await self._guard.redacted(_to_read(writing))
        spent: list[Usage] = []
        for _ in range(MOST_ROUNDS):
            runs = await self._portions(read)
            if len(runs) <= 1:
                break
            read = [await self._part(session_id, run, form, spent) for run in runs]
        runs = await self._portions(read)
        final = await self._part(session_id, _newest(runs), form, spent)
        return Condensed(text=final.content, usage=_total(spent))

    async def _portions(self, messages: Sequence[Message]) -> list[tuple[Message, ...]]:
        cut = partial(portions, cost=self._counter.of, count=self._counter.of_text)
        return await anyio.to_thread.run_sync(cut, messages, self._forms.chunk_tokens)

    async def _part(self, session_id: str, run: Sequence[Message], form: TextForm, spent: list[Usage]) -> Message:
        """The text for one portion, as a message that stands for it."""
        answer = await self._ask(session_id, run, form)
        spent.append(answer.usage)
        text = await anyio.to_thread.run_sync(shortened, answer.text, form.max_tokens, self._counter.of_text)
        if not text.strip():
            raise SummarizationError("malformed", "the text is blank")
        return Message(role="summary", content=text, seq=run[0].seq)

    async def _ask(self, session_id: str, run: Sequence[Message], form: TextForm) -> Condensed:
        if await self._guard.is_spent(session_id):
            return await self._fallback.condense(run, prompt=form.prompt, max_tokens=form.max_tokens)
        return await self._guard.call(
            session_id,
            lambda: self._condenser.condense(run, prompt=form.prompt, max_tokens=form.max_tokens),
            tokens=lambda answer: answer.usage.total,
        )


def _to_read(writing: Writing) -> list[Message]:
    """Earlier texts and messages, oldest first; instead of what an agent keeps for itself only that it does."""
    earlier = [Message(role="summary", content=each.text, seq=each.start_seq) for each in writing.replaced]
    shown = (
        Message(role="summary", content=KEPT, seq=each.seq) if is_kept_by_author(each) else each
        for each in writing.messages
    )
    return sorted((*earlier, *shown), key=lambda message: message.seq or 0)


def _newest(runs: Sequence[tuple[Message, ...]]) -> tuple[Message, ...]:
    """The last portion; what comes before it after so many rounds is left out, and the text says so."""
    if len(runs) <= 1:
        return runs[0] if runs else ()
    return Message(role="summary", content=CUT, seq=runs[0][0].seq), *runs[-1]


def _total(spent: Sequence[Usage]) -> Usage:
    return Usage(
        tokens_read=sum(usage.tokens_read for usage in spent),
        tokens_written=sum(usage.tokens_written for usage in spent),
    )
