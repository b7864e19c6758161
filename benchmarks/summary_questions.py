"""What a model is sent to keep the memory of sessions, in tokens and money, whatever it would answer.

usage: python -m benchmarks.summary_questions SESSIONS.jsonl.gz [--together 0 30 60 120] [--at-once] [--model NAME]

A session is saved turn by turn, or `--at-once`. The answers keep a working state of a dozen items, which is sent back
with each question. The share is of the tokens of the messages. Money: the prices of the settings for `--model`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dependency_injector import providers

from reactor_memory import Container, open_container
from reactor_memory.evaluation.pricing import cost_of_summaries
from reactor_memory.evaluation.session_files import reader
from reactor_memory.evaluation.sessions import split_turns
from reactor_memory.features.facts.summarizers.editing import EditingSummarizer
from reactor_memory.features.facts.summarizers.extractive import ExtractiveSummarizer
from reactor_memory.features.facts.summarizers.language_model import LanguageModelSummarizer
from reactor_memory.models import Message
from reactor_memory.models.ledger import Usage
from reactor_memory.providers.questions import Reply, Request
from reactor_memory.settings.settings import Settings
from reactor_memory.tokens.tiktoken_counter import TiktokenCounter

ITEMS, NEW = 12, 4
"""So many items the state holds, and so many come with each answer."""


class Sent(NamedTuple):
    questions: int
    instruction: int
    document: int
    written: int

    @property
    def read(self) -> int:
        return self.instruction + self.document


class Counting:
    """A model that notes what people said last, and counts what it reads."""

    def __init__(self) -> None:
        self.counter = TiktokenCounter()
        self.sent = Sent(0, 0, 0, 0)

    async def ask(self, request: Request) -> Reply:
        document = json.loads(request.document)
        known = [item.split()[0] for item in document.get("state", ())]
        said = [line for line in document["lines"] if " user: " in line][-NEW:]
        items = [_item("", line.partition(" user: ")[2], line.split()[0], "") for line in said]
        items += [_item(name, "", "", "done") for name in known[: max(0, len(known) + len(said) - ITEMS)]]
        answer = json.dumps({"drop": "", "state": items})
        read = self.counter.count(request.instruction), self.counter.count(request.document)
        written = self.counter.count(answer)
        before = self.sent
        self.sent = Sent(before[0] + 1, before[1] + read[0], before[2] + read[1], before[3] + written)
        return Reply(answer, Usage(tokens_read=sum(read), tokens_written=written))

    async def aclose(self) -> None: ...


def _item(name: str, text: str, line: str, ended: str) -> dict[str, str]:
    return {"name": name, "kind": "note", "text": text[:120], "lines": line, "ended": ended}


def settings(together: int) -> Settings:
    summary = {"provider": "openai", "question_message_count": together}
    models = {"openai": {"model": "m", "api_key": "k"}}
    return Settings.model_validate({"store": {"url": "memory://"}, "summary": summary, "models": models})


async def sent(messages: Sequence[Message], together: int, *, at_once: bool) -> Sent:
    model = Counting()
    asked = LanguageModelSummarizer(
        "m", model, counter=model.counter, max_narrative_tokens=500, max_input_tokens=32_000
    )

    def configure(container: Container) -> None:
        container.summarizer.override(providers.Object(EditingSummarizer(asked, ExtractiveSummarizer())))

    async with open_container(settings(together), configure=configure) as container:
        manager = container.conversation_manager()
        for turn in [messages] if at_once else split_turns(messages):
            await manager.save_history("s", list(turn), user_id="u")
            await manager.drain()
    return model.sent


def tokens_of(messages: Sequence[Message], counter: TiktokenCounter) -> int:
    texts: Iterator[Any] = (
        text
        for message in messages
        for text in (message.content, *(f"{call.name} {json.dumps(call.arguments)}" for call in message.tool_calls))
    )
    return sum(map(counter.count, texts))


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--together", type=int, nargs="+", default=[60])
    parser.add_argument("--at-once", action="store_true")
    parser.add_argument("--model", default="")
    options = parser.parse_args()
    price = Settings().prices.of(options.model)
    counter = TiktokenCounter()
    for together in options.together:
        print(f"question_message_count {together}, {'at once' if options.at_once else 'turn by turn'}")
        print(f"{'session':24}{'messages':>9}{'tokens':>9}{'questions':>10}{'sent':>8}{'share':>7}{'money':>9}")
        rows: list[tuple[str, int, int, Sent]] = []
        for line in reader("auto")(options.file):
            found = await sent(line.messages, together, at_once=options.at_once)
            rows.append((line.session_id, len(line.messages), tokens_of(line.messages, counter), found))
            _print(rows[-1], cost_of_summaries(Usage(tokens_read=found.read, tokens_written=found.written), price))
        whole = Sent(*(sum(values) for values in zip(*(row[3] for row in rows), strict=True)))
        row = ("all", sum(row[1] for row in rows), sum(row[2] for row in rows), whole)
        _print(row, cost_of_summaries(Usage(tokens_read=whole.read, tokens_written=whole.written), price))
        print(
            f"of it the instruction {whole.instruction / row[2]:.3f}, lines and state {whole.document / row[2]:.3f}\n"
        )


def _print(row: tuple[str, int, int, Sent], money: float) -> None:
    name, messages, tokens, found = row
    share = found.read / tokens
    print(f"{name[:23]:24}{messages:9}{tokens:9}{found.questions:10}{found.read:8}{share:7.2f}{money:9.4f}")


if __name__ == "__main__":
    asyncio.run(main())
