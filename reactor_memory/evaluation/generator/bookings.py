"""Things that are arranged with tools: asked for, read back, made, and later sometimes changed.

Each plot is a generator that yields where the talk turns to something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from reactor_memory.evaluation.generator import phrases
from reactor_memory.evaluation.generator.details import Detail, code, name, other_than, person
from reactor_memory.evaluation.generator.domains import DOMAINS, Domain, Slot
from reactor_memory.evaluation.generator.script import Script
from reactor_memory.evaluation.probes import Probe

_UNIQUE = (person, name, code)


class Booking:
    """One thing: what is known of it, and the talk and the calls about it."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.dice = script.dice
        self.domain: Domain = self.dice.choice(DOMAINS)
        self.subject = script.unused.draw(self.domain.subject.kind)
        self.title = self.domain.title.format(self.subject.spoken)
        self.details = {slot: self._draw(slot) for slot in self.domain.slots}
        self.reference = self.dice.choice(("{}", "R-{}", "ref{}")).format(self.dice.randrange(10_000, 100_000))
        self.evidence: dict[Slot, list[int]] = {slot: [] for slot in self.details}
        self.stated: list[int] = []
        self._has_reference = self.dice.random() < 0.8

    def _draw(self, slot: Slot) -> Detail:
        return self.script.unused.draw(slot.kind) if slot.kind in _UNIQUE else slot.kind(self.dice)

    def say(self, who: Callable[[str], int], templates: tuple[str, ...], slot: Slot | None = None, **words: str) -> int:
        """A sentence about the thing; with `slot` it may name that detail as it is now."""
        if slot is not None:
            phrased = slot.phrase.format(self.details[slot].spoken)
            words = {"label": slot.label, "phrased": phrased, "new": self.details[slot].spoken, **words}
        filled = {
            "title": self.title,
            "told": self.told(),
            "verb": self.domain.makes,
            "reference": self.reference,
            **words,
        }
        return who(self.script.choose(templates, **filled))

    def told(self) -> str:
        """All details in words."""
        return ", ".join(slot.phrase.format(detail.spoken) for slot, detail in self.details.items())

    def ask(self) -> None:
        """The user asks for it, at once with every detail or one after the other; maybe something is looked up."""
        if self.dice.random() < 0.6:
            self._states(self.say(self.script.user, phrases.ASKING))
        else:
            self.say(self.script.user, phrases.ASKING_STEP_BY_STEP)
            for slot, detail in self.details.items():
                self.script.assistant(self.script.choose(phrases.ASKING_FOR_DETAIL, label=slot.label))
                self.script.user(detail.spoken + self.dice.choice((".", "", ", please.")))
        if self.dice.random() < 0.5:
            self._look_up()

    def read_back(self) -> None:
        self._states(self.say(self.script.assistant, phrases.READING_BACK))

    def agree(self) -> None:
        self.say(self.script.user, phrases.AGREEING)

    def make(self) -> None:
        """It is made, and that is said."""
        arguments = self._requested()
        if self.dice.random() < 0.3:
            arguments = {"request": arguments}
        self._states(self.script.call(f"{self.domain.makes} {self.domain.thing}", arguments, self._made()))
        told = self.say(self.script.assistant, phrases.DONE_WITH_REFERENCE if self._has_reference else phrases.DONE)
        self.stated = [told]

    def fail_to_make(self) -> None:
        self.script.call(f"{self.domain.makes} {self.domain.thing}", self._requested(), self.refusal())

    def change(self, slot: Slot, result: object) -> int:
        """A call that changes one detail, in one of the ways in which services let that be done."""
        written = self.details[slot].written
        changed: tuple[dict[str, object], ...] = (
            {slot.label: written},
            {slot.label: written},
            {f"new {slot.label}": written},
            {"changes": {slot.label: written}},
            {"field": self.script.key(slot.label), "value": written},
        )
        arguments = {**self._named(), **self.dice.choice(changed)}
        return self.script.call(f"{self.domain.changes} {self.domain.thing}", arguments, result)

    def cancel(self) -> int:
        result: tuple[object, ...] = ({"status": "cancelled"}, {"ok": True}, f"{self.domain.thing} cancelled")
        return self.script.call(f"cancel {self.domain.thing}", self._named(), self.dice.choice(result))

    def _named(self) -> dict[str, object]:
        """How a call says which thing it is about."""
        if self._has_reference:
            return {f"{self.domain.thing} id": self.reference}
        return {self.domain.subject.label: self.subject.written}

    def replace(self, slot: Slot) -> Detail:
        """Draw another value for a detail; the old one."""
        old = self.details[slot]
        self.details[slot] = self._draw(slot) if slot.kind in _UNIQUE else other_than(old, slot.kind, self.dice)
        self.evidence[slot] = []
        return old

    def correctable(self) -> Slot:
        return self.dice.choice(list(self.details))

    def changed(self) -> dict[str, object]:
        """The result of a call that changed something."""
        named: dict[str, object] = {f"{self.domain.thing} id": self.reference, "status": "updated"}
        return self.dice.choice(({"success": True}, named if self._has_reference else {"ok": True}))

    def probe(self, slot: Slot, kind: str, *stale: Detail) -> None:
        """Ask for a detail at the end of the session."""
        detail = self.details[slot]
        self.script.probes.append(
            Probe(
                question=f"What is the {slot.label} of {self.title}?",
                anchor=(self.subject.spoken, *([self.reference] if self._has_reference else [])),
                value=detail.forms,
                canonical=detail.written,
                slot=self.script.key(slot.label),
                evidence=tuple(self.evidence[slot]),
                stale=tuple(dict.fromkeys(form for each in stale for form in each.forms)),
                kind=kind,
            )
        )

    def probe_others(self, slot: Slot | None = None) -> None:
        """Ask for all details but this one, and for the reference."""
        for other in self.details:
            if other is not slot:
                self.probe(other, "planted")
        if self._has_reference:
            self._probe_state(f"What is the reference of {self.title}?", "reference", "planted", self.reference)

    def probe_cancelled(self) -> None:
        """Ask whether it is still on; the name of the tool says that it is not, too."""
        tool = self.script.tool(f"cancel {self.domain.thing}")
        self._probe_state(f"Is {self.title} still on?", "state", "cancelled", "cancelled", tool)

    def _probe_state(self, question: str, slot: str, kind: str, *value: str) -> None:
        probe = Probe(question=question, anchor=(self.subject.spoken,), value=value, canonical=value[0], slot=slot)
        self.script.probes.append(replace(probe, evidence=tuple(self.stated), kind=kind))

    def _states(self, position: int) -> None:
        for positions in self.evidence.values():
            positions.append(position)

    def _written(self) -> dict[str, object]:
        return {slot.label: detail.written for slot, detail in self.details.items()}

    def _requested(self) -> dict[str, object]:
        return {self.domain.subject.label: self.subject.written, **self._written()}

    def _made(self) -> object:
        """What a service answers when it made something: flat, nested, with an echo, in a list or in words."""
        if not self._has_reference:
            return self.dice.choice(({"success": True}, {"status": "confirmed"}, {"ok": True, "message": "done"}))
        named: dict[str, object] = {f"{self.domain.thing} id": self.reference}
        return self.dice.choice(
            (
                {**named, "status": "confirmed"},
                {**named, **self._written(), "state": "open"},
                {"data": {**named, "version": 1}, "ok": True},
                [named],
                f"Confirmed. The reference is {self.reference}.",
            )
        )

    def refusal(self) -> object:
        """The result of a call that a service refused."""
        reason = self.dice.choice(phrases.REFUSALS)
        return self.dice.choice(
            (
                {"error": {"code": 409, "message": reason}},
                {"status": "rejected", "reason": reason},
                {"success": False, "message": reason},
                f"Error: {reason}",
                [],
            )
        )

    def _look_up(self) -> None:
        """A search that lists other things of the kind."""
        kind = self.domain.subject.kind
        found = [
            {self.domain.subject.label: self.script.unused.draw(kind).written, "free": self.dice.random() < 0.5}
            for _ in range(self.dice.randrange(2, 5))
        ]
        first = next(iter(self.details))
        arguments = {first.label: self.details[first].written, "limit": len(found)}
        self.script.call(f"{self.domain.finds} {self.domain.thing}s", arguments, {"results": found, "total": 34})


def _agreed(script: Script) -> Booking:
    """Asked for, read back, agreed to."""
    booking = Booking(script)
    booking.ask()
    booking.read_back()
    booking.agree()
    return booking


def _made(script: Script) -> Booking:
    booking = _agreed(script)
    booking.make()
    return booking


def plain(script: Script) -> Iterator[None]:
    """Asked for, read back, made."""
    booking = _made(script)
    booking.probe_others()
    yield


def reworded(script: Script) -> Iterator[None]:
    """Corrected in words before it is made."""
    booking = Booking(script)
    booking.ask()
    booking.read_back()
    slot = booking.correctable()
    stale = booking.replace(slot)
    booking.say(script.user, phrases.REWORDING, slot)
    booking.read_back()
    booking.agree()
    booking.make()
    booking.probe(slot, "corrected", stale)
    booking.probe_others(slot)
    yield


def changed(script: Script) -> Iterator[None]:
    """Made, and later changed by another call, sometimes twice."""
    booking = _made(script)
    slot, stale = booking.correctable(), list[Detail]()
    for _ in range(script.dice.choice((1, 1, 2))):
        yield
        stale.append(booking.replace(slot))
        told = booking.say(script.user, phrases.MOVING, slot)
        called = booking.change(slot, booking.changed())
        booking.say(script.assistant, phrases.MOVED, slot)
        booking.evidence[slot] = [told, called]
    booking.probe(slot, "corrected", *(each for each in stale if each != booking.details[slot]))
    booking.probe_others(slot)
    yield


def cancelled(script: Script) -> Iterator[None]:
    """Made, and later given up."""
    booking = _made(script)
    yield
    booking.say(script.user, phrases.CANCELLING)
    booking.cancel()
    booking.stated = [booking.say(script.assistant, phrases.CANCELLED)]
    booking.probe_cancelled()
    yield


def refused(script: Script) -> Iterator[None]:
    """A first attempt fails; another value does it."""
    booking = _agreed(script)
    booking.fail_to_make()
    slot = booking.correctable()
    booking.say(script.assistant, phrases.REFUSED, slot, old=booking.details[slot].spoken)
    stale = booking.replace(slot)
    booking.say(script.user, phrases.TRYING_AGAIN, slot)
    booking.make()
    booking.probe(slot, "failed", stale)
    booking.probe_others(slot)
    yield


def kept(script: Script) -> Iterator[None]:
    """A change is asked for later, and refused: all stays as it was."""
    booking = _made(script)
    yield
    slot = booking.correctable()
    evidence, before = booking.evidence[slot], booking.replace(slot)
    attempted = booking.details[slot]
    booking.say(script.user, phrases.MOVING, slot)
    booking.change(slot, booking.refusal())
    booking.details[slot] = before
    told = booking.say(script.assistant, phrases.KEPT, slot, new=attempted.spoken)
    booking.say(script.user, phrases.ACCEPTING)
    booking.evidence[slot] = [*evidence, told]
    booking.probe(slot, "failed", attempted)
    booking.probe_others(slot)
    yield


PLOTS = (plain, plain, reworded, changed, changed, refused, kept, cancelled)
"""What may happen to a booking; what is named twice happens twice as often."""
