"""Texts that are made to hurt: what takes quadratic time somewhere takes seconds with one of them."""

from __future__ import annotations

BYTES = 100_000

_UNITS = {
    "digits": "1",
    "dots": ".",
    "opened brackets": "(",
    "closed brackets": "]",
    "brackets in brackets": "[(",
    "one word": "a",
    "capitals": "A",
    "spaces": " ",
    "lines": "\n",
    "quotes": '"',
    "single quotes": "'",
    "backticks": "`",
    "angles": "<",
    "backslashes": "\\",
    "words of one letter": "a ",
    "abbreviations": "a.",
    "numbers with dots": "1.",
    "numbers": "1 ",
    "mixed numbers": "1111 11111 111111 ",
    "numbers in words": "a1111111",
    "amounts": "1,111.",
    "labels": "a=",
    "titles": "a: ",
    "columns": "(a; b):",
    "speakers": "user: ",
    "addresses": "a@b.",
    "links": "[a](",
    "secrets": "?token",
    "places": " - at `$",
    "dates": "1 January ",
    "names": "Ana De ",
    "claims": "my a is ",
    "ideographs": "漢",
    "ideographs and numbers": "漢1",
    "accents": "e\u0301",
}

EACH: dict[str, str] = {name: unit * (BYTES // len(unit.encode())) for name, unit in _UNITS.items()}
"""100 kB of each kind."""

FEW = [
    "".join(EACH[name][: BYTES // 10] for name in names) for names in (list(_UNITS)[start:][::4] for start in range(4))
]
"""All kinds, about ten in each of four texts."""
