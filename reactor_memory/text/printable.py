"""Text that neither a terminal nor a page can be steered by."""

from __future__ import annotations

import re

_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """`text` without the characters that steer a terminal or turn its lines around."""
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", text)
