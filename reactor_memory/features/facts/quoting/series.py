"""Statements that differ in one word. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from reactor_memory.features.facts.quoting.log_records import Said
from reactor_memory.text.analyzer import TOKEN
from reactor_memory.text.caches import memo
from reactor_memory.text.scripts import UNSPACED

SERIES, LONGEST_FORM = 4, 40
"""So many statements that differ in one of so many words or more, and of no more than that, are told as one."""

LONGEST_WORD, LONGEST_JOINED, LEAST_LEFT = 6, 24, 3
"""The same in scripts without spaces: characters of the word, of the text, and of what is the same in all."""

_UNSPACED = re.compile(f"[{UNSPACED}]")
_PARTICLED = re.compile("[\uac00-\ud7af]")


def told_in_series(said: Sequence[Said], answers: Mapping[int, Said]) -> Mapping[int, tuple[Said, ...]]:
    """The last of many statements that differ in one word and have no numbers, with the others. What the model says
    is one if the word stands in what it replies to: then it says the same of everything.
    """
    users: defaultdict[int, str] = defaultdict(str)
    for each in said:
        if each.is_users:
            users[each.seq] += each.fact.value.casefold()
    forms = _shared_forms([each for each in said if each.stance != "pasted" and id(each) not in answers], users)
    found: dict[int, tuple[Said, ...]] = {}
    taken: set[int] = set()
    for (_, *form), members in sorted(forms.items(), key=lambda item: -len(item[1])):
        left = [each for each in members if id(each) not in taken]
        left = [each for each in left if each.is_users or _is_in_question(each, form, users)]
        if len({each.fact.value for each in left}) >= SERIES:
            taken.update(map(id, left))
            found[id(left[-1])] = tuple(left[:-1])
    return found


def _shared_forms(said: Sequence[Said], users: Mapping[int, str]) -> Mapping[tuple[str, ...], list[Said]]:
    """The statements of each speaker by their forms, where so many may have one. Nearly all forms are those of a single
    statement, so they are counted first, by numbers that few others have.
    """
    told = [(each, *_forms_and_hashes(each.fact.value, _replied_to(each, users))) for each in said]
    times = Counter(chain.from_iterable(hashes for *_, hashes in told))
    often = {number for number, count in times.items() if count >= SERIES}
    forms: defaultdict[tuple[str, ...], list[Said]] = defaultdict(list)
    for each, of_text, hashes in told:
        if not often.isdisjoint(hashes):
            for form, number in zip(of_text, hashes, strict=True):
                if number in often:
                    forms[each.name, *form].append(each)
    return forms


def _replied_to(each: Said, users: Mapping[int, str]) -> str | None:
    """The question that a reply in a script without spaces repeats a piece of."""
    is_reply = not each.is_users and _is_joined(each.fact.value)
    return users.get(each.to, "") if is_reply else None


@memo(maxsize=8192)
def _forms_and_hashes(text: str, asked: str | None) -> tuple[tuple[tuple[str, ...], ...], tuple[int, ...]]:
    forms = _forms(text) if asked is None else tuple(_forms_of_reply(text, asked))
    return forms, tuple(map(hash, forms))


def _is_in_question(each: Said, form: Sequence[str], users: Mapping[int, str]) -> bool:
    return _is_joined(each.fact.value) or _slot(each, form) in users[each.to]


def _forms_of_reply(text: str, asked: str) -> Iterator[tuple[str, ...]]:
    """A text without the longest piece of the question that stands in it, in scripts without spaces."""
    pieces = (
        asked[start : start + size] for size in range(LONGEST_WORD, 1, -1) for start in range(len(asked) - size + 1)
    )
    piece = next((piece for piece in pieces if piece in text), "")
    if piece and not any(map(str.isdigit, text)) and len(text) - len(piece) >= LEAST_LEFT:
        yield tuple(text.split(piece)) if text.count(piece) > 1 else (*text.split(piece), "")


def _slot(each: Said, form: Sequence[str]) -> str:
    """The word in which a statement differs from the others of its form, without what may be a particle."""
    word = _words(each.fact.value)[form.index("")]
    return word[:1] if _PARTICLED.match(word) else word


def _forms(text: str) -> tuple[tuple[str, ...], ...]:
    """A text without one of its words, wherever it stands, for each word; none for very few words, and for numbers."""
    if any(map(str.isdigit, text)):
        return ()
    if _is_joined(text):
        return tuple(_forms_of_joined(text))
    words = _words(text)
    if not SERIES <= len(words) <= LONGEST_FORM:
        return ()
    return tuple(tuple("" if word == slot else word for word in words) for slot in dict.fromkeys(words))


def _forms_of_joined(text: str) -> Iterator[tuple[str, ...]]:
    """The same for short texts of scripts without spaces, where a word is one to six characters."""
    for size in range(1, LONGEST_WORD + 1):
        for start in range(len(text) - size + 1 if len(text) <= LONGEST_JOINED else 0):
            before, after = text[:start], text[start + size :]
            if len(before) + len(after) >= LEAST_LEFT:
                yield before, "", after


def _is_joined(text: str) -> bool:
    return _UNSPACED.search(text) is not None and " " not in text


def others_in_series(said: str, others: Sequence[str]) -> Sequence[str]:
    """The words in which other statements differ from one, as they stand there."""
    if _is_joined(said):
        begin, end = _common_ends([said, *others])
        if begin + end == 0:
            return []
        return list(dict.fromkeys(each[begin : len(each) - end] for each in others))
    words = TOKEN.findall(said)
    pairs = [pair for each in others for pair in zip(TOKEN.findall(each), words, strict=True)]
    return list(dict.fromkeys(other for other, word in pairs if other.casefold() != word.casefold()))


def _common_ends(texts: Sequence[str]) -> tuple[int, int]:
    """How many characters the texts begin and end with alike."""
    begin = _common_beginning(texts)
    return begin, min(_common_beginning([each[::-1] for each in texts]), min(map(len, texts)) - begin)


def _common_beginning(texts: Sequence[str]) -> int:
    others = (place for place, chars in enumerate(zip(*texts, strict=False)) if len(set(chars)) > 1)
    return next(others, min(map(len, texts)))


@memo(maxsize=8192)
def _words(text: str) -> tuple[str, ...]:
    return tuple(TOKEN.findall(text.casefold()))
