"""What of a narrative the messages bear out, sentence by sentence. Pure.

A sentence is told unless the messages speak against it: it has a name or number that stands in none of them, or the
sentence that it retells is denied, narrowed, asked, replaced or of somebody else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

from reactor_memory.features.facts.evidence import evidence_text
from reactor_memory.features.facts.quoting.statements_said import statements_said
from reactor_memory.features.facts.verification.claim_words import (
    Mark,
    content_of,
    judged_languages,
    language_for,
    numbers_of,
    read,
    words_of,
)
from reactor_memory.features.facts.verification.proof import cited_sentence, contradicts, is_about_the_same
from reactor_memory.features.facts.verification.statement_verdicts import NARROWING, is_of_others
from reactor_memory.models import Message
from reactor_memory.text.analyzer import normal_form
from reactor_memory.text.spans import sentences

MOST_READ = 4_000
"""Characters of the conversation by which its language is told."""

_WORD = re.compile(r"\w+")
_DANDA = re.compile(r"(?<=[।۔])\s*")


class ToldSentence(NamedTuple):
    """A sentence of a narrative, and the message that it retells; 0: no single one."""

    text: str
    source_seq: int


class _Source(NamedTuple):
    text: str
    seq: int
    role: str
    names: frozenset[str]
    is_users: bool
    is_own: bool


def proven_narrative(text: str, messages: Sequence[Message], known: str = "") -> str:
    """`text` without the sentences that the messages speak against."""
    return " ".join(each.text for each in told_sentences(text, messages, known))


def told_sentences(text: str, messages: Sequence[Message], known: str = "") -> list[ToldSentence]:
    """The sentences that nothing speaks against, each with its source. `known`: words that stand in memory already."""
    if not text.strip() or not messages:
        return []
    sources = list(_sources(messages))
    wider = " ".join(source.text for source in sources)[:MOST_READ]
    pieces = split_sentences(text)
    orders = [message.content for message in messages if message.role == "tool"]
    texts = (part for message in messages for part in (evidence_text(message), message.name, message.author_id) if part)
    whole = " ".join((*texts, known))
    found = ((each, _source_of(each, sources, orders, whole, wider)) for each in pieces)
    return [ToldSentence(each, seq) for each, seq in found if seq is not None]


def split_sentences(text: str) -> list[str]:
    return [piece for each in sentences(text) for piece in _DANDA.split(each) if piece]


def _sources(messages: Sequence[Message]) -> Iterator[_Source]:
    """The sentences that people and the model say; those which they ask, quote or take back are not `is_own`."""
    users = {message.name or message.author_id for message in messages if message.role == "user"}
    roles = {"user": "user" if len(users) < 2 else "", "assistant": "assistant", "agent": "assistant"}
    for message in messages:
        role = roles.get(message.role)
        if role is None:
            continue
        names = frozenset(name for name in (message.name, message.author_id) if name)
        for said in statements_said([message]):
            is_own = said.key.split(".")[1] in ("own", "cut")
            start = said.span[0]
            while start < said.span[1]:
                sentence = cited_sentence(message.content, start, start + 1)
                text = sentence.lead + message.content[sentence.start : sentence.stop]
                yield _Source(text, message.seq or 0, role, names, message.role == "user", is_own and sentence.is_own)
                start = max(sentence.stop, start + 1)


def _source_of(sentence: str, sources: Sequence[_Source], orders: Sequence[str], whole: str, wider: str) -> int | None:
    language = language_for(sentence, wider)
    if language is None:
        return None
    bare = _bare(sentence)
    said = next((each.seq for each in reversed(sources) if each.is_own and _bare(each.text) == bare), None)
    marks = read(sentence, language)
    if said is not None and not _is_replaced(marks, sources, language):
        return said
    is_verbatim = bare in {_bare(each.text) for each in sources} or bare in _bare(whole)
    is_of_two = any(mark.kind in ("first", "second") for mark in marks)
    if (is_of_two and not is_verbatim) or _repeats_orders(marks, orders, language):
        return None
    if _says_nothing(sentence, marks):
        return 0
    aliases = _aliases(sentence)
    alias_terms = {
        mark.term for role in aliases for word in words_of("names", _LISTS[role]) for mark in read(word, language)
    }
    told = [mark for mark in marks if mark.term not in alias_terms]
    known = {mark.term for mark in read(whole, language)}
    if _is_invented(told, known, is_of_speakers=bool(aliases), language=language):
        return None
    about = _retold(told, sources, language)
    if about is None:
        return 0
    is_otherwise = _is_replaced(told, sources, language) or _differs(told, aliases, about, known, language)
    return None if is_otherwise else about.seq


def _is_replaced(told: Sequence[Mark], sources: Sequence[_Source], language: str) -> bool:
    """Whether what a user last said of it has other numbers."""
    users = [read(each.text, language) for each in sources if each.is_users and each.is_own]
    last = [each for each in users if is_about_the_same(told, each)][-1:]
    return any(contradicts(told, each, numbers_of(told)) for each in last)


def _bare(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def _repeats_orders(marks: Sequence[Mark], orders: Sequence[str], language: str) -> bool:
    """Whether a sentence hands on what the text of a tool orders."""
    if not any(mark.kind == "limit" and mark.term == "reported" for mark in marks):
        return False
    content = {mark.term for mark in marks if mark.kind == "content"}
    return any(content <= {mark.term for mark in read(each, language)} for each in orders)


def _is_invented(told: Sequence[Mark], known: Set[str], *, is_of_speakers: bool, language: str) -> bool:
    """Whether a name or number stands in no message, or no word does."""
    unknown = [mark for mark in told if mark.term not in known]
    is_cased = language != "de"
    if any(mark.kind == "number" or (mark.is_name and is_cased and mark is not told[0]) for mark in unknown):
        return True
    content = [mark for mark in told if mark.kind == "content" and len(mark.term) > 1]
    is_of_people = is_of_speakers or any(mark.kind in ("third", "report") for mark in told)
    return bool(content) and not is_of_people and all(mark.term not in known for mark in content)


def _retold(told: Sequence[Mark], sources: Sequence[_Source], language: str) -> _Source | None:
    """The sentence that shares most words with what is told."""
    about = [each for each in sources if is_about_the_same(told, read(each.text, language))]

    def likeness(source: _Source) -> tuple[int, bool, bool, int]:
        said = read(source.text, language)
        shared = len(content_of(told) & content_of(said))
        return shared, source.is_own, _order(told, said) == _order(said, told), source.seq

    return max(about, key=likeness, default=None)


def _differs(told: Sequence[Mark], aliases: frozenset[str], source: _Source, known: Set[str], language: str) -> bool:
    """Whether a sentence says something else than the one that it retells."""
    said = read(source.text, language)
    is_report = any(mark.kind == "report" for mark in told)
    if not source.is_own and not is_report:
        return True
    if _is_denied(told) != _is_denied(said) or _narrowed(told) != _narrowed(said):
        return True
    is_first = any(mark.kind == "first" for mark in said)
    if len(aliases) == 1 and ((is_first and source.role not in aliases) or is_of_others([*_uncovered(said, told)])):
        return True
    if _order(told, said) != _order(said, told) or (
        numbers_of(told) - numbers_of(said) and numbers_of(said) - numbers_of(told)
    ):
        return True
    unknown = [mark for mark in told if mark.kind == "content" and mark.term not in known]
    is_cased = any(mark.is_name for mark in said)
    left = [mark for mark in _uncovered(said, told) if mark.kind == "content" and (mark.is_name or not is_cased)]
    return any(mark.is_name or not is_cased for mark in unknown) and bool(left)


def _uncovered(said: Sequence[Mark], told: Sequence[Mark]) -> Iterator[Mark]:
    terms = {mark.term for mark in told}
    yield from (mark for mark in said if mark.kind == "first" or mark.term not in terms)


def _order(marks: Sequence[Mark], other: Sequence[Mark]) -> list[str]:
    """The names in their order that both have; without capitals all words."""
    is_cased = any(mark.is_name for mark in (*marks, *other))
    shared = {mark.term for mark in other if mark.kind == "content" and (mark.is_name or not is_cased)}
    return list(dict.fromkeys(mark.term for mark in marks if mark.term in shared))


def _is_denied(marks: Sequence[Mark]) -> bool:
    return any(mark.kind == "negation" for mark in marks)


def _narrowed(marks: Sequence[Mark]) -> set[str]:
    return {mark.term for mark in marks if mark.kind == "limit"} & NARROWING


_LISTS = {"user": "user", "assistant": "model"}


def _aliases(sentence: str) -> frozenset[str]:
    """Which of the two who speak the sentence names."""
    folded = normal_form(sentence).casefold()
    words = {word.strip('.,:;!?()"') for word in folded.replace("'", " ").replace("’", " ").split()}
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
