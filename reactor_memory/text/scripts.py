"""Scripts that write no space between words, as ranges for a class of characters: the one table of them.

A pattern takes what it needs in square brackets, as ``[{UNSPACED}]``.
"""

from __future__ import annotations

HAN = "\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = "\u3041-\u30ff"
SOUTHEAST = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9fe\uaa60-\uaa7f"
"""Thai, Lao, Burmese, Khmer."""

UNSPACED = f"{SOUTHEAST}{HAN}{KANA}\uff66-\uff9f"
"""All of them, kana of half a width as well: a border of words inside cannot be told from the characters."""

HANGUL = "\u1100-\u11ff\uac00-\ud7a3"
"""Korean has spaces, and joins particles to its words."""
