"""Contexts put together by hand, in which a word is a token."""

from __future__ import annotations

from reactor_memory.core.context.blocks import Frame, Part
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.report import ContextReport
from reactor_memory.models import Message


class WordCounter:
    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())


FRAMES = (
    *(Frame(part=part, header="") for part in ("facts", "narrative")),
    Frame(part="recalled", header="", place="last"),
)


def context_of(*parts: tuple[Part, Message]) -> Context:
    report = ContextReport(
        session_id="s",
        strategy="hierarchical",
        budget=1000,
        overhead=4,
        total_tokens=0,
        tokens={},
        parts=tuple(part for part, _ in parts),
        offered={},
        kept=(),
        frames=FRAMES,
    )
    return Context(messages=[message for _, message in parts], report=report)
