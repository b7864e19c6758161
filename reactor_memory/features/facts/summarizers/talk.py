"""Who said what, how the other side took it, and how much it therefore matters.

The strongest statement in a conversation repeats what was said before, the other side accepts it, and then it is done.
An offer brings new details; what the model read back need not be kept in the user's words, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from reactor_memory.features.facts.summarizers.lexicon import (
    AFFIRMATION,
    CHANGE,
    CORRECTION,
    NOTED,
    NOTING,
    READ_BACK,
    REFUSAL,
    REVISION,
    SETBACK,
)
from reactor_memory.models import Message
from reactor_memory.text.words import STOP_WORDS, Sentence, read_sentences

NEARBY = 14
"""How many messages before or after one belong to the same talk."""
MIN_REPEATED = 3
SHORT = 8
MANY_DETAILS = 10
MANY_OFFERED = 5
FEW_BEFORE = 3
MOSTLY = 0.6
LEAST_AGREED = 2
MAX_CHAIN = 3

# What a message of the model gains by each sign that it says what came to pass; the sum is its salience.
DETAIL = 0.017
REPEATED = 0.18
READ_OUT = 0.2
ASKED = 0.045
UNPRECEDED = 0.06
UNANSWERED = 0.085
ACCEPTED = 0.04
DONE = 0.165
ADJUSTED = 0.09
SETTLES = 0.19

# What a statement of the user has, and what it loses if the model read it back later.
STATED = 0.115
CONFIRMED = 0.075


class ReadMessage(NamedTuple):
    """A message, read: its sentences, their details, all their words, those that say something of their own."""

    message: Message
    sentences: tuple[Sentence, ...]
    details: frozenset[str]
    words: frozenset[str]
    content: frozenset[str]

    @property
    def by_user(self) -> bool:
        return self.message.role == "user"

    @property
    def text(self) -> str:
        return self.message.content

    @property
    def stated(self) -> frozenset[str]:
        """The informative words, without those of questions."""
        return frozenset(
            word for sentence in self.sentences if not sentence.text.endswith("?") for word in sentence.content
        )

    @property
    def corrects(self) -> bool:
        """Whether the user refuses or changes something and says what."""
        return self.by_user and bool(self.details) and bool(REFUSAL.match(self.text) or CORRECTION.search(self.text))

    @property
    def revises(self) -> bool:
        """Whether the user corrects an earlier statement of their own: in a sentence with a detail, or a short one, or
        by asking for a change explicitly.
        """
        return self.by_user and any(
            CHANGE.match(sentence.text)
            or ((sentence.details or len(sentence.words) <= SHORT) and REVISION.search(sentence.text))
            for sentence in self.sentences
        )


class Talk:
    """The messages of people and the model, in order. Indices count from 0. `speakers` are the words of their names."""

    def __init__(self, messages: Iterable[Message], speakers: frozenset[str] = frozenset()) -> None:
        talked = (message for message in messages if message.role in ("user", "assistant", "agent"))
        self.speakers = speakers
        self.told = [_read(message, speakers) for message in talked if message.content]

    @cached_property
    def formulas(self) -> frozenset[str]:
        """Sentences without a detail that the model says again and again, word for word."""
        own = (told.sentences for told in self.told if not told.by_user)
        times = Counter(text for each in own for text in {sentence.text for sentence in each if not sentence.details})
        return frozenset(text for text, count in times.items() if count >= MIN_REPEATED)

    @cached_property
    def agreed(self) -> Sequence[bool]:
        """Which messages of the model the user accepted, and were no new offers."""
        return [self._is_agreed(index) for index in range(len(self.told))]

    def salience(self, index: int) -> float:
        """How much a message matters, from 0 to 1."""
        return self._of_user(index) if self.told[index].by_user else self._of_model(index)

    def led_to(self, index: int, depth: int = MAX_CHAIN) -> tuple[ReadMessage, ...]:
        """Earlier proposals that message `index` only adjusts, with the replies to them: what it says builds on them.

        Either the user did not accept the proposal, or did, and now something else has to do instead.
        """
        if not depth or index < 2:
            return ()
        proposal, reply, told = self.told[index - 2 : index + 1]
        if proposal.by_user or told.by_user or not reply.by_user:
            return ()
        still_open = READ_BACK.search(proposal.text) and not AFFIRMATION.match(reply.text)
        if not (still_open or reply.corrects or SETBACK.search(told.text)):
            return ()
        return (*self.led_to(index - 2, depth - 1), proposal, reply)

    def confirmed(self, index: int) -> float:
        """The share of the details of a message that something agreed repeats later."""
        later = range(index + 1, min(len(self.told), index + 1 + NEARBY))
        details = self.told[index].details
        return max((_share(details, self.told[i].words) for i in later if self.agreed[i]), default=0.0)

    def _of_user(self, index: int) -> float:
        details = len(self.told[index].details)
        return STATED + DETAIL * min(details, MANY_DETAILS) - CONFIRMED * self.confirmed(index)

    def _of_model(self, index: int) -> float:
        told = self.told[index]
        reply = self._reply(index)
        accepted = _accepts(reply)
        signs = (
            (DETAIL, min(len(told.details), MANY_DETAILS if accepted else MANY_OFFERED)),
            (REPEATED, self._repeated(index)),
            (READ_OUT, bool(READ_BACK.search(told.text))),
            (ASKED, "?" in told.text),
            (UNPRECEDED, index < FEW_BEFORE),
            (UNANSWERED, reply is None),
            (ACCEPTED, accepted),
            (DONE, accepted and self._is_done(index)),
            (ADJUSTED, reply is not None and reply.corrects),
            (SETTLES, bool(self.led_to(index))),
        )
        return min(1.0, sum(weight * sign for weight, sign in signs))

    def _is_agreed(self, index: int) -> bool:
        told, reply = self.told[index], self._reply(index)
        if told.by_user or not told.details or not (reply is None or _accepts(reply)):
            return False
        if self.speakers and len(told.details) < LEAST_AGREED and not READ_BACK.search(told.text):
            return False  # people who talk under their names say more than they settle
        return bool(READ_BACK.search(told.text)) or self._repeated(index) >= MOSTLY or bool(self.led_to(index))

    def accepted(self, index: int) -> bool:
        """Whether the reply to a message begins with consent."""
        return _accepts(self._reply(index))

    def noted(self, index: int) -> bool:
        """Whether the model answers what a user tells, or wants changed, with no more than that it has taken note."""
        told, reply = self.told[index], self._reply(index)
        if not told.by_user or reply is None or reply.by_user or "?" in reply.text:
            return False
        if "?" in told.text and not told.revises:
            return False
        at_once = reply.message.seq is None or told.message.seq is None or reply.message.seq == told.message.seq + 1
        added = reply.words - told.words - {word.removesuffix("'s").removesuffix("’s") for word in told.words}
        return at_once and not reply.message.tool_calls and bool(added & NOTED) and added - STOP_WORDS <= NOTING

    def _reply(self, index: int) -> ReadMessage | None:
        return self.told[index + 1] if index + 1 < len(self.told) else None

    def _is_done(self, index: int) -> bool:
        """Whether the answer after the reply asks for nothing more."""
        if index + 2 >= len(self.told):
            return False
        text = self.told[index + 2].text
        return "?" not in text and not READ_BACK.search(text)

    def _repeated(self, index: int) -> float:
        earlier = self.told[max(0, index - NEARBY) : index]
        return _share(self.told[index].details, frozenset[str]().union(*(told.words for told in earlier)))


def _read(message: Message, speakers: frozenset[str]) -> ReadMessage:
    """The names of those who speak are no details: they only say who."""
    sentences = tuple(read_sentences(message.content))
    return ReadMessage(
        message=message,
        sentences=sentences,
        details=frozenset(detail for sentence in sentences for detail in sentence.details) - speakers,
        words=frozenset(word.folded for sentence in sentences for word in sentence.words),
        content=frozenset(word for sentence in sentences for word in sentence.content),
    )


def _accepts(reply: ReadMessage | None) -> bool:
    return reply is not None and reply.by_user and bool(AFFIRMATION.match(reply.text))


def _share(details: frozenset[str], words: frozenset[str]) -> float:
    return len(details & words) / len(details) if details else 0.0
