"""What people and the model say, as quotations: who, in what words, and whether the words are their own. Pure.

A short message is one statement; of longer ones each sentence is. Nothing is rewritten and no language is needed: ends
of sentences, marks of questions and marks of quotation are those of Unicode.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from reactor_memory.features.facts.quoting.categories import category_of
from reactor_memory.features.facts.quoting.record_keys import MODEL, NOTICE, REPLY, USER, Stance, anchor_of
from reactor_memory.features.facts.quoting.term_worth import worth_of
from reactor_memory.models import Message
from reactor_memory.models.ledger import Fact
from reactor_memory.text.asking import asks
from reactor_memory.text.borders import cut_at_word
from reactor_memory.text.relative_dates import day_of, key_said_on

WHOLE = 200
"""A message of so many characters is one statement."""

LONGEST = 240
"""A longer sentence is cut, and its stance says so."""

MOST_SENTENCES = 40
MOST_OF_MODEL = 8
MOST_PASTED = 8
"""Sentences of one message that are read: of a person the first ones, of the model the first and the last ones."""

MOST_SALIENCE = 90

REPORTS, ANSWERS, CLOSES, GOES_ON = 1.0, 0.95, 0.6, 0.3
"""What the model says, beside the words of a user: behind a question for which tools worked, behind a question or the
work of tools, at the end of another turn, before that.
"""

STANCES: Mapping[Stance, float] = {"own": 1.0, "cut": 0.8, "asked": 0.5, "pasted": 0.5}

SHORTEST_CLAUSE = 12
"""A shorter sentence (``Ok.``, ``No. 5``) is read with its neighbour."""

CODE_SHARE = 0.18
"""A line of which so many characters are neither letters, digits nor spaces is code or data."""

_ABBREVIATED = re.compile(
    r"(?:^|[\s(])(?:[^\W\d_]|mr|mrs|ms|dr|prof|st|no|nr|vs|jr|sr|bzw|ca|etc|z\.b|e\.g|i\.e|\d{1,2})\.$", re.I
)
_END = re.compile(r"(?<=[.!?…])[\"'”’»)\]]*\s+|(?<=[。！？])[」』”]*|(?<=[।؟۔])\s*|\n+")
_QUESTION = re.compile(r"[?？؟;՞][\"'”’»)\]」』*_\s]*$")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_PASTED_LINE = re.compile(
    r"(?:>|\||[-=_*]{3,80}$|[A-Za-z-]{2,12}: [^@]{0,80}@|at \S+\("
    r"|\[?(?:\d{4}-\d\d-\d\d[T ]|(?=\d{1,2}:))\d{1,2}:\d\d"
    r"(?:(?::\d\d|.{0,3}[-–|] ?\[?)?\s{0,3}(?:[A-Z]{4,8}\b|[^\s:]{1,24}(?: [^\s:]{1,24})?: )|:\d\d))"
)
"""The beginning of a line that was pasted. A time of day begins one of a log, if it has seconds or a level stands
behind it, or one of a chat, if a name does; else it is somebody's own ("14:20 is fine").
"""

_SENDER = "from|von|de|da|van|от|kimden|发件人|寄件者|差出人|보낸 사람|من|प्रेषक|จาก"
_MAIL = re.compile(
    rf"^(?:(?:{_SENDER})[ \u00a0]?[:：][^\n]{{1,200}}\n(?:[^\s:：][^:：\n]{{0,24}}[:：][^\n]{{0,200}}\n){{1,12}}"
    rf"|(?:[^\s:：][^:：\n]{{0,24}}[:：][^\n]{{0,200}}\n){{1,12}}(?:{_SENDER})[ \u00a0]?[:：][^\n]{{1,200}}\n)",
    re.IGNORECASE | re.MULTILINE,
)
"""The head of a mail: lines with names, one of them the sender. All behind it was pasted."""

_LEADS_IN = re.compile(r"[:：]\s*$")
_NO_SIGNS = {place: None for place in range(128) if chr(place).isalnum() or chr(place).isspace()}
_NAMELESS = {"user": USER, "system": NOTICE}
_OPENERS, _CLOSERS = "“«「『„", "”»」』“"


class _Clause(NamedTuple):
    text: str
    start: int
    is_pasted: bool


def statements_said(messages: Sequence[Message]) -> Iterator[Fact]:
    """The statements of messages in their order. What tools say is none, and instructions that a session begins with
    stand in each context anyway.
    """
    begun = messages and messages[0].seq != 1
    turn, asked, worked = 0, False, False
    called_for = frozenset(_called_for(messages))
    for position, message in enumerate(messages):
        begun = begun or message.role != "system"
        worked = worked or message.role == "tool"
        if begun and message.role in ("user", "assistant", "agent", "system") and message.content.strip():
            if message.role == "user":
                turn, asked, worked = message.seq or 0, asks(message.content), False
            is_last = position + 1 == len(messages) or messages[position + 1].role == "user"
            closes = is_last and not message.tool_calls
            worth = _worth_of_place(closes=closes, asked=asked, worked=worked)
            yield from _statements(message, turn, worth, is_called_for=message.seq in called_for)


def _called_for(messages: Sequence[Message]) -> Iterator[int]:
    """The messages of users for which tools worked before the user spoke again."""
    turn = 0
    for message in messages:
        if message.role == "user":
            turn = message.seq or 0
        elif message.role == "tool" and turn:
            yield turn


def _worth_of_place(*, closes: bool, asked: bool, worked: bool) -> float:
    if not closes:
        return GOES_ON
    return REPORTS if asked and worked else ANSWERS if asked or worked else CLOSES


def _statements(message: Message, turn: int, of_model: float, *, is_called_for: bool) -> Iterator[Fact]:
    """A question for which tools worked is worth what its answer is: one says little without the other."""
    is_user = message.role in ("user", "system")
    speaker = message.name or message.author_id or _NAMELESS.get(message.role, MODEL)
    seq = message.seq or 0
    for number, clause in enumerate(_clauses(message.content, is_user=is_user), start=1):
        stance = _stance(clause)
        own = "own" if stance == "asked" and is_user and is_called_for else stance
        weight = (1.0 if is_user else of_model) * STANCES[own]
        yield Fact(
            anchor=anchor_of(_one_line(speaker), seq),
            key=_key(stance, number, message, turn),
            value=cut_at_word(clause.text, LONGEST) if stance == "cut" else clause.text,
            category=category_of(clause.text, stance),
            source_seq=seq,
            span=(clause.start, clause.start + len(clause.text)),
            said_by=message.role,
            salience=max(1, round(MOST_SALIENCE * weight * worth_of(clause.text))),
        )


def _key(stance: Stance, number: int, message: Message, turn: int) -> str:
    """`turn` is the message of the user that a model speaks after; 0 if it was not read."""
    is_reply = turn and message.role in ("assistant", "agent")
    key = f"quote.{stance}.{number}{f'.{REPLY}{turn}' if is_reply else ''}"
    day = day_of(message.created_at)
    return key if day is None else key_said_on(key, day)


def _stance(clause: _Clause) -> Stance:
    if clause.is_pasted:
        return "pasted"
    if len(clause.text) > LONGEST:
        return "cut"
    return "asked" if _QUESTION.search(clause.text) else "own"


def _clauses(content: str, *, is_user: bool) -> Sequence[_Clause]:
    bare = content.strip()
    if len(bare) <= WHOLE and "\n" not in bare and not _FENCE.match(bare):
        return [_Clause(bare, content.index(bare), _PASTED_LINE.match(bare) is not None)]
    found = _without_most_pasted(list(_joined(_sentences(content, is_user=is_user))))
    if is_user or len(found) <= MOST_OF_MODEL:
        return found[:MOST_SENTENCES]
    return [*found[: MOST_OF_MODEL // 2], *found[-(MOST_OF_MODEL // 2) :]]


def _without_most_pasted(clauses: Sequence[_Clause]) -> Sequence[_Clause]:
    """Of a long paste the first and the last lines."""
    pasted = [clause for clause in clauses if clause.is_pasted]
    left_out = set(pasted[MOST_PASTED // 2 : -(MOST_PASTED // 2)])
    return [clause for clause in clauses if clause not in left_out]


def _sentences(content: str, *, is_user: bool) -> Iterator[_Clause]:
    """The sentences of all lines. What the model fences is code of a file; what a person fences was pasted, and what a
    line with a colon leads in: as far as its marks of quotation go, if its first line has one, else to a blank line.
    """
    fenced = led_in = False
    start, is_apart = 0, False
    sign: str | None = None
    mail = _MAIL.search(content) if is_user else None
    last = {closer: content.rfind(closer) for closer in _CLOSERS + '"'} if is_user else {}
    quote = ""
    for line in content.splitlines(keepends=True):
        begin, start = start, start + len(line)
        is_of_mail = mail is not None and begin >= mail.start()
        opened = quote or _quote_that_goes_on(line, last, start)
        quote = "" if opened in line[line.find(line.strip()[:1]) + (not quote) :] else opened
        if _FENCE.match(line):
            fenced = not fenced
            led_in = led_in and fenced
        elif line.strip() and (is_user or not (fenced or _is_code(line))):
            if led_in and not fenced:
                begins = _sign_of_quotation(line, opened)
                led_in = (begins != "" or not is_apart) if sign is None else sign in ("", begins)
                sign = begins if sign is None else sign
            is_pasted = bool(opened) or is_of_mail or fenced or led_in or _is_code(line)
            pieces = [_Clause(line.strip(), begin, True)] if is_pasted else _pieces(line, begin)
            yield from pieces
            if is_user and not led_in and _LEADS_IN.search(line):
                led_in, sign, is_apart = True, None, False
        elif not line.strip():
            led_in, is_apart = led_in and (fenced or sign is None), True


def _sign_of_quotation(line: str, opened: str) -> str:
    """The sign of a line that is quoted as a whole; empty if it has none."""
    bare = line.strip()
    closer = dict(zip(_OPENERS + '"', _CLOSERS + '"', strict=True)).get(bare[:1], "")
    if opened or (closer and bare[1:].rstrip(" .,!?").endswith(closer)):
        return '"'
    return bare[:1] if bare.startswith((">", "|")) else ""


def _quote_that_goes_on(line: str, last: Mapping[str, int], end: int) -> str:
    """The mark that closes a quotation which begins with this line and ends in a later one; empty if none does."""
    bare = line.strip()
    closer = dict(zip(_OPENERS + '"', _CLOSERS + '"', strict=True)).get(bare[:1], "")
    return closer if closer and closer not in bare[1:] and last.get(closer, -1) >= end else ""


def _is_code(line: str) -> bool:
    bare = line.strip()
    return _PASTED_LINE.match(bare) is not None or (
        len(bare) > SHORTEST_CLAUSE and _signs(bare) > CODE_SHARE * len(bare)
    )


def _signs(text: str) -> int:
    """How many characters are neither letters, digits, marks nor spaces."""
    if text.isascii():
        return len(text.translate(_NO_SIGNS))
    return sum(not (c.isalnum() or c.isspace() or unicodedata.category(c)[0] == "M") for c in text)


def _pieces(line: str, begin: int) -> Iterator[_Clause]:
    """The sentences of a line. Inside marks of quotation and behind an abbreviation none ends."""
    start = 0
    for end in _END.finditer(line):
        said = line[start : end.start()]
        if _is_open(said) or _ABBREVIATED.search(said):
            continue
        if said.strip():
            yield _clause(said, begin + start)
        start = end.end()
    if line[start:].strip():
        yield _clause(line[start:], begin + start)


def _clause(said: str, start: int) -> _Clause:
    return _Clause(said.strip(), start + len(said) - len(said.lstrip()), False)


def _is_open(text: str) -> bool:
    if len(text) > LONGEST:
        return False
    return text.count('"') % 2 == 1 or any(
        text.count(a) > text.count(b) for a, b in zip(_OPENERS, _CLOSERS, strict=True)
    )


def _joined(clauses: Iterator[_Clause]) -> Iterator[_Clause]:
    """The sentences, very short ones with the next of the same paragraph."""
    held: _Clause | None = None
    for clause in clauses:
        gap = clause.start - (held.start + len(held.text)) if held else 99
        if held and len(held.text) < SHORTEST_CLAUSE and held.is_pasted == clause.is_pasted and gap <= 1:
            clause = _Clause(
                f"{held.text} {clause.text}" if gap else held.text + clause.text, held.start, held.is_pasted
            )
        elif held:
            yield held
        held = clause
    if held:
        yield held


def _one_line(text: str) -> str:
    return " ".join(text.replace("#", " ").split())[:60] or USER
