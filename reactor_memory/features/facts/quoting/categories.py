"""The category of what is quoted, where its form tells it. Pure.

What a call did is a decision, what it looked up a state. Of a statement, phrases of language packs tell rules and
conditions, what was settled or asked to be done, what somebody is called, health, and how things are with somebody; its
tokens tell codes, addresses, names and numbers. All else is general: what a sentence means is not known here.
"""

from __future__ import annotations

import re

from reactor_memory.features.facts.quoting.language_packs import (
    decides,
    names_somebody,
    rules,
    tells_health,
    tells_state,
)
from reactor_memory.features.facts.quoting.record_keys import CallRole, Stance
from reactor_memory.models.ledger import Category

MOST_CHARACTERS = 240

_CODE = re.compile(
    r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}\.\w|(?<!\w)(?:\w{1,12}://|\w{1,40}\.\w{2,6}/)\S|#\d{2,20}"
    r"|(?<![A-Za-z\d-])(?=[A-Z\d-]{0,40}[A-Z])(?=[A-Z\d-]{0,40}\d)[A-Z\d]{2,40}(?:-[A-Z\d]{1,20}){0,4}(?![A-Za-z])"
    r"|(?<![\d.,])\+?\d{2,5}(?:[ -]\d{3,8}){1,4}(?![\d.,])|(?<![\d.,])0\d{6,20}"
)
"""An address, a code of capitals and digits, a number to call."""

_AMOUNT = re.compile(r"(?<![\d.,+-])(?<!\d )[1-9]\d{0,2}(?: \d{3}){1,4}(?= ?[^\W\d]| ?[€$£¥₹₽%])")
"""A number whose thousands are set apart, before what it counts: no number to call."""

_CAPITAL = r"[A-ZÀ-ÖØ-Þ][^\W\d_]{1,30}"
_NAMED = re.compile(
    r"^(?:[^\W\d_]{1,30} ){1,5}(?:is|are|est|sont|es|é) (?:(?:Mr|Mrs|Ms|Dr|Prof|Sr|Sra|Mme|M)\.? )?"
    rf"{_CAPITAL}(?: {_CAPITAL}){{0,3}}\.?$"
    r"|\b(?:ist|sind) (?:Herr|Frau|Dr\.|Prof\.) [A-ZÄÖÜ]"
    rf"|^(?:I'm|I am|Soy|Sou|Je suis)(?: {_CAPITAL}){{1,3}}\.?$"
    r"|叫[\u4e00-\u9fff]{1,4}[。.]?$"
)
"""A clause that says of somebody or something who or what by name it is, where only names have capitals."""

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
    if names_somebody(text) or _NAMED.search(text) or (has_signs and _CODE.search(_AMOUNT.sub(" ", text))):
        return "ENTITY"
    if has_signs and _NUMBER.search(text):
        return "NUMERIC"
    if decides(text):
        return "DECISION"
    return "STATE" if tells_state(text) else "GENERAL"
