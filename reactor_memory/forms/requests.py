"""Messages in the forms that providers take.

`agent` is shown as assistant, `summary` as system, one that an agent posted as assistant. What came with reasoning in
several messages becomes one. The results of a call follow it directly and several results of one call become one, as
every provider demands. Ids of calls and names of tools stay as they are unless the provider would refuse them: then the
same history always gives the same other ones. A result that names no call is text of the user that says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, cast

import msgspec

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
)
from reactor_memory.models import JsonObject, Message, ToolCall, as_said, is_posted_summary, is_reasoning, reasoned_runs
from reactor_memory.models.turns import find_pairs

_ASSISTANT = ("assistant", "agent")
_SYSTEM = ("system", "summary")
_OPENAI_NAME = re.compile(r"[^\s<|\\/>]{1,64}")
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_NOT_IN_GEMINI_NAMES = re.compile(r"[^a-zA-Z0-9_.:-]")
_LONGEST_NAME = 64
_LONGEST_ID = 40

EARLIER_NOT_SHOWN = "[earlier messages are not shown]"
"""Stands first where a provider wants a user message first and the context begins with the assistant."""

EMPTY = "[empty]"
"""Stands for a user message, or the result of a failed call, that has nothing to show where a provider wants something.
"""


class Exchange(NamedTuple):
    """A message that is no result, with its calls and their results under the ids that the provider gets."""

    message: Message
    calls: Sequence[ToolCall]
    results: Mapping[str, Sequence[Message]]

    @property
    def role(self) -> str:
        role = self.message.role
        if _is_system(self.message):
            return "system"
        return "assistant" if role in (*_ASSISTANT, "summary") else "user"


def to_openai(messages: Sequence[Message], *, system: str | None = None) -> list[JsonObject]:
    """The messages of a chat completion (https://platform.openai.com/docs/api-reference/chat)."""
    converted: list[JsonObject] = [{"role": "system", "content": system}] if system else []
    for exchange in _exchanges(messages):
        converted.append(_openai_message(exchange))
        for call_id, answers in exchange.results.items():
            text, parts = _joined(answers)
            converted.append({"role": "tool", "tool_call_id": call_id, "content": _content(OPENAI_TEXT, text, parts)})
    return converted


def _openai_message(exchange: Exchange) -> JsonObject:
    message, role = exchange.message, exchange.role
    form = {"user": OPENAI_USER, "assistant": OPENAI_ASSISTANT}.get(role, OPENAI_TEXT)
    converted: JsonObject = {"role": role, "content": _content(form, message.content, message.parts)}
    if message.name and _OPENAI_NAME.fullmatch(message.name):
        converted["name"] = message.name
    if exchange.calls:
        converted["content"] = converted["content"] or None
        converted["tool_calls"] = [_openai_call(call) for call in exchange.calls]
    return converted


def _content(form: Form, text: str, parts: Sequence[JsonObject]) -> str | list[JsonObject]:
    """Plain text, unless there are parts beside it."""
    shown = form.of(parts)
    return _with_text(shown, form.text(text) if text else None) if shown else text


def _openai_call(call: ToolCall) -> JsonObject:
    return {"id": call.id, "type": "function", "function": {"name": _name(call), "arguments": _arguments_text(call)}}


def to_openai_responses(messages: Sequence[Message], *, system: str | None = None) -> list[JsonObject]:
    """The `input` of the Responses API (https://platform.openai.com/docs/api-reference/responses).

    Reasoning that the API gave goes back as an item of its own, before what it led to. It has no id: by that the API
    would look for the very items that it gave, and those have ids, too, which a message does not keep.
    """
    items: list[JsonObject] = [{"role": "system", "content": system}] if system else []
    for exchange in _exchanges(messages):
        message = exchange.message
        if exchange.role == "assistant":
            items += map(_without_id, filter(_is_responses_reasoning, message.parts))
        content = _responses_content(exchange)
        if content or not exchange.calls:
            items.append({"role": exchange.role, "content": content})
        items += [_responses_call(call) for call in exchange.calls]
        for call_id, answers in exchange.results.items():
            output = _content(RESPONSES_INPUT, *_joined(answers))
            items.append({"type": "function_call_output", "call_id": call_id, "output": output})
    return items


def _is_responses_reasoning(part: JsonObject) -> bool:
    return part.get("type") == "reasoning" and "summary" in part


def _without_id(part: JsonObject) -> JsonObject:
    return {key: value for key, value in part.items() if key != "id"}


def _responses_content(exchange: Exchange) -> str | list[JsonObject]:
    """What the assistant said is plain text: as a list it would have to be an item that the API itself made."""
    message = exchange.message
    if exchange.role != "assistant":
        return _content(RESPONSES_INPUT, message.content, message.parts)
    return "\n".join([message.content or "", *(str(part["text"]) for part in OPENAI_TEXT.of(message.parts))]).strip(
        "\n"
    )


def _responses_call(call: ToolCall) -> JsonObject:
    return {"type": "function_call", "call_id": call.id, "name": _name(call), "arguments": _arguments_text(call)}


def to_anthropic(messages: Sequence[Message], *, system: str | None = None) -> JsonObject:
    """A request to the Messages API (https://docs.anthropic.com/en/api/messages), without model and tools.

    System messages have no place between the others: all go to `system`, in their order. Blank texts, which the API
    refuses, are left out; neighbours of one role become one message.
    """
    turns: list[JsonObject] = []
    for exchange in _exchanges(_conversation(messages), not_in_ids=_NOT_IN_NAMES):
        _add(turns, exchange.role, _anthropic_blocks(exchange))
        _add(turns, "user", [_anthropic_result(key, answers) for key, answers in exchange.results.items()])
    _begin_with_user(turns, {"role": "user", "content": [{"type": "text", "text": EARLIER_NOT_SHOWN}]})
    _end_without_space(turns)
    texts = [{"type": "text", "text": text} for text in _system_texts(messages, system)]
    return {"system": texts, "messages": turns} if texts else {"messages": turns}


def _anthropic_blocks(exchange: Exchange) -> list[JsonObject]:
    calls: list[JsonObject] = [
        {"type": "tool_use", "id": call.id, "name": _name(call), "input": _arguments(call)} for call in exchange.calls
    ]
    if exchange.role == "assistant":
        return [*_anthropic_content(ANTHROPIC_ASSISTANT, exchange.message), *calls]
    return _anthropic_content(ANTHROPIC_USER, exchange.message) or [ANTHROPIC_USER.text(EMPTY)]


def _anthropic_content(form: Form, message: Message) -> list[JsonObject]:
    return _with_text(form.of(message.parts), form.text(message.content) if message.content.strip() else None)


def _anthropic_result(call_id: str, answers: Sequence[Message]) -> JsonObject:
    result: JsonObject = {"type": "tool_result", "tool_use_id": call_id}
    content = [block for answer in answers for block in _anthropic_content(ANTHROPIC_RESULT, answer)]
    if any(answer.metadata.get("is_error") for answer in answers):
        return {**result, "content": content or [ANTHROPIC_RESULT.text(EMPTY)], "is_error": True}
    return {**result, "content": content} if content else result


def _add(turns: list[JsonObject], role: str, blocks: list[JsonObject]) -> None:
    if not blocks:
        return
    if turns and turns[-1]["role"] == role:
        turns[-1]["content"] += blocks
    else:
        turns.append({"role": role, "content": blocks})


def _end_without_space(turns: list[JsonObject]) -> None:
    """A text of the assistant that ends the request may not end with white space: the model is to go on from there."""
    if turns and turns[-1]["role"] == "assistant" and "text" in (last := turns[-1]["content"][-1]):
        turns[-1]["content"][-1] = {**last, "text": last["text"].rstrip()}


def to_gemini(messages: Sequence[Message], *, system: str | None = None) -> JsonObject:
    """`contents` and `system_instruction` in the dict form of google-genai.

    A call's `metadata["thought_signature"]` (bytes, or base64 text as it was stored) goes back with the call. As the
    API requires, results of calls made together stand in one content, and neighbours of the model are one content: a
    call may follow the user or a result only.
    """
    contents: list[JsonObject] = []
    for exchange in _exchanges(_conversation(messages)):
        parts = _gemini_parts(exchange)
        role = "model" if exchange.role == "assistant" else "user"
        if role == "model" and contents and contents[-1]["role"] == "model":
            contents[-1]["parts"] += parts
        elif parts:
            contents.append({"role": role, "parts": parts})
        names = {call.id: _gemini_name(call) for call in exchange.calls}
        responses = [_gemini_response(key, names[key], answers) for key, answers in exchange.results.items()]
        if responses:
            contents.append({"role": "user", "parts": responses})
    _begin_with_user(contents, {"role": "user", "parts": [{"text": EARLIER_NOT_SHOWN}]})
    texts = [{"text": text} for text in _system_texts(messages, system)]
    return {"contents": contents, "system_instruction": {"parts": texts}} if texts else {"contents": contents}


def _gemini_parts(exchange: Exchange) -> list[JsonObject]:
    message = exchange.message
    said = _with_text(GEMINI.of(message.parts), GEMINI.text(message.content) if message.content else None)
    if exchange.role == "assistant":
        return [*said, *map(_gemini_call, exchange.calls)]
    return [part for part in said if not is_reasoning(part)] or [GEMINI.text(EMPTY)]


def _gemini_call(call: ToolCall) -> JsonObject:
    part: JsonObject = {"function_call": {"id": call.id, "name": _gemini_name(call), "args": _arguments(call)}}
    if signature := call.metadata.get("thought_signature"):
        part["thought_signature"] = signature
    return part


def _gemini_response(call_id: str, name: str, answers: Sequence[Message]) -> JsonObject:
    values = [_json_value(answer.content) for answer in answers]
    value = values[0] if len(values) == 1 else values
    response = cast("JsonObject", value) if isinstance(value, dict) else {"result": value}
    converted: JsonObject = {"id": call_id, "name": name, "response": response}
    if files := [part for part in GEMINI.of(_joined(answers)[1]) if "inline_data" in part or "file_data" in part]:
        converted["parts"] = files
    return {"function_response": converted}


def _exchanges(messages: Sequence[Message], *, not_in_ids: re.Pattern[str] | None = None) -> Iterator[Exchange]:
    """The messages that are no results, each with the calls and results that belong to it.

    Only the assistant calls tools; what stands as calls of others is not shown.
    """
    ids = _CallIds(not_in_ids)
    messages = _joined_runs(messages)
    results = {pair.call: [messages[index] for index in pair.results] for pair in find_pairs(messages)}
    for index, message in enumerate(map(as_said, messages)):
        if message.role == "tool":
            continue
        made = message.tool_calls if message.role in _ASSISTANT else ()
        calls = [msgspec.structs.replace(call, id=ids.of(call.id)) for call in made]
        yield Exchange(message, calls, _by_call(results.get(index, ()), made, calls))


def _joined_runs(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages, those that came with reasoning in several put together."""
    runs = [run for run in reasoned_runs(messages, range(len(messages)), len(messages)) if len(run) > 1]
    joined: list[Message] = []
    for run, after in zip([range(0), *runs], [*runs, range(len(messages), len(messages))], strict=True):
        joined += [_as_one(messages[run.start : run.stop])] if run else []
        joined += messages[run.stop : after.start]
    return joined


def _as_one(messages: Sequence[Message]) -> Message:
    return msgspec.structs.replace(
        messages[0],
        content="\n".join(message.content for message in messages if message.content),
        parts=tuple(part for message in messages for part in message.parts),
        tool_calls=tuple(call for message in messages for call in message.tool_calls),
    )


class _CallIds:
    """Ids under which every call of a request can be told from the others, as providers demand: an id that came
    before, or that the provider refuses, gets another form.
    """

    def __init__(self, refused: re.Pattern[str] | None) -> None:
        self._refused = refused
        self._times: dict[str, int] = {}

    def of(self, given: str) -> str:
        accepted = (self._refused.sub("_", given) if self._refused else given) or "call"
        accepted = accepted[:_LONGEST_ID]
        times = self._times.get(accepted, 0)
        free = accepted
        while free in self._times:
            times += 1
            free = f"{accepted[: _LONGEST_ID - 8]}_{times}"
        self._times[accepted] = times
        self._times.setdefault(free, 0)
        return free


def _by_call(
    results: Sequence[Message], made: Sequence[ToolCall], calls: Sequence[ToolCall]
) -> dict[str, list[Message]]:
    """The results by the ids that the calls got. Those of no call that is shown are left out.

    Calls that a model made under one id, in several messages of one reasoning, cannot be told apart, and each needs a
    result: they share theirs.
    """
    ids: dict[str, list[str]] = {}
    for call, shown in zip(made, calls, strict=True):
        ids.setdefault(call.id, []).append(shown.id)
    answers: dict[str, list[Message]] = {}
    for result in results:
        for call_id in ids.get(result.tool_call_id or "", ()):
            answers.setdefault(call_id, []).append(result)
    return answers


def _joined(answers: Sequence[Message]) -> tuple[str, list[JsonObject]]:
    """Several results of one call as one."""
    return "\n".join(answer.content for answer in answers), [part for answer in answers for part in answer.parts]


def _is_system(message: Message) -> bool:
    """What an agent posted has no say over the model."""
    return message.role in _SYSTEM and not is_posted_summary(message)


def _conversation(messages: Sequence[Message]) -> list[Message]:
    return [message for message in messages if not _is_system(message)]


def _system_texts(messages: Sequence[Message], system: str | None) -> list[str]:
    texts = [text for message in messages if _is_system(message) for text in _texts(message)]
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


def _arguments(call: ToolCall) -> JsonObject:
    """The arguments as an object; text that is no JSON object goes through unread, under `_raw`."""
    if not isinstance(call.arguments, str):
        return call.arguments
    if not call.arguments.strip():
        return {}
    value = _json_value(call.arguments)
    return cast("JsonObject", value) if isinstance(value, dict) else {"_raw": call.arguments}


def _arguments_text(call: ToolCall) -> str:
    """The JSON text as the model wrote it, malformed or not."""
    return call.arguments if isinstance(call.arguments, str) else msgspec.json.encode(call.arguments).decode()


def _json_value(text: str) -> object:
    """What `text` says as JSON, or the text itself."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
