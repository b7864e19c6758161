"""A server on loopback that speaks the Gemini wire format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from tests.doubles.fake_provider import Answer, FakeProvider, fact_per_record, replies, streams


class Question(msgspec.Struct, frozen=True):
    """One request as it came in."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def instruction(self) -> str:
        return self.body["systemInstruction"]["parts"][0]["text"]

    @property
    def text(self) -> str:
        return self.body["contents"][0]["parts"][0]["text"]

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self.text)


class FakeGemini(FakeProvider[Question]):
    """Unless told otherwise it answers with a fact per record."""

    def question(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Question:
        return Question(path, headers, body)

    def usually(self, question: Question) -> Answer:
        return says(fact_per_record(question.document))


def says(
    extraction: object, *, finish: str = "STOP", usage: Mapping[str, Any] | None = None, thought: str = ""
) -> Answer:
    """An answer whose text is `extraction` as JSON, or `extraction` itself if that is a text."""
    text = extraction if isinstance(extraction, str) else json.dumps(extraction, ensure_ascii=False)
    parts = ([{"text": thought, "thought": True}] if thought else []) + [{"text": text}]
    return replies(
        {
            "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0}],
            "usageMetadata": usage or {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120},
            "modelVersion": "fake",
            "responseId": "1",
        }
    )


def blocks(reason: str = "SAFETY") -> Answer:
    return replies({"promptFeedback": {"blockReason": reason}, "usageMetadata": {"promptTokenCount": 9}})


def speaks(*pieces: str, finish: str | None = "STOP", thought: str = "", then: Answer | None = None) -> Answer:
    """An answer piece by piece, after a thought; `finish` comes with an empty piece at the end (None: it does not)."""
    thoughts: list[dict[str, Any]] = [{"text": thought, "thought": True}] if thought else []
    contents = [[*thoughts], *([{"text": piece}] for piece in pieces)]
    events = [{"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]} for parts in contents]
    last = [{"candidates": [{"finishReason": finish, "index": 0}]}] if finish else []
    return streams(*events, *last, then=then)
