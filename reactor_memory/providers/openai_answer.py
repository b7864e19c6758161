"""Chat completions as they come back: what a model said, how it ended, and what a refusal is about."""

from __future__ import annotations

import msgspec

from reactor_memory.errors import SummarizationError
from reactor_memory.models.ledger import Usage
from reactor_memory.providers.failures import refusal, truncation
from reactor_memory.providers.questions import Reply

_THOUGHT, _THOUGHT_END = "<think>", "</think>"
"""Servers without a parser for the thoughts of a model leave them at the beginning of its answer."""

_TOO_LONG = ("context_length_exceeded", "context length", "context window", "context size", "context_window")
_CALLS = frozenset({"tool_calls", "function_call"})


class _Said(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Said
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: _Usage | None = None


_DECODER = msgspec.json.Decoder(_Completion)


def reply_of(body: bytes) -> Reply:
    """What the body of an answer with status 200 says. Raises `msgspec.DecodeError` if it is no chat completion."""
    completion = _DECODER.decode(body)
    counted = completion.usage or _Usage()
    usage = Usage(tokens_read=counted.prompt_tokens or 0, tokens_written=counted.completion_tokens or 0)
    if not completion.choices:
        return Reply("", usage, SummarizationError("malformed", "the answer holds no choice"))
    choice = completion.choices[0]
    text = _without_thought(choice.message.content or "")
    return Reply(text, usage, refusal() if choice.message.refusal else finish_failure(choice.finish_reason))


def _without_thought(text: str) -> str:
    _, ended, answer = text.partition(_THOUGHT_END) if text.lstrip().startswith(_THOUGHT) else ("", "", text)
    return answer if ended else text


def finish_failure(finish_reason: str | None) -> SummarizationError | None:
    """The failure that a finish reason stands for. Servers have their own words for an answer that is complete."""
    if finish_reason == "length":
        return truncation()
    if finish_reason == "content_filter":
        return refusal()
    if finish_reason in _CALLS:
        return SummarizationError("malformed", "the model called a tool instead of answering")
    return None


def is_too_long(complaint: str) -> bool:
    """Whether a refusal, in lower case, says that question and answer do not fit into the model's context."""
    return any(words in complaint for words in _TOO_LONG)


def is_quota(complaint: str) -> bool:
    """Whether a refusal says that waiting does not help: there is no credit left."""
    return "insufficient_quota" in complaint
