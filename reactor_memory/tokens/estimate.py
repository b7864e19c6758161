"""Token counts estimated from the scripts of a text, for models whose tokenizer is not at hand."""

from __future__ import annotations

import re

_EMOJI = re.compile("[\U0001f300-\U0001faff\u2600-\u27bf\ufe00-\ufe0f]+")
_CJK = re.compile("[\u4e00-\u9fff\uac00-\ud7af\u3040-\u309f\u30a0-\u30ff]+")


class EstimateCounter:
    """Four ASCII characters a token, two tokens for three of Chinese, Japanese or Korean, one for an emoji, and
    three other characters a token. Every class is rounded down on its own; no text but the empty one counts 0.
    """

    @property
    def name(self) -> str:
        return "estimate"

    def count(self, text: str) -> int:
        tokens = len(text) // 4 if text.isascii() else _count_scripts(text)
        return max(1, tokens) if text else 0


def _count_scripts(text: str) -> int:
    ascii_count = len(text.encode("ascii", "ignore"))
    emoji = _matched(_EMOJI, text)
    cjk = _matched(_CJK, text)
    other = len(text) - ascii_count - emoji - cjk
    return ascii_count // 4 + emoji + (2 * cjk + 1) // 3 + other // 3


def _matched(pattern: re.Pattern[str], text: str) -> int:
    return sum(len(run) for run in pattern.findall(text))
