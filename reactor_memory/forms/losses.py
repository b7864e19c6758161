"""What of messages a provider is not shown, because only another one takes it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias, cast, get_args

from reactor_memory.forms.content_parts import (
    ANTHROPIC_ASSISTANT,
    ANTHROPIC_RESULT,
    ANTHROPIC_USER,
    GEMINI,
    NOT_SHOWN,
    OPENAI_ASSISTANT,
    OPENAI_TEXT,
    OPENAI_USER,
    RESPONSES_INPUT,
    Form,
    picture_of,
)
from reactor_memory.forms.exchanges import is_of
from reactor_memory.models import JsonObject, Message, NotShown, is_models, is_reasoning

Provider: TypeAlias = Literal["openai", "openai_responses", "anthropic", "gemini", "ollama"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)


def not_shown(messages: Sequence[Message]) -> dict[str, tuple[NotShown, ...]]:
    """By provider, in the order of the messages; without those that are shown everything."""
    rich = [message for message in messages if message.parts or message.tool_calls or message.given is not None]
    found = {provider: tuple(_of(rich, provider)) for provider in PROVIDERS} if rich else {}
    return {provider: entries for provider, entries in found.items() if entries}


def _of(messages: Sequence[Message], provider: Provider) -> Iterator[NotShown]:
    for message in messages:
        if is_of(message, provider):
            continue
        counts: dict[Any, int] = {}
        for kind in _kinds(message, provider):
            counts[kind] = counts.get(kind, 0) + 1
        for kind, count in counts.items():
            yield NotShown(seq=message.seq, kind=kind, count=count)


def _kinds(message: Message, provider: Provider) -> Iterator[str]:
    form = _form(message, provider)
    for block in message.blocks:
        if block.part and not _is_shown(block.part, form, provider):
            yield block.kind
        if block.call is not None and provider != "gemini" and "thought_signature" in block.call.metadata:
            yield "signature"
    if message.given is not None and _cites(message.given.frame):
        yield "citations"


def _is_shown(part: JsonObject, form: Form, provider: Provider) -> bool:
    if is_reasoning(part):
        return form.is_own(part) or (provider == "openai_responses" and "summary" in part)
    if provider == "ollama" and (picture := picture_of(part)) is not None:
        return bool(picture.data)
    return all(shown.get("text") != NOT_SHOWN for shown in form.of([part]))


def _form(message: Message, provider: Provider) -> Form:
    kind = "tool" if message.role == "tool" else "assistant" if is_models(message) else "user"
    return _FORMS[provider][kind]


_FORMS: dict[Provider, dict[str, Form]] = {
    "openai": {"user": OPENAI_USER, "assistant": OPENAI_ASSISTANT, "tool": OPENAI_TEXT},
    "openai_responses": {"user": RESPONSES_INPUT, "assistant": OPENAI_TEXT, "tool": RESPONSES_INPUT},
    "anthropic": {"user": ANTHROPIC_USER, "assistant": ANTHROPIC_ASSISTANT, "tool": ANTHROPIC_RESULT},
    "gemini": {"user": GEMINI, "assistant": GEMINI, "tool": GEMINI},
    "ollama": {"user": OPENAI_TEXT, "assistant": OPENAI_TEXT, "tool": OPENAI_TEXT},
}


def _cites(frame: Any) -> bool:
    if isinstance(frame, list):
        return any(map(_cites, cast("list[Any]", frame)))
    if not isinstance(frame, dict):
        return False
    found = cast("JsonObject", frame)
    has_some = any(isinstance(found.get(key), list) and found[key] for key in ("citations", "annotations"))
    return has_some or any(map(_cites, found.values()))
