"""The library with real models of 135 and 118 million parameters. So small a model invents things: that is the test.

`make test-llm` installs the models and prints what was claimed and refused.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import quantiles
from typing import Any

import anyio
import pytest

from reactor_memory import Memory, Message, open_memory
from reactor_memory.core.context.context import Context
from reactor_memory.errors import SummarizationError
from reactor_memory.evaluation.generator import generate_sessions
from reactor_memory.evaluation.scores import Scores, ScoreSheet, look_for
from reactor_memory.evaluation.sessions import LabelledSession, without_tools
from reactor_memory.evaluation.units import units_of
from reactor_memory.features.facts.evidence import evidence_text
from reactor_memory.features.facts.summarizers.answer import parse_answer
from reactor_memory.features.facts.summarizers.edited_records import is_ruling
from reactor_memory.features.facts.summarizers.line_edits import LineEdits, numbers_in, parse_edits
from reactor_memory.features.search.models import MessageSearch
from reactor_memory.models.ledger import Fact
from reactor_memory.providers.openai_client import OpenAIClient
from reactor_memory.providers.questions import Reply, Request
from reactor_memory.settings.settings import Settings

pytestmark = pytest.mark.anyio

SESSIONS = 2
LENGTH = 50
BUDGET = 1_000
DATA = "iVBORw0KGgoAAAANSUhEUgAA" * 40
SLACK = 0.02
"""A model may cost so much of what survives without one."""

WORD = re.compile(r"\w+(?:[-.:]\w+)*")
OWN = re.compile(r" \(derived, [\d-]+\)|^\d+ \w+(?: \d{4})?:$| \(\d+ \w+(?: \d{4})?\)")
HEADINGS = {"working state:"}


def short(session: LabelledSession) -> LabelledSession:
    """The beginning of a session, with the probes that it answers."""
    probes = tuple(probe for probe in session.probes if probe.evidence and max(probe.evidence) < LENGTH)
    return LabelledSession(name=session.name, messages=session.messages[:LENGTH], probes=probes)


def sessions() -> list[LabelledSession]:
    return [short(without_tools(session)) for session in generate_sessions(SESSIONS, seed=11)]


def with_data(session: LabelledSession) -> LabelledSession:
    """The session; near its end somebody pastes an image."""
    pasted = Message.user(f"This is the photo of the parcel: data:image/png;base64,{DATA}")
    messages = (*session.messages[: LENGTH - 2], pasted, Message.assistant("I see."))
    return LabelledSession(name=session.name, messages=messages)


def settings(file: Path, model_url: str, *, model: Mapping[str, Any] | None = None, **summary: Any) -> Settings:
    asked = {
        "model": "smollm2",
        "base_url": model_url,
        "allow_http": True,
        "max_output_tokens": 300,
        "max_input_tokens": 3_000,
        "timeout_seconds": 600,
        **(model or {}),
    }
    return Settings(
        store={"url": f"sqlite:///{file}"},
        models={"openai": asked},
        summary={"provider": "openai", **summary},
        background={"backoff_seconds": 0.01, "max_backoff_seconds": 0.1, "lease_seconds": 900},
    )


async def write(memory: Memory, session: LabelledSession) -> None:
    for start in range(0, len(session.messages), 10):
        await memory.save_history(session.name, session.messages[start : start + 10])


async def until_read(memory: Memory, session: LabelledSession) -> None:
    """Failed attempts are made again after a pause, in which nobody works."""
    while True:
        await memory.drain()
        state = await memory.work_state(session.name)
        if state is None or (state.due_at is None and state.lease_until <= 0):
            assert state is None or not state.parked
            return
        await anyio.sleep(0.05)


@asynccontextmanager
async def read_by_model(
    file: Path, model_url: str, read: Sequence[LabelledSession], **summary: Any
) -> AsyncGenerator[Memory]:
    """A memory in which the sessions are read."""
    async with open_memory(settings(file, model_url, **summary)) as memory:
        for session in read:
            await write(memory, session)
            await until_read(memory, session)
        yield memory


async def survival(memory: Memory, read: Sequence[LabelledSession]) -> Scores:
    """What is left of the details in a context that a model of 1,000 tokens gets."""
    sheet = ScoreSheet()
    for session in read:
        context = await memory.load_history(session.name, budget=BUDGET, query="")
        for probe in session.probes:
            sheet.add(look_for(probe, list(units_of(context))))
    return sheet.scores()


def shown_lines(lines: Sequence[str]) -> Iterator[str]:
    return (line for line in lines if line and not line.startswith(("Conversation", "(")))


@pytest.fixture
def replies(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Request, str]]:
    """The questions that the model answers, with its answers."""
    found: list[tuple[Request, str]] = []
    ask = OpenAIClient.ask

    async def recorded(self: OpenAIClient, request: Request) -> Reply:
        reply = await ask(self, request)
        found.append((request, reply.text))
        return reply

    monkeypatch.setattr(OpenAIClient, "ask", recorded)
    return found


def block_of(context: Context) -> str:
    return "\n".join(message.content for message in context.messages if message.role == "system")


def unsaid_details(block: str, messages: Sequence[Message]) -> list[str]:
    """The numbers and names of a block that stand in no message; without its heads, days and ranges of messages."""
    said = {word.casefold() for message in messages for word in WORD.findall(message.content)}
    lines = [OWN.sub("", line) for line in block.splitlines()[2:] if line not in HEADINGS]
    words = [word for line in lines for word in WORD.findall(line) if any(c.isdigit() or c.isupper() for c in word)]
    return [word for word in words if word.casefold() not in said]


async def test_lines_after_edits_hold_nothing_that_nobody_said(
    model_url: str, tmp_path: Path, replies: list[tuple[Request, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    session = with_data(sessions()[0])
    async with read_by_model(tmp_path / "model.db", model_url, [session]) as memory:
        segments = await memory.facts.segments(session.name)
        facts = await memory.facts.list(session.name)
        block = block_of(await memory.load_history(session.name, budget=BUDGET, query=""))
    async with read_by_model(tmp_path / "extractive.db", model_url, [session], provider="extractive") as memory:
        found = await memory.facts.list(session.name)
    edits = [(request, parse_edits(text)) for request, text in replies]
    with capsys.disabled():
        read_by = dict(Counter(segment.summarizer for segment in segments))
        items = sum(len(each.state) for _, each in edits if each)
        print(f"\n{len(edits)} answers, {sum(each is not None for _, each in edits)} of use, {items} items; {read_by}")
    assert any(each is not None for _, each in edits), "no answer was of use: this shows nothing"
    assert all(DATA not in request.document for request, _ in replies)
    assert segments[-1].end_seq >= LENGTH - 10
    assert unsaid_details(block, session.messages) == []
    left = {fact.value for fact in found} - {fact.value for fact in facts}
    edited = {seq for request, each in edits if each for seq in edited_seqs(request, each)}
    assert left <= {fact.value for fact in found if fact.source_seq in edited}
    assert not left & {fact.value for fact in found if fact.said_by == "user" and is_ruling(fact.value)}


def edited_seqs(request: Request, edits: LineEdits) -> set[int]:
    """The messages whose lines the model dropped, merged or replaced."""
    known = [line.split(" ")[0] for line in json.loads(request.document)["lines"]]
    named = " ".join([edits.drop, *(each.lines for each in edits.merge), *(each.old for each in edits.replace)])
    numbers = {int(number.split(".")[0]) for number in numbers_in(named, known)}
    said = dict(line.split(" ", 1) for line in json.loads(request.document)["lines"])
    dropped = {text for number, text in said.items() if int(number.split(".")[0]) in numbers}
    return numbers | {int(number.split(".")[0]) for number, text in said.items() if text in dropped}


def claims_in(text: str) -> tuple[Fact, ...]:
    """The facts of an answer; none of one that has another form."""
    try:
        return parse_answer(text).facts
    except SummarizationError:
        return ()


async def test_what_a_model_invents_is_hidden_its_gaps_are_filled(
    model_url: str, tmp_path: Path, replies: list[tuple[Request, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    session = sessions()[0]
    async with read_by_model(tmp_path / "model.db", model_url, [session], mode="full") as memory:
        said = dict(enumerate(session.messages, 1))
        context = await memory.load_history(session.name, budget=BUDGET, query="")
        stored = [traced.fact for traced in await memory.facts.trace(session.name, everything=True)]
        with_model = await survival(memory, [session])
    async with read_by_model(tmp_path / "extractive.db", model_url, [session], provider="extractive") as memory:
        without = await survival(memory, [session])
    claims = [fact for _, text in replies for fact in claims_in(text)]
    said_by_none = {fact.value for fact in claims if not any(fact.value in each.content for each in session.messages)}
    with capsys.disabled():
        print(f"\n{len(claims)} claims, {len(said_by_none)} values in no message, {len(stored)} facts stored;")
        print(f"attributable {with_model.attributable}, offline {without.attributable}")
    assert claims, "the model claimed nothing: this shows nothing"
    assert not said_by_none & {fact.value for fact in stored if fact.verified}
    assert all(fact.value in evidence_text(said[fact.source_seq]) for fact in stored if fact.verified)
    assert [value for value in said_by_none if value in block_of(context)] == []
    assert unsaid_details(block_of(context), session.messages) == []
    assert with_model.attributable is not None
    assert without.attributable is not None
    assert with_model.attributable >= without.attributable - SLACK
    assert with_model.stale == without.stale == 0


@pytest.mark.parametrize("asked", [{"max_output_tokens": 60}, {"response_format": "text"}], ids=["cut", "prose"])
async def test_answers_that_are_cut_or_no_json_leave_no_gap(
    model_url: str, tmp_path: Path, asked: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    session = sessions()[0]
    async with open_memory(settings(tmp_path / "agent.db", model_url, model=asked)) as memory:
        await write(memory, session)
        await until_read(memory, session)
        segments = await memory.facts.segments(session.name)
        facts = await memory.facts.list(session.name)
        context = await memory.load_history(session.name, budget=BUDGET, query="")
    with capsys.disabled():
        print(f"\nread by: {dict(Counter(segment.summarizer for segment in segments))}, {len(facts)} facts")
    assert segments[-1].end_seq >= LENGTH - 10
    assert [each.start_seq for each in segments[1:]] == [each.end_seq + 1 for each in segments[:-1]]
    assert [fact for fact in facts if fact.verified]
    assert context.report.freshness == "fresh"


async def test_loads_do_not_wait_while_the_model_writes(
    model_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = sessions()[1]
    async with open_memory(settings(tmp_path / "agent.db", model_url)) as memory:
        await memory.save_history("quiet", session.messages[:10])
        quiet = await timed_loads(memory, "quiet", 300)
        await write(memory, session)
        busy = await timed_loads(memory, "quiet", 300)
        state = await memory.work_state(session.name)
        assert state is not None
        assert state.lease_until > 0, "the model was done before the loads were"
    with capsys.disabled():
        print(f"\np99 of loads: {p99(quiet):.2f} ms, while the model writes {p99(busy):.2f} ms")
    assert max(busy) < 1_000, "an answer takes seconds"


async def timed_loads(memory: Memory, session_id: str, count: int) -> list[float]:
    took: list[float] = []
    for _ in range(count):
        start = time.perf_counter()
        await memory.load_history(session_id, message="And then?")
        took.append(1_000 * (time.perf_counter() - start))
    return took


def p99(values: list[float]) -> float:
    return quantiles(values, n=100)[98]


def test_a_model_answers_in_the_terminal(model_url: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "reactor_memory", "chat", "kitchen", "--store", str(tmp_path / "agent.db")]
    asked = {
        "REACTOR_MEMORY_CHAT__PROVIDER": "openai",
        "REACTOR_MEMORY_MODELS__OPENAI__MODEL": "smollm2",
        "REACTOR_MEMORY_MODELS__OPENAI__BASE_URL": model_url,
        "REACTOR_MEMORY_MODELS__OPENAI__ALLOW_HTTP": "true",
        "REACTOR_MEMORY_MODELS__OPENAI__TIMEOUT_SECONDS": "600",
    }
    talk = "My order number is 48213.\nWhat is my order number?\n"
    ran = subprocess.run(command, input=talk, text=True, capture_output=True, env={**os.environ, **asked}, check=False)
    assert ran.returncode == 0, ran.stderr
    shown = subprocess.run(
        [sys.executable, "-m", "reactor_memory", "show", "kitchen", "--store", str(tmp_path / "agent.db")],
        text=True,
        capture_output=True,
        check=True,
    ).stdout
    assert "48213" in shown
    assert len(list(shown_lines(shown.splitlines()))) >= 4, "each question has an answer, which is stored"


async def test_an_embedding_model_finds_what_is_said_in_other_words(embedder_url: str, tmp_path: Path) -> None:
    search = {"enabled": True, "embedder": "openai", "min_similarity": 0.8}
    asked = {
        "embedding_model": "multilingual-e5-small",
        "base_url": embedder_url,
        "allow_http": True,
        "dimensions": 384,
    }
    looked_for = MessageSearch(text="vehicle repair shop", user_id="ana")
    told = [
        *("The invoice of the plumber is paid.", "We painted the fence green.", "Das Auto ist in der Werkstatt."),
        *("Our cat sleeps on the piano.", "Tuesday is the day of the choir.", "The train to Bergen leaves at nine."),
    ]
    store = {"url": f"sqlite:///{tmp_path / 'agent.db'}"}
    async with open_memory(Settings(store=store, search=search, models={"openai": asked})) as memory:
        for text in told:
            await memory.save_history("s", [Message.user(text), Message.assistant("Noted.")], user_id="ana")
        await memory.drain()
        with anyio.fail_after(60):
            while True:
                hits = (await memory.search.search(looked_for)).hits
                if hits:
                    break
                await anyio.sleep(0.2)
    assert "Werkstatt" in hits[0].message.content
