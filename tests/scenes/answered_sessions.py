"""Six sessions with probes, and what a good model answered about them, written by hand from each question.

`python -m tests.scenes.answered_sessions NAME` prints the questions about a session, after the answers that are there.
The answers to them stand in ``answered/NAME.json``, in their order. All sessions are made up and free of rights (CC0).
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from dependency_injector import providers

from reactor_memory import Container, Memory, open_memory
from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.evaluation.metrics import TextCount
from reactor_memory.evaluation.scores import look_for
from reactor_memory.evaluation.session_files import reader
from reactor_memory.evaluation.tally import Measures, Tally
from reactor_memory.evaluation.transcripts import Line
from reactor_memory.evaluation.units import units_of
from reactor_memory.features.facts.summarizers.editing import EditingSummarizer
from reactor_memory.features.facts.summarizers.extractive import ExtractiveSummarizer
from reactor_memory.features.facts.summarizers.language_model import LanguageModelSummarizer
from reactor_memory.models.ledger import Usage
from reactor_memory.providers.questions import Reply, Request
from reactor_memory.settings.settings import Settings
from reactor_memory.tokens.tiktoken_counter import TiktokenCounter

FOLDER = Path(__file__).with_name("answered")
NAMES = ("code", "service", "sql", "german", "spanish", "people")
USER, SESSION = "u", "s"
NOTHING: dict[str, Any] = {"drop": ""}


class Written:
    """A model whose answers lie in a file; to what has none there it answers with nothing."""

    def __init__(self, answers: list[dict[str, Any]]) -> None:
        self.answers = answers
        self.requests: list[Request] = []

    async def ask(self, request: Request) -> Reply:
        self.requests.append(request)
        number = len(self.requests) - 1
        answer = self.answers[number] if number < len(self.answers) else NOTHING
        return Reply(json.dumps(answer), Usage())

    async def aclose(self) -> None: ...


class WrittenByLine(Written):
    """The same answers to other questions: of what they say, to each question what is about its lines."""

    async def ask(self, request: Request) -> Reply:
        self.requests.append(request)
        lines = {line.split(" ")[0] for line in json.loads(request.document)["lines"]}
        answer: dict[str, Any] = {
            name: " ".join(each.get(name, "") for each in self.answers) for name in ("drop", "keep")
        }
        items = [item for each in self.answers for item in each["state"]]
        answer["state"] = [item for item in items if item["lines"].split()[-1] in lines]
        return Reply(json.dumps(answer), Usage())


def session_of(name: str) -> Line:
    return next(reader("auto")(FOLDER / f"{name}.jsonl.gz"))


def answers_of(name: str) -> list[dict[str, Any]]:
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def settings(*, is_asked: bool) -> Settings:
    summary = {"provider": "openai", "question_message_count": 40} if is_asked else {}
    models = {"openai": {"model": "m", "api_key": "k"}}
    return Settings.model_validate({"store": {"url": "memory://"}, "summary": summary, "models": models})


@asynccontextmanager
async def opened(model: Written | None) -> AsyncGenerator[Memory]:
    """A memory that `model` keeps; without a model, the offline reader."""
    counter = TiktokenCounter()

    def configure(container: Container) -> None:
        if model is not None:
            asked = LanguageModelSummarizer(
                "m", model, counter=counter, max_narrative_tokens=500, max_input_tokens=32_000
            )
            container.summarizer.override(providers.Object(EditingSummarizer(asked, ExtractiveSummarizer())))

    async with open_memory(settings(is_asked=model is not None), configure=configure) as memory:
        yield memory


@asynccontextmanager
async def replayed(name: str, model: Written | None) -> AsyncGenerator[Memory]:
    """The session in memory, in two halves, so that the second question has a state to go on from."""
    messages = session_of(name).messages
    half = next(n for n in range(len(messages) // 2, len(messages)) if messages[n].role == "user")
    async with opened(model) as memory:
        for part in (messages[:half], messages[half:]):
            await memory.save_history(SESSION, list(part), user_id=USER)
            await memory.drain()
        yield memory


async def missed(memory: Memory, name: str, budget: int) -> list[str]:
    """The questions of the probes that a context of `budget` tokens does not answer, though nobody asks."""
    context = await memory.load_history(SESSION, user_id=USER, budget=budget)
    units = list(units_of(context))
    return [probe.question for probe in session_of(name).probes() if not look_for(probe, units).found]


async def tallied(name: str, model: Written | None, budget: int) -> Measures:
    """The contexts that the turns of the session begin with, as the evaluation measures them."""
    tally = Tally(TextCount(MessageCounter(TiktokenCounter())))
    tally.begin_session()
    messages = session_of(name).messages
    starts = [place for place, message in enumerate(messages) if message.role == "user"]
    async with opened(model) as memory:
        for start, end in pairwise([*starts, len(messages)]):
            said = messages[start].content
            tally.add_turn(await memory.load_history(SESSION, user_id=USER, message=said, budget=budget), 0)
            await memory.save_history(SESSION, list(messages[start:end]), user_id=USER)
            await memory.drain()
    return tally.measures()


async def _print_questions(name: str) -> None:
    model = Written(answers_of(name))
    async with replayed(name, model) as memory:
        for number, request in enumerate(model.requests):
            print(f"--- {number}, {model_tokens(request)} tokens")
            document = json.loads(request.document)
            print("\n".join([*document.get("state", ()), "", *document["lines"]]))
        for fact in await memory.facts.trace(SESSION, user_id=USER, everything=True):
            if fact.fact.anchor == "working state":
                print(fact.fact.key, "|", fact.fact.value)
        for budget in (1000, 2000, 4000):
            print(budget, await missed(memory, name, budget))
    async with replayed(name, None) as memory:
        for budget in (1000, 2000, 4000):
            print("offline", budget, await missed(memory, name, budget))


def model_tokens(request: Request) -> int:
    return TiktokenCounter().count(request.instruction + request.document)


if __name__ == "__main__":
    asyncio.run(_print_questions(sys.argv[1]))
