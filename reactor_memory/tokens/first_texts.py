"""Counts of the first texts of a process, before the table of its tokenizer is made: that takes 200,000 tokens, and a
process that answers once needs twenty of them.

A text of ASCII is split as the encoding splits it. A piece that is a common token is found in the file of ranks, where
these stand first; of a text with any other piece nothing is said, nor once enough was counted.
"""

from __future__ import annotations

import re
from binascii import b2a_base64

MOST_CHARACTERS = 1_000
"""After so many the table is worth its time."""

COMMON_BYTES = 600_000
"""Of the file: a look-up among these takes 0.2 ms at most, so that no text holds the event loop."""

_CLASSES = (
    (r"\p{Lu}", "A-Z"),
    (r"\p{Ll}", "a-z"),
    (r"\p{Lt}", ""),
    (r"\p{Lm}", ""),
    (r"\p{Lo}", ""),
    (r"\p{M}", ""),
    (r"\p{L}", "A-Za-z"),
    (r"\p{N}{", "[0-9]{"),
    (r"\p{N}", "0-9"),
    (r"[^\s", r"[^\t-\r "),
    (r"\S", r"[^\t-\r ]"),
    (r"\s", r"[\t-\r ]"),
)
"""Classes of the pattern of o200k_base as they are in ASCII, where `re` takes four more for white space."""


class FirstTexts:
    """Not for several threads at once, but for the sum of what was counted, which is then too small."""

    def __init__(self, content: bytes, pattern: str) -> None:
        """`content` is the file of ranks, which holds a token in base64 before its rank on each line."""
        for unicode_class, in_ascii in _CLASSES:
            pattern = pattern.replace(unicode_class, in_ascii)
        self._split = re.compile(pattern).findall
        self._content = content[: content.rfind(b"\n", 0, COMMON_BYTES) + 1]
        self._known: set[str] = set()
        self._left = MOST_CHARACTERS

    def count(self, text: str) -> int | None:
        """The tokens of `text`; None: it takes the table."""
        if not text.isascii() or len(text) > self._left:
            return None
        self._left -= len(text)
        pieces: list[str] = self._split(text)
        for piece in pieces:
            if piece not in self._known:
                if not self._is_token(piece):
                    self._left = 0
                    return None
                self._known.add(piece)
        return len(pieces)

    def _is_token(self, piece: str) -> bool:
        line = b"%s " % b2a_base64(piece.encode(), newline=False)
        return self._content.startswith(line) or b"\n" + line in self._content
