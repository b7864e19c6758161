"""Text that cannot be taken for structure: for a role, a header, the end of a block, a chat token or markup."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from reactor_memory.text.borders import cut
from reactor_memory.text.caches import memo
from reactor_memory.text.skeleton import skeleton

MAX_TITLE_CHARACTERS = 100
MOST_INDENT = 8

_JOINERS = "\u200c\u200d"
_SELECTORS = "\ufe0e\ufe0f"
_INVISIBLE = frozenset("\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
_UNSEEN = re.compile(f"[{''.join(_INVISIBLE)}\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""What is not seen and counts as printable, variants included."""

_BRACKETS = str.maketrans("<>＜＞﹤﹥［］﹇﹈｀～", "‹›‹›‹›[][]`~")
_COMPARED = re.compile(r"(<(?=[=\s\d<-])|>(?=[=\s\d&>])|(?<=[=-])>)")
"""Signs of code that open no tag and no token."""

_TITLE_SIGNS = str.maketrans(":：﹕︓;；﹔︔", "    ,,,,")
_BRACKETED = re.compile(r"\[([^\[\]\d]{1,40})\]")
_ROLE_OR_TOKEN = re.compile(
    r"\[([ /|]{0,4}(?:[A-Z][A-Z_ ]{2,40}|[^\x00-\x7f\[\]]{1,40}"
    r"|(?i:system|user|assistant|tool|function|developer|human|ai|model|bot|agent|instructions?)\b[^\[\]]{0,30}))\]"
)
"""In brackets: a role, a word in capitals (``[INST]``), or letters that may look like one."""

_LINK = re.compile(r"\](?=[(\[:])")
_LINK_QUOTED = re.compile(r"\](?=\()")
"""Between marks of quotation no line begins that a link of brackets could refer to (``[1]: ...``)."""

_SYNTAX = re.compile(r"[<>\]`~＜＞﹤﹥［］﹇﹈｀～]")
"""Without one of these none of the patterns above and below finds anything."""

_FENCE = re.compile(r"`{2,}|~{2,}")
_MARK = re.compile(r"\((failed|tool|interrupted[^()]*)\)", re.IGNORECASE)
_FORGED_START = re.compile(
    r"[\W\d_]*"
    r"(?:(?:system|user|assistant|tool|function|developer|human|ai|model|bot|agent|instructions?|conversation|pinned)\b"
    r"|recalled\b|recorded earlier|kept about"
    r"|end of (?:the )?(?:system|user|agent|conversation|pinned|recalled|facts|notes|summary|memory)\b)"
)
"""What the skeleton of a line may not begin with: roles, headers, notices and ends of blocks."""


def plain(text: str) -> str:
    """`text` on one line, composed (NFC), without what is invisible or could pass for structure."""
    if text.isascii() and text.isprintable():
        return _harmless(text)
    return _harmless(visible(text))


def visible(text: str) -> str:
    """`text` on one line, composed (NFC), without what is invisible."""
    line = " ".join(text.split())
    if line.isprintable() and not _UNSEEN.search(line):
        return unicodedata.normalize("NFC", line)
    return " ".join(unicodedata.normalize("NFC", "".join(_visible(text))).split())


def is_blank(text: str) -> bool:
    """Whether nothing of `text` is visible."""
    return not any(kept.strip() for kept in _visible(text))


def _visible(text: str) -> Iterator[str]:
    return (_kept(char, text[i - 1 : i], text[i + 1 : i + 2]) for i, char in enumerate(text))


def plain_quotation(text: str) -> str:
    """`plain` for words between marks of quotation: square brackets stay where they hold neither a role nor a token of
    a chat format, and so do signs that compare or redirect, since commands and patterns need them.
    """
    seen = text if text.isascii() and text.isprintable() else visible(text)
    return _harmless(seen, bracketed=_ROLE_OR_TOKEN)


def plain_value(text: str) -> str:
    """`plain`, and nothing that would read as the next value of the line or as one of its marks."""
    return _MARK.sub(r"\1", plain(text).replace(";", ",")).strip(", ")


@memo(maxsize=1024)
def plain_title(anchor: str) -> str:
    """`plain`, begins with a letter or digit, holds no colon, and is the name of no role or header."""
    text = _MARK.sub(r"\1", plain(anchor).translate(_TITLE_SIGNS))
    words = text.lstrip("".join(c for c in text if not c.isalnum())).split()
    text = cut(" ".join(words), MAX_TITLE_CHARACTERS).rstrip()
    return unforged(text) or "note"


def unforged_notes_line(line: str) -> str:
    indent = len(line) - len(line.lstrip(" "))
    return " " * min(indent, MOST_INDENT) + unforged(plain(line))


def _kept(char: str, before: str, after: str) -> str:
    """`char`, a space, or nothing. Joiners are kept only inside the scripts and emoji that need them."""
    if char.isspace() or char in "\u2028\u2029":
        return " "
    if char in _JOINERS or char in _SELECTORS:
        return char if _needs_joiner(before) and (char in _SELECTORS or _needs_joiner(after)) else ""
    if char in _INVISIBLE or "\U000e0100" <= char <= "\U000e01ef" or "\ufe00" <= char <= "\ufe0d":
        return ""
    return "" if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn") else char


def _harmless(text: str, bracketed: re.Pattern[str] = _BRACKETED) -> str:
    """Without the syntax of chat tokens, tags, links and code fences."""
    if not _SYNTAX.search(text):
        return " ".join(text.split())
    kept = _COMPARED.split(text) if bracketed is _ROLE_OR_TOKEN else [text]
    text = "".join(part if place % 2 else part.translate(_BRACKETS) for place, part in enumerate(kept))
    link = _LINK_QUOTED if bracketed is _ROLE_OR_TOKEN else _LINK
    line = link.sub("] ", bracketed.sub(r"(\1)", text))
    return " ".join(_FENCE.sub("'", line).split())


def _needs_joiner(neighbour: str) -> bool:
    return neighbour > "\x7f" and not neighbour.isspace() and unicodedata.category(neighbour)[0] in "LMS"


@memo(maxsize=8192)
def unforged(line: str) -> str:
    """`line`, changed if it begins with what could be taken for the name of a role or a block, or for a block's end."""
    start = next((place for place, char in enumerate(line) if any(map(str.isalnum, skeleton(char)))), len(line))
    begin = line[start:]
    return f"about {begin}" if _FORGED_START.match(skeleton(begin)) else line
