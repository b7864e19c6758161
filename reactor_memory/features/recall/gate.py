"""Whether a message names something: the test that the default recall has to pass before anything is searched.

A name is a run of capitalised words inside a sentence, quoted or bracketed text, an address, or a number of several
digits. Where a script knows no capitals, every word may be a name, and the index decides by how rare it is. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from reactor_memory.models import Value
from reactor_memory.models.index_requests import IndexAnswer
from reactor_memory.text.analyzer import FUNCTION_WORDS, WHOLE, terms
from reactor_memory.text.languages import language_of

MAX_CHARACTERS = 4_000
"""How much of a message is looked at: a pasted document is no question."""

MAX_NAMES = 16
LONGEST_NAME = 100
"""Characters. A longer name is known by so many."""

_QUOTED = re.compile(
    r"\"([^\"\n]{2,80})\"|“([^”\n]{2,80})”|„([^“”\n]{2,80})[“”]|«([^»\n]{2,80})»|「([^」\n]{1,80})」|『([^』\n]{1,80})』"
    r"|`([^`\n]{2,80})`|\[([^\[\]\n]{2,80})\]|\(([^()\n]{2,80})\)|(?<!\w)['‘]([^'‘’\n]{2,80})['’](?!\w)"
)
_ADDRESS = re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]++\.[\w.]*\w|https?://\S+")
_NUMBER = re.compile(r"(?<![\w.])[#+]?\w++(?:[./:-]\w++)*+")
_WORD = re.compile(r"[^\W\d_][\w'’&-]*")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;\n…。！？])[\s\"'“”‘’«»()\[\]*>-]*$")
_GAP = re.compile(r"(?:\s+|\.\s|-)(?:(?:of|the|de|la|le|da|do|du|van|von|der|den|and|&)\s+){0,2}")
_FEW_DIGITS = 3
RARE_SHARE = 0.02
_MOSTLY = 0.7


class Name(Value, frozen=True, kw_only=True):
    """`text` as it was written. `is_word`: only a word of a script without capitals, so it may be a common one."""

    text: str
    terms: tuple[str, ...]
    is_word: bool = False


def names(text: str) -> tuple[Name, ...]:
    """What `text` names, in no particular order, each once."""
    text = text[:MAX_CHARACTERS]
    found: dict[tuple[str, ...], Name] = {}
    language = language_of(text)
    for written, is_word in _written(text):
        its_terms = tuple(term for term in terms(written, language) if not term.startswith(WHOLE))
        if its_terms and len(found) < MAX_NAMES:
            found.setdefault(its_terms, Name(text=written, terms=its_terms, is_word=is_word))
    return tuple(found.values())


def outside(named: Iterable[Name], shown: Iterable[str]) -> tuple[Name, ...]:
    """The names that none of the texts `shown` holds."""
    waiting = {name: _beginning(name.text) for name in named}
    for text in shown:
        if not waiting:
            break
        held = _held(fold_text(text), waiting.values())
        waiting = {name: wanted for name, wanted in waiting.items() if wanted not in held}
    return tuple(waiting)


def known(unknown: Iterable[Name], findings: IndexAnswer, *, before: int) -> bool:
    """Whether something older than the message `before` holds one of the names whole.

    A word that may be no name at all must be rare among the messages.
    """
    held = [frozenset(found.terms) for found in findings.found if found.seq < before]
    rare = max(1, int(RARE_SHARE * findings.total))
    return any(
        any(terms_held.issuperset(name.terms) for terms_held in held)
        and (not name.is_word or all(0 < findings.frequencies.get(term, 0) <= rare for term in name.terms))
        for name in unknown
    )


def holds(folded: str, name: str) -> bool:
    """Whether a text that `fold_text` made holds `name` on word borders."""
    return bool(_held(folded, [_beginning(name)]))


def _beginning(name: str) -> str:
    """What is looked for of a name: what a message calls a name may be thousands of characters long."""
    return fold_text(name)[:LONGEST_NAME]


def _held(folded: str, wanted: Iterable[str]) -> set[str]:
    """What of `wanted` stands in a folded text on word borders, in one pass over it: a text may be made so that each
    begins everywhere.
    """
    wanted = [each for each in wanted if each in folded]
    found = {longest for pattern in _patterns(wanted) for longest in pattern.findall(folded)}
    return {each for each in wanted if any(_begins(longest, each) for longest in found)}


def _patterns(wanted: Iterable[str]) -> Iterator[re.Pattern[str]]:
    """They find the longest that begins at each place. A letter of a script without spaces has no border."""
    ordered = sorted(wanted, key=len, reverse=True)
    bordered = [each for each in ordered if each[0].isascii()]
    others = [each for each in ordered if not each[0].isascii()]
    for border, some in ((r"(?<![^\W_])", bordered), ("", others)):
        if some:
            yield re.compile(f"{border}(?=({'|'.join(re.escape(each) + _border_after(each) for each in some)}))")


def _border_after(wanted: str) -> str:
    return r"(?![^\W_])" if _has_border_after(wanted) else ""


def _has_border_after(wanted: str) -> bool:
    return wanted[-1].isascii() and len(wanted) < LONGEST_NAME


def _begins(longest: str, wanted: str) -> bool:
    """Whether `longest` begins with `wanted`, on its border."""
    after = longest[len(wanted) : len(wanted) + 1]
    return longest.startswith(wanted) and not (after.isalnum() and _has_border_after(wanted))


def fold_text(text: str) -> str:
    return " ".join(text.casefold().split())


def _written(text: str) -> Iterator[tuple[str, bool]]:
    for match in _QUOTED.finditer(text):
        yield next(group for group in match.groups() if group), False
    for match in _ADDRESS.finditer(text):
        yield match[0], False
    for match in _NUMBER.finditer(text):
        if sum(character.isdigit() for character in match[0]) >= _FEW_DIGITS:
            yield match[0].lstrip("#+"), False
    words = list(_WORD.finditer(text))
    if not _shouted(text):
        for run in _capitalised(text, words):
            yield text[run[0].start() : run[-1].end()].rstrip("'’&-").removesuffix("'s").removesuffix("’s"), False
    for word in words:
        if not any(character.isupper() or character.islower() for character in word[0]):
            yield from ((term, True) for term in terms(word[0]) if len(term) > 1)


def _shouted(text: str) -> bool:
    """Where nearly all letters are capitals they say nothing."""
    cased = [character for character in text if character.isupper() or character.islower()]
    return sum(character.isupper() for character in cased) > _MOSTLY * len(cased)


def _capitalised(text: str, words: Sequence[re.Match[str]]) -> Iterator[list[re.Match[str]]]:
    """Runs of capitalised words. What begins a sentence is capitalised anyway: alone it is no name."""
    run: list[re.Match[str]] = []
    for word in words:
        if not word[0][0].isupper():
            continue
        starts = _SENTENCE_START.search(text, max(0, word.start() - 12), word.start()) is not None
        if run and not starts and _GAP.fullmatch(text, run[-1].end(), word.start()):
            run.append(word)
            continue
        yield from _kept(text, run)
        run = [word]
    yield from _kept(text, run)


def _kept(text: str, run: list[re.Match[str]]) -> Iterator[list[re.Match[str]]]:
    if run and _SENTENCE_START.search(text, max(0, run[0].start() - 12), run[0].start()):
        run = run[1:] if len(run) == 1 or _is_function_word(run[0][0]) else run
    while run and _is_function_word(run[0][0]):
        run = run[1:]
    if run:
        yield run


def _is_function_word(word: str) -> bool:
    return re.split(r"['’]", word.casefold())[0] in FUNCTION_WORDS
