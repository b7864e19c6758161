"""How facts are taken out of messages by their structure, without a model.

Deterministic, linear in the text. Every value stands in a message as it is, and an extraction of the same messages is
the same for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reactor_memory.features.facts.summarizers.lexicon import AFFIRMATION
from reactor_memory.features.facts.summarizers.text_facts import text_facts
from reactor_memory.features.facts.summarizers.tool_facts import (
    ACTION_SCORE,
    Exchange,
    ToolReader,
    action_score,
    exchanges,
)
from reactor_memory.models import Message
from reactor_memory.models.ledger import Extraction, Fact
from reactor_memory.text.borders import cut
from reactor_memory.text.spans import leaves
from reactor_memory.text.words import Sentence, read_sentences, says_what

MAX_NARRATIVE_SENTENCES = 2
MAX_SENTENCE_CHARACTERS = 160
MAX_HEADLINE_CHARACTERS = 80
_EDGE = ".,;:!?()"


def extract(messages: Sequence[Message]) -> Extraction:
    """Facts in the order of the messages, and the one or two sentences that hold the most details."""
    told = _telling_sentences(messages)
    return Extraction(
        facts=tuple(_facts(messages)),
        narrative=" ".join(_ended(sentence) for sentence in told),
        headline=_shortened(told[0], MAX_HEADLINE_CHARACTERS) if told else "",
    )


def _facts(messages: Sequence[Message]) -> Iterator[Fact]:
    found = exchanges(messages)
    reader = ToolReader(found)
    for exchange in found:
        yield from reader.facts(exchange)
    yield from text_facts(messages, recorded=_recorded(messages, found), data=_data(found))


def _recorded(messages: Sequence[Message], found: Sequence[Exchange]) -> frozenset[int]:
    """Messages that only lead to a call that was made: the arguments of the call say the same, exactly."""
    acted = [exchange.seq for exchange in found if action_score(exchange) >= ACTION_SCORE]
    recorded: set[int] = set()
    for seq in acted:
        before = [m for m in messages if m.seq is not None and m.seq <= seq and m.role != "tool"]
        recorded.update(m.seq for m in before[-3:] if m.seq is not None)
    return frozenset(recorded)


def _data(found: Sequence[Exchange]) -> frozenset[str]:
    """The words of what tools were given and answered."""
    values = (
        leaf.text for exchange in found for value in (exchange.arguments, exchange.result) for leaf in leaves(value)
    )
    return frozenset(word.strip(_EDGE) for value in values for word in value.casefold().split())


def _telling_sentences(messages: Sequence[Message]) -> list[str]:
    """The sentences of users with the most details, in the order in which they were said.

    Without numbers and days if there are such: these change, and then facts say so, but a story once told stays.
    """
    told = [
        (position, sentence)
        for position, message in enumerate(messages)
        if message.role == "user" and not AFFIRMATION.match(message.content)
        for sentence in read_sentences(message.content)
        if sentence.details and says_what(sentence)
    ]
    lasting = [(position, sentence) for position, sentence in told if not any(word.counts for word in sentence.words)]
    best = sorted(lasting or told, key=lambda each: (-len(each[1].details), each[0]))[:MAX_NARRATIVE_SENTENCES]
    return [_text(sentence) for _, sentence in sorted(best, key=lambda each: each[0])]


def _text(sentence: Sentence) -> str:
    return _shortened(" ".join(sentence.text.split()), MAX_SENTENCE_CHARACTERS)


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else cut(text[: limit + 1].rsplit(" ", 1)[0], limit).rstrip()


def _ended(text: str) -> str:
    return text if text[-1:] in ".!?。！？" else f"{text}."
