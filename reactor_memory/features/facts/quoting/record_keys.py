"""How the facts of the reader that quotes are named, and how they are told from others.

A statement is ``quote.<stance>.<number>``, of a model with the message of the user that it speaks after (``to_12``),
and with the day on which it was said. A call is ``call.<role>.<argument>``, with ``to_12`` behind its role where the
order of the log does not tell, for turns ran at once; what it gave back ``reply.field.<name>`` and
``reply.line.<number>``; the key of a value that is cut ends with ``.cut_`` and a hash of the whole value. The anchor is
who spoke or the tool, with the number of the message: ``Ann #12``, ``book_ferry #12.2`` for the second call of a
message.
"""

from __future__ import annotations

import re
import zlib
from typing import Literal, TypeAlias, get_args

from reactor_memory.features.facts.evidence import MAX_KEY_CHARACTERS
from reactor_memory.models.ledger import Fact
from reactor_memory.text.borders import cut_at_word
from reactor_memory.text.caches import memo

Stance: TypeAlias = Literal["own", "asked", "pasted", "cut"]
"""Whose words: of the speaker, a question, somebody else's that were pasted. ``cut``: own, and only a beginning."""

CallRole: TypeAlias = Literal["act", "read"]

USER, MODEL = "the user", "the assistant"
NOTICE = "notice"
"""Who speaks in a system message of the log."""

REPLY = "to_"

NO_ARGUMENT = "tool"
"""The argument that stands for the name of the tool, where a call has no arguments."""

_KEY = re.compile(
    rf"quote\.(?:{'|'.join(get_args(Stance))})\.\d+|call\.(?:{'|'.join(get_args(CallRole))})\.|reply\.(?:field|line)\."
)
_CUT = re.compile(r"\.cut_[0-9a-f]{8}$")
_CUT_CHARACTERS = 13

_REPLY = re.compile(rf"\.{REPLY}(\d+)")
_NUMBER = re.compile(r"(\d+)(?:\.\d+)?")


def is_quoting(fact: Fact) -> bool:
    """Whether the reader that quotes made the fact."""
    return _is_quoting(fact.anchor, fact.key)


@memo(maxsize=16_384)
def _is_quoting(anchor: str, key: str) -> bool:
    return _KEY.match(key) is not None and name_and_seq(anchor)[1] > 0


def is_call(fact: Fact) -> bool:
    """Whether the fact is a part of a call, which stands as a whole or not at all."""
    return is_quoting(fact) and not fact.key.startswith("quote.")


def key_and_value(key: str, text: str, length: int) -> tuple[str, str]:
    """A value of at most `length` characters with its key: two that begin alike are not the same."""
    value = cut_at_word(text, length)
    if len(text) <= length or value == " ".join(text.split()):
        return key, value
    whole = zlib.crc32(text.encode(errors="replace"))
    return f"{key[: MAX_KEY_CHARACTERS - _CUT_CHARACTERS].rstrip('.')}.cut_{whole:08x}", value


def whole_key(key: str) -> str:
    """The key without the hash of a value that is cut."""
    return _CUT.sub("", key)


def is_cut(fact: Fact) -> bool:
    return _CUT.search(fact.key) is not None


def replies_to(key: str) -> int:
    """The message of the user that a statement was said after, or a call made; 0 if that is unknown."""
    found = _REPLY.search(key) if f".{REPLY}" in key else None
    return int(found[1]) if found else 0


def without_reply(key: str) -> str:
    return _REPLY.sub("", key)


def anchor_of(name: str, seq: int, place: int = 1) -> str:
    return f"{name} #{seq}" if place == 1 else f"{name} #{seq}.{place}"


def name_and_seq(anchor: str) -> tuple[str, int]:
    name, _, number = anchor.rpartition(" #")
    found = _NUMBER.fullmatch(number)
    return (name, int(found[1])) if found else (anchor, 0)
