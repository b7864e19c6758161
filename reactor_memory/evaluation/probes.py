"""Whether a context still holds a detail that the conversation settled.

A probe is found in a *unit*, a stretch of text that a reader takes in as one: a line of a memory block, or a whole
message. The unit must hold the thing that the detail is about and the detail itself. A detail that was corrected must
not be shown as it was before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import msgspec

from reactor_memory.context.report import Context
from reactor_memory.models import JsonObject, Message, Value

MAX_LINE_CHARACTERS = 400
"""A longer line of a memory block is no unit: everything in one line would always be found."""

MEMORY_PARTS = frozenset({"facts", "narrative", "compressed", "condensed", "recalled_facts"})

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


def context_units(context: Context) -> tuple[str, ...]:
    """What a reader of the context takes in at once, in its order. The message to come is none: it is the question."""
    units: list[str] = []
    for message, part in zip(context.messages, context.report.parts, strict=True):
        if part == "current":
            continue
        if part in MEMORY_PARTS:
            units += [line for line in message.content.split("\n") if len(line) <= MAX_LINE_CHARACTERS]
        else:
            units.append(message_unit(message))
    return tuple(units)


def message_unit(message: Message) -> str:
    """The text of a message and its tool calls as JSON."""
    if not message.tool_calls:
        return message.content
    calls = [{"name": call.name, "arguments": call.arguments} for call in message.tool_calls]
    return f"{message.content}\n{msgspec.json.encode(calls).decode()}"


def request_units(request: Iterable[JsonObject]) -> tuple[str, ...]:
    """The messages of a request to a provider as units: every string in a message, one below the other."""
    return tuple("\n".join(_strings(message)) for message in request)


def find(probe: Probe, units: Sequence[str]) -> int | None:
    """The position of the first unit that holds one form of the anchor and one of the value."""
    for position, unit in enumerate(units):
        text = _folded(unit)
        if _is_about(text, probe) and _holds_any(text, probe.value):
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
        if probe.stale and _is_about(text, probe):
            stale, corrected = _last_current(text, probe.stale), _last(text, probe.value)
            if stale != corrected:
                is_stale = stale > corrected
    return is_stale


def evidence_shown(evidence: Sequence[Message], context: Context) -> float | None:
    """The share of these messages that the context shows verbatim, outside memory; None if there are none."""
    if not evidence:
        return None
    parts = zip(context.messages, context.report.parts, strict=True)
    shown = {_said(message) for message, part in parts if part != "current" and part not in MEMORY_PARTS}
    return sum(_said(message) in shown for message in evidence) / len(evidence)


def _strings(value: object) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:  # pyright: ignore[reportUnknownVariableType]
            yield from _strings(item)  # pyright: ignore[reportUnknownArgumentType]


def _said(message: Message) -> tuple[str, str]:
    return message.role, message_unit(message)


def _is_about(text: str, probe: Probe) -> bool:
    return not probe.anchor or _holds_any(text, probe.anchor)


def _last(text: str, forms: Iterable[str]) -> int:
    """Where the last of the forms ends in the text; -1 if it holds none."""
    return max((found.end() for form in forms for found in _occurrences(text, _folded(form))), default=-1)


def _last_current(text: str, forms: Iterable[str]) -> int:
    """The same, of forms that are neither marked nor taken back."""
    if _MARKED.search(text):
        return -1
    found = (found for form in forms for found in _occurrences(text, _folded(form)))
    return max((each.end() for each in found if not _RETRACTED.search(text[: each.start()])), default=-1)


def _holds_any(text: str, forms: Iterable[str]) -> bool:
    return any(_holds(text, _folded(form)) for form in forms)


def _holds(text: str, form: str) -> bool:
    return next(_occurrences(text, form), None) is not None


def _occurrences(text: str, form: str) -> Iterator[re.Match[str]]:
    """On word borders: 13 is not in 130."""
    if form and form in text:
        yield from re.finditer(rf"(?<!\w){re.escape(form)}(?!\w)", text)


@lru_cache(maxsize=4096)
def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
