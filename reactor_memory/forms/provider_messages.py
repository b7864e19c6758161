"""Dicts, and objects of the SDKs, in the forms of OpenAI, Anthropic, Gemini and Ollama as messages.

The place that reads these forms; `requests` writes them. Text goes to `content`, calls to `tool_calls`, each result
becomes a message of its own, and everything else is an opaque part. Where these fields would not give back what the
provider gave, the message keeps it (`Message.given`). What is read here is checked afterwards like every message
(`reactor_memory.core.validation`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Any, cast

import msgspec

from reactor_memory.errors import InvalidMessageError
from reactor_memory.forms.content_blocks import MessageContent, plain_list, plain_object, plain_text, system_texts
from reactor_memory.forms.gemini_contents import messages_of_content
from reactor_memory.forms.kept_messages import with_given
from reactor_memory.forms.pieces import Pieces, kept_id, rest_of, result_id
from reactor_memory.forms.requests import EARLIER_NOT_SHOWN
from reactor_memory.forms.response_steps import ResponseSteps
from reactor_memory.forms.sdk_values import held, holder_of, kinds_of, misuse, plain
from reactor_memory.forms.storable import sendable
from reactor_memory.forms.written import unless_plain
from reactor_memory.models import AS_TEXT, Form, JsonObject, Message, Role, ToolCall
from reactor_memory.models.turns import attached

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
_OWN_FIELDS = ("name", "metadata", "visibility", "author_id", "created_at")
_KNOWN_FIELDS = ("role", "content", "parts", "tool_calls", "tool_call_id", "at", "given", *_OWN_FIELDS)
_NOT_OF_PROVIDERS = ("parts", "at", "metadata", "visibility", "author_id", "created_at")
_MARK = Message.user(EARLIER_NOT_SHOWN)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

REASONING = ("reasoning_content", "reasoning", "reasoning_details", "thinking", "thinking_blocks")
"""Where dialects of chat completions put what a model thought."""

_ENVELOPE = ("id", "type", "model", "stop_reason", "stop_sequence", "stop_details", "usage", "context_management")
"""Of a whole response of Anthropic, what is not the message."""


def read(items: Iterable[tuple[str, object]]) -> tuple[Message, ...]:
    """The messages of these items, each with the place that errors name."""
    reader = _Reader()
    for where, item in items:
        reader.add(where, item)
    return tuple(reader.finished())


def checked_given(where: str, message: Message) -> Message:
    """A message that was kept elsewhere, with what its provider gave. Raises `InvalidMessageError` if they differ."""
    return message if message.given is None else with_given(where, message, message.given, read)


def no_message(where: str, item: object, *, also: str = "") -> InvalidMessageError:
    """The error for an item in no known form. `also` names what else could stand in its place."""
    return InvalidMessageError(where, f"is a {type(item).__name__}, {_MUST_BE}{also}{misuse(item)}")


class _Reader:
    """Collects messages. In the Responses API what the model did in one step is several items: they are put together
    again.
    """

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._steps = ResponseSteps()

    def finished(self) -> list[Message]:
        self._messages += self._steps.finished()
        return attached(self._messages)

    def add(self, where: str, given: object) -> None:
        if type(given) is dict and (said := _plainly_said(cast("JsonObject", given))) is not None:
            self._put_without_mark((said,)) if self._steps.is_empty else self._add_dict(
                where, cast("JsonObject", given)
            )
            return
        item = plain(cast("object", given))
        if isinstance(item, Message):
            self._put([item])
        elif isinstance(item, str):
            self._put([Message.user(item)])
        elif isinstance(item, Mapping):
            self._add_dict(where, {str(key): value for key, value in cast("Mapping[Any, Any]", item).items()})
        else:
            raise no_message(where, item)

    def _add_dict(self, where: str, item: JsonObject) -> None:
        if _kept_given(item) is not None:
            self._put(_from_role_and_content(where, item))
        elif "role" not in item and ("messages" in item or "contents" in item):
            self._add_request(where, item)
        elif (holder := holder_of(item)) is not None:
            self._add_held(where, item, holder)
        elif ResponseSteps.is_item(item) or self._steps.awaits(item):
            if ResponseSteps.is_call(item) and self._said_before():
                said = self._messages.pop()
                self._steps.add(where, {"role": "assistant", "content": said.content})
            self._messages += self._steps.add(where, item)
        elif "parts" in item and "content" not in item:
            self._put_without_mark(messages_of_content(where, item, _role(where, {"role": "user", **_known(item)})))
        else:
            self._put_without_mark(_from_role_and_content(where, item))

    def _said_before(self) -> bool:
        """Whether the model said, in the short form, what the call that comes belongs to."""
        last = self._messages[-1] if self._messages and self._steps.is_empty else None
        return last is not None and last.role == "assistant" and last.given == AS_TEXT and bool(last.content)

    def _add_request(self, where: str, item: JsonObject) -> None:
        """A whole request: to Anthropic ``system`` and ``messages``, to Gemini ``system_instruction`` and
        ``contents``.
        """
        given = item.get("system") or item.get("system_instruction") or item.get("systemInstruction")
        self._put(system_texts(f"{where}.system", given))
        key = "messages" if "messages" in item else "contents"
        for position, each in enumerate(plain_list(f"{where}.{key}", item[key])):
            self.add(f"{where}.{key}[{position}]", each)

    def _add_held(self, where: str, item: JsonObject, holder: str) -> None:
        """What a whole response holds, or a request to OpenAI's Responses."""
        place, found = held(where, item, holder)
        self._put(system_texts(f"{where}.instructions", item.get("instructions") if holder == "input" else None))
        if isinstance(found, (list, tuple)):
            for position, each in enumerate(cast("Sequence[object]", found)):
                self.add(f"{place}[{position}]", each)
        else:
            self.add(place, found)

    def _put(self, messages: Iterable[Message]) -> None:
        self._messages += self._steps.finished()
        self._messages += messages

    def _put_without_mark(self, messages: Sequence[Message]) -> None:
        """All but the mark that we put where a provider wants a user message first."""
        self._messages += self._steps.finished()
        is_mark = len(messages) == 1 and messages[0] == _MARK and all(each.role == "system" for each in self._messages)
        self._put(() if is_mark else messages)


# -- role and content: OpenAI, Anthropic, Ollama ----------------------------------------------------------------------


def _from_role_and_content(where: str, item: JsonObject) -> list[Message]:
    """The results that a user message of Anthropic brings along, then the message, unless nothing of it is left."""
    role = _role(where, item)
    if item.keys() == {"role", "content"} and isinstance(item["content"], str) and item["role"] == role != "tool":
        return [_of_text(role, item["content"])]
    _refuse_slips(where, item)
    form = _form_of(item)
    content = MessageContent(role, form)
    frame = _chat_frame(where, item, role, content)
    says_nothing = role == "assistant" and "content" in item  # null is what a model that said nothing writes
    own_parts = plain_list(f"{where}.parts", item.get("parts") or ())
    pieces = content.pieces
    if item.get("content") is None and pieces.is_empty and not (own_parts or says_nothing):
        raise InvalidMessageError(f"{where}.content", "is missing; must be a text or a list of parts")
    message = pieces.message(
        role,
        form,
        frame,
        tool_call_id=_call_id_of(item) if role == "tool" else item.get("tool_call_id"),
        **_own_fields(where, item),
    )
    kept = _kept_given(item)
    if own_parts or kept is not None or any(map(_is_flat, item.get("tool_calls") or ())):
        parts = (*message.parts, *cast("Sequence[JsonObject]", own_parts))
        message = msgspec.structs.replace(message, parts=parts, given=None)
    if kept is not None:
        message = with_given(where, message, kept, read)
    results = content.results
    if results and not (message.content or message.parts or message.tool_calls):
        return [*results]
    return [*results, unless_plain(message)]


def _plainly_said(item: JsonObject) -> Message | None:
    """The message of a role and a text, which most are."""
    if len(item) != 2 or item.get("role") not in _SPEAKERS:
        return None
    text = item.get("content")
    return Message(role=item["role"], content=text, given=AS_TEXT) if isinstance(text, str) else None


def _of_text(role: Role, text: str) -> Message:
    return Message(role=role, content=text, given=AS_TEXT if role in ("user", "assistant") else None)


def _call_id_of(item: JsonObject) -> str | None:
    """The id of the call, or what goes for it: the name of the tool."""
    given = item.get("tool_call_id")
    if given is None and _kept_given(item) is None:
        given = item.get("tool_name") or item.get("name")
    return kept_id(given) if isinstance(given, str) else given


def _own_fields(where: str, item: JsonObject) -> JsonObject:
    fields = {name: item[name] for name in _OWN_FIELDS if item.get(name) is not None}
    if item.get("at") is not None:
        fields["created_at"] = _microseconds(f"{where}.at", item["at"])
    if (failed := item.get("is_error")) is True and item.get("role") == "tool":
        fields["metadata"] = {**fields.get("metadata", {}), "is_error": failed}
    return fields


def _microseconds(where: str, at: object) -> int:
    """A time as files of this library have it: ISO 8601 with its offset, or microseconds since the epoch."""
    if isinstance(at, int) and not isinstance(at, bool):
        return at
    try:
        time = at if isinstance(at, datetime) else datetime.fromisoformat(str(at))
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise InvalidMessageError(where, "must be a time with its offset, such as 2026-02-02T08:00:08+00:00")
    return (time - _EPOCH) // timedelta(microseconds=1)


def _chat_frame(where: str, item: JsonObject, role: Role, content: MessageContent) -> JsonObject:
    """What the provider gave, in the order of its blocks: reasoning, content, audio, refusal, calls."""
    pieces, is_models = content.pieces, role == "assistant"
    frame: JsonObject = {"role": item["role"]}
    if is_models and (thought := {key: item[key] for key in REASONING if item.get(key)}):
        pieces.part({"type": "reasoning", **cast("JsonObject", sendable(thought))})
        frame |= {key: pieces.of_part(key) for key in thought}
    if "content" in item:
        frame["content"] = content.of(f"{where}.content", item["content"])
    for key in ("audio", "refusal") if is_models else ():
        if item.get(key):
            pieces.part({"type": key, key: sendable(plain(item[key]))})
            frame[key] = pieces.of_part(key)
    if item.get("images"):
        pictures = plain_list(f"{where}.images", item["images"])
        of_router = content.form == "openai"  # beside what a model says, as parts
        frame["images"] = content.of(f"{where}.images", pictures) if of_router else content.pictures(pictures)
    calls = plain_list(f"{where}.tool_calls", item.get("tool_calls") or ())
    if calls:
        frame["tool_calls"] = [
            _call(f"{where}.tool_calls[{position}]", call, pieces, content.form) for position, call in enumerate(calls)
        ]
    if item.get("function_call"):  # of older models: it has no id, and its result has its name
        frame["function_call"] = _call_without_id(f"{where}.function_call", item["function_call"], pieces)
    if item.get("tool_call_id") is not None or (role == "tool" and content.form == "openai"):
        frame["tool_call_id"] = result_id(item.get("tool_call_id"))
        if item["role"] == "function":
            del frame["tool_call_id"]
    envelope = _ENVELOPE if item.get("type") == "message" else ()
    kept = () if _kept_given(item) is None else ("given",)
    taken = (*frame, *_NOT_OF_PROVIDERS, *_nothing(item), *envelope, *kept)
    return {**frame, **rest_of(item, *taken)}


def _kept_given(item: JsonObject) -> Any:
    """What a provider gave, as files of this library have it beside the message."""
    given = item.get("given")
    return cast("JsonObject", given) if isinstance(given, Mapping) and "form" in given else None


def _nothing(item: JsonObject) -> list[str]:
    """Keys of which no provider takes a null: what models of SDKs write so, they mean as not there."""
    return [key for key in ("tool_calls", "name", "tool_call_id") if item.get(key) is None]


def _form_of(item: JsonObject) -> Form:
    calls = item.get("tool_calls") or ()
    if item["role"] == "tool" and item.get("tool_call_id") is None:  # only there results go by their order
        return "ollama"
    if "tool_name" in item or any(_is_of_ollama(call) for call in calls):
        return "ollama"
    if "images" in item:
        pictures = cast("Sequence[object]", item["images"]) if isinstance(item["images"], (list, tuple)) else ()
        return "openai" if any(isinstance(plain(each), Mapping) for each in pictures) else "ollama"
    if "thinking" in item and isinstance(item.get("content"), str):
        return "ollama"
    if item.get("type") == "message" and ("stop_reason" in item or "usage" in item):
        return "anthropic"
    kinds = {*kinds_of(item.get("content"))}
    is_of_dialect = item["role"] in _OF_TOOLS or any(item.get(key) for key in _OF_CHAT)
    if kinds - _OPENAI_PARTS and not is_of_dialect and not _are_in_openai_style(item["content"]):
        return "anthropic"
    if item.keys() <= {"role", "content", "container"} and kinds <= {"text"} and item["role"] in ("user", "assistant"):
        return "chat"
    is_bare = not kinds and not item.keys() - {"role", "content", "container"} and item["role"] not in _OF_TOOLS
    return "chat" if is_bare else "openai"


def _are_in_openai_style(content: object) -> bool:
    """Whether each part holds an object under the name of its type, as OpenAI's do, also those of its dialects."""
    blocks = [cast("JsonObject", plain(each)) for each in cast("Sequence[object]", content)]
    return all(
        block.get("type") in _OPENAI_PARTS or isinstance(block.get(str(block["type"])), Mapping) for block in blocks
    )


_OPENAI_PARTS = {"text", "image_url", "input_audio", "file", "refusal", "None"}
_OF_CHAT = ("tool_calls", "function_call", "tool_call_id", "refusal", "audio", *REASONING[:3], "thinking_blocks")
_SPEAKERS = ["user", "assistant"]
_OF_TOOLS = ("tool", "function")


def _is_of_ollama(given: object) -> bool:
    """Whether a call has no id, and its arguments are no text, which all others write."""
    call = plain(given)
    function = plain(cast("JsonObject", call).get("function")) if isinstance(call, Mapping) else None
    return isinstance(function, Mapping) and isinstance(cast("JsonObject", function).get("arguments"), Mapping)


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


def _known(item: JsonObject) -> JsonObject:
    return {key: value for key, value in item.items() if value is not None}


def _refuse_slips(where: str, item: JsonObject) -> None:
    """What providers add to their messages is kept, a slip of the pen would lose what it names."""
    for key in item.keys() - _KNOWN_FIELDS:
        if near := get_close_matches(key, _KNOWN_FIELDS, n=1, cutoff=0.85):
            raise InvalidMessageError(f"{where}.{key}", f"is no key of a message; did you mean {near[0]}?")


_FLAT_CALL = ("id", "name", "arguments", "metadata", "type")


def _call(where: str, given: Any, pieces: Pieces, form: Form) -> Any:
    if isinstance(given, ToolCall):
        return pieces.call(given.id, given.name, given.arguments, given.metadata)
    call = plain_object(where, given)
    called, key, holder = call.get("function"), "arguments", "function"
    if called is None and call.get("custom") is not None:
        called, key, holder = call.get("custom"), "input", "custom"
    if _is_flat(call):
        return _flat_call(where, call, pieces)
    if not isinstance(plain(called), Mapping):
        raise InvalidMessageError(where, "must have an id, and a function with name and arguments")
    function = cast("Mapping[str, Any]", plain(called))
    name = plain_text(f"{where}.name", function.get("name"))
    call_id = _id_of(where, call, name)
    arguments = _arguments(f"{where}.arguments", function.get(key))
    reference = pieces.call(call_id, name, arguments, _signature(call))
    frame = {holder: {**rest_of(function, key), key: reference}, **rest_of(call, holder)}
    if function.get(key) is None:
        frame[holder][key] = None
        frame[holder] = {**rest_of(function), **({key: reference} if form != "ollama" else {})}
    if form != "ollama" or call.get("id") is not None:
        frame["id"] = pieces.call_id()
    return frame


def _id_of(where: str, call: JsonObject, name: str) -> str:
    """Who writes no ids, means results in the order of the calls: they find each other by the name."""
    given = call.get("id")
    return name if given is None else plain_text(f"{where}.id", given)


def _is_flat(call: Any) -> bool:
    """Whether this is a call as files of this library have it."""
    is_value = isinstance(call, ToolCall)
    return is_value or (isinstance(call, Mapping) and "name" in call and not {"function", "custom"} & call.keys())


def _flat_call(where: str, call: JsonObject, pieces: Pieces) -> Any:
    if unknown := sorted(call.keys() - {*_FLAT_CALL}):
        problem = f"is no key of a call; it has {', '.join(_FLAT_CALL[:4])}"
        raise InvalidMessageError(f"{where}.{unknown[0]}", problem)
    arguments = _arguments(f"{where}.arguments", call.get("arguments"))
    name = plain_text(f"{where}.name", call["name"])
    return pieces.call(_id_of(where, call, name), name, arguments, call.get("metadata"))


def _signature(call: JsonObject) -> JsonObject:
    """A thought signature of Gemini in the form of OpenAI, or in LiteLLM's field."""
    match sendable(call):
        case {"extra_content": {"google": {"thought_signature": str(signature)}}}:
            return {"thought_signature": signature}
        case {"provider_specific_fields": {"thought_signature": str(signature)}}:
            return {"thought_signature": signature}
        case {"function": {"provider_specific_fields": {"thought_signature": str(signature)}}}:
            return {"thought_signature": signature}
        case _:
            return {}


def _call_without_id(where: str, given: object, pieces: Pieces) -> Any:
    called = plain_object(where, given)
    name = plain_text(f"{where}.name", called.get("name"))
    reference = pieces.call(name, name, _arguments(f"{where}.arguments", called.get("arguments")))
    return {**rest_of(called, "arguments"), "arguments": reference}


def _arguments(where: str, given: Any) -> JsonObject | str:
    if given is None:
        return {}
    return given if isinstance(given, str) else plain_object(where, given)
