"""The category of what is quoted, where its form tells it. Pure.

What a call did is a decision, what it looked up a state. Of a statement, phrases of language packs tell rules and
conditions, what was settled, what somebody is called, and health; its tokens tell codes, addresses and numbers. All
else is general: what a sentence means is not known here.
"""

from __future__ import annotations

import re

from reactor_memory.features.facts.quoting.language_packs import decides, names_somebody, rules, tells_health
from reactor_memory.features.facts.quoting.record_keys import CallRole, Stance
from reactor_memory.models.ledger import Category

MOST_CHARACTERS = 240

_CODE = re.compile(
    r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}\.\w|(?<!\w)(?:\w{1,12}://|\w{1,40}\.\w{2,6}/)\S|#\d{2,20}"
    r"|(?<![A-Za-z\d-])(?=[A-Z\d-]{0,40}[A-Z])(?=[A-Z\d-]{0,40}\d)[A-Z\d]{2,40}(?:-[A-Z\d]{1,20}){0,4}(?![A-Za-z])"
    r"|(?<![\d.,])\+?\d{2,5}(?:[ -]\d{3,8}){1,4}(?![\d.,])|(?<![\d.,])0\d{6,20}"
)
"""An address, a code of capitals and digits, a number to call."""

_SIGN = re.compile(r"[\d@/]")
_NUMBER = re.compile(r"(?<![A-Za-z_])\d")


def category_of_call(role: CallRole) -> Category:
    return "DECISION" if role == "act" else "STATE"


def category_of(text: str, stance: Stance) -> Category:
    """The category of a statement."""
    if stance not in ("own", "cut"):
        return "GENERAL"
    if rules(text):
        return "CONDITION"
    if tells_health(text):
        return "STATE"
    text = text[:MOST_CHARACTERS]
    has_signs = _SIGN.search(text) is not None
    if names_somebody(text) or (has_signs and _CODE.search(text)):
        return "ENTITY"
    if has_signs and _NUMBER.search(text):
        return "NUMERIC"
    return "DECISION" if decides(text) else "GENERAL"
