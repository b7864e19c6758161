"""Whether messages bear out a sentence that a model made of them. Pure.

A derived sentence is worded anew, so it cannot be looked up. Every number, path, id, address and name in it has to
stand in a message that it cites, and none of these may speak against it: by a negation, a limit, another order of
names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from reactor_memory.features.facts.evidence import evidence_text
from reactor_memory.features.facts.verification.claim_words import Mark, content_of, language_for, numbers_of, read
from reactor_memory.features.facts.verification.narrative_proof import told_sentences
from reactor_memory.features.facts.verification.proof import is_about_the_same
from reactor_memory.features.facts.verification.statement_verdicts import is_of_others
from reactor_memory.features.facts.working_state import fact_of, item_of
from reactor_memory.models import Message
from reactor_memory.models.ledger import Fact
from reactor_memory.text.spans import sentences

_DETAIL = re.compile(
    r"(?<![^\s,;:!?()\[\]{}\"'“”„«»])[^\s,;:!?()\[\]{}\"'“”„«»\d/\\@_~=#]*+[\d/\\@_~=#][^\s,;!?()\[\]{}\"'“”„«»]*+"
    r"|(?<!\w)\w++\.\w{1,8}\b"
)
"""A word with a digit or a sign of paths, addresses and code, and the name of a file."""

_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_QUOTED = re.compile('"[^"]{0,300}"|“[^”]{0,300}”|„[^“]{0,300}“|«[^»]{0,300}»|「[^」]{0,300}」|『[^』]{0,300}』')
_CASED = re.compile(r"[A-Za-zÀ-ɏΑ-ωА-яЀ-ӿ]")


def refusal(text: str, cited: Sequence[Message]) -> str:
    """Why the cited messages do not bear out `text`; empty if they do. The reasons are those of a statement."""
    whole = " ".join(evidence_text(message) for message in cited)
    folded = whole.casefold()
    if any(not _stands(detail.strip(".:-"), folded) for detail in _DETAIL.findall(text)):
        return "number"
    language = language_for(text, whole)
    if language is None:
        return "language"
    known = {mark.term for mark in read(whole, language)}
    marks = read(text, language)
    if any(mark.kind == "number" and mark.term not in known for mark in marks):
        return "number"
    unnamed = [name for name in _names(text, language) if not _stands(name.casefold(), folded)]
    if unnamed and not _is_said_by(unnamed, marks, cited, language):
        return "name"
    if not _CASED.search(text) and any(mark.kind == "content" and mark.term not in known for mark in marks):
        return "name"
    content = content_of(marks)
    if not content & known:
        return "missing"
    if not content & {mark.term for mark in read(_QUOTED.sub(" ", whole), language)}:
        return "stance"
    if _is_of_others_only(marks, cited, language):
        return "person"
    if _is_outdated(marks, cited, language):
        return "authority"
    told = told_sentences(text, cited)
    return "" if len(" ".join(each.text for each in told)) >= len(" ".join(sentences(text)).strip()) else "relation"


def _is_said_by(names: Sequence[str], marks: Sequence[Mark], cited: Sequence[Message], language: str) -> bool:
    """Whether the sentences that the text is most like are said by who has all of these names."""
    likeness = [
        (len(content_of(marks) & content_of(read(sentence, language))), message.name or message.author_id or "")
        for message in cited
        if message.role == "user"
        for sentence in sentences(message.content)
    ]
    most = max((shared for shared, _ in likeness), default=0)
    speakers = {speaker.casefold() for shared, speaker in likeness if shared == most}
    speaker = speakers.pop() if most and len(speakers) == 1 else ""
    return {name.casefold() for name in names} <= set(_WORD.findall(speaker))


def _is_of_others_only(marks: Sequence[Mark], cited: Sequence[Message], language: str) -> bool:
    """Whether the sentences of the same speak of somebody whom the text leaves out."""
    if any(mark.kind == "third" or (mark.is_name and language != "de") for mark in marks):
        return False
    said = [
        read(sentence, language)
        for message in cited
        if message.role != "tool"
        for sentence in sentences(message.content)
    ]
    about = [each for each in said if is_about_the_same(marks, each)]
    return bool(about) and is_of_others(max(about, key=lambda each: len(content_of(marks) & content_of(each))))


def _is_outdated(marks: Sequence[Mark], cited: Sequence[Message], language: str) -> bool:
    """Whether a number of the text is one that the user replaced by another."""
    said = [
        read(sentence, language)
        for message in cited
        if message.role == "user"
        for sentence in sentences(message.content)
    ]
    for number in numbers_of(marks):
        places = [place for place, each in enumerate(said) if number in numbers_of(each)]
        if places and any(
            numbers_of(each) and is_about_the_same(said[places[-1]], each) for each in said[places[-1] + 1 :]
        ):
            return True
    return False


def has_word_of_user(text: str, cited: Sequence[Message]) -> bool:
    """Whether a user said what `text` tells: only that sets a goal or a constraint."""
    users = [message for message in cited if message.role == "user"]
    language = language_for(text, *(message.content for message in users))
    marks = read(text, language) if language else ()
    return any(
        is_about_the_same(marks, read(sentence, language or ""))
        for message in users
        for sentence in sentences(message.content)
        if marks
    )


def _names(text: str, language: str) -> list[str]:
    """The words with a capital, also the first: a derived sentence begins with none unless it is a name's."""
    if language == "de":
        return []
    return [word for word in _WORD.findall(text) if word[0].isupper()]


def _stands(detail: str, folded: str) -> bool:
    """Whether it stands there and is no part of a longer word or number."""
    wanted = detail.casefold()
    return not wanted or re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", folded) is not None


def proven_items(facts: Iterable[Fact], messages: Sequence[Message]) -> Iterator[Fact]:
    """Items of the working state, those that the messages of their range do not bear out as refused. Whoever made an
    item is not trusted to have looked.
    """
    for fact in facts:
        item = item_of(fact)
        if item is None or not fact.verified:
            yield replace(fact, verified=False)
        elif item.ended:
            yield fact
        else:
            cited = [each for each in messages if item.first <= (each.seq or 0) <= item.last]
            yield fact_of(item, refusal(item.text, cited))
