"""What of a narrative the messages prove, sentence by sentence. Pure.

A sentence counts if one sentence of a person or of the model says the same: the same names, numbers and words in the
same order, the same negations and limits, of the same speaker. Whatever is told in other words is left out: what
matters of it stands in memory as a quotation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from reactor_memory.features.facts.quoting.statements_said import statements_said
from reactor_memory.features.facts.verification.claim_words import (
    Mark,
    judged_languages,
    language_for,
    read,
    words_of,
)
from reactor_memory.features.facts.verification.proof import cited_sentence, details_of, is_about_the_same
from reactor_memory.features.facts.verification.statement_verdicts import ORDERED
from reactor_memory.models import Message
from reactor_memory.text.analyzer import normal_form
from reactor_memory.text.spans import sentences

MOST_READ = 4_000
"""Characters of the conversation by which its language is told."""

_DANDA = re.compile(r"(?<=[।۔])\s*")

_SAYING = frozenset({"content", "third", "number", "unit"})


class ToldSentence(NamedTuple):
    """A sentence of a narrative, and the message that says the same; 0: it only says that people talked."""

    text: str
    source_seq: int


class _Source(NamedTuple):
    text: str
    seq: int
    role: str
    names: frozenset[str]
    is_users: bool


def proven_narrative(text: str, messages: Sequence[Message]) -> str:
    """`text` without the sentences that no message proves."""
    return " ".join(each.text for each in told_sentences(text, messages))


def told_sentences(text: str, messages: Sequence[Message]) -> list[ToldSentence]:
    """The sentences that messages prove, each with its source."""
    if not text.strip():
        return []
    sources = list(_sources(messages))
    wider = " ".join(source.text for source in sources)[:MOST_READ]
    pieces = (piece for each in sentences(text) for piece in _DANDA.split(each) if piece)
    found = ((each, _source_of(each, sources, wider)) for each in pieces)
    return [ToldSentence(each, seq) for each, seq in found if seq is not None]


def _sources(messages: Sequence[Message]) -> Iterator[_Source]:
    """The sentences that people and the model say themselves; not what they ask, quote or take back."""
    users = {message.name or message.author_id for message in messages if message.role == "user"}
    roles = {"user": "user" if len(users) < 2 else "", "assistant": "assistant", "agent": "assistant"}
    for message in messages:
        role = roles.get(message.role)
        if role is None:
            continue
        names = frozenset(name for name in (message.name, message.author_id) if name)
        for said in statements_said([message]):
            if said.key.split(".")[1] not in ("own", "cut"):
                continue
            start = said.span[0]
            while start < said.span[1]:
                sentence = cited_sentence(message.content, start, start + 1)
                if sentence.is_own:
                    text = sentence.lead + message.content[sentence.start : sentence.stop]
                    yield _Source(text, message.seq or 0, role, names, message.role == "user")
                start = max(sentence.stop, start + 1)


def _source_of(sentence: str, sources: Sequence[_Source], wider: str) -> int | None:
    language = language_for(sentence, wider)
    if language is None:
        return None
    marks = read(sentence, language)
    aliases = _aliases(sentence)
    if any(mark.kind in ("first", "second") for mark in marks) or len(aliases) > 1:
        return None
    if _says_nothing(sentence, marks):
        return 0
    alias_terms = {
        mark.term for role in aliases for word in words_of("names", _LISTS[role]) for mark in read(word, language)
    }
    told = [mark for mark in marks if mark.term not in alias_terms]
    found = next((each for each in sources if _is_same(told, aliases, each, language)), None)
    return None if found is None or _is_told_otherwise(found, sources, language) else found.seq


_LISTS = {"user": "user", "assistant": "model"}


def _aliases(sentence: str) -> frozenset[str]:
    """Which of the two who speak the sentence names."""
    folded = normal_form(sentence).casefold()
    words = {word.strip(".,:;!?()'\"") for word in folded.split()}
    return frozenset(
        role
        for role, name in _LISTS.items()
        if any(alias in words or (not alias.isascii() and alias in folded) for alias in words_of("names", name))
    )


def _says_nothing(sentence: str, marks: Sequence[Mark]) -> bool:
    """Whether it only says that people talked; that they agreed is something."""
    words = {word.strip(".,:;!?") for word in sentence.casefold().split()}
    agrees = any(words & words_of(language, "accepts") for language in judged_languages())
    kinds = {mark.kind for mark in marks}
    return "report" in kinds and kinds <= {"report", "plain", "third"} and not agrees


def _is_same(told: Sequence[Mark], aliases: frozenset[str], source: _Source, language: str) -> bool:
    said = read(source.text, language)
    speaker = {mark.term for name in source.names for mark in read(name, language)}
    is_first = any(mark.kind == "first" for mark in said)
    names_speaker = bool(speaker & {mark.term for mark in told}) or source.role in aliases
    if aliases - {source.role} or any(mark.kind == "second" for mark in said) or (is_first and not names_speaker):
        return False
    own = speaker - {mark.term for mark in said}
    return (
        _in_order([mark for mark in told if mark.term not in own], _SAYING) == _in_order(said, _SAYING)
        and _counts(told, "negation") == _counts(said, "negation")
        and set(_counts(told, "limit")) == set(_counts(said, "limit"))
        and _relations(told) == _relations(said)
    )


def _is_told_otherwise(source: _Source, sources: Sequence[_Source], language: str) -> bool:
    """Whether a user last spoke of the same with other names or numbers."""
    said = read(source.text, language)
    users = [read(each.text, language) for each in sources if each.is_users]
    about = [marks for marks in users if is_about_the_same(said, marks)]
    return bool(about) and details_of(about[-1]) != details_of(said)


def _in_order(marks: Sequence[Mark], kinds: frozenset[str]) -> list[str]:
    return list(dict.fromkeys(mark.term for mark in marks if mark.kind in kinds))


def _counts(marks: Sequence[Mark], kind: str) -> Counter[str]:
    return Counter(mark.term for mark in marks if mark.kind == kind)


def _relations(marks: Sequence[Mark]) -> list[str]:
    return [mark.term for mark in marks if mark.kind == "relation" and mark.term in ORDERED]
