"""Checks what a summarizer claims against the messages that it read.

A fact is verified if its value stands on word borders in the text of its source message. Code decides that, never the
summarizer; so a hostile or confused one can leave things out, but cannot make up a value that is then shown.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property, lru_cache
from typing import get_args

import msgspec

from reactor_memory.features.facts.key_spelling import spelled
from reactor_memory.models import Message
from reactor_memory.models.ledger import Act, Category, Fact
from reactor_memory.text.opened_results import opened
from reactor_memory.text.scripts import HANGUL, UNSPACED
from reactor_memory.text.spans import arguments_of, leaves, sentences

MAX_VALUE_CHARACTERS = 256
MAX_ANCHOR_CHARACTERS = 120
MAX_KEY_CHARACTERS = 64
ROOM_FOR_KIND = 18
"""Characters that may be put before a key (``call.act.to_1024.``)."""

MAX_FACTS = 1000
"""Facts taken from one extraction; what a summarizer lists beyond is dropped."""

# A border inside a script without spaces, or before a particle of Korean, cannot be told from the characters.
_WORD = rf"[^\W{UNSPACED}{HANGUL}]"
_RUN_OF_WORD = re.compile(f"{_WORD}+")
_IS_WORD = re.compile(_WORD)
_BAD_KEY = re.compile(r"[^a-z0-9.]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_WORDS = re.compile(r"\w+")
_UNNAMED = frozenset({"the", "user", "assistant", "customer", "conversation"})
_CATEGORIES = frozenset(get_args(Category))
_ACTS = frozenset(get_args(Act))


def evidence_text(message: Message) -> str:
    """The text that the values of facts from `message` are looked up in; spans count its characters.

    The content, then on lines of their own the name of each tool call and the leaves of its arguments
    (``path: value``), and for a tool message the leaves of the JSON that its content is, or the text inside its blocks.
    """
    lines = [message.content]
    for call in message.tool_calls:
        lines.append(call.name)
        lines.extend(_leaf_lines(arguments_of(call.arguments)))
    if message.role == "tool":
        told = opened(message.content).value
        lines.extend(_leaf_lines(told) if told != message.content else ())
    return "\n".join(lines)


def find_span(evidence: str, value: str, hint: int = 0) -> tuple[int, int] | None:
    """Where `value` stands in `evidence` on word borders, the occurrence nearest to the character `hint`.

    White space may differ; letter case may where nothing matches exactly. A number inside a longer number or a date
    is not that number.
    """
    words = value.split()
    if not words:
        return None
    if evidence.startswith(value, hint) and _on_borders(evidence, hint, hint + len(value)):
        return hint, hint + len(value)
    for flags in (0, re.IGNORECASE):
        if spans := _spans(words, flags, evidence, hint):
            return min(spans, key=lambda span: (abs(span[0] - hint), span))
    return None


def verify_facts(facts: Iterable[Fact], messages: Sequence[Message]) -> tuple[Fact, ...]:
    """The facts in a form that can be stored, each with `span` and `verified` set by looking it up.

    Facts without a value or whose `source_seq` is not among `messages` are dropped. One that cites nothing (0) gets the
    newest message that states its value, what people and the model said before what tools did. Who said a fact is the
    role of its source; what a tool said is never a decision, a correction or a condition.
    """
    sources = {message.seq: message for message in messages if message.seq is not None}

    @cache
    def text_of(seq: int) -> str:
        return evidence_text(sources[seq])

    stating = _Stating(messages, text_of)
    read: dict[int, int] = {}
    verified: list[Fact] = []
    for fact in facts:
        value = _value(fact.value)
        seq = fact.source_seq or stating(value)
        if seq not in sources or not value or len(verified) == MAX_FACTS:
            continue
        source, text = sources[seq], text_of(seq)
        hint = fact.span[0]
        if source.tool_calls and fact.span == (0, 0):
            hint = read[seq] = _leaf_after(text, value, read.get(seq, len(source.content)))
        verified.append(_verify(msgspec.structs.replace(fact, source_seq=seq), value, source, text, hint))
    return tuple(verified)


class _Stating:
    """Finds the message that states a value: the newest, what tools said last."""

    def __init__(self, messages: Sequence[Message], text_of: Callable[[int], str]) -> None:
        self._messages = messages
        self._text_of = text_of

    def __call__(self, value: str) -> int:
        """Its seq; 0 if there is none."""
        folded = value.casefold()
        return next((seq for seq, text in self._folded if folded in text and find_span(self._text_of(seq), value)), 0)

    @cached_property
    def _folded(self) -> list[tuple[int, str]]:
        order = sorted(self._messages, key=lambda message: (message.role == "tool", -(message.seq or 0)))
        seqs = [message.seq for message in order if message.seq is not None]
        return [(seq, " ".join(self._text_of(seq).split()).casefold()) for seq in seqs]


def quote(fact: Fact, evidence: str, *, around: int = 60) -> str:
    """What `evidence`, the text of the source message, says where the fact stands: its line, cut to `around` characters
    on each side; empty for a fact that was not verified, or whose value does not stand there: another redactor was in
    force when it was read.
    """
    start, stop = fact.span
    if not fact.verified or " ".join(evidence[start:stop].split()).casefold() != fact.value.casefold():
        return ""
    begin = max(evidence.rfind("\n", 0, start) + 1, start - around)
    line_end = evidence.find("\n", stop)
    end = min(len(evidence) if line_end < 0 else line_end, stop + around)
    return " ".join(evidence[begin:end].split())


def verify_narrative(text: str, messages: Sequence[Message]) -> str:
    """`text` without the sentences that hold a number, a date or a name which the messages do not have."""
    evidence = "\n".join(map(evidence_text, messages))
    words = {word.casefold() for word in _WORDS.findall(evidence)} | _UNNAMED
    numbers = {number.lstrip("0") for number in _NUMBER.findall(evidence)}
    return " ".join(sentence for sentence in sentences(text) if _is_supported(sentence, words, numbers))


def clean_key(key: str) -> str:
    """`key` in the form ``[a-z][a-z0-9_.]{0,63}``; different keys of other scripts stay different, and those that
    fit can be read again (`key_spelling`).
    """
    if not key.isascii():
        whole = ".".join(map(spelled, key.split(".")))
        key = whole if len(whole) <= MAX_KEY_CHARACTERS - ROOM_FOR_KIND else key
    spaced = _CAMEL.sub("_", key)
    cleaned = _BAD_KEY.sub("_", spaced.lower()).strip("_.")
    if not key.isascii():
        cleaned = f"{cleaned[: MAX_KEY_CHARACTERS - 12]}_{zlib.crc32(key.encode(errors='replace')):08x}".lstrip("_")
    if not cleaned[:1].isalpha():
        cleaned = f"k_{cleaned}" if cleaned else "detail"
    return cleaned[:MAX_KEY_CHARACTERS].rstrip("_.")


def _leaf_after(text: str, value: str, start: int) -> int:
    """Where the next argument with this value stands, so that the facts of a call keep its order; else `start`."""
    found = text.find(f": {value}\n", start)
    if found < 0 and text.endswith(f": {value}"):
        found = len(text) - len(value) - len(": ")
    return start if found < start else found + len(": ")


def _leaf_lines(value: object) -> Iterator[str]:
    return (f"{leaf.path}: {leaf.text}" if leaf.path else leaf.text for leaf in leaves(value))


def _verify(fact: Fact, value: str, source: Message, text: str, hint: int) -> Fact:
    span = find_span(text, value, hint)
    from_tool = source.role == "tool"
    claims = from_tool and not fact.salience
    category = fact.category if fact.category in _CATEGORIES else "GENERAL"
    act = fact.act if fact.act in _ACTS else "statement"
    return msgspec.structs.replace(
        fact,
        anchor=_one_line(fact.anchor, MAX_ANCHOR_CHARACTERS) or "conversation",
        key=clean_key(fact.key),
        value=value,
        category="GENERAL" if claims and category in ("DECISION", "CONDITION") else category,
        act="statement" if from_tool else act,
        said_by=source.role,
        span=span or (0, 0),
        verified=span is not None,
    )


def _value(value: str) -> str:
    return _one_line(value, MAX_VALUE_CHARACTERS)


def _one_line(text: str, limit: int) -> str:
    """White space collapsed, cut at a word border to `limit` characters, storable (no NUL, no lone surrogate)."""
    storable = text.replace("\0", " ").encode(errors="ignore").decode()
    line = " ".join(storable.split())
    if len(line) <= limit:
        return line
    cut = line[: limit + 1]
    return (cut.rsplit(" ", 1)[0] if " " in cut else cut)[:limit].rstrip()


def _spans(words: Sequence[str], flags: int, evidence: str, hint: int) -> list[tuple[int, int]]:
    """The last match at or before `hint` and the first one after it."""
    before: list[tuple[int, int]] = []
    for span in _matches(words, flags, evidence):
        if span[0] > hint:
            return [*before, span]
        before = [span]
    return before


def _matches(words: Sequence[str], flags: int, evidence: str) -> Iterator[tuple[int, int]]:
    """Where the words stand on borders. The borders are no part of the pattern: compiling them takes milliseconds, and
    nearly every value is a new pattern.
    """
    pattern, at = re.compile(r"\s+".join(map(re.escape, words)), flags), 0
    while match := pattern.search(evidence, at):
        if _on_borders(evidence, *match.span()):
            yield match.span()
            at = match.end()
        else:
            word = _RUN_OF_WORD.match(evidence, match.start())
            at = word.end() if word else match.start() + 1  # inside a word nothing begins on a border


def _on_borders(evidence: str, start: int, stop: int) -> bool:
    before, after = _border_before(evidence[start]), _border_after(evidence[stop - 1])
    return bool(_compiled(before).match(evidence, start) and _compiled(after).match(evidence, stop))


@lru_cache(maxsize=16)
def _compiled(border: str) -> re.Pattern[str]:
    """Compiling a class of so many characters takes a millisecond."""
    return re.compile(border)


def _border_before(first: str) -> str:
    if not _IS_WORD.match(first):
        return ""
    return rf"(?<!{_WORD})(?<!\d[-.,:/])" if first.isdigit() else rf"(?<!{_WORD})"


def _border_after(last: str) -> str:
    if not _IS_WORD.match(last):
        return ""
    return rf"(?!{_WORD})(?![-.,:/]\d)" if last.isdigit() else rf"(?!{_WORD})"


def _is_supported(sentence: str, words: set[str], numbers: set[str]) -> bool:
    if any(number.lstrip("0") not in numbers for number in _NUMBER.findall(sentence)):
        return False
    inside = (match.group() for match in _WORDS.finditer(sentence) if match.start() > 0)
    return all(word.casefold() in words for word in inside if len(word) > 1 and word[0].isupper())
