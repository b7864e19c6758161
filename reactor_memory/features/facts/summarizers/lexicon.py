"""Words that say what a sentence does, whatever it is about. English, with the commonest of a few other languages."""

from __future__ import annotations

import re

from reactor_memory.text.words import NEGATIONS


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
    "confirm(?:ing|ation)?|double[- ]check|verify(?:ing)?|(?:make|be|making) sure|ensure|recap|to summari[sz]e",
    "(?:is|does|do i have) (?:that|this|it|everything|all) (?:ok|okay|right|correct|sound (?:right|good|correct))",
    r"(?:correct|right)(?=\?)|(?:^|(?<=[.!?] ))so,? (?:\d+|an?|one|two|three|four|five)",
    "(?<!do )(?<!would )(?<!if )(?<!that )(?<!what )"
    r"you(?:'d| would)?(?: want| wish|(?<=d) like) (?:to|me to|\d+|an?|one|two)",
)
"""Words that introduce a summary of what was understood."""

SETBACK = _phrases(
    "unfortunately|couldn't|could not|unable|not able|wasn't able|did not manage|didn't manage|unavailable",
    "not available|isn't available|can't find|cannot find|sold out|no longer|nothing is available|an error|failed to",
)
"""Words of somebody who could not do what was agreed and offers something else."""

CORRECTION = _phrases(
    "actually|instead|rather than|change (?:it|that|this|the|my|our)|correction|i meant|i mean|make (?:it|that)",
    "sorry(?=,)|my mistake",
)
REVISION = _phrases(
    "actually|instead|rather than|corrections?|correcting|i meant|i mean|make (?:it|that)|mistaken?|wrong|mistyped",
    "chang(?:e|es|ed|ing)|updat(?:e|es|ed|ing)|switch(?:ed)?|swap(?:ped)?|replac(?:e|ed)|mov(?:e|ed)|reschedul(?:e|ed)",
    "postponed?|raised?|lowered?|increased?|reduced?|extend(?:ed)?|shorten(?:ed)?|cancel(?:led|ed)?|call(?:ed)? off",
    "something (?:has )?c[ao]me up",
    "no longer|any ?more|on second thought|scratch that|turns out|after all|from now on|as of (?:now|today)",
    "(?:is|are|be|at|on) now|now (?:is|are)|the new|a new",
)
"""Words that introduce a correction of one's own statement."""

CHANGE = re.compile(r"\W*(?:can|could|may|might|would|will|shall)\b[^.!?]+\b(?:instead|rather)\b", re.IGNORECASE)
"""A question that asks for a change: "Can it be at noon instead?"; `match` it."""

WISH = _phrases(
    "(?:want|like|need|wish|love|have|trying|going|plan(?:ning)?) to (?:cancel|change|switch|update|move|replace|swap)",
    r"^\W*(?:please )?(?:cancel|change|switch|update|move|replace|swap)",
)
"""Words of somebody who wants a change that is not made yet."""

DECISION = _phrases(
    "(?:i|we|they|he|she)(?:'ve| have|'d| had| has)?(?: just| finally| all| both)? (?:decided|settled on|chose|opted)",
    "(?:i|we|they)(?:'ve| have)? (?:agreed|chosen) (?:to|on|that|upon)",
    "(?:was|were|been|is) (?:decided|agreed|approved)",
    "(?:my|our|the) (?:final )?(?:decision|choice) (?:is|was)",
)
INTENTION = _phrases(
    "(?:let's|let us|(?:i|we)(?:'ll| will| should)(?: just)?) (?:go (?:with|for|ahead)|use|take|book|pick|choose|keep"
    "|stick|stay with|do|have|order|meet|switch|move|start|make it|settle)",
    "go with|(?:i|we) choose",
)
"""Words of a decision, if what they decide is named beside them."""

RULE = _phrases(
    "only if|unless|at most|no (?:more|less|later|earlier) than|under no circumstances|allergic|allergy|not allowed",
    "the deadline|no longer|from now on|as a rule|(?:the|my|a) (?:limit|maximum|minimum)|mustn't|must not",
    "(?:should|must|please|to) (?:always|never)|(?:every time|each time) (?:you|we|somebody|someone)",
    r"(?:that|this|it|you|he|she|they|which|there) must (?!(?:be|have|feel)\b)\w+",
    r"must (?:be|have) (?:\w+ )?(?:below|under|above|over|within|before|after|by|at|\d)",
    r"(?<!that )(?<!this )(?<!it )(?<!you )(?<!he )(?<!she )(?<!they )(?<!which )(?<!there )(?<!a )must"
    r"(?!['’]?ve| (?:have|be|feel))",
    "(?:please|always|never|you)[^.!?]{1,60} in (?:the )?future|in (?:the )?future,? (?:please|always|never|you|don't)",
    r"no exceptions|without exception|only ever|whenever (?:it(?:'s| is)|you)\b",
    r"^\W*(?:please |and |but |so |also ){0,2}"
    r"(?:(?:don't|do not) (?!worry|forget|give up|hesitate|be afraid|mention|stress|sweat)"
    r"|never (?!saw|thought|knew|been|had|mind)|always (?!been|wanted|loved|had)|make sure (?!you)"
    r"|only (?!(?:one|two|three|four|five|\d+|on|at|for|from|until|till)\b))",
)
"""Words of a rule that stands."""

SERVICE = _phrases(
    "soon|shortly|right away|in (?:just |about )?(?:an?|a few|one|some) (?:more )?(?:minute|moment|second)s?",
    "(?:please|just|kindly) (?:\\w+ ){0,2}(?:check|confirm|review|verify)|the okay|your (?:approval|confirmation)",
    "before (?:(?:i|we) (?:book|confirm|go|make|order|place|proceed|send|submit)|sending|placing|submitting)",
    "(?:i|we)(?:['’]ll| will| can) (?:then |now )?(?:send|get|place|submit|put|proceed|let you|have (?:it|them|your))",
)
"""Words of a model about what it does next and waits for; with no name beside them they tell of nothing."""

ASIDE = _phrases(
    "(?:no problem|one moment|just a moment|will do|sure thing|of course|got it)(?=[,:])",
    "by the way|before i forget|one more thing|just so you (?:have it|know)|fyi|btw",
    "for (?:your|the) (?:information|notes?|records?)|(?:please )?(?:note|remember|keep in mind)(?: that|(?=[:,]))",
    r"(?:(?:please|just|kindly|to|let me|can you|could you|i(?:'d like|'ll| want| need)?) ){0,4}"
    r"(?:double[- ]check|confirm|verify|check|make sure|be (?:sure|clear|certain)|recap)(?:ing)?"
    r"(?: the following)?(?: that)?"
    r"(?=\W{1,3}(?:you|i|we|it|there)\b)",
    begin=r"\W*",
    end=r"\W*(?: |$)",
)
"""Words that open a sentence which tells something by the way, or reads it back; `match` it."""

NOTED = _words(
    "noted note notes understood got remember remembered mind recorded saved updated changed will course certainly sure"
    " ok okay"
    " notiert verstanden entendido anotado noté compris capito annotato понял понятно записал"
)
"""A reply says one of these of what it was told"""

NOTING = NOTED | _words(
    "alright right thanks thank done do keep made make taken take written put added that's it's i've i'll good"
    " great fine perfect absolutely yes"
)
"""and beside them only these, and what was told."""

CONDITION = _phrases(
    "at least|is required|are required|without|except|avoid|prefer|until|as long as|provided that",
    "only (?:on|in|at|with|for)|(?:don't|do not|doesn't|can't|cannot|can not|won't|wouldn't)"
    " (?:want|eat|drink|use|take|fly|share|tell|send|include)",
)
"""Words that limit what is wanted now."""

EMPTY_DENIALS = NEGATIONS | _words(
    "nope nah moment minute time today later maybe might unfortunately another other yet skip far wait thats"
)
"""Words that refuse, or put off, what somebody else has named."""

EMPTY_RULINGS = NEGATIONS | _words(
    "nope nah do worry necessary least give up forget hesitate afraid mention stress sweat bother sure make always"
)
"""Words that do not say by themselves what is denied."""
