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
from reactor_memory.features.facts.verification.claim_words import language_for, read
from reactor_memory.features.facts.verification.narrative_proof import told_sentences
from reactor_memory.features.facts.working_state import fact_of, item_of
from reactor_memory.models import Message
from reactor_memory.models.ledger import Fact
from reactor_memory.text.spans import sentences

_DETAIL = re.compile(r"[^\s,;:!?()\[\]{}\"'“”„«»]*[\d/\\@_~=#][^\s,;!?()\[\]{}\"'“”„«»]*|\w+\.\w{1,8}\b")
"""A word with a digit or a sign of paths, addresses and code, and the name of a file."""

_WORD = re.compile(r"[^\W\d_][\w'’-]*")
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
    if any(not _stands(name.casefold(), folded) for name in _names(text, language)):
        return "name"
    if not _CASED.search(text) and any(mark.kind == "content" and mark.term not in known for mark in marks):
        return "name"
    told = told_sentences(text, cited)
    return "" if len(" ".join(each.text for each in told)) >= len(" ".join(sentences(text)).strip()) else "relation"


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
