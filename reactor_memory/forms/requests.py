"""Messages in the forms that providers take.

`agent` is shown as assistant, `summary` as system, one that an agent posted as assistant. What came with reasoning in
several messages becomes one. The results of a call follow it directly and several results of one call become one, as
every provider demands. Ids of calls and names of tools stay as they are unless the provider would refuse them: then the
same history always gives the same other ones. A result that names no call is text of the user that says so.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, cast

from reactor_memory.forms.content_parts import (
    ANTHROPIC_ASSISTANT,
    ANTHROPIC_RESULT,
    ANTHROPIC_USER,
    GEMINI,
    OPENAI_ASSISTANT,
    OPENAI_TEXT,
    OPENAI_USER,
    RESPONSES_INPUT,
    Form,
    picture_of,
)
from reactor_memory.forms.exchanges import Exchange, as_given, exchanges, is_system
from reactor_memory.forms.pieces import arguments_of, json_value
from reactor_memory.models import (
    JsonObject,
    Message,
    ToolCall,
    frames,
    is_reasoning,
)

_OPENAI_NAME = re.compile(r"[^\s<|\\/>]{1,64}")
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_NOT_IN_GEMINI_NAMES = re.compile(r"[^a-zA-Z0-9_.:-]")
_LONGEST_NAME = 64

EARLIER_NOT_SHOWN = "[earlier messages are not shown]"
"""Stands first where a provider wants a user message first and the context begins with the assistant."""

EMPTY = "[empty]"
"""Stands for a user message, or the result of a failed call, that has nothing to show where a provider wants something.
"""


def to_openai(messages: Sequence[Message], *, system: str | None = None) -> list[JsonObject]:
    """The messages of a chat completion (https://platform.openai.com/docs/api-reference/chat).

    An answer that holds nothing, which many servers refuse, is left out.
    """
    converted: list[JsonObject] = [{"role": "system", "content": system}] if system else []
    for exchange in exchanges(messages, "openai"):
        given = exchange.as_given("openai")
        message = openai_message(exchange) if given is None else given
        if exchange.role != "assistant" or _says_something(message):
            converted.append(message)
        for call_id, answers, result in exchange.results_as_given("openai"):
            converted.append(openai_result(call_id, answers) if result is None else result)
    return converted


def _says_something(message: JsonObject) -> bool:
    return any(value for key, value in message.items() if key not in ("role", "name"))


def openai_result(call_id: str, answers: Sequence[Message]) -> JsonObject:
    text, parts = _joined(answers)
    return {"role": "tool", "tool_call_id": call_id, "content": _content(OPENAI_TEXT, text, parts)}


def openai_message(exchange: Exchange) -> JsonObject:
    message, role = exchange.message, exchange.role
    form = {"user": OPENAI_USER, "assistant": OPENAI_ASSISTANT}.get(role, OPENAI_TEXT)
    converted: JsonObject = {"role": role, "content": _ordered_content(form, message)}
    if message.name and _OPENAI_NAME.fullmatch(message.name):
        converted["name"] = message.name
    if exchange.calls:
        converted["content"] = converted["content"] or None
        converted["tool_calls"] = [_openai_call(call) for call in exchange.calls]
    return converted


def _ordered_content(form: Form, message: Message) -> str | list[JsonObject]:
    """Plain text, unless there are parts beside it; then all in its order."""
    return _ordered(form, message) if form.of(message.parts) else message.content


def _ordered(form: Form, message: Message) -> list[JsonObject]:
    shown: list[JsonObject] = []
    for block in message.blocks:
        if block.text:
            shown.append(form.text(block.text))
        elif block.call is None and block.part:
            shown += form.of([block.part])
    return shown


def _content(form: Form, text: str, parts: Sequence[JsonObject]) -> str | list[JsonObject]:
    """Plain text, unless there are parts beside it."""
    shown = form.of(parts)
    return _with_text(shown, form.text(text) if text else None) if shown else text


def _openai_call(call: ToolCall) -> JsonObject:
    return {"id": call.id, "type": "function", "function": {"name": _name(call), "arguments": call.arguments_text}}


def to_ollama(messages: Sequence[Message], *, system: str | None = None) -> list[JsonObject]:
    """The `messages` of Ollama's chat (https://docs.ollama.com/api/chat). Its calls have no ids: results follow in the
    order of the calls. It takes pictures as base64; of others a mark stands.
    """
    converted: list[JsonObject] = [{"role": "system", "content": system}] if system else []
    for exchange in exchanges(messages, "ollama"):
        given = exchange.as_given("ollama")
        message = ollama_message(exchange) if given is None else given
        if exchange.role != "assistant" or _says_something(message):
            converted.append(message)
        names = {call.id: call.name for call in exchange.calls}
        given_results = {call_id: (answers, result) for call_id, answers, result in exchange.results_as_given("ollama")}
        for call_id in names:
            if call_id in given_results:
                answers, result = given_results[call_id]
                converted.append(ollama_result(names[call_id], answers) if result is None else result)
    return converted


def ollama_result(name: str, answers: Sequence[Message]) -> JsonObject:
    text, parts = _joined(answers)
    shown = [text, *(str(part["text"]) for part in OPENAI_TEXT.of(parts))]
    return {"role": "tool", "content": "\n".join(filter(None, shown)), "tool_name": name}


def ollama_message(exchange: Exchange) -> JsonObject:
    message = exchange.message
    pictures, others = list[str](), list[JsonObject]()
    for part in message.parts:
        picture = picture_of(part)
        if picture and picture.data:
            pictures.append(picture.data)
        else:
            others.append(part)
    shown = [message.content, *(str(part["text"]) for part in OPENAI_TEXT.of(others))]
    converted: JsonObject = {"role": exchange.role, "content": "\n".join(filter(None, shown))}
    if pictures and exchange.role == "user":
        converted["images"] = pictures
    if exchange.calls:
        converted["tool_calls"] = [
            {"function": {"name": call.name, "arguments": arguments_of(call)}} for call in exchange.calls
        ]
    return converted


def to_openai_responses(messages: Sequence[Message], *, system: str | None = None) -> list[JsonObject]:
    """The `input` of the Responses API (https://platform.openai.com/docs/api-reference/responses).

    Items that the API gave go back as they came, and in their order: between a call and its result other calls may
    stand, and what else the API gave, but nothing that was said otherwise. Reasoning of a message that was changed
    since goes back without its id: by that the API would look for the very items that it gave.
    """
    placed: list[tuple[int, Sequence[JsonObject]]] = []
    results: list[tuple[int, int, Sequence[JsonObject]]] = []
    said: list[int] = []
    for exchange in exchanges(messages, "openai_responses"):
        given = exchange.as_given("openai_responses")
        if given is None and (exchange.message.content or exchange.message.parts or not exchange.calls):
            said.append(exchange.place)
        is_kept = given is not None and _says_anything(exchange.role, given)
        placed.append((exchange.place, cast("list[JsonObject]", given) if is_kept else responses_items(exchange)))
        for call_id, answers, result in exchange.results_as_given("openai_responses"):
            items = [responses_output(call_id, answers)] if result is None else result
            results.append((exchange.place, exchange.places[call_id], items))
    for call, result, items in results:
        placed.append((result if bisect(said, call) == bisect(said, result) else call, items))
    placed.sort(key=itemgetter(0))
    shown = [item for _, items in placed for item in items]
    return [{"role": "system", "content": system}, *shown] if system else shown


def _says_anything(role: str, items: Sequence[JsonObject]) -> bool:
    """An empty answer in the short form is left out, as every other."""
    return role != "assistant" or len(items) > 1 or bool(items[0].get("content")) or items[0].keys() != _SAID


_SAID = {"role", "content"}


def responses_output(call_id: str, answers: Sequence[Message]) -> JsonObject:
    output = _content(RESPONSES_INPUT, *_joined(answers))
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def responses_items(exchange: Exchange) -> list[JsonObject]:
    message = exchange.message
    items: list[JsonObject] = []
    if exchange.role == "assistant":
        items += map(_without_id, filter(_is_responses_reasoning, message.parts))
    content = _responses_content(exchange)
    if content or (not exchange.calls and (items or exchange.role != "assistant")):
        items.append({"role": exchange.role, "content": content})
    return [*items, *map(_responses_call, exchange.calls)]


def _is_responses_reasoning(part: JsonObject) -> bool:
    return part.get("type") == "reasoning" and "summary" in part


def _without_id(part: JsonObject) -> JsonObject:
    return {key: value for key, value in part.items() if key != "id"}


def _responses_content(exchange: Exchange) -> str | list[JsonObject]:
    """What the assistant said is plain text: as a list it would have to be an item that the API itself made."""
    message = exchange.message
    if exchange.role != "assistant":
        return _ordered_content(RESPONSES_INPUT, message)
    return "\n".join([message.content or "", *(str(part["text"]) for part in OPENAI_TEXT.of(message.parts))]).strip(
        "\n"
    )


def _responses_call(call: ToolCall) -> JsonObject:
    return {"type": "function_call", "call_id": call.id, "name": _name(call), "arguments": call.arguments_text}


def to_anthropic(messages: Sequence[Message], *, system: str | None = None) -> JsonObject:
    """A request to the Messages API (https://docs.anthropic.com/en/api/messages), without model and tools.

    System messages have no place between the others: all go to `system`, in their order. Blank texts, which the API
    refuses, are left out; neighbours of one role become one message. `container`, if there is one, is the newest that
    the API gave.
    """
    turns: list[JsonObject] = []
    for exchange in exchanges(_conversation(messages), "anthropic", not_in_ids=_NOT_IN_NAMES):
        given = exchange.as_given("anthropic")
        _add(turns, anthropic_message(exchange) if given is None else given)
        for call_id, answers, result in exchange.results_as_given("anthropic"):
            _add(turns, anthropic_result(call_id, answers) if result is None else result)
    containers = [turn.pop("container") for turn in turns if "container" in turn]
    _begin_with_user(turns, {"role": "user", "content": [{"type": "text", "text": EARLIER_NOT_SHOWN}]})
    _end_without_space(turns)
    request: JsonObject = {"messages": turns}
    if texts := _anthropic_system(messages, system):
        request = {"system": texts, **request}
    if containers and containers[-1]:
        last = containers[-1]
        request["container"] = cast("JsonObject", last).get("id") if isinstance(last, dict) else last
    return request


def _anthropic_system(messages: Sequence[Message], system: str | None) -> list[JsonObject]:
    blocks: list[JsonObject] = [{"type": "text", "text": system}] if system and system.strip() else []
    for message in filter(is_system, messages):
        given = as_given(message, "anthropic")
        content = cast("JsonObject", given).get("content") if given else None
        if isinstance(content, list):
            blocks += cast("list[JsonObject]", content)
        else:
            blocks += [{"type": "text", "text": text} for text in _texts(message) if text.strip()]
    return blocks


def anthropic_message(exchange: Exchange) -> JsonObject:
    form = ANTHROPIC_ASSISTANT if exchange.role == "assistant" else ANTHROPIC_USER
    blocks = _not_blank(_ordered(form, exchange.message))
    if exchange.role == "assistant":
        blocks += [
            {"type": "tool_use", "id": call.id, "name": _name(call), "input": arguments_of(call)}
            for call in exchange.calls
        ]
        return {"role": "assistant", "content": blocks}
    return {"role": "user", "content": blocks or [ANTHROPIC_USER.text(EMPTY)]}


def _not_blank(blocks: Sequence[JsonObject]) -> list[JsonObject]:
    return [block for block in blocks if block.get("type") != "text" or str(block.get("text")).strip()]


def anthropic_result(call_id: str, answers: Sequence[Message]) -> JsonObject:
    result: JsonObject = {"type": "tool_result", "tool_use_id": call_id}
    content = _not_blank([block for answer in answers for block in _ordered(ANTHROPIC_RESULT, answer)])
    if any(answer.metadata.get("is_error") for answer in answers):
        result |= {"content": content or [ANTHROPIC_RESULT.text(EMPTY)], "is_error": True}
    elif content:
        result["content"] = content
    return {"role": "user", "content": [result]}


def _add(turns: list[JsonObject], message: JsonObject) -> None:
    """Behind the others, or to the last one, if it is of the same role. What holds nothing is left out."""
    content = message["content"]
    if isinstance(content, list):
        content = _not_blank(cast("list[JsonObject]", content))
    if not content or (isinstance(content, str) and not content.strip()):
        if message["role"] == "user":
            content = [ANTHROPIC_USER.text(EMPTY)]
        else:
            return
    if not turns or turns[-1]["role"] != message["role"]:
        turns.append({**message, "content": content})
        return
    last = turns[-1]
    turns[-1] = {**message, **last, "content": [*_as_blocks(last["content"]), *_as_blocks(content)]}


def _as_blocks(content: str | list[JsonObject]) -> list[JsonObject]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _end_without_space(turns: list[JsonObject]) -> None:
    """A text of the assistant that ends the request may not end with white space: the model is to go on from there."""
    if not turns or turns[-1]["role"] != "assistant":
        return
    content = turns[-1]["content"]
    if isinstance(content, str):
        turns[-1]["content"] = content.rstrip()
    elif "text" in (last := content[-1]):
        turns[-1]["content"] = [*content[:-1], {**last, "text": last["text"].rstrip()}]


def to_gemini(messages: Sequence[Message], *, system: str | None = None) -> JsonObject:
    """`contents` and `system_instruction` in the dict form of google-genai.

    A call's `metadata["thought_signature"]` (bytes, or base64 text as it was stored) goes back with the call. As the
    API requires, results of calls made together stand in one content, and neighbours of the model are one content: a
    call may follow the user or a result only.
    """
    contents: list[JsonObject] = []
    for exchange in exchanges(_conversation(messages), "gemini"):
        given = exchange.as_given("gemini")
        content = gemini_content(exchange) if given is None else given
        is_joined = given is not None and bool(exchange.message.given and _is_joined(exchange.message.given.frame))
        if contents and contents[-1]["role"] == content["role"] and (is_joined or content["role"] == "model"):
            contents[-1] = {**content, **contents[-1], "parts": [*contents[-1]["parts"], *content["parts"]]}
        elif content["parts"]:
            contents.append(content)
        names = {call.id: _gemini_name(call) for call in exchange.calls}
        responses = [
            gemini_response(call_id, names[call_id], answers) if result is None else result
            for call_id, answers, result in exchange.results_as_given("gemini")
        ]
        if responses:
            parts = [part for response in responses for part in response["parts"]]
            contents.append({**responses[0], "parts": parts})
    _begin_with_user(contents, {"role": "user", "parts": [{"text": EARLIER_NOT_SHOWN}]})
    texts = [{"text": text} for text in _system_texts(messages, system)]
    return {"contents": contents, "system_instruction": {"parts": texts}} if texts else {"contents": contents}


def _is_joined(frame: Any) -> bool:
    return isinstance(frame, dict) and frames.JOINED in frame


def gemini_content(exchange: Exchange) -> JsonObject:
    said = _ordered(GEMINI, exchange.message)
    if exchange.role == "assistant":
        return {"role": "model", "parts": [*said, *map(_gemini_call, exchange.calls)]}
    return {"role": "user", "parts": [part for part in said if not is_reasoning(part)] or [GEMINI.text(EMPTY)]}


def _gemini_call(call: ToolCall) -> JsonObject:
    part: JsonObject = {"function_call": {"id": call.id, "name": _gemini_name(call), "args": arguments_of(call)}}
    if signature := call.metadata.get("thought_signature"):
        part["thought_signature"] = signature
    return part


def gemini_response(call_id: str, name: str, answers: Sequence[Message]) -> JsonObject:
    values = [json_value(answer.content) for answer in answers]
    value = values[0] if len(values) == 1 else values
    response = cast("JsonObject", value) if isinstance(value, dict) else {"result": value}
    converted: JsonObject = {"id": call_id, "name": name, "response": response}
    if files := [part for part in GEMINI.of(_joined(answers)[1]) if "inline_data" in part or "file_data" in part]:
        converted["parts"] = files
    return {"role": "user", "parts": [{"function_response": converted}]}


def _joined(answers: Sequence[Message]) -> tuple[str, list[JsonObject]]:
    """Several results of one call as one."""
    return "\n".join(answer.content for answer in answers), [part for answer in answers for part in answer.parts]


def _conversation(messages: Sequence[Message]) -> list[Message]:
    return [message for message in messages if not is_system(message)]


def _system_texts(messages: Sequence[Message], system: str | None) -> list[str]:
    texts = [text for message in messages if is_system(message) for text in _texts(message)]
    return [text for text in (system or "", *texts) if text.strip()]


def _texts(message: Message) -> list[str]:
    return [message.content, *(part["text"] for part in OPENAI_TEXT.of(message.parts))]


def _begin_with_user(turns: list[JsonObject], opening: JsonObject) -> None:
    if turns and turns[0]["role"] != "user":
        turns.insert(0, opening)


def _with_text(parts: Sequence[JsonObject], text: JsonObject | None) -> list[JsonObject]:
    """`parts` with the text where providers want it: after reasoning, before everything else."""
    reasoning = [part for part in parts if is_reasoning(part)]
    others = [part for part in parts if not is_reasoning(part)]
    return [*reasoning, *([text] if text else []), *others]


def _name(call: ToolCall) -> str:
    return _NOT_IN_NAMES.sub("_", call.name)[:_LONGEST_NAME] or "tool"


def _gemini_name(call: ToolCall) -> str:
    """It must begin with a letter or an underscore."""
    name = _NOT_IN_GEMINI_NAMES.sub("_", call.name) or "tool"
    return (name if name[0].isalpha() or name[0] == "_" else f"_{name}")[:_LONGEST_NAME]
