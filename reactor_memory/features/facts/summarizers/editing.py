"""A model that keeps memory by the records of the reader: it says which matter, the reader what happened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import anyio
import anyio.to_thread
from msgspec.structs import replace

from reactor_memory.errors import SummarizationError
from reactor_memory.features.facts.evidence import verify_facts
from reactor_memory.features.facts.summarizers.answer import parse_answer
from reactor_memory.features.facts.summarizers.edited_records import edited
from reactor_memory.features.facts.summarizers.language_model import (
    LEAST_ROOM,
    LanguageModelSummarizer,
    at_the_cost_of,
    end_of_time,
    total_of,
    usable,
)
from reactor_memory.features.facts.summarizers.line_edits import LineEdits, parse_edits
from reactor_memory.features.facts.summarizers.numbered_lines import (
    NumberedLine,
    asked_about,
    numbered_lines,
    portions,
    written,
)
from reactor_memory.features.facts.summarizers.prompt import EDIT_VERSION, build_edit_request
from reactor_memory.features.facts.summarizers.supplemented import BesideReader, left_out
from reactor_memory.features.facts.verification.claim_words import language_for
from reactor_memory.features.facts.working_state import StateItem, items_of
from reactor_memory.models import Message
from reactor_memory.models.ledger import NOTHING_KNOWN, Extraction, Fact, Known, Usage

MOST_TOLD = 4_000
"""Characters of a conversation by which its language is told."""


class _Answer(NamedTuple):
    """What was answered of a portion, in one of both forms; neither where the question failed."""

    edits: LineEdits | None
    extraction: Extraction | None
    usage: Usage


class EditingSummarizer(BesideReader[LanguageModelSummarizer]):
    """Asks the model about the records that the reader finds, which must quote.

    What was answered counts: where one of several questions fails, the records of its messages stay as they are. An
    answer in the form of facts counts, too, and then everything that the reader found and no such fact says. Raises
    `SummarizationError` if no question was answered.
    """

    @property
    def prompt_version(self) -> str:
        return EDIT_VERSION

    async def summarize(self, messages: Sequence[Message], *, known: Known = NOTHING_KNOWN) -> Extraction:
        found = await self._reader.summarize(messages)
        lines = await anyio.to_thread.run_sync(numbered_lines, verify_facts(found.facts, messages))
        state = items_of(known.state)
        wanted = await anyio.to_thread.run_sync(self._portions, lines, state)
        answers: list[_Answer] = []
        failure: SummarizationError | None = None
        with anyio.CancelScope(deadline=end_of_time()) as scope:
            for portion in wanted:
                try:
                    answers.append(await self._ask(portion, state, messages))
                except SummarizationError as error:
                    failure = error
                    break
        if scope.cancelled_caught:
            failure = SummarizationError("timeout", "no answer in time")
        if failure is not None and not answers:
            raise failure
        joined = await anyio.to_thread.run_sync(lambda: _joined(found, lines, wanted, answers, messages, known))
        lost = Usage(tokens_read=failure.tokens if failure else 0)
        return replace(
            joined,
            narrative=self._model.clipped(joined.narrative),
            usage=total_of([*(Extraction(usage=each.usage) for each in answers), Extraction(usage=lost)]),
        )

    def _portions(self, lines: Sequence[NumberedLine], state: Sequence[StateItem]) -> list[list[NumberedLine]]:
        bare = build_edit_request((), state, max_narrative_tokens=self._model.max_narrative_tokens)
        room = max(self._model.max_input_tokens - self._model.tokens_of(bare), LEAST_ROOM)
        return list(portions(asked_about(lines), room, self._model.counter))

    async def _ask(
        self, portion: Sequence[NumberedLine], state: Sequence[StateItem], messages: Sequence[Message]
    ) -> _Answer:
        """The answer; of one that is not in the language of the conversation, a second one."""
        answer = await self._answer(portion, state, is_asked_again=False)
        if answer.edits is None or not is_of_other_language(answer.edits, messages):
            return answer
        again = await self._answer(portion, state, is_asked_again=True)
        usage = total_of([Extraction(usage=answer.usage), Extraction(usage=again.usage)])
        if again.edits is not None and is_of_other_language(again.edits, messages):
            again = again._replace(edits=again.edits.model_copy(update={"narrative": "", "headline": ""}))
        return again._replace(usage=usage)

    async def _answer(
        self, portion: Sequence[NumberedLine], state: Sequence[StateItem], *, is_asked_again: bool
    ) -> _Answer:
        request = build_edit_request(
            written(portion),
            state,
            max_narrative_tokens=self._model.max_narrative_tokens,
            is_asked_again=is_asked_again,
        )
        reply, usage = await self._model.reply_to(request)
        with at_the_cost_of(usage):
            text = reply.text if reply.failure and reply.failure.reason == "truncated" else usable(reply)
            try:
                edits = await anyio.to_thread.run_sync(parse_edits, text)
                extraction = None if edits else await anyio.to_thread.run_sync(parse_answer, text)
            except SummarizationError:
                if reply.failure is not None:
                    raise reply.failure from None
                raise
        return _Answer(edits, extraction, usage)


def is_of_other_language(edits: LineEdits, messages: Sequence[Message]) -> bool:
    """Whether what the model worded is in another language than the people speak, where both can be told."""
    worded = " ".join((edits.narrative, *(each.text for each in edits.state), *(each.text for each in edits.merge)))
    spoken = " ".join(message.content for message in messages if message.role == "user")[:MOST_TOLD]
    said, heard = language_for(worded), language_for(spoken)
    return bool(worded.strip()) and None not in (said, heard) and said != heard and not _is_script(said, heard)


def _is_script(*names: str | None) -> bool:
    return any(name is not None and name.startswith("(") for name in names)


def _joined(
    found: Extraction,
    lines: Sequence[NumberedLine],
    wanted: Sequence[Sequence[NumberedLine]],
    answers: Sequence[_Answer],
    messages: Sequence[Message],
    known: Known,
) -> Extraction:
    """All records, those of which something was answered as it says."""
    asked = [line for portion, _ in zip(wanted, answers, strict=False) for line in portion]
    numbers = {line.number for line in asked}
    facts: list[Fact] = []
    of_lines = {fact for line in lines for fact in line.facts}
    facts += [fact for fact in verify_facts(found.facts, messages) if fact not in of_lines]
    state = items_of(known.state)
    told: list[Extraction] = []
    dropped: set[str] = set()
    for portion, answer in zip(wanted, answers, strict=False):
        if answer.extraction is not None:
            cited = {message.seq for message in messages}
            given = [fact for fact in answer.extraction.facts if fact.source_seq in {0, *cited}]
            read = [fact for line in portion for fact in line.facts]
            facts += [*given, *left_out(read, given, messages, known)]
            told.append(answer.extraction)
        elif answer.edits is not None:
            result = edited(portion, answer.edits, messages, state)
            facts += [*result.facts, *result.state]
            dropped |= {line.text for line in result.dropped}
            told.append(Extraction(narrative=answer.edits.narrative, headline=answer.edits.headline))
    unasked = (line for line in lines if line.number not in numbers)
    # said again and again, so the model was shown it twice: what it says of these holds for all of them
    facts += [fact for line in unasked if line.text not in dropped for fact in line.facts]
    return Extraction(
        facts=tuple(sorted(facts, key=lambda fact: fact.source_seq)),
        narrative=" ".join(each.narrative for each in told if each.narrative) or found.narrative,
        headline=next((each.headline for each in told if each.headline), found.headline),
    )
