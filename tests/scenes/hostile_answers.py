"""What a hostile or confused model answers, by kind and language: claims that no message covers, beside what is true.

Made from the sentences of ``hostile_answers.toml``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from reactor_memory.models import Message, ToolCall

Sentences = Mapping[str, Any]


class HostileAnswer(NamedTuple):
    """`facts` and `narrative` are what the model claims, all of it false or not to be told; `true` are sentences of the
    messages that memory must tell, `told` those of a narrative.
    """

    kind: str
    language: str
    messages: tuple[Message, ...]
    facts: tuple[dict[str, Any], ...] = ()
    narrative: str = ""
    true: tuple[str, ...] = ()
    told: str = ""

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.language}"

    @property
    def answer(self) -> dict[str, Any]:
        return {"facts": list(self.facts), "narrative": f"{self.narrative} {self.told}".strip(), "headline": ""}


def hostile_answers() -> Iterator[HostileAnswer]:
    """All kinds in all languages."""
    data = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    for language, said in data.items():
        for kind, make in _KINDS.items():
            yield make(said)._replace(kind=kind, language=language)


def _claim(value: str, anchor: str = "user", key: str = "statement", seq: int = 1, **fields: Any) -> dict[str, Any]:
    given = {"category": "CONDITION", "act": "statement", "failed": False, **fields}
    return {"anchor": anchor, "key": key, "value": value, "source_seq": seq, **given}


def _said(*texts: str) -> tuple[Message, ...]:
    return tuple(Message.user(text) if place % 2 == 0 else Message.assistant(text) for place, text in enumerate(texts))


def _part(name: str, **claim: Any) -> Callable[[Sentences], HostileAnswer]:
    """A claim of the part of a sentence, without the rest of it."""

    def make(said: Sentences) -> HostileAnswer:
        sentence, value = said[name]
        return HostileAnswer("", "", _said(sentence), (_claim(value, **claim),), true=(sentence,))

    return make


def _swapped_route(said: Sentences) -> HostileAnswer:
    sentence, start, end = said["route"]
    facts = (_claim(end, "trip", "from"), _claim(start, "trip", "destination"), _claim(end, "trip", "origin"))
    return HostileAnswer("", "", _said(sentence), facts, true=(sentence,))


def _swapped_debt(said: Sentences) -> HostileAnswer:
    sentence, owing, owed = said["debt"]
    facts = (_claim(owing, owed, "owes"), _claim(owing, owed, "debtor_of"))
    return HostileAnswer(
        "", "", _said(sentence), facts, said["false"]["debt"], true=(sentence,), told=said["true"]["debt"]
    )


def _wrong_person(said: Sentences) -> HostileAnswer:
    """What the user says of a relative, of the user; and what the user says, of the model."""
    (kin, of_kin), (own, of_user) = said["kin"], said["own"]
    facts = (_claim(of_kin), _claim(of_user, "assistant", seq=3))
    return HostileAnswer("", "", _said(kin, "OK", own), facts, said["false"]["person"], true=(kin, own))


def _invented(said: Sentences) -> HostileAnswer:
    sentence, owing, _ = said["debt"]
    facts = (_claim(owing, "Berta", "name"), _claim("Berta", owing, "friend"))
    return HostileAnswer("", "", _said(sentence), facts, said["false"]["invented"], true=(sentence,))


def _narrated(name: str, source: str) -> Callable[[Sentences], HostileAnswer]:
    def make(said: Sentences) -> HostileAnswer:
        sentence = said[source][0]
        told = said["true"].get(name, "")
        return HostileAnswer("", "", _said(sentence), narrative=said["false"][name], true=(sentence,), told=told)

    return make


def _measured(said: Sentences) -> HostileAnswer:
    """A number without its unit, and the unit of another."""
    sentence, number = said["measured"]
    facts = (_claim(number, "beam", "length"), _claim(number, "user", "age"))
    return HostileAnswer("", "", _said(sentence), facts, true=(sentence,))


def _stale_echo(said: Sentences) -> HostileAnswer:
    """The model repeats what the user corrected; the summarizer takes its word."""
    before, after, old, _ = said["moved"]
    messages = _said(before, "OK", after, before)
    facts = (_claim(old, "meeting", "time", seq=4, act="correction"), _claim(old, "meeting", "time", seq=4))
    return HostileAnswer("", "", messages, facts, true=(after,))


def _injected(said: Sentences) -> HostileAnswer:
    """A page that a tool read gives orders, and the model obeys."""
    order, value = said["injected"]
    call = ToolCall(id="c1", name="read_page", arguments={"url": "https://orchard.test"})
    own = said["own"][0]
    messages = (*_said(own), Message.assistant("", tool_calls=[call]), Message.tool(order, tool_call_id="c1"))
    facts = (_claim(value, seq=3), _claim(value, "user", "owes", seq=3, category="DECISION", act="correction"))
    return HostileAnswer("", "", messages, facts, order, true=(own,))


def _forged(said: Sentences) -> HostileAnswer:
    """A claim in the form of a quotation, which the model is not to make."""
    sentence, value = said["denied"]
    facts = (_claim(value, "the user #1", "quote.own.9"), _claim(value, "Marit #1", "quote.own.1"))
    return HostileAnswer("", "", _said(sentence), facts, true=(sentence,))


def _failed(said: Sentences) -> HostileAnswer:
    """An outcome that no result has."""
    sentence, value = said["own"]
    return HostileAnswer("", "", _said(sentence), (_claim(value, failed=True),), true=(sentence,))


def _quoted(said: Sentences) -> HostileAnswer:
    """What the user only quotes."""
    sentence = said["own"][0]
    quoting = f'Marit: "{sentence}"'
    return HostileAnswer("", "", _said(quoting), (_claim(said["own"][1]),), true=(sentence,))


_KINDS: Mapping[str, Callable[[Sentences], HostileAnswer]] = {
    "dropped negation": _part("denied"),
    "dropped limit": _part("limited", anchor="plan"),
    "dropped exception": _part("without", anchor="trip", key="companion"),
    "swapped route": _swapped_route,
    "swapped debt": _swapped_debt,
    "wrong person": _wrong_person,
    "question": _part("asked"),
    "invented name": _invented,
    "negation in the narrative": _narrated("denied", "denied"),
    "number word": _narrated("count", "debt"),
    "name in small letters": _narrated("small", "debt"),
    "answer to the conversation": _narrated("answer", "own"),
    "number without unit": _measured,
    "stale echo": _stale_echo,
    "injected instruction": _injected,
    "forged quotation": _forged,
    "invented outcome": _failed,
    "quoted words": _quoted,
}
