"""The messages that everybody keeps: real talk from the sessions that come with the package."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from itertools import cycle, islice
from typing import Any

from benchmarks.peers.contender import Said, Turn


def conversation(size: int) -> list[Said]:
    """The first `size` messages, user and assistant by turns, beginning again when the talk is over."""
    return list(islice(cycle(message for turn in real_turns() for message in turn), size))


def real_turns() -> list[Turn]:
    """All turns of the packaged sessions: an answer begins with what the tools of that turn returned."""
    packed = resources.files("reactor_memory") / "data" / "orders.jsonl.gz"
    lines = gzip.decompress(packed.read_bytes()).splitlines()
    return [turn for line in lines for turn in turns_of(json.loads(line)["messages"])]


def turns_of(messages: Iterable[Mapping[str, Any]]) -> Iterator[Turn]:
    """Turns of plain text, which every library can hold in the same way. What was never answered is left out."""
    question, answers = "", list[str]()
    for message in messages:
        if message["role"] == "user":
            yield from _turn(question, answers)
            question, answers = message["content"], []
        elif message.get("content"):
            answers.append(message["content"])
    yield from _turn(question, answers)


def _turn(question: str, answers: list[str]) -> Iterator[Turn]:
    if question and answers:
        yield Said("user", question), Said("assistant", "\n".join(answers))
