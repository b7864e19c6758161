"""Stand-ins for what a test wants to steer: the time, and the summarizer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import anyio

from reactor_memory.core.ports import Condenser
from reactor_memory.models import Message, Value
from reactor_memory.models.ledger import NOTHING_KNOWN, Condensed, Extraction, Known, Usage


class FakeClock:
    """A `Clock` that stands still until it is moved. Microseconds since the epoch, UTC."""

    def __init__(self, now: int = 1_700_000_000_000_000) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += round(seconds * 1_000_000)


class SummarizerCall(Value, frozen=True, kw_only=True):
    """What a summarizer was asked."""

    messages: tuple[Message, ...]
    known: Known

    @property
    def seqs(self) -> tuple[int | None, ...]:
        return tuple(message.seq for message in self.messages)


Answer = Extraction | Exception | Callable[[Sequence[Message]], Extraction]


class ScriptedSummarizer:
    """A `Summarizer` that answers what the test says, in order, and records what it was asked.

    An answer is an `Extraction`, an exception to raise, or a function of the messages. When the script is used up,
    `default` answers: without one, a narrative that names the range that was read. `delay_seconds` passes before
    every answer. While `hold()` is in force, calls wait for `let_go()`.
    """

    def __init__(
        self,
        script: Iterable[Answer] = (),
        *,
        default: Answer | None = None,
        delay_seconds: float = 0.0,
        name: str = "scripted",
        prompt_version: str = "1",
    ) -> None:
        self.calls: list[SummarizerCall] = []
        self.running = 0
        self.most_running = 0
        self.closed = 0
        self.delay_seconds = delay_seconds
        self._script = list(script)
        self._default: Answer = name_the_range if default is None else default
        self._name = name
        self._prompt_version = prompt_version
        self._gate: anyio.Event | None = None

    @property
    def condenser(self) -> Condenser | None:
        return None

    @property
    def name(self) -> str:
        return self._name

    @property
    def prompt_version(self) -> str:
        return self._prompt_version

    def then(self, *answers: Answer) -> ScriptedSummarizer:
        """Add answers to the script."""
        self._script += answers
        return self

    def hold(self) -> None:
        """From now on every call waits."""
        self._gate = anyio.Event()

    def let_go(self) -> None:
        """The calls that wait, and later ones, go on."""
        if self._gate is not None:
            self._gate.set()
        self._gate = None

    async def summarize(self, messages: Sequence[Message], *, known: Known = NOTHING_KNOWN) -> Extraction:
        self.calls.append(SummarizerCall(messages=tuple(messages), known=known))
        answer = self._script.pop(0) if self._script else self._default
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await self._wait()
        finally:
            self.running -= 1
        return _give(answer, messages)

    async def aclose(self) -> None:
        self.closed += 1

    async def _wait(self) -> None:
        if self._gate is not None:
            await self._gate.wait()
        await anyio.sleep(self.delay_seconds)


class CondenserCall(Value, frozen=True, kw_only=True):
    """What a condenser was asked."""

    messages: tuple[Message, ...]
    prompt: str
    max_tokens: int


class ScriptedCondenser(ScriptedSummarizer):
    """A `Summarizer` that is its own `Condenser`. Its texts name every message that they stand for (``m1 m2 ...``),
    behind earlier texts too, unless `texts` holds what to answer instead. Each costs 11 tokens. Every call after
    `fail_after(n)` more fails with an error.
    """

    def __init__(self, texts: Iterable[str] = (), **options: Any) -> None:
        super().__init__(**options)
        self.condensed: list[CondenserCall] = []
        self.texts = list(texts)
        self._failure: tuple[int, Exception] | None = None

    @property
    def condenser(self) -> Condenser:
        return self

    def fail_after(self, calls: int, error: Exception) -> None:
        self._failure = len(self.condensed) + calls, error

    def recover(self) -> None:
        """From now on no call fails."""
        self._failure = None

    async def condense(self, messages: Sequence[Message], *, prompt: str, max_tokens: int) -> Condensed:
        self.condensed.append(CondenserCall(messages=tuple(messages), prompt=prompt, max_tokens=max_tokens))
        await self._wait()
        if self._failure is not None and len(self.condensed) > self._failure[0]:
            raise self._failure[1]
        text = self.texts.pop(0) if self.texts else " ".join(map(_named, messages))
        return Condensed(text=text, usage=Usage(tokens_read=10, tokens_written=1))


def _named(message: Message) -> str:
    return message.content if message.role == "summary" else f"m{message.seq}"


def name_the_range(messages: Sequence[Message]) -> Extraction:
    """No facts, and a narrative that says which messages were read."""
    text = f"Messages {messages[0].seq} to {messages[-1].seq} were read." if messages else ""
    return Extraction(narrative=text, headline=text)


def _give(answer: Answer, messages: Sequence[Message]) -> Extraction:
    if isinstance(answer, Exception):
        raise answer
    return answer if isinstance(answer, Extraction) else answer(messages)
