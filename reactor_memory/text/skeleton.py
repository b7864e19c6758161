"""The skeleton of a text: what a reader, or a model, takes its letters for, however they are written."""

from __future__ import annotations

import unicodedata

_FILLERS = frozenset("\u115f\u1160\u2800")
"""What is shown as nothing, and is neither a mark nor a format character."""


def _alphabet(first: int) -> dict[int, str]:
    return {first + place: letter for place, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}


_LETTERS = str.maketrans(
    {
        **_alphabet(0x249C),  # in parentheses, small and capital
        **_alphabet(0x1F110),
        **_alphabet(0x1F150),  # white in a black circle, in a black square, and those of flags
        **_alphabet(0x1F170),
        **_alphabet(0x1F1E6),
    }
)
_ALIKE = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеѕіјкмнорстухһԁɡΑΒΕΗΙΚΜΝΟΡΤΥΧαεικνορτυɑıᴀʙᴄᴅᴇꜰɢʜɪʟᴍɴᴏᴘʀꜱᴛᴜᴠʏոս",
    "abesijkmhopctyxaesijkmhopctyxhdgabehikmnoptyxaeikvoptuaiabcdefghilmnoprstuvynu",
)
"""Letters of other alphabets that look like Latin ones."""


def skeleton(text: str) -> str:
    """`text` in compatible forms (NFKC), case folded, without marks and what is invisible; not for reading.

    Two texts of one skeleton can be taken for each other. Its characters follow those of `text`, each of which gives
    any number of them.
    """
    if text.isascii():
        return text.casefold()
    parts = unicodedata.normalize("NFKD", text.translate(_LETTERS)).translate(_ALIKE)
    folded = unicodedata.normalize("NFKD", parts.casefold())
    return unicodedata.normalize("NFC", "".join(filter(_is_seen, folded)))


def _is_seen(char: str) -> bool:
    return char.isascii() or (char not in _FILLERS and unicodedata.category(char)[0] not in "MC")
