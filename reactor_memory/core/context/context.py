"""What the model gets. Its report is made when somebody reads it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from sys import getsizeof
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from reactor_memory import forms
from reactor_memory.models import JsonObject, Message

if TYPE_CHECKING:
    from reactor_memory.core.context.blocks import Part
    from reactor_memory.core.context.report import ContextReport


T = TypeVar("T")

_MISSING: Any = object()


class ProviderForms:
    """What messages are in the form of each provider."""

    __slots__ = ()

    def _shown(self) -> tuple[Sequence[Message], str | None]:
        """The messages and the system prompt."""
        raise NotImplementedError

    def _written(self, form: str) -> Any:
        messages, system = self._shown()
        return getattr(forms, f"to_{form}")(messages, system=system)

    def to_openai(self) -> list[JsonObject]:
        """The `messages` of a chat completion."""
        return self._written("openai")

    def to_openai_responses(self) -> list[JsonObject]:
        """The `input` of a request to the Responses API."""
        return self._written("openai_responses")

    def to_ollama(self) -> list[JsonObject]:
        """The `messages` of Ollama's chat."""
        return self._written("ollama")

    def to_anthropic(self) -> JsonObject:
        """`messages`, and `system` and `container` if there are any, of a request to the Messages API."""
        return self._written("anthropic")

    def to_gemini(self) -> JsonObject:
        """`contents`, and `system_instruction` (part of the config) if there is any, as google-genai takes them."""
        return self._written("gemini")


class Context(ProviderForms):
    """The messages for the model, in order, with their report. `system` is the caller's system prompt, if given.

    `report` may be what makes it: then it is made when it is first read, of the values that the context was made of.
    Two contexts are equal if all three are. `made` is where what is made of a context stays that is given again, if
    it takes no more than `room` bytes.
    """

    __slots__ = ("_made", "_report", "_room", "messages", "system")

    def __init__(
        self,
        *,
        messages: list[Message],
        report: ContextReport | Callable[[], ContextReport],
        system: str | None = None,
        made: dict[Hashable, Any] | None = None,
        room: int = 0,
    ) -> None:
        self._made = made
        self._room = room
        self.messages = messages
        self.system = system
        self._report = report

    @property
    def report(self) -> ContextReport:
        """What was kept, dropped and clamped, and why."""
        if callable(self._report):
            self._report = self._report()
            if elsewhere := forms.not_shown(self.messages):
                self._report = msgspec.structs.replace(self._report, not_shown=elsewhere)
        return self._report

    @property
    def report_as_made(self) -> ContextReport | Callable[[], ContextReport]:
        """The report, or what makes it, if nobody has read it."""
        return self._report

    def once(self, key: Hashable, make: Callable[[Context], T]) -> T:
        """What `make` makes of the context. Of one that is kept and given again it is what was made before, if that was
        under the same key, if there is room for it, as `sys.getsizeof` tells: so it must not be changed.
        """
        if self._made is None:
            return make(self)
        found = self._made.get(key, _MISSING)  # threads share it: another may clear it at any time
        if found is _MISSING:
            found = make(self)
            self._made.clear()
            if getsizeof(found) <= self._room:
                self._made[key] = found
        return cast("T", found)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Context):
            return NotImplemented
        return (self.messages, self.report, self.system) == (other.messages, other.report, other.system)

    def __repr__(self) -> str:
        report = self.report
        parts = ", ".join(f"{part} {tokens:,}" for part, tokens in report.tokens.items())
        shown = f"{len(self.messages)} messages, {report.total_tokens:,} of {report.budget:,} tokens"
        return f"<Context of {report.session_id!r}: {shown}{f' ({parts})' if parts else ''}>"

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """For a copy or a pickle: what makes a report cannot be pickled, the report can."""
        return None, {
            "messages": self.messages,
            "system": self.system,
            "_report": self.report,
            "_made": None,
            "_room": 0,
        }

    def part(self, name: Part) -> list[Message]:
        """The messages of one part."""
        return [message for part, message in zip(self.report.parts, self.messages, strict=True) if part == name]

    def _shown(self) -> tuple[Sequence[Message], str | None]:
        return self.messages, self.system
