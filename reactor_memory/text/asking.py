"""Whether a text asks for something: a question, or words that point to what was said before."""

from __future__ import annotations

import re
from functools import cache

from reactor_memory.text.analyzer import normal_form
from reactor_memory.text.caches import memo
from reactor_memory.text.languages import Language, language_of, languages, of_script
from reactor_memory.text.stems import script_of

MAX_TAIL = 400
"""How many characters at the end of a text are looked at: what is asked about a long paste stands behind it."""

MAX_SHORT = 200
"""A longer text begins with a question word by chance."""

_MARK = re.compile("(?<!\\s\\?)\\?(?=$|[\\s\"'”’»)\\]!…*_])|[؟՞፧⸮꘏]|[\u0370-\u03ff\u1f00-\u1fff]\\s*;(?=$|\\s)")
_SENTENCE = re.compile(r"(?<=[.!?؟…])[\"'”’»)\]*_]*\s+|(?<=[。！？])\s*|\n+")
_URL = re.compile(r"(?<!\w)\w++://\S+")
_CLAUSE = re.compile(r"[.!?,;:。！，、；…\n]+\s*")
_WORD = re.compile(r"[^\s.,;:!?¿¡()\[\]{}\"“”„«»「」。、，！]+")
_UNSPACED = frozenset(("han", "kana", "thai", "lao", "khmer", "myanmar"))
_LETTER = re.compile(r"[^\W\d_]")


def asks(text: str) -> bool:
    """Whether `text` ends with a question, is a short one that begins as a question does, or points to what was said
    before ("last time", "wie gesagt", "上次"). In a language that is not known by its question mark alone.
    """
    return _asks_at_end(text[-2 * MAX_TAIL :], is_short=len(text) <= MAX_SHORT)


def asking_part(text: str) -> str:
    """The sentences that end with a mark of question; the whole text, if none does."""
    # wide signs end a sentence without a space, narrow ones do not
    sentences = [normal_form(each) for each in _SENTENCE.split(_URL.sub(" ", text))]
    asking = [sentence for sentence in sentences if _MARK.search(sentence)] if len(sentences) > 1 else ()
    return " ".join(asking) or text


def asks_anew(question: str) -> bool:
    """Whether a question is for what nobody said before, such as an opinion, and does not point to what was said."""
    plain = normal_form(question)[-MAX_TAIL:].casefold().replace("’", "'")
    spoken = _spoken_in(plain)
    return any(_has(plain, each, each.fresh) for each in spoken) and not any(
        _points_back(plain, each) for each in spoken
    )


@memo(maxsize=4096)
def _asks_at_end(end: str, *, is_short: bool) -> bool:
    tail = normal_form(_URL.sub(" ", end))[-MAX_TAIL:].strip()
    if _MARK.search(tail):
        return True
    tail = tail.casefold().replace("’", "'").rstrip(" .!。！…")
    return any(_points_back(tail, language) or (is_short and _asks_in(tail, language)) for language in _spoken_in(tail))


def _spoken_in(text: str) -> tuple[Language, ...]:
    """The language of the text, or those that it may be written in."""
    told = language_of(text)
    if told:
        return (languages()[told],)
    letter = _LETTER.search(text)
    return _unsure(script_of(letter[0])) if letter else ()


@cache
def _unsure(script: str) -> tuple[Language, ...]:
    """The languages of a script, without question words that have no such sense in another one that has them."""
    known = [languages()[name] for name in of_script(script)]
    doubtful = {word for each in known for word in each.function if word not in each.questions}
    return tuple(_without(language, frozenset(doubtful)) for language in known)


def _without(language: Language, words: frozenset[str]) -> Language:
    return Language(
        script=language.script,
        questions=language.questions - words,
        endings=language.endings - words,
        references=language.references - words,
        fresh=language.fresh,
        asks_anywhere=language.asks_anywhere,
    )


def _points_back(text: str, language: Language) -> bool:
    return _has(text, language, language.references)


def _has(text: str, language: Language, phrases: frozenset[str]) -> bool:
    if language.script in _UNSPACED:
        return any(phrase in text for phrase in phrases)
    return _holds(f" {' '.join(_WORD.findall(text))} ", phrases)


def _holds(spaced: str, phrases: frozenset[str]) -> bool:
    return any(f" {phrase} " in spaced for phrase in phrases)


def _asks_in(text: str, language: Language) -> bool:
    if language.script in _UNSPACED:
        return text.endswith(tuple(language.endings)) or any(word in text for word in language.questions)
    words = _WORD.findall(text)
    if language.script == "hangul" and words and words[-1].endswith(tuple(language.endings)):
        return True
    spaced = f" {' '.join(words)} "
    if _holds(spaced, language.endings):
        return True
    if language.asks_anywhere:
        return _holds(spaced, language.questions)
    begins = tuple(f"{phrase} " for phrase in language.questions)
    return any(f"{' '.join(_WORD.findall(clause))} ".startswith(begins) for clause in _CLAUSE.split(text))
