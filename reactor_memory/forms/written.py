"""Whether a message has to keep what its provider gave, or is written so anyway. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from reactor_memory.forms import exchanges, requests
from reactor_memory.models import JsonObject, Message, frames


def unless_plain(message: Message) -> Message:
    """The message without what its provider gave, where its fields alone give it back."""
    given = message.given
    if given is None or given.frame is None:
        return message
    first = exchanges.in_own_form(message)
    bare = msgspec.structs.replace(message, given=None)
    is_plain = frames.JOINED not in given.frame and first == _from_fields(bare, given.form)
    return bare if is_plain else message


def _from_fields(message: Message, form: str) -> Any:
    if message.role == "tool":
        call_id, answers = message.tool_call_id or "", [message]
        results: dict[str, Callable[[str, Sequence[Message]], Any]] = {
            "openai": requests.openai_result,
            "openai_responses": _output_items,
            "anthropic": requests.anthropic_result,
        }
        return results.get(form, _nothing)(call_id, answers)
    exchange = exchanges.Exchange(message, message.tool_calls, {})
    messages: dict[str, Callable[[exchanges.Exchange], Any]] = {
        "openai": requests.openai_message,
        "openai_responses": requests.responses_items,
        "anthropic": requests.anthropic_message,
        "gemini": requests.gemini_content,
        "ollama": requests.ollama_message,
    }
    return messages.get(form, _nothing)(exchange)


def _output_items(call_id: str, answers: Sequence[Message]) -> list[JsonObject]:
    return [requests.responses_output(call_id, answers)]


def _nothing(*_: object) -> None:
    return None
