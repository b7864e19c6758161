"""Statements in sentences of talk, and how informative they are for their length.

Somebody did, has, is, wants, plans, likes or decided something: with whom, where, when. Questions, pleasantries, praise
and echoes state nothing. Words that every talk is full of say little, and the names of speakers only say who.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from reactor_memory.features.facts.summarizers.lexicon import ASIDE, CHANGE, EMPTY_DENIALS
from reactor_memory.models import Message, Role
from reactor_memory.text.words import CALENDAR_WORDS, COMMON_WORDS, NEGATIONS, PICTURE_MARK, Sentence, Word, says_what

MIN_WORDS = 2
COVER = 0.64
"""A line about a message keeps the sentences that tell most until they hold this share of the words of the message."""

MIN_PREFIXED = 2
PREFIXED_SHARE = 0.5
"""A name stands before so many of the messages of who bears it; "Please confirm: ..." does not."""

ECHO = 0.8
"""What says so much of another message again is an echo."""

OWN = 2.0
OTHERS = 0.5
PICTURE = 0.5
DETAILED = 0.5
MOST_DETAILS = 3
MIN_PROPOSED = 2
COMMON = 0.35
"""A word that every talk is full of tells so much of what another one tells."""

TOKEN_CHARACTERS = 4.4
TITLE_TOKENS = 3


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


OPENERS = _words(
    "hey hi hello wow whoa woah yeah yes yep yup yay oh ah aw aww ooh haha hah lol hmm ok okay sure thanks congrats"
    " congratulations absolutely definitely totally exactly well so and but anyway omg gosh man please also actually"
    " honestly btw cool nice great awesome amazing sweet perfect alright right"
)
"""Words that a sentence begins with before it says anything."""

_ALWAYS = OPENERS - _words("cool nice great awesome amazing sweet perfect right so man definitely totally absolutely")
"""Those that need no punctuation after them."""

_SELF = _words("i i'm i've i'd i'll my me mine we we're we've we'd we'll our us myself ourselves")
_ADDRESSED = _words("you your you're you've you'd you'll yours yourself")
_TIMES = CALENDAR_WORDS | _words("last next ago week weekend month year weeks months years since once twice first")

_PLEASANTRY = re.compile(
    r"(?:(?:it's |it is |it was |that's |i'm |i am |so |really |very |always |just )*"
    r"(?:glad|happy|sorry|nice|great|good|lovely|proud|pleased|thrilled|excited|delighted)"
    r" (?:to (?:hear|see|know|meet|have met|help|assist|catch|chat|talk)|of you|for you|you |that you)"
    r"|thank(?:s| you)|congrat|duly noted|god bless|(?:just )?(?:a few|a couple of|some) (?:more )?questions"
    r"|good (?:luck|morning|evening|night|day)|happy to help|my pleasure|no (?:problem|worries)"
    r"|have (?:yourself )?(?:a|fun)|enjoy (?:your|the|an?)\b|take care|see you|see ya|talk (?:to you )?(?:soon|later)"
    r"|let me know|not bad[\s!.]*$|sorry for (?:the|that|any|being|not)\b|keep (?:it |up|me|going|at)"
    r"|you're (?:very |most )?welcome|way to go|well done|good (?:for|on) you|you(?:'ve)? got this|(?:good ?)?bye"
    r"|i (?:\w+ )?(?:agree|understand|hear you|bet|see|appreciate|hope you|hope so|know what you mean)\b"
    r"|(?:can't|cannot|can not) wait to (?:hear|see)|looking forward to (?:hear|see)"
    r"|(?:no,? )?(?:i don't need anything|don't worry|that won't be|nothing else"
    r"|that(?:'?s| is| will be| would be) (?:all|it)\b"
    r"|but thank|may ?be later\b|not (?:right )?(?:now|today|yet)[\s!.]*$)"
    r"|(?:no,? )?i'm (?:all set|good|done)\b"
    r"|(?:i|we) (?:can't|cannot|can not) wait[\s!.]*$|don't give up"
    r"|(?:please |just )*(?:tell|show|teach) (?:me|us)\b|(?:please |just )*(?:explain|describe|define|translate)\b"
    r"|(?:just )?(?:one|a) (?:moment|second|minute)\b|what (?:a|an)\b|how (?:\w+)[!.]?$"
    r"|(?:that|this|it|these|those|they|which|everything|all|sounds?|looks?|seems?)(?:'s| is| are| was| were| sounds?"
    r"| looks?| seems?| must be| must have been| must feel| works?| would be| will be)?"
    r"(?:,? (?:so|really|very|such|quite|pretty|a|an|like|great|good|nice|cool|awesome|amazing|beautiful|wonderful"
    r"|lovely|perfect|fantastic|sweet|fun|delicious|inspiring|exciting|interesting|impressive|correct|right|fine|true|sense"
    r"|all|one|idea|plan|thing|job|to me|for me|too|to hear|makes?|then|real|up my alley|to be|done|set|for now|thanks"
    r"|a lot))*[\s!.,]*$)",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"how (?:can|may) i|is there anything|anything else|will you|would you|could you|can you|do you|did you"
    r"|shall i|should i|how about|what about|any (?:good|nice)\b",
    re.IGNORECASE,
)
_OFFER = re.compile(r"\bor (?:any ?thing|any other|whatever|something else)\b", re.IGNORECASE)
"""How a list of examples ends that somebody may choose from."""
_THANKED = re.compile(
    r"\W*(?:(?:no|nope|not|now|yet|ok|okay|great|and|but|that's all)\W+){0,6}"
    r"(?:many )?thanks?(?: you)?(?: (?:so|very|much|a|lot|bunch|ton|again|once))* for\b[^,;]*$",
    re.IGNORECASE,
)
_PREFIX = re.compile(r"([^\W\d_][\w'’-]{0,30}(?: [^\W\d_][\w'’-]{0,30})?): ")


class Statement(NamedTuple):
    """A sentence from its first telling word to its last, the words that carry it, and what they tell a token."""

    sentence: Sentence
    start: int
    stop: int
    words: frozenset[str]
    worth: float
    has_details: bool


def speaker_of(messages: Iterable[Message]) -> dict[Role, str]:
    """The name of who speaks in a role, where messages bear one, or mostly begin with one."""
    names: dict[Role, str] = {}
    spoken: Counter[Role] = Counter()
    prefixes: Counter[tuple[Role, str]] = Counter()
    for message in messages:
        spoken[message.role] += 1
        if message.name and message.role != "tool":
            names[message.role] = message.name
        elif prefix := _prefix(message):
            prefixes[message.role, prefix] += 1
    for (role, prefix), times in prefixes.items():
        if times >= max(MIN_PREFIXED, PREFIXED_SHARE * spoken[role]):
            names.setdefault(role, prefix)
    return names


def _prefix(message: Message) -> str:
    """The name before what somebody says: "Caroline: I went"."""
    found = _PREFIX.match(message.content)
    return found.group(1) if found and found.group(1)[0].isupper() else ""


def statement_of(
    sentence: Sentence, speakers: frozenset[str], *, agreed: bool = False, noted: bool = False
) -> Statement | None:
    """What a sentence states; None if it asks, or only keeps the talk going. What was `agreed` may ask, and so may a
    change of which the model took note: "Can it be at noon instead?"
    """
    details = frozenset(sentence.details) - speakers
    proposes = agreed and (len(details) >= MIN_PROPOSED or (noted and CHANGE.match(sentence.text) is not None))
    if sentence.text.endswith(("?", "？")) and not proposes:
        return None
    words = _beyond_openers(sentence, speakers)
    if not words:
        return None
    is_picture = words[0].raw.startswith(PICTURE_MARK)
    start, stop = (words[0].begin, words[-1].end) if is_picture else (words[0].start, words[-1].stop)
    telling = sentence.content - speakers - OPENERS
    said = sentence.text[start - sentence.start :]
    if not _says_something(telling) or _is_courtesy(sentence, said, agreed=agreed, names=_names(details)):
        return None
    if not (noted or speakers or is_picture) and _only_answers(sentence, telling - details, agreed=agreed):
        return None
    return Statement(sentence, start, stop, telling, _worth(telling, words, details, len(said)), bool(details))


def _is_courtesy(sentence: Sentence, said: str, *, agreed: bool, names: bool) -> bool:
    """Whether it only keeps the talk going. What was `agreed` may be a question, or begin with a courtesy."""
    said = said.replace("’", "'")
    if _THANKED.match(sentence.text) or _OFFER.search(said) or (not agreed and _ASKING.match(said)):
        return True
    return not (agreed and names) and _PLEASANTRY.match(said) is not None


def _names(details: frozenset[str]) -> bool:
    """Whether there are others than the number of "One moment"."""
    return not details <= {"one"}


def spoken_part(sentence: Sentence) -> tuple[int, int] | None:
    """The place of a sentence without the words that only open it; None if it has no others."""
    words = _beyond_openers(sentence)
    if not words:
        return None
    asks = [word for word in sentence.words if word.folded == "please" and word.end + 1 == words[0].begin]
    last = words[-1]
    return (asks or words)[0].start, last.end if last.raw.endswith(("?", "？")) else last.stop


def beyond_aside(sentence: Sentence) -> int:
    """Where a sentence begins behind words such as "by the way"."""
    aside = ASIDE.match(sentence.text)
    return sentence.start + (aside.end() if aside else 0)


def most_telling(statements: Sequence[Statement], content: frozenset[str]) -> list[Statement]:
    """The most informative statements, in their order, until they hold most of the words of `content`."""
    left = COVER * len(content)
    kept: list[Statement] = []
    held = frozenset[str]()
    for statement in sorted(statements, key=lambda each: (-each.worth, each.start)):
        if len(held & content) >= left and kept and not statement.has_details:
            continue
        kept.append(statement)
        held |= statement.words
    return sorted(kept, key=lambda each: each.start)


def fewest_covering(statements: Sequence[Statement], content: frozenset[str]) -> list[Statement]:
    """Statements that together hold most of the words of `content`, or all statements if they do not. The ones that
    are left out hold the fewest words, for their length, that no other one holds; those with details stay.
    """
    holders = Counter(word for each in statements for word in each.words & content)
    held, gone = len(holders), set[int]()
    spare = [(_rate(each, holders), index) for index, each in enumerate(statements) if not each.has_details]
    heapify(spare)
    while spare and len(gone) + 1 < len(statements):
        rate, index = heappop(spare)
        each = statements[index]
        if (now := _rate(each, holders)) > rate:
            heappush(spare, (now, index))  # what held its words, too, was left out since
        elif held - (lost := _lost_with(each, holders)) >= COVER * len(content):
            gone.add(index)
            held -= lost
            holders.subtract(each.words & holders.keys())
    return [each for index, each in enumerate(statements) if index not in gone]


def _rate(statement: Statement, holders: Mapping[str, int]) -> float:
    """How many words per character would be lost with a statement."""
    return _lost_with(statement, holders) / (statement.stop - statement.start + TOKEN_CHARACTERS)


def _lost_with(statement: Statement, holders: Mapping[str, int]) -> int:
    return sum(holders.get(word) == 1 for word in statement.words)


def telling(statements: Sequence[Statement]) -> float:
    """How informative they are together, per token: about 0.2 for chat, 1 for who did what and when."""
    tokens = sum((each.stop - each.start) / TOKEN_CHARACTERS + 1 for each in statements)
    told = sum(each.worth * ((each.stop - each.start) / TOKEN_CHARACTERS + 1) for each in statements)
    return told / (tokens + TITLE_TOKENS)


def _only_answers(sentence: Sentence, further: frozenset[str], *, agreed: bool) -> bool:
    """Whether the sentence says nothing about what it names: "At the Soho Garden Hotel". What was agreed may leave out
    the verb, "Two rooms at the Soho Garden Hotel", and so may what is denied: "No luck with the Soho Garden Hotel".
    """
    says_enough = says_what(sentence) or any(word.folded in NEGATIONS for word in sentence.words)
    return not says_enough and not (agreed and further - {sentence.words[0].folded})


def is_echo(words: frozenset[str], others: frozenset[str]) -> bool:
    """Whether nearly all of the words are among those of another message."""
    return len(words & others) >= ECHO * len(words)


def _says_something(telling: frozenset[str]) -> bool:
    """Whether it is more than a number, more than one word, and more than "Not at the moment"."""
    return len(telling) >= MIN_WORDS and any(any(c.isalpha() for c in word) for word in telling - EMPTY_DENIALS)


def _beyond_openers(sentence: Sentence, speakers: frozenset[str] = frozenset()) -> Sequence[Word]:
    begin = beyond_aside(sentence)
    words = [word for word in sentence.words if word.begin >= begin]
    first = 0
    for first, word in enumerate(words):
        if word.text and not _opens(word, speakers):
            return words[first : _end(words)]
    return ()


def _end(words: Sequence[Word]) -> int:
    return max((index for index, word in enumerate(words, 1) if word.text), default=0)


def _opens(word: Word, speakers: frozenset[str]) -> bool:
    if word.folded in speakers:
        return word.closes
    return word.folded in _ALWAYS or (word.folded in OPENERS and word.closes)


def _worth(telling: frozenset[str], words: Sequence[Word], details: frozenset[str], characters: int) -> float:
    told = sum(COMMON if word in COMMON_WORDS else 1.0 for word in telling)
    return told * _weight(words, details) / (characters / TOKEN_CHARACTERS + 1)


def _weight(words: Sequence[Word], details: frozenset[str]) -> float:
    if words[0].raw.startswith(PICTURE_MARK):
        return PICTURE
    folded = frozenset(word.folded.replace("’", "'") for word in words)
    own = OWN if folded & _SELF else 1.0
    addressed = OTHERS if folded & _ADDRESSED else 0.0
    return max(0.3, own + DETAILED * min(MOST_DETAILS, len(details | (folded & _TIMES))) - addressed)
