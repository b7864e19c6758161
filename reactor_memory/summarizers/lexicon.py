"""Words that say what a sentence does, whatever it is about. English, with the commonest of a few other languages."""

from __future__ import annotations

import re

from reactor_memory.wording import NEGATIONS


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _phrases(*alternatives: str, begin: str = r"\b", end: str = r"\b") -> re.Pattern[str]:
    return re.compile(rf"{begin}(?:{'|'.join(alternatives)}){end}", re.IGNORECASE)


READ_VERBS = _words(
    "browse check compare count describe display fetch find get inspect list load lookup look open peek preview query"
    " read retrieve search select show view"
)
"""A tool whose name begins with one of these probably only looks something up."""

AFFIRMATION = _phrases(
    "yes|yeah|yep|yup|ya|sure|ok|okay|okey|correct|right|exactly|absolutely|definitely|certainly|indeed|perfect",
    "great|good|fine|awesome|excellent|cool|wonderful|agreed|confirmed?|please do|do it|go ahead|of course|alright",
    "that(?:'s| is| works| sounds| would| will| looks)|it(?:'s| is) (?:right|correct|fine|good)|sounds|thanks?",
    "this is (?:right|correct|fine|good)|looks (?:good|right|great|fine)|works for me|everything is",
    "all (?:good|right|correct)|sí|si|claro|oui|d'accord|ja|genau|richtig|da|да|sim|sì|evet|tak|hai",
    "はい|是|好|对|네|예|نعم|हाँ",
    begin=r"\W{0,20}",
    end=r"(?!\w)",
)
"""A reply that begins so accepts what was proposed; `match` it."""

REFUSAL = _phrases(
    "no|nope|nah|not|don't|never|cancel|stop|wait|nein|non|нет|いいえ|不", begin=r"\W{0,20}", end=r"(?!\w)"
)
"""A reply that begins so refuses what was proposed; `match` it."""

READ_BACK = _phrases(
    "confirm(?:ing)?|double[- ]check|is (?:that|this|it|everything) (?:ok|okay|right|correct)|to (?:recap|summari[sz]e)"
)
"""Words of somebody who reads out what was understood."""

SETBACK = _phrases(
    "unfortunately|couldn't|could not|unable|not able|wasn't able|did not manage|didn't manage|unavailable",
    "not available|isn't available|can't find|cannot find|sold out|no longer|nothing is available|an error|failed to",
)
"""Words of somebody who could not do what was agreed and offers something else."""

CORRECTION = _phrases("actually|instead|rather than|change|correction|i meant|i mean|make (?:it|that)|sorry|my mistake")
REVISION = _phrases(
    "actually|instead|rather than|corrections?|correcting|i meant|i mean|make (?:it|that)|mistaken?|wrong|mistyped",
    "chang(?:e|es|ed|ing)|updat(?:e|es|ed|ing)|switch(?:ed)?|swap(?:ped)?|replac(?:e|ed)|mov(?:e|ed)|reschedul(?:e|ed)",
    "postponed?|raised?|lowered?|increased?|reduced?|extend(?:ed)?|shorten(?:ed)?|cancel(?:led|ed)?|call(?:ed)? off",
    "something (?:has )?c[ao]me up",
    "no longer|any ?more|on second thought|scratch that|turns out|after all|from now on|as of (?:now|today)",
    "(?:is|are|be|at|on) now|now (?:is|are)|the new|a new",
)
"""Words of somebody who says anew what was said otherwise before."""

DECISION = _phrases("decided?|decision|(?:we|i) agreed?|settled on|(?:we|i) chose|approved")
INTENTION = _phrases("let's|let us|(?:i|we)(?:'ll| will| should)|go with|choose")
"""Words of a decision, if what they decide is named beside them."""

RULE = _phrases(
    "must(?:n't)?|only if|unless|never|always|at most|no (?:more|less|later|earlier) than|under no circumstances",
    "allergic|allergy|not allowed|as long as|deadline|make sure|no longer|from now on|as a rule|in (?:the )?future",
    "(?:the|my|a) (?:limit|maximum|minimum)|every time|each time|whenever",
    r"^\W*(?:please )?(?:don't|do not)",
)
"""Words of a rule that stands."""

CONDITION = _phrases(
    "at least|required?|don't|do not|cannot|can't|won't|without|except|avoid|prefer|until|only|not",
)
"""Words that limit what is wanted now."""

EMPTY_RULINGS = NEGATIONS | _words("nope nah do worry necessary least")
"""Words that do not say by themselves what is denied."""
