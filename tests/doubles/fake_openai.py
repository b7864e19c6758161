"""A server on loopback that speaks the wire format of OpenAI's chat completions, as OpenAI, Ollama and vLLM do."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from tests.doubles.fake_provider import Answer, FakeProvider, fact_per_record, replies, streams
from tests.proofs.provider_rules import openai_problems, responses_problems


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


class RefusingOpenAI(FakeProvider[Question]):
    """A model with reasoning and tools, behind the Responses and the Chat Completions wire, that refuses broken pairing
    as OpenAI does: a call without its result and a result without its call; of what it gave itself, which it knows by
    its ids, reasoning without the item that followed it and an item without the reasoning before it.

    It answers with the next of `outputs`: lists of output items of the Responses API, to which it gives their ids.
    """

    def __init__(self) -> None:
        super().__init__()
        self.outputs: deque[list[dict[str, Any]]] = deque()
        self.refusals: list[str] = []
        self._given = 0
        self._follower: dict[str, str] = {}
        self._reasoning: dict[str, str] = {}

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def question(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Question:
        return Question(path, headers, body)

    def usually(self, question: Question) -> Answer:
        by_items = question.path.endswith("/responses")
        body = question.body
        problem = next(self.item_problems(body["input"]) if by_items else openai_problems(body["messages"]), None)
        if problem:
            self.refusals.append(problem)
            return complains(problem, param="input" if by_items else "messages")
        output = self._with_ids(self.outputs.popleft())
        return responds(output) if by_items else completes(output)

    def item_problems(self, given: str | Sequence[dict[str, Any]]) -> Iterator[str]:
        """What is refused of the input of a Responses request."""
        items: list[dict[str, Any]] = [{"role": "user", "content": given}] if isinstance(given, str) else [*given]
        yield from responses_problems(items)
        seen: set[str] = set()
        for item, after in zip_longest(items, items[1:], fillvalue={}):
            item_id, name = item.get("id", ""), f"Item '{item.get('id')}' of type '{item.get('type')}' was provided"
            if item_id in self._follower and after.get("id") != self._follower[item_id]:
                yield f"{name} without its required following item."
            if item_id in self._reasoning and self._reasoning[item_id] not in seen:
                yield f"{name} without its required 'reasoning' item: '{self._reasoning[item_id]}'."
            seen.add(item_id)

    def _with_ids(self, output: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        for item in output:
            self._given += 1
            items.append({"id": f"{_PREFIXES[item['type']]}_{self._given}", **item})
        reasoning = ""
        for item, after in zip_longest(items, items[1:]):
            if reasoning and item["type"] != "reasoning":
                self._reasoning[item["id"]] = reasoning
            if item["type"] == "reasoning":
                reasoning = item["id"]
                self._follower[reasoning] = after["id"]
        return items


_PREFIXES = {"reasoning": "rs", "message": "msg", "function_call": "fc"}


def thought(text: str) -> dict[str, Any]:
    """An output item of the Responses API without its id: reasoning."""
    return {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}], "encrypted_content": "gAAAAB=="}


def said(text: str) -> dict[str, Any]:
    """An output item without its id: a text of the assistant."""
    content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
    return {"type": "message", "role": "assistant", "status": "completed", "content": content}


def called(name: str, call_id: str, **arguments: Any) -> dict[str, Any]:
    """An output item without its id: a call."""
    given = json.dumps(arguments)
    return {"type": "function_call", "status": "completed", "call_id": call_id, "name": name, "arguments": given}


def responds(output: Sequence[dict[str, Any]]) -> Answer:
    """A response of the Responses API."""
    usage = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 5}}
    return replies(
        {
            "id": "resp_1",
            "object": "response",
            "created_at": 1_790_000_000,
            "model": "fake",
            "status": "completed",
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": usage | details,
        }
    )


def completes(output: Sequence[dict[str, Any]]) -> Answer:
    """The same as a chat completion: text and calls are one message, reasoning is kept back."""
    text = "".join(part["text"] for item in output if item["type"] == "message" for part in item["content"])
    calls = [
        {"id": item["call_id"], "type": "function", "function": {key: item[key] for key in ("name", "arguments")}}
        for item in output
        if item["type"] == "function_call"
    ]
    message = {"role": "assistant", "content": text or None} | ({"tool_calls": calls} if calls else {})
    return _completion(message, finish="tool_calls" if calls else "stop")


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
    return _completion({"role": "assistant", "content": text, "refusal": refusal}, finish=finish, usage=usage)


def _completion(message: Mapping[str, Any], *, finish: str | None, usage: Mapping[str, Any] | None = None) -> Answer:
    return replies(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_790_000_000,
            "model": "fake",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
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
