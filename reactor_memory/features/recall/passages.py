"""A conversation as passages: bounded pieces of messages, which an index finds and a context brings back. Pure.

A passage is at most `PASSAGE_CHARACTERS` of one message, a third of it in scripts that say as much in so many, cut at
the largest border near its end. Short talk of one turn
is one passage: an answer is found by the words of its question. Calls and results stay apart, for each tells of one
thing. The terms of a passage are those of its text and of its head: who spoke and when, or which call it answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from reactor_memory.features.recall.days import day_words
from reactor_memory.models import Message, ToolCall, is_kept_by_author, is_posted_summary
from reactor_memory.models.index_requests import Passage
from reactor_memory.text.analyzer import terms
from reactor_memory.text.caches import memo
from reactor_memory.text.languages import language_of

PASSAGE_CHARACTERS = 600
"""Larger ones hold more that was not asked for, smaller ones less of what belongs together (docs/decisions.md)."""

MAX_PIECES = 4_000
"""The passages of one message: what stands behind them is not found. 2.4 million characters."""

MAX_TERMS = 400
"""The different terms of one passage."""

HEAD_ARGUMENTS = 120
"""How many characters of the arguments of a call stand in the head of its result."""

CHARACTERS_A_TOKEN = 4

TELLING_MESSAGES, TELLING_CHARACTERS = 40, 200
"""What tells the language of a run of messages: the beginnings of so many."""

WIDE = 3
"""A character of a script that writes syllables or words with it counts so many times, for it takes as many tokens."""

_WIDE = re.compile("[\u2e80-\U000e0000]")

_BORDERS = (re.compile(r"\n\s*\n"), re.compile(r"\n"), re.compile(r"[.!?…]\s|[。！？।؟]"), re.compile(r"\s"))


class Piece(NamedTuple):
    """Part of a conversation before its terms are known: the passage, its text, and the words of its head."""

    passage: Passage
    text: str
    head: str


def text_of(message: Message) -> str:
    """What of a message can be found: its text, then its tool calls."""
    if not message.tool_calls:
        return message.content
    return "\n".join([*([message.content] if message.content else []), *map(call_text, message.tool_calls)])


def call_text(call: ToolCall) -> str:
    """The name of a call, and its arguments as they were given."""
    given = call.arguments
    arguments = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)
    return f"{call.name} {arguments}"


def speaker(message: Message) -> str:
    return message.name if message.name and message.role != "tool" else message.role


def is_indexed(message: Message) -> bool:
    """Whether recall may find a message: not what agents posted as a summary, nor what one keeps for itself."""
    return not is_posted_summary(message) and not is_kept_by_author(message)


def passages_of(messages: Sequence[Message], clean: Sequence[Message] | None = None) -> Iterator[Passage]:
    """The passages of a run of messages, oldest first.

    `clean` are the same messages as a redactor left them: a term that they lack is in no passage. A text that it took
    apart has other borders, so passages are cut from what the log keeps.
    """
    language = language_of(" ".join(message.content[:TELLING_CHARACTERS] for message in messages[:TELLING_MESSAGES]))
    allowed = _terms_by_seq(clean, language) if clean is not None else None
    for passage, text, head in pieces(messages):
        found = terms_of(text, language) + terms_of(head, language)
        if allowed is not None:
            seqs = (*range(passage.seq, passage.end_seq + 1), passage.call_seq)
            kept = {term for seq in seqs for term in allowed.get(seq, ())}
            found = tuple(term for term in found if term in kept)
        held = tuple(dict.fromkeys(found))[:MAX_TERMS]
        if held:
            yield replace(passage, terms=held)


@memo(maxsize=1024)
def terms_of(text: str, language: str | None) -> tuple[str, ...]:
    """The different terms of a text, in its order."""
    return tuple(dict.fromkeys(terms(text, language)))


def _terms_by_seq(messages: Sequence[Message], language: str | None) -> Mapping[int, frozenset[str]]:
    texts = (
        (message.seq or 0, text_of(message), speaker(message), day_words(message.created_at)) for message in messages
    )
    return {seq: frozenset(terms("\n".join(parts), language)) for seq, *parts in texts}


def pieces(messages: Sequence[Message]) -> Iterator[Piece]:
    """The messages, turn by turn, in pieces: short talk of one turn joined. A result answers the newest call of its
    id.
    """
    calls: dict[str, tuple[int, ToolCall]] = {}
    talk: list[Message] = []
    for message in messages:
        text = text_of(message)
        calls.update((call.id, (message.seq or 0, call)) for call in message.tool_calls)
        joins = talk and message.role != "user" and _is_talk(message) and _follows(talk[-1], message)
        if talk and not (joins and sum(width(each.content) for each in talk) + width(text) <= PASSAGE_CHARACTERS):
            yield _joined(talk)
            talk = []
        if not text.strip() or not is_indexed(message):
            continue
        if _is_talk(message) and width(text) <= PASSAGE_CHARACTERS:
            talk.append(message)
            continue
        yield from _cut(message, text, calls)
    if talk:
        yield _joined(talk)


def _is_talk(message: Message) -> bool:
    return message.role != "tool" and not message.tool_calls


def _follows(earlier: Message, later: Message) -> bool:
    return (later.seq or 0) == (earlier.seq or 0) + 1


def _joined(talk: Sequence[Message]) -> Piece:
    first, last = talk[0], talk[-1]
    passage = Passage(
        seq=first.seq or 0,
        start=0,
        end_seq=last.seq or 0,
        end=len(last.content),
        tokens=sum(map(_tokens_of, talk)),
    )
    head = " ".join(dict.fromkeys([*map(speaker, talk), day_words(first.created_at)]))
    return Piece(passage, "\n".join(message.content for message in talk), head)


def _cut(message: Message, text: str, calls: Mapping[str, tuple[int, ToolCall]]) -> Iterator[Piece]:
    seq, tokens = message.seq or 0, _tokens_of(message)
    call_seq, call = calls.get(message.tool_call_id or "", (0, None)) if message.role == "tool" else (0, None)
    call_seq = seq if message.tool_calls else call_seq
    head = f"{speaker(message)} {message.name or ''} {day_words(message.created_at)}"
    if call is not None:
        head += " " + short_call(call)
    for piece, (start, end) in enumerate(borders(text)):
        if piece == MAX_PIECES:
            return
        if part := text[start:end].strip():
            share = max(1, round(tokens * (end - start) / len(text)))
            passage = Passage(seq=seq, piece=piece, start=start, end_seq=seq, end=end, call_seq=call_seq, tokens=share)
            yield Piece(passage, part, head)


def _tokens_of(message: Message) -> int:
    """About what its text takes: it was counted when it was saved."""
    return message.token_count or 1 + len(text_of(message)) // CHARACTERS_A_TOKEN


def short_call(call: ToolCall, characters: int = HEAD_ARGUMENTS) -> str:
    """The call as the head of what it gave, with so many characters of its arguments."""
    text = " ".join(call_text(call).split())
    most = len(call.name) + 1 + characters
    return text if len(text) <= most else text[:most] + "…"


def width(text: str) -> int:
    """The characters of a text, those of wide scripts counted `WIDE` times."""
    return len(text) if text.isascii() else len(text) + (WIDE - 1) * len(_WIDE.findall(text))


def borders(text: str) -> Iterator[tuple[int, int]]:
    """Where the pieces of a text begin and end."""
    start, most = 0, PASSAGE_CHARACTERS * len(text) // max(1, width(text))
    while len(text) - start > most:
        end = _border(text, start + most // 2, start + most)
        yield start, end
        start = end
    if start < len(text):
        yield start, len(text)


def _border(text: str, low: int, high: int) -> int:
    """The last of the largest borders between the two places."""
    for border in _BORDERS:
        ends = [match.end() for match in border.finditer(text, low, high)]
        if ends:
            return ends[-1]
    return high
