"""Names of other scripts in keys, which are ASCII: how they are spelled there, and read again. Pure."""

from __future__ import annotations

import re
import unicodedata

_SPELLED = re.compile(r"xn_(?:(?P<plain>[a-z0-9]+)_)?(?P<code>[a-z0-9]+)_n")
_SPACE = "\u00a0"
"""Between words inside a spelled name, for keys have no two underscores in a row."""


def spelled(name: str) -> str:
    """`name` in small letters and digits of ASCII (Punycode between ``xn_`` and ``_n``), if it has others."""
    if name.isascii():
        return name
    words = "".join(char if _is_letter(char) else " " for char in unicodedata.normalize("NFC", name.casefold())).split()
    if not words:
        return name
    folded = _SPACE.join(words)
    if folded.isascii():  # letters that are others' forms, such as the long s
        return folded
    plain, _, code = folded.encode("punycode").decode().rpartition("-")
    return f"xn_{plain}_{code}_n" if plain else f"xn_{code}_n"


def _is_letter(char: str) -> bool:
    return char.isalnum() or unicodedata.category(char)[0] == "M"


def read_again(name: str) -> str:
    """The name that was spelled so; any other name as it is."""
    found = _SPELLED.fullmatch(name)
    if found is None:
        return name
    try:
        told = "-".join(filter(None, found.group("plain", "code"))).encode().decode("punycode")
    except UnicodeError:
        return name
    return told.replace(_SPACE, "_")
