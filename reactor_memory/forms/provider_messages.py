"""Dicts, and objects of the SDKs, in the forms of OpenAI, Anthropic and Gemini as messages.

The one place that reads these forms; `requests` writes them. Text goes to `content`, calls to `tool_calls`, each result
becomes a message of its own, and everything else is an opaque part. What is read here is checked afterwards like every
message (`reactor_memory.core.validation`).
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, cast

import msgspec

from reactor_memory.errors import InvalidMessageError
from reactor_memory.forms.requests import EARLIER_NOT_SHOWN
from reactor_memory.forms.sdk_values import held, holder_of, misuse, plain
from reactor_memory.models import JsonObject, Message, Role, ToolCall

_MUST_BE = "must be a Message, a text, or a dict or an object of OpenAI, Anthropic or Gemini"
_ROLES: dict[object, Role] = {
    "user": "user",
    "assistant": "assistant",
    "model": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
    "agent": "agent",
    "summary": "summary",
}
_TEXTS = ("text", "input_text", "output_text")
_RESPONSES_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_RESPONSES_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_OWN_FIELDS = ("name", "metadata", "visibility", "author_id", "created_at")
_KNOWN_FIELDS = ("role", "content", "parts", "tool_calls", "tool_call_id", *_OWN_FIELDS)
_MARK = Message.user(EARLIER_NOT_SHOWN)
_CAPITAL = re.compile("(?<=[a-z])([A-Z])")


def read(items: Iterable[tuple[str, object]]) -> tuple[Message, ...]:
    """The messages of these items, each with the place that errors name."""
    reader = _Reader()
    for where, item in items:
        reader.add(where, item)
    return tuple(reader.messages)


def no_message(where: str, item: object, *, also: str = "") -> InvalidMessageError:
    """The refusal of what is no message in any form. `also`: what else would be right in this place."""
    return InvalidMessageError(where, f"is a {_type(item)}, {_MUST_BE}{also}{misuse(item)}")


class _Reader:
    """Collects messages. In the Responses API what the model did in one step is several items: they are put together
    again.
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._is_reasoning = False

    def add(self, where: str, given: object) -> None:
        item = plain(given)
        if isinstance(item, Message):
            self._put([item])
        elif isinstance(item, str):
            self._put([Message.user(item)])
        elif isinstance(item, Mapping):
            self._add_dict(where, {str(key): value for key, value in cast("Mapping[Any, Any]", item).items()})
        else:
            raise no_message(where, item)

    def _add_dict(self, where: str, item: JsonObject) -> None:
        kind = item.get("type")
        if "role" not in item and ("messages" in item or "contents" in item):
            self._add_request(where, item)
        elif (holder := holder_of(item)) is not None:
            self._add_held(where, item, holder)
        elif kind in _RESPONSES_CALLS:
            self._add_call(_responses_call(where, item, _RESPONSES_CALLS[kind]))
        elif kind in _RESPONSES_OUTPUTS:
            self._put([_result(where, item, item.get("call_id"), "call_id", item.get("output"))])
        elif kind == "reasoning":
            self._put([Message.assistant(parts=(_without_nothing(item),))])
            self._is_reasoning = True
        elif "parts" in item and "content" not in item:
            self._put_without_mark(_from_gemini(where, item))
        else:
            self._put_without_mark(_from_role_and_content(where, item))

    def _add_request(self, where: str, item: JsonObject) -> None:
        """A whole request: to Anthropic ``system`` and ``messages``, to Gemini ``system_instruction`` and
        ``contents``.
        """
        given = item.get("system") or item.get("system_instruction") or item.get("systemInstruction")
        for text in _system_texts(f"{where}.system", given):
            self._put([Message.system(text)])
        key = "messages" if "messages" in item else "contents"
        for position, each in enumerate(_list(f"{where}.{key}", item[key])):
            self.add(f"{where}.{key}[{position}]", each)

    def _add_held(self, where: str, item: JsonObject, holder: str) -> None:
        """What a whole response holds, or a request to OpenAI's Responses."""
        place, found = held(where, item, holder)
        for text in _system_texts(f"{where}.instructions", item.get("instructions") if holder == "input" else None):
            self._put([Message.system(text)])
        if isinstance(found, (list, tuple)):
            for position, each in enumerate(cast("Sequence[object]", found)):
                self.add(f"{place}[{position}]", each)
        else:
            self.add(place, found)

    def _put(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if self._is_reasoning and message.role == "assistant":
                before = self.messages.pop()
                message = msgspec.structs.replace(message, parts=(*before.parts, *message.parts))
            self._is_reasoning = False
            self.messages.append(message)

    def _put_without_mark(self, messages: Sequence[Message]) -> None:
        """All but the mark that we put where a provider wants a user message first."""
        is_mark = len(messages) == 1 and messages[0] == _MARK and all(each.role == "system" for each in self.messages)
        self._put(() if is_mark else messages)

    def _add_call(self, call: ToolCall) -> None:
        self._is_reasoning = False
        last = self.messages[-1] if self.messages else Message.user("")
        if last.role == "assistant" and (last.content or last.parts or last.tool_calls):
            self.messages[-1] = msgspec.structs.replace(last, tool_calls=(*last.tool_calls, call))
        else:  # an empty answer is one of its own: with calls it is not written
            self.messages.append(Message.assistant(tool_calls=[call]))


# -- role and content: OpenAI and Anthropic ---------------------------------------------------------------------------


class _Content(NamedTuple):
    text: str = ""
    parts: tuple[JsonObject, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    results: tuple[Message, ...] = ()


def _from_role_and_content(where: str, item: JsonObject) -> list[Message]:
    """The results that a user message of Anthropic brings along, then the message, unless nothing of it is left."""
    role = _role(where, item)
    _refuse_slips(where, item)
    calls = tuple(
        _openai_call(f"{where}.tool_calls[{position}]", call)
        for position, call in enumerate(_list(f"{where}.tool_calls", item.get("tool_calls") or ()))
    )
    if item.get("function_call"):  # of older models: it has no id, and its result has its name
        calls += (_call_without_id(f"{where}.function_call", item["function_call"]),)
    content = _content(f"{where}.content", item.get("content"), role)
    refusal: list[JsonObject] = [{"type": "refusal", "refusal": item["refusal"]}] if item.get("refusal") else []
    own_parts = _list(f"{where}.parts", item.get("parts") or ())
    calls += content.calls
    says_nothing = role == "assistant" and "content" in item  # null is what a model that said nothing writes
    if item.get("content") is None and not (calls or refusal or own_parts or says_nothing):
        raise InvalidMessageError(f"{where}.content", "is missing; must be a text or a list of parts")
    message = Message(
        role=role,
        content=content.text,
        parts=(*content.parts, *refusal, *cast("Sequence[JsonObject]", own_parts)),
        tool_calls=calls,
        tool_call_id=item.get("tool_call_id") or (item.get("name") if item["role"] == "function" else None),
        **{name: item[name] for name in _OWN_FIELDS if item.get(name) is not None},
    )
    is_empty = not (message.content or message.parts or message.tool_calls)
    return [*content.results] if content.results and is_empty else [*content.results, message]


def _role(where: str, item: JsonObject) -> Role:
    if "role" not in item:
        of_langchain = "; give messages of LangChain as adapters.langchain.to_message(...) makes them"
        remedy = of_langchain if item.get("type") in ("human", "ai") else ""
        raise InvalidMessageError(f"{where}.role", f"is missing; must be one of {', '.join(map(str, _ROLES))}{remedy}")
    given = item["role"]
    role = _ROLES.get(given) if isinstance(given, str) else None
    if role is None:
        raise InvalidMessageError(f"{where}.role", f"must be one of {', '.join(map(str, _ROLES))}")
    return role


def _refuse_slips(where: str, item: JsonObject) -> None:
    """What providers add to their messages is left out, a slip of the pen would lose what it names."""
    for key in item.keys() - _KNOWN_FIELDS:
        if near := get_close_matches(key, _KNOWN_FIELDS, n=1, cutoff=0.85):
            raise InvalidMessageError(f"{where}.{key}", f"is no key of a message; did you mean {near[0]}?")


def _content(where: str, value: object, role: Role) -> _Content:
    if value is None or isinstance(value, str):
        return _Content(text=value or "")
    if not isinstance(value, (list, tuple)):
        raise InvalidMessageError(where, f"is a {_type(value)}, must be a text or a list of parts")
    texts: list[str] = []
    parts: list[JsonObject] = []
    calls: list[ToolCall] = []
    results: list[Message] = []
    for position, given in enumerate(cast("Sequence[object]", value)):
        place = f"{where}[{position}]"
        block = _block(place, given)
        if block.get("type") in _TEXTS:
            texts.append(_text(f"{place}.text", block.get("text")))
        elif block.get("type") == "tool_use":
            calls.append(_call(place, block.get("id"), block.get("name"), block.get("input")))
        elif block.get("type") == "tool_result":
            results.append(_result(place, block, block.get("tool_use_id"), "tool_use_id", block.get("content")))
        else:
            parts.append(block)
    return _Content(_joined(texts, role), tuple(parts), tuple(calls), tuple(results))


def _joined(texts: Sequence[str], role: Role) -> str:
    """A model divides its text where it likes, also inside a sentence. The texts of others stand for themselves."""
    return ("" if role == "assistant" else "\n").join(texts)


def _block(where: str, given: object) -> JsonObject:
    """A content block without what is only for one request."""
    if isinstance(given, str):
        return {"type": "text", "text": given}
    value = plain(given)
    if not isinstance(value, Mapping):
        raise InvalidMessageError(
            where, f"is a {_type(value)}, must be a dict, such as {{'type': 'text', 'text': ...}}"
        )
    block = _without_nothing(cast("Mapping[str, Any]", value))
    block.pop("cache_control", None)
    if "text" in block and "type" not in block:
        block["type"] = "text"
    return block


def _openai_call(where: str, given: Any) -> ToolCall:
    if isinstance(given, ToolCall):
        return given
    call = _object(where, given)
    called, key = call.get("function"), "arguments"
    if called is None:
        called, key = call.get("custom"), "input"
    if not isinstance(called, Mapping):
        raise InvalidMessageError(where, "must have an id, and a function with name and arguments")
    function = cast("Mapping[str, Any]", called)
    return _call(where, call.get("id"), function.get("name"), function.get(key))


def _call_without_id(where: str, given: object) -> ToolCall:
    called = _object(where, given)
    name = _text(f"{where}.name", called.get("name"))
    return _call(where, name, name, called.get("arguments"))


def _responses_call(where: str, item: JsonObject, key: str) -> ToolCall:
    return _call(where, item.get("call_id"), item.get("name"), item.get(key))


def _call(where: str, call_id: Any, name: Any, arguments: Any, metadata: JsonObject | None = None) -> ToolCall:
    return ToolCall(
        id=_text(f"{where}.id", call_id),
        name=_text(f"{where}.name", name),
        arguments=_arguments(f"{where}.arguments", arguments),
        metadata=metadata or {},
    )


def _arguments(where: str, given: Any) -> JsonObject | str:
    """A text under ``_raw`` alone is what `to_anthropic` and `to_gemini` make of one that is no JSON object."""
    if given is None:
        return {}
    if isinstance(given, str):
        return given
    arguments = _object(where, given)
    raw = arguments.get("_raw")
    return raw if isinstance(raw, str) and len(arguments) == 1 else arguments


def _result(where: str, item: JsonObject, call_id: object, key: str, value: object) -> Message:
    if not isinstance(call_id, str):
        raise InvalidMessageError(f"{where}.{key}", "is missing; a result names the call it answers")
    content = _content(f"{where}.content", value, "tool")
    return Message.tool(
        content.text,
        tool_call_id=call_id,
        parts=content.parts,
        metadata={"is_error": True} if item.get("is_error") else {},
    )


def _system_texts(where: str, given: object) -> list[str]:
    if isinstance(given, Mapping):
        given = cast("Mapping[str, Any]", given).get("parts")
    if given is None or isinstance(given, str):
        return [given] if given else []
    return [_text(where, _block(where, each).get("text")) for each in _list(where, given)]


# -- Gemini -----------------------------------------------------------------------------------------------------------


def _from_gemini(where: str, item: JsonObject) -> list[Message]:
    """The results that a content brings along, then the message, unless nothing of it is left. Calls and results that
    have no id get their names as ids, so that they find each other.
    """
    role = _role(where, {"role": "user", **_without_nothing(item)})
    seen: Counter[str] = Counter()
    texts: list[str] = []
    parts: list[JsonObject] = []
    calls: list[ToolCall] = []
    results: list[Message] = []
    for position, given in enumerate(_list(f"{where}.parts", item["parts"])):
        place = f"{where}.parts[{position}]"
        part = _gemini_part(place, given)
        if (called := part.get("function_call")) is not None:
            calls.append(_gemini_call(f"{place}.function_call", called, part.get("thought_signature"), seen))
        elif (response := part.get("function_response")) is not None:
            results.append(_gemini_result(f"{place}.function_response", response, seen))
        elif isinstance(part.get("text"), str) and not part.get("thought"):
            if part["text"] or len(part) == 1:
                texts.append(part["text"])
            if len(part) > 1:  # a signature goes back beside a text, which may be empty
                parts.append({**part, "text": ""})
        else:
            parts.append(part)
    message = Message(role=role, content=_joined(texts, role), parts=tuple(parts), tool_calls=tuple(calls))
    is_empty = not (texts or parts or calls)
    return [*results] if results and is_empty else [*results, message]


def _gemini_part(where: str, given: object) -> JsonObject:
    """A part with the keys of google-genai and JSON values, whoever wrote it."""
    if isinstance(given, str):
        return {"text": given}
    value = plain(given)
    if not isinstance(value, Mapping):
        raise InvalidMessageError(where, f"is a {_type(value)}, must be a dict, such as {{'text': ...}}")
    part = _with_snake_keys(cast("Mapping[str, Any]", value))
    for key in ("inline_data", "file_data"):
        if isinstance(part.get(key), Mapping):
            part[key] = _with_snake_keys(part[key])
    return part


def _with_snake_keys(given: Mapping[str, Any]) -> JsonObject:
    return {_CAPITAL.sub(r"_\1", key).lower(): _as_json(value) for key, value in _without_nothing(given).items()}


def _as_json(value: Any) -> Any:
    return b64encode(value).decode() if isinstance(value, bytes) else value


def _gemini_call(where: str, given: object, signature: object, seen: Counter[str]) -> ToolCall:
    call = _object(where, given)
    name = _text(f"{where}.name", call.get("name"))
    call_id = call.get("id") or _id_by_name(name, seen)
    return _call(where, call_id, name, call.get("args"), {"thought_signature": signature} if signature else {})


def _gemini_result(where: str, given: object, seen: Counter[str]) -> Message:
    response = _object(where, given)
    call_id = response.get("id") or _id_by_name(_text(f"{where}.name", response.get("name")), seen)
    parts = [_gemini_part(where, part) for part in _list(f"{where}.parts", response.get("parts") or ())]
    return Message.tool(
        _result_text(where, response.get("response")), tool_call_id=_text(f"{where}.id", call_id), parts=tuple(parts)
    )


def _id_by_name(name: str, seen: Counter[str]) -> str:
    """The same for the n-th call and the n-th result of a name in a content."""
    seen[name] += 1
    return name if seen[name] == 1 else f"{name}-{seen[name]}"


def _result_text(where: str, given: Any) -> str:
    if given is None:
        return ""
    response = _object(where, given)
    value = response["result"] if response.keys() == {"result"} else response
    return value if isinstance(value, str) else _json(where, value)


def _json(where: str, value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError):
        raise InvalidMessageError(f"{where}.response", "must hold JSON values") from None


# -- values -----------------------------------------------------------------------------------------------------------


def _without_nothing(given: Mapping[str, Any]) -> JsonObject:
    """What models of SDKs write as null, they mean as not there."""
    return {key: value for key, value in given.items() if value is not None}


def _object(where: str, given: object) -> JsonObject:
    value = plain(given)
    if not isinstance(value, Mapping):
        raise InvalidMessageError(where, f"is a {_type(value)}, must be a dict")
    return dict(cast("Mapping[str, Any]", value))


def _text(where: str, given: object) -> str:
    if not isinstance(given, str):
        raise InvalidMessageError(where, f"is a {_type(given)}, must be a text")
    return given


def _list(where: str, given: object) -> Sequence[object]:
    if not isinstance(given, (list, tuple)):
        raise InvalidMessageError(where, f"is a {_type(given)}, must be a list")
    return cast("Sequence[object]", given)


def _type(value: object) -> str:
    return type(value).__name__
