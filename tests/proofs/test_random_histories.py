"""Random histories under random settings: every context keeps every promise, and background work comes to its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reactor_memory import Container, ConversationManager, Fact, Message
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.verification import verify
from reactor_memory.errors import BudgetExceededError, InvalidInputError
from reactor_memory.testing import ScriptedSummarizer
from tests.acceptance.scenes import USER, memory
from tests.proofs.outcomes import explanation_problems
from tests.proofs.provider_rules import Json, anthropic_problems, gemini_problems, openai_problems, provider_problems
from tests.proofs.random_talk import RandomTalk, own_words, random_sections, remember_words

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

STEPS = 40
MOST_BRANCHES = 6


def chunks(seeds: int, size: int) -> list[Any]:
    """The seeds, `size` to a test."""
    starts = range(0, seeds, size)
    return [pytest.param(range(start, start + size), id=f"seeds {start} to {start + size - 1}") for start in starts]


@pytest.mark.parametrize("seeds", chunks(60, 10))
async def test_random_histories_in_memory(seeds: range) -> None:
    for seed in seeds:
        await run_history(seed, "memory://")


@pytest.mark.parametrize("seeds", chunks(8, 4))
async def test_random_histories_in_sqlite(seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        await run_history(seed, f"sqlite:///{tmp_path / str(seed)}.db")


async def run_history(seed: int, url: str) -> None:
    """The seed decides what is said and done, though not how background work falls in between."""
    print(f"seed {seed}")
    chance = Random(seed)
    async with memory(ScriptedSummarizer(default=remember_words), url, **random_sections(chance)) as container:
        history = RandomHistory(container, chance)
        await history.begin()
        for _ in range(STEPS):
            await history.step()
        await history.settle()


class RandomHistory:
    """A session and its forks: random acts on them, and what holds after each."""

    def __init__(self, container: Container, chance: Random) -> None:
        self.container = container
        self.manager: ConversationManager = container.conversation_manager()
        self.pins = container.pins()
        self.store = container.summary_store()
        self.count = container.message_counter().counted
        self.summaries = container.settings().summary
        self.chance = chance
        self.talk = RandomTalk(chance)
        self.branches = ["root"]
        self.withdrawn: set[str] = set()

    async def begin(self) -> None:
        await self.manager.save_history("root", self.talk.first_batch(), user_id=USER)

    async def step(self) -> None:
        acts = (self.save, self.fork, self.withdraw, self.pin, self.unpin, self.delete, self.load)
        (act,) = self.chance.choices(acts, weights=(45, 15, 12, 10, 3, 4, 24))
        await act(self.chance.choice(self.branches))

    async def save(self, session_id: str) -> None:
        await self.manager.save_history(session_id, self.talk.batch(), user_id=USER)

    async def fork(self, session_id: str) -> None:
        """A fork anywhere: before the first message, inside a turn, between a call and its result."""
        if len(self.branches) < MOST_BRANCHES:
            session = await self.manager.get_session(session_id, user_id=USER)
            at_seq = self.chance.randint(1, session.last_seq + 1)
            fork = await self.manager.fork(session_id, at_seq=at_seq, user_id=USER)
            self.branches.append(fork.session_id)

    async def withdraw(self, session_id: str) -> None:
        """Takes back a few messages, or all that the branch may take back."""
        for _ in range(self.chance.choice([1, 1, 2, 6])):
            try:
                message = await self.container.erasure().withdraw(session_id, user_id=USER)
            except InvalidInputError:
                return
            self.withdrawn |= own_words(message.content)

    async def pin(self, session_id: str) -> None:
        """Any message or fact. What tools said, calls and blank texts are refused."""
        facts = await self.container.facts().list(session_id, user_id=USER)
        if facts and self.chance.random() < 0.4:
            fact = self.chance.choice(facts)
            target: dict[str, Any] = {"fact": (fact.anchor, fact.key)}
        else:
            session = await self.manager.get_session(session_id, user_id=USER)
            target = {"seq": self.chance.randint(1, session.last_seq + 1)}
        with suppress(InvalidInputError):
            await self.pins.add(session_id, user_id=USER, **target)

    async def unpin(self, session_id: str) -> None:
        for pin in (await self.pins.list(session_id, user_id=USER))[:1]:
            name = "seq" if pin.fact is None else "fact"
            assert await self.pins.remove(session_id, user_id=USER, **{name: pin.target})  # type: ignore[arg-type]

    async def delete(self, session_id: str) -> None:
        if session_id != "root":
            gone = (await self.manager.delete(session_id, user_id=USER)).session_ids
            self.branches = [branch for branch in self.branches if branch not in gone]

    async def load(self, session_id: str) -> None:
        """A load of any kind, most often with no background work under way. The smallest budget named is just that."""
        if self.chance.random() < 0.7:
            await self.manager.drain()
        request = self.talk.request()
        try:
            context = await self.load_with(session_id, request)
        except BudgetExceededError as error:
            request["budget"] = error.minimum
            with pytest.raises(BudgetExceededError):
                await self.load_with(session_id, {**request, "budget": error.minimum - 1})
            context = await self.load_with(session_id, request)
        await self.check(session_id, context, request)
        await self.check_explanation(session_id, request)

    async def load_with(self, session_id: str, request: dict[str, Any]) -> Context:
        return await self.manager.load_history(session_id, user_id=USER, **request)

    async def check(self, session_id: str, context: Context, request: dict[str, Any]) -> None:
        pins = await self.pins.list(session_id, user_id=USER)
        visible = await self.manager.read_messages(session_id, user_id=USER)
        assert verify(context, count=self.count, verbatim={"pins": [pin.sha256 for pin in pins]}, log=visible) == []
        assert provider_problems(context) == []
        assert context.report.total_tokens <= request.get("budget", context.report.budget)
        assert context.report.freshness in ("none", "fresh", "catching_up", "empty")
        assert shown_words(context).isdisjoint(self.withdrawn)
        assert seqs_of(visible) <= accounted_seqs(context), "messages are missing and the report does not say so"
        if "message" in request:
            check_message_to_come(context, request["message"])

    async def check_explanation(self, session_id: str, request: dict[str, Any]) -> None:
        """Every message and every fact has one outcome, and asking for it changes nothing."""
        await self.manager.drain()
        explanation = await self.container.explainer().explain(session_id, user_id=USER, **request)
        session = await self.manager.get_session(session_id, user_id=USER)
        in_view = await self.manager.read_messages(session_id, user_id=USER)
        ledger = await self.read_ledger(session_id)
        problems = explanation_problems(explanation, last_seq=session.last_seq, in_view=in_view, ledger=ledger)
        assert problems == []
        assert (await self.load_with(session_id, request)).report == explanation.context.report

    async def read_ledger(self, session_id: str) -> Sequence[Fact]:
        """Every fact that was found; in `full` mode those of the summary."""
        session = await self.manager.get_session(session_id, user_id=USER)
        ledger = await self.store.read_ledger(session_id, session.branch)
        summary = await self.manager.get_summary(session_id, user_id=USER)
        return ledger.facts if ledger.segments or summary is None else summary.facts()

    async def settle(self) -> None:
        """Once the background work is done, nothing changes by itself, and nothing is left undone."""
        await self.manager.drain()
        for session_id in self.branches:
            await self.check_same_bytes(session_id)
            await self.check_ledger(session_id)
            for _ in range(3):
                await self.load(session_id)

    async def check_same_bytes(self, session_id: str) -> None:
        await self.load_with(session_id, {})
        await self.manager.drain()
        first = await self.load_with(session_id, {})
        second = await self.load_with(session_id, {})
        assert first.report.digest == second.report.digest
        assert first.to_openai() == second.to_openai()

    async def check_ledger(self, session_id: str) -> None:
        """A session that is long enough for a summary has nothing stale in it; asked to, it takes over all segments.

        A fork need not do that unasked when an ancestor seals more of what it inherited.
        """
        session = await self.manager.get_session(session_id, user_id=USER)
        if self.summaries.mode == "full" or session.last_seq <= self.summaries.trigger_message_count:
            return
        summary = await self.manager.get_summary(session_id, user_id=USER)
        assert summary is None or summary.stale_ranges == ()
        summary = await self.manager.summarize(session_id, user_id=USER)
        segments = await self.container.facts().segments(session_id, user_id=USER)
        assert (summary.covered_seq if summary else 0) == (segments[-1].end_seq if segments else 0)


def seqs_of(messages: Iterable[Message]) -> set[int]:
    return {message.seq for message in messages if message.seq is not None}


def shown_words(context: Context) -> set[str]:
    return {word for message in context.messages for word in own_words(message.content)}


def accounted_seqs(context: Context) -> set[int]:
    """The messages that the context shows, has in its memory, or reports as unread, without their call or result, or as
    system messages that it had no room for."""
    report = context.report
    told = ("orphan_result", "open_call")
    absent = [
        entry for entry in report.dropped if entry.by == "seq" and (entry.reason in told or entry.part == "system")
    ]
    remembered = (1, report.covered_seq if report.strategy == "hierarchical" else 0)
    ranges = [remembered, *report.unread, *((entry.first, entry.last) for entry in absent)]
    return seqs_of(context.messages) | {seq for first, last in ranges for seq in range(first, last + 1)}


def check_message_to_come(context: Context, message: Message) -> None:
    last = context.messages[-1]
    assert context.report.parts[-1] == "current"
    assert (last.role, last.seq) == ("user", None)
    assert last.content == message.content or context.report.clamped


USER_SAYS: Json = {"role": "user", "content": "x"}
FIND: Json = {"name": "find"}
OPENAI_CALL: Json = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "a", "function": FIND}, {"id": "b", "function": FIND}],
}
OPENAI_RESULT: Json = {"role": "tool", "tool_call_id": "a", "content": "x"}
TEXT: Json = {"type": "text", "text": "x"}
ANTHROPIC_USER: Json = {"role": "user", "content": [TEXT]}
ANTHROPIC_CALL: Json = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", **FIND}]}
ANTHROPIC_RESULT: Json = {"type": "tool_result", "tool_use_id": "a"}
GEMINI_USER: Json = {"role": "user", "parts": [{"text": "x"}]}
GEMINI_MODEL: Json = {"role": "model", "parts": [{"text": "x"}]}
GEMINI_CALL: Json = {"role": "model", "parts": [{"function_call": FIND}]}
GEMINI_RESULT: Json = {"function_response": FIND}


@pytest.mark.parametrize(
    "messages",
    [[OPENAI_RESULT], [OPENAI_CALL, USER_SAYS], [OPENAI_CALL, OPENAI_RESULT], [OPENAI_CALL, OPENAI_RESULT] * 2],
)
def test_openai_would_refuse(messages: list[Json]) -> None:
    assert list(openai_problems(messages))


@pytest.mark.parametrize(
    "messages",
    [
        [ANTHROPIC_CALL],
        [ANTHROPIC_USER, ANTHROPIC_USER],
        [{"role": "user", "content": []}],
        [{"role": "user", "content": [{"type": "text", "text": " "}]}],
        [{"role": "user", "content": [ANTHROPIC_RESULT]}],
        [ANTHROPIC_USER, ANTHROPIC_CALL, ANTHROPIC_USER],
        [ANTHROPIC_USER, ANTHROPIC_CALL, {"role": "user", "content": [TEXT, ANTHROPIC_RESULT]}],
    ],
)
def test_anthropic_would_refuse(messages: list[Json]) -> None:
    assert list(anthropic_problems(messages))


@pytest.mark.parametrize(
    "contents",
    [
        [GEMINI_MODEL],
        [{"role": "user", "parts": []}],
        [{"role": "user", "parts": [GEMINI_RESULT]}],
        [GEMINI_USER, GEMINI_CALL, GEMINI_USER],
        [GEMINI_USER, GEMINI_CALL, {"role": "user", "parts": [GEMINI_RESULT, {"text": "x"}]}],
        [GEMINI_USER, GEMINI_MODEL, GEMINI_CALL],
    ],
)
def test_gemini_would_refuse(contents: list[Json]) -> None:
    assert list(gemini_problems(contents))
