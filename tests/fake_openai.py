"""A server on loopback that speaks the wire format of OpenAI's chat completions, as OpenAI, Ollama and vLLM do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from tests.fake_provider import Answer, FakeProvider, fact_per_record, replies, streams


class Question(msgspec.Struct, frozen=True):
    """One request as it came in."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def instruction(self) -> str:
        return self.body["messages"][0]["content"]

    @property
    def text(self) -> str:
        return self.body["messages"][1]["content"]

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self.text)

    @property
    def form(self) -> str:
        return self.body.get("response_format", {}).get("type", "text")


class FakeOpenAI(FakeProvider[Question]):
    """Unless told otherwise it answers with a fact per record. It refuses, as real servers do, the forms of answers
    and the names of limits that it does not know.
    """

    def __init__(self) -> None:
        super().__init__()
        self.forms = ["json_schema", "json_object", "text"]
        self.limits = ["max_tokens", "max_completion_tokens"]

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def question(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Question:
        return Question(path, headers, body)

    def usually(self, question: Question) -> Answer:
        for unknown in {"max_tokens", "max_completion_tokens"} - set(self.limits):
            if unknown in question.body:
                text = f"Unsupported parameter: '{unknown}' is not supported with this model."
                return complains(text, param=unknown, code="unsupported_parameter")
        if question.form not in self.forms:
            return complains("Invalid parameter: 'response_format' of this type is not supported with this model.")
        return says(fact_per_record(question.document))


def says(
    extraction: object,
    *,
    finish: str | None = "stop",
    usage: Mapping[str, Any] | None = None,
    refusal: str | None = None,
) -> Answer:
    """An answer whose text is `extraction` as JSON, or `extraction` itself if that is a text or nothing."""
    given = extraction is None or isinstance(extraction, str)
    text = extraction if given else json.dumps(extraction, ensure_ascii=False)
    return replies(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_790_000_000,
            "model": "fake",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text, "refusal": refusal},
                    "finish_reason": finish,
                }
            ],
            "usage": usage or {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
        }
    )


def complains(
    message: str, *, status: int = 400, param: str | None = None, code: str | None = None, **headers: str
) -> Answer:
    """An error as OpenAI words it."""
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return replies({"error": error}, status=status, headers=headers)


def speaks(*pieces: str, finish: str | None = "stop", then: Answer | None = None) -> Answer:
    """An answer piece by piece; `finish` comes with an empty piece at the end (None: it does not)."""
    events: list[object] = [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}]
    events += [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    if finish:
        events += [{"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}, {"choices": []}, "[DONE]"]
    return streams(*events, then=then)
