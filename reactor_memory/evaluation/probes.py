"""Whether a context still holds a detail that the conversation settled.

A probe is found in a unit (`reactor_memory.evaluation.units`), which must hold the thing that the detail is about and
the detail itself. A detail that was corrected must not be shown as it was before.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from reactor_memory.core.context.context import Context
from reactor_memory.evaluation.units import message_unit
from reactor_memory.models import Message, Value
from reactor_memory.text.borders import joins

_MARKED = re.compile(r"\((?:failed|superseded|cancelled)\)")
_RETRACTED = re.compile(
    r"\b(?:instead(?: of)?|rather than|no longer|not|formerly|previously)(?: (?:the|at|on|in|for|an?))?\W*$"
)


class Probe(Value, frozen=True, kw_only=True):
    """A detail to ask for: `anchor` says of which thing, `value` is the detail, both in the forms that were used.

    Without an anchor the value alone is looked for. `canonical` is the form to show; `evidence` are the positions, from
    0, of the messages that state it. `stale` are the forms of what it was before it was corrected. `kind` sorts probes
    into groups that are measured apart.
    """

    question: str
    anchor: tuple[str, ...]
    value: tuple[str, ...]
    canonical: str | None = None
    slot: str | None = None
    evidence: tuple[int, ...] = ()
    stale: tuple[str, ...] = ()
    kind: str | None = None


def find(probe: Probe, units: Sequence[str]) -> int | None:
    """The position of the first unit that holds one form of the anchor and one of the value."""
    for position, unit in enumerate(units):
        if is_about(unit, probe) and holds(unit, probe.value):
            return position
    return None


def shows_stale(probe: Probe, units: Iterable[str]) -> bool:
    """Whether a reader of all units, in their order, is left with the value from before the correction.

    The last word counts: a unit that holds the anchor and the corrected value makes right what stands before it, in the
    same unit too. A stale value that is marked (``(failed)``, ``(superseded)``), or taken back where it stands ("not at
    7 pm"), is not shown as current.
    """
    is_stale = False
    for text in map(_folded, units):
        if probe.stale and is_about(text, probe):
            stale, corrected = _last_current(text, probe.stale), _last(text, probe.value)
            if stale != corrected:
                is_stale = stale > corrected
    return is_stale


def evidence_share(evidence: Sequence[Message], context: Context) -> float | None:
    """The share of these messages that the context shows verbatim, outside memory, or quotes whole in what comes back
    behind the window; None if there are none.
    """
    if not evidence:
        return None
    parts = list(zip(context.messages, context.report.parts, strict=True))
    shown = {_said(message) for message, part in parts if part != "current" and part not in context.report.blocks}
    behind = {frame.part for frame in context.report.frames if frame.place == "last"}
    quoted = [_letters(line) for message, part in parts if part in behind for line in message.content.splitlines()]
    held = (_said(message) in shown or _is_quoted(message, quoted) for message in evidence)
    return sum(held) / len(evidence)


def _said(message: Message) -> tuple[str, str]:
    return message.role, message_unit(message)


def _is_quoted(message: Message, lines: Iterable[str]) -> bool:
    said = _letters(message.content)
    return bool(said) and any(said in line for line in lines)


def _letters(text: str) -> str:
    """The letters and digits alone: a line of a block has no breaks and no markup."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFC", text)))


def is_about(text: str, probe: Probe) -> bool:
    """Whether a text holds one of the forms of the anchor; without an anchor every text does."""
    return not probe.anchor or holds(text, probe.anchor)


def holds(text: str, forms: Iterable[str]) -> bool:
    """Whether one of the forms stands in a text, on the borders of words as their script has them."""
    folded = _folded(text)
    return any(next(_occurrences(folded, _folded(form)), None) is not None for form in forms)


def _last(text: str, forms: Iterable[str]) -> int:
    """Where the last of the forms ends in the text; -1 if it holds none."""
    return max((found.end() for form in forms for found in _occurrences(text, _folded(form))), default=-1)


def _last_current(text: str, forms: Iterable[str]) -> int:
    """The same, of forms that are neither marked nor taken back."""
    if _MARKED.search(text):
        return -1
    found = (found for form in forms for found in _occurrences(text, _folded(form)))
    return max((each.end() for each in found if not _RETRACTED.search(text[: each.start()])), default=-1)


def _occurrences(text: str, form: str) -> Iterator[re.Match[str]]:
    """On the borders of words: 13 is not in 130. A script without spaces has one everywhere."""
    if not form or form not in text:
        return
    for found in re.finditer(re.escape(form), text):
        if not joins(text[found.start() - 1 : found.start()], form[0]) and not joins(form[-1], text[found.end() :][:1]):
            yield found


@lru_cache(maxsize=4096)
def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())
