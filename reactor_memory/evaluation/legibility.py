"""How the lines of a memory read: whether each is a statement, whether any says too little, and what they tell. Pure.

The rules know a little English. What is written without Latin letters counts as a statement if it says enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from reactor_memory.core.context.context import Context
from reactor_memory.evaluation.attribution import is_clear, record_of
from reactor_memory.evaluation.units import Unit, columns_of, lines_as_units
from reactor_memory.models import Message
from reactor_memory.text.words import CALENDAR_WORDS, STOP_WORDS, read_sentences

LEAST_WORDS = 2
"""Content words of a line that says anything."""
TOLD_SHARE = 0.6
MOST_BARE = 6
"""Words in a row, none of them one of the small words that link the others: no English sentence has more."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


VERBS = _set(
    "accept add adore affirm agree allow announce apologize apply appreciate arrange arrive ask assist assume attend"
    " authorize average avoid bake become begin believe bless book borrow break bring build buy call camp cancel care"
    " carry cast catch celebrate change charge chat check cheer choose climb close collect come compare complete"
    " confirm connect consider contact continue cook correct cost count cover create cross cut dance deal decide"
    " deliver depart depend deposit describe design discover discuss divide donate double download draw drink drive"
    " drop earn eat end enjoy ensure expect explain explore express fail fall feel fight fill finalize find finish fit"
    " fix fly follow forget garden gather get give go guess handle happen hate head hear help hike hire hit hold hope"
    " hurt imagine improve include inspire introduce invite jog join jump keep know land last laugh lead learn leave"
    " lend let lie lift like list listen live locate lock look lose love make manage mark marry match mean meet"
    " mention mind miss modify move name need note notice offer open operate order organize owe own pack paint park"
    " pass pause pay perform permit pick plan play point post prefer prepare press print proceed promise provide pull"
    " purchase push put raise reach read realize receive recommend record reduce refer refuse relax release remain"
    " remember remind remove rent repair repeat replace reply report request require reschedule reserve respond rest"
    " return review ride ring rise run sail save say schedule search see seem select sell send separate serve set"
    " settle share shop show sign sing sit ski skip sleep smell smile sort sound speak spend split stand start state"
    " stay stop stream study suggest supply support suppose surf swim switch take talk taste teach tell text thank"
    " think throw touch track train transfer travel trust try turn type unlock update use verify visit volunteer wait"
    " wake walk want warn wash waste watch wear win wish wonder work worry wrap write"
)
"""Verbs of talk and errands, as they stand after "I"."""

PAST_VERBS = _set(
    "ate became began bought broke brought built came chose dealt did drank drew drove fell felt flew fought found"
    " gave got grew had heard held hid kept knew laid lit lost meant met paid put ran read rode rose said sang sat"
    " saw set shook showed slept sold spent spoke stood swam swore taught thought threw told took tore understood"
    " went woke won wore wrote"
)
"""The past of some, where it does not end in "ed"."""

_WORD = re.compile(r"[^\W_]+(?:['’.:/@-][^\W_]+)*")
_SPEAKER = re.compile(
    r"(?<!\s)\s*+(?:([-*•])\s+|(?:the )?(?:user|assistant|model|agreed|told)(?: #\d+)?:\s+)", re.IGNORECASE
)
_LATIN = re.compile(r"[A-Za-z]")
_CLOCK = re.compile(r"\d+:\d+|\d*[ap]m", re.IGNORECASE)
_HOUR = re.compile(r"\d ?am\W*$", re.IGNORECASE)
_STRANDED = re.compile(
    r"\bto [a-z]+ (?:(?:them|him|her|it|you|me|us) )?(?:from|to|with|at|for|about|into)\W*$"
    r"|\bto (?:do|be)\W*$|\bnot to\W*$|\bwill do\W*$"
    # "hotels you could stay at", "is what I am looking for", "which city are you leaving from"
    r"|[a-z] (?:(?:am|are|is|do|does|did|can|could|will|would) )?(?:i|you|we|they|he|she|it)(?:['’][a-z]+)?"
    r" (?:(?:can|could|may|might|will|would|am|are|is|was|were|be|want to|like to) )*[a-z]+(?: and [a-z]+)?"
    r"(?: (?:them|him|her|it|you|me|us))? ?(?:for|at|from|with|about|into)?\W*$",
    re.IGNORECASE,
)
_DATE = re.compile(r" ?\((?:week of )?\d{1,2} [A-Z][a-z]+ \d{4}\)")
_READ_BACK = re.compile(r"to (?:confirm|recap|summari[sz]e|make clear)[: ]+(?=\S)", re.IGNORECASE)
_TOPIC = re.compile(r"about [^:]{1,80}: (?=\S)", re.IGNORECASE)
_PROPOSAL = re.compile(r"(?:(?:fine|ok|okay|well),? )?(?:how|what) about (?=\S)", re.IGNORECASE)
_RUN_ON = re.compile(r"(?<=[a-z])\.(?=[A-Z])")
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)")
_CLAUSE_END = re.compile(r"[,;:.!?()\[\]] ")
_CONTRACTED = re.compile(
    r"(?:i|you|s?he|it|we|they|that|there|here|what|who|where|how|let)['’](?:m|s|re|ve|d|ll)|(?:that|there|what)s"
)
_PREPOSITIONS = _set(
    "of to for in on at by with from as about into per under over until till before after than "
    "towards toward across near around between during through without against"
)
_OPENINGS = _set(
    "then please kindly ok okay yes yeah no nope great right sure alright well fine oops and so also just now actually "
    "first don't dont never always hi hello hey good perfect wonderful you"
)
_ARTICLES = _set("a an the your my our")
_ADVERBS = _set("never always only often usually still also already now just not ever really actually")
_PRONOUNS = _set("i you he she it we they this that there who what which lemme lets someone everyone nobody")
_PERSONS = _set("i you he she it we they")
_QUESTIONS = _set("how what when where why which")
_LINKING = _set("sounds seems looks needs")
_NOT_OWNED = _set("a an the not great good nice")
"""What shows that "its" stands for "it is"."""
_HAVE = _set("have has had")
_BE = _set("am is are was were isn't aren't wasn't weren't")
_AUXILIARIES = _BE | _set(
    "do does did has have had will would can could shall should may might must cannot don't doesn't didn't won't "
    "wouldn't can't couldn't shouldn't mustn't haven't hasn't hadn't"
)
_SMALL = STOP_WORDS | _PREPOSITIONS | _AUXILIARIES | _ADVERBS | _PRONOUNS | _set("because while since if both each all")
_DANGLING = (_PREPOSITIONS - _set("in on by about over under before after around across near through")) | _set(
    "a an the and or but my your our their his who whom what which when is are was were be am will would can could do"
)
_DEEDS = _set(
    "add arrange book buy cancel change check confirm find look make order play purchase rent reserve schedule search "
    "send show start transfer update visit"
)
"""What a model does for its user."""
_DONE = _set(
    "added booked bought cancelled changed confirmed found got ordered played purchased reserved scheduled sent started"
    " updated"
)


def memory_lines(context: Context) -> Iterator[Unit]:
    """The lines of the memory blocks, without their headers and notices."""
    for message, part in zip(context.messages, context.report.parts, strict=True):
        if part in context.report.blocks:
            yield from _lines_below_header(message.content)


def is_legible(line: Unit) -> bool:
    """Whether a line keeps what a statement needs: who, a verb, numbers with their noun, links between names.

    A record does if each of its parts can be told from the others.
    """
    if line.text.endswith(":") and ("; " not in line.text or columns_of(line.text)):
        return True
    if "=" in line.text or (not _SPEAKER.match(line.text) and (": " in line.text[:60] or line.text.startswith("+ "))):
        record = record_of(line)
        if record is not None or ": " in line.text:
            return record is None or is_clear(record)
    first, *others = [piece for piece in _said(line.text).split("; ") if piece.strip()] or [""]
    by_user = not line.text.startswith("- ")
    if by_user and first != line.text and _goes_on(first):
        return True
    return _is_statement(first, by_user=by_user) and all(
        len(_content(piece)) >= LEAST_WORDS or _is_statement(piece, by_user=by_user) for piece in others
    )


def is_junk(line: Unit) -> bool:
    """Whether a line has fewer than two content words; who speaks is none."""
    return not line.text.endswith(":") and len(_content(_said(line.text))) < LEAST_WORDS


def told_share(messages: Sequence[Message], units: Iterable[Unit]) -> float | None:
    """The share of these messages of which one unit holds most content words; None if there are none."""
    wanted = [words for message in messages if (words := content_words(message.content))]
    if not wanted:
        return None
    shown = [content_words(unit.text) for unit in units]
    return sum(any(len(words & other) >= TOLD_SHARE * len(words) for other in shown) for words in wanted) / len(wanted)


@lru_cache(maxsize=8192)
def content_words(text: str) -> frozenset[str]:
    return frozenset[str]().union(*(sentence.content for sentence in read_sentences(text)))


def _lines_below_header(text: str) -> Iterator[Unit]:
    lines = text.split("\n")
    while lines and (lines[0].startswith("(recorded") or lines[0].startswith("(kept") or _is_header(lines[0])):
        lines = lines[1:]
    yield from lines_as_units(lines)


def _is_header(line: str) -> bool:
    return line in {"Conversation Facts:", "Conversation Summary:", "Recalled Conversation Facts:"}


def _said(text: str) -> str:
    return _RUN_ON.sub(". ", _SPEAKER.sub("", text.removeprefix("+ "), count=1))


def _content(text: str) -> list[str]:
    return [word for word in _WORD.findall(text) if word.casefold() not in STOP_WORDS]


def _is_statement(piece: str, *, by_user: bool) -> bool:
    """Whether it has somebody and what they do, links between its words, and no loose end. Users may command."""
    piece = _TOPIC.sub("", piece)
    words = _WORD.findall(piece)
    if not words or not _content(piece):
        return False
    if len(_LATIN.findall(piece)) * 2 < len(piece.replace(" ", "")):
        return len(words) >= LEAST_WORDS or len(piece) >= MOST_BARE
    folded = [word.casefold() for word in words]
    return (
        (
            _has_clause(words, folded)
            or ((by_user or words[0][:1].isupper() or folded[0] == "please") and _commands(folded))
            or (by_user and any(map(_commands, _clauses(piece))))
            or (words[0][:1].isupper() and _announces(folded))
            or _proposes(piece)
        )
        and not _ends_loosely(piece, words)
        and (folded[0] not in _set("of than and or about into") or _leads_in(piece))
        and max(map(_longest_bare_run, _CLAUSE_END.split(_DATE.sub("", piece)))) <= MOST_BARE
        and not any(_runs_together(_WORD.findall(clause)) for clause in _CLAUSE_END.split(piece))
    )


def _ends_loosely(piece: str, words: Sequence[str]) -> bool:
    """With a word that leads to another: not the "am" of an hour, the "OR" of Oregon, "flights to choose from"."""
    last = words[-1]
    leads_on = last.casefold() in _DANGLING and not (last.isupper() and not piece.isupper())
    return leads_on and not (_HOUR.search(piece) or _STRANDED.search(piece))


def _leads_in(piece: str) -> bool:
    """Whether a clause follows the first one: "Of the other four, I would take the one at noon"."""
    return any(words and words[0] in _PERSONS | _ARTICLES for words in _clauses(piece)[1:])


def _clauses(piece: str) -> list[list[str]]:
    return [[word.casefold() for word in _WORD.findall(clause)] for clause in _CLAUSE_END.split(piece)]


def _announces(words: Sequence[str]) -> bool:
    """Who speaks says what they are doing, as in "Confirming two tickets", or have done: "Found four results"."""
    rest = [word for word in words if word not in _OPENINGS]
    if len(rest) < LEAST_WORDS:
        return False
    if rest[0] in _DONE:
        return rest[1] in _ARTICLES or rest[1].isdigit() or rest[1].endswith("ing")
    return any(rest[0] in (f"{verb}ing", f"{verb[:-1]}ing", f"{verb}{verb[-1]}ing") for verb in _DEEDS)


def _goes_on(piece: str) -> bool:
    """Who is named before it says what they are about to do: "the user: Leaving from Bergen on May 3rd"."""
    verb, *rest = [word.casefold() for word in _WORD.findall(piece)] or [""]
    if verb in ("would", "will") and rest and rest[0] in VERBS:
        return True
    stem = verb.removesuffix("ing")
    is_participle = stem != verb and not {stem, f"{stem}e", stem[:-1]}.isdisjoint(VERBS)
    return is_participle and bool(_content(" ".join(rest))) and not _ends_loosely(piece, _WORD.findall(piece))


def _proposes(piece: str) -> bool:
    """It reads back, or asks for consent to, something that it names: "How about the Belltown Inn?"."""
    proposal = _PROPOSAL.match(piece) or _READ_BACK.match(piece)
    return bool(proposal) and len(_content(piece[proposal.end() :])) >= LEAST_WORDS


def _commands(words: Sequence[str]) -> bool:
    rest = [word for word in words if word not in _OPENINGS]
    rest = rest[2:] if rest[:2] == ["do", "not"] else rest
    return len(rest) > 1 and rest[0] in VERBS


def _has_clause(words: Sequence[str], folded: Sequence[str]) -> bool:
    """Somewhere a verb in a finite form stands beside its subject."""
    return any(_is_predicate(place, words, folded) for place in range(len(words)))


def _is_predicate(place: int, words: Sequence[str], folded: Sequence[str]) -> bool:
    word, after = folded[place], folded[place + 1 : place + 2]
    if _is_contracted(word, after):
        return True
    before = place - 1
    while before >= 0 and folded[before] in _ADVERBS:
        before -= 1
    if (word == "am" and "i" not in folded[max(before, 0) : place]) or (
        word == "may" and _is_month(words[place], after)
    ):
        return False  # a time, a month
    if word in _AUXILIARIES:
        asks = bool(after) and (after[0] in _PRONOUNS or _opens_question(place, folded))
        says = before >= 0 and bool(after) and _may_be_subject(before, words, folded)
        must = word in _HAVE and after == ["to"] and place + 2 < len(words)
        asked_of = word in _BE and before > LEAST_WORDS and folded[0] in _ARTICLES and bool(after)
        return asks or asked_of or (says and (word in _BE or must or after[0] not in _PREPOSITIONS))
    if before < 0:
        return word in ("lemme", "lets")
    if folded[before] in _PERSONS:
        return word in VERBS or word in PAST_VERBS or word.endswith("ed") or word not in _SMALL
    if folded[before] in _PRONOUNS:
        return word in VERBS or word in PAST_VERBS or word.endswith(("s", "ed"))
    if word in _LINKING and folded[before] not in _PREPOSITIONS:
        return bool(after)
    if folded[before] in _SMALL or not _is_subject(before, words, folded):
        return False
    return (
        word in PAST_VERBS
        or word.removesuffix("s") in VERBS - {word}
        or word.removesuffix("es") in VERBS - {word}
        or (word in VERBS and folded[before].endswith("s") and bool(after) and _leads_to_place(after[0]))
        or (word.endswith("ed") and bool(after) and (words[before][:1].isupper() or _takes_object(after[0])))
    )


def _may_be_subject(place: int, words: Sequence[str], folded: Sequence[str]) -> bool:
    """No small word, but for a pronoun, "here", and the capitals of a state: "Eugene, OR is where we live"."""
    return folded[place] not in _SMALL - _PRONOUNS - {"here"} or (len(words[place]) > 1 and words[place].isupper())


def _is_contracted(word: str, after: Sequence[str]) -> bool:
    """ "It's", "the ticket's been", and "its" before what nobody owns."""
    if not after:
        return False
    is_noun = word.endswith(("'s", "’s")) and after[0] == "been"
    return is_noun or _CONTRACTED.fullmatch(word) is not None or (word == "its" and after[0] in _NOT_OWNED)


def _leads_to_place(word: str) -> bool:
    """What stands after a verb without an object: "at", "the", "March"."""
    return word in _PREPOSITIONS or word in _ARTICLES or word in CALENDAR_WORDS


def _takes_object(word: str) -> bool:
    """ "The search turned up three", "the film failed to play": not "the film ordered online"."""
    return word in _ARTICLES or word in ("to", "up", "out", "off") or word.isdigit()


def _is_month(word: str, after: Sequence[str]) -> bool:
    return word == "May" or any(each[:1].isdigit() for each in after)


def _opens_question(place: int, folded: Sequence[str]) -> bool:
    """ "Can the visit be at noon", "How does the Belltown Inn sound"."""
    if place == 0:
        return folded[1] in _ARTICLES or "be" in folded or (folded[0] in _BE and len(folded) > LEAST_WORDS + 1)
    return place == 1 and folded[0] in _QUESTIONS and len(folded) > place + 2


def _is_subject(place: int, words: Sequence[str], folded: Sequence[str]) -> bool:
    """The words of a name, or a noun, that no preposition makes an object."""
    while place > 0 and words[place][:1].isupper() and words[place - 1][:1].isupper():
        place -= 1
    return place == 0 or folded[place - 1] not in _PREPOSITIONS or (place > 2 and folded[0] in _ARTICLES)


def _longest_bare_run(clause: str) -> int:
    """Words in a row without a small one; a name is one word."""
    longest = run = 0
    in_name, last = False, ""
    for word in _WORD.findall(clause):
        folded = word.casefold()
        if folded in _SMALL or _CONTRACTED.fullmatch(folded):
            run, in_name, last = 0, False, ""
            continue
        run += not ((in_name and word[:1].isupper()) or last.isdigit())  # "4 star" is one, too
        in_name, last = word[:1].isupper(), word
        longest = max(longest, run)
    return longest


def _runs_together(words: Sequence[str]) -> bool:
    """A time or a day directly before a name: the small word between them is gone, but for "a 10 am Delta flight" and a
    name that does something, as in "At noon Ana Prat will play".
    """
    days = CALENDAR_WORDS
    return any(
        two[:1].isupper()
        and len(two) > 2
        and two.casefold() not in days | _SMALL
        and not _acts(words[place + 1 :])
        and (_CLOCK.fullmatch(one) or (_ORDINAL.fullmatch(one) and before.casefold() in days))
        and not _ARTICLES & {first.casefold(), before.casefold()}
        for place, (first, before, one, two) in enumerate(
            zip(["", "", *words], ["", *words], words, words[1:], strict=False)
        )
    )


def _acts(words: Sequence[str]) -> bool:
    """Whether a verb follows the name that `words` begin with."""
    after = next((word for word in words if not word[:1].isupper()), "")
    return after in _AUXILIARIES
