"""What a provider gave is given back to it, equal up to the order of keys; every provider takes what another gave."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactor_memory.core.bounds import checked
from reactor_memory.core.context.given_messages import answer_of, messages_of
from reactor_memory.core.log.rows import message_from, message_values
from reactor_memory.core.validation import MessageLimits
from reactor_memory.evaluation.transcripts import to_message, to_record
from reactor_memory.forms.kept_messages import record_of
from reactor_memory.forms.losses import not_shown
from reactor_memory.forms.requests import to_anthropic, to_gemini, to_ollama, to_openai, to_openai_responses
from reactor_memory.models import Message, NotShown
from reactor_memory.models.turns import attached
from tests.forms.provider_histories import HISTORIES, Json, as_json
from tests.forms.provider_validators import problems
from tests.scenes.tables import each_row

WRITTEN: dict[str, Callable[[Sequence[Message]], list[Json]]] = {
    "openai": to_openai,
    "openai_responses": to_openai_responses,
    "anthropic": lambda messages: to_anthropic(messages)["messages"],
    "gemini": lambda messages: to_gemini(messages)["contents"],
    "ollama": to_ollama,
}


QUESTION: Json = {"role": "user", "content": "And?"}
_COLUMNS = (
    "seq", "message_id", "role", "visibility", "author_id", "content", "parts", "tool_calls", "tool_call_id", "name",
    "metadata",
)  # fmt: skip


def stored(messages: Sequence[Message]) -> list[Message]:
    """The messages as a database gives them back."""
    columns = tuple(name for name in _COLUMNS if name != "seq")
    rows: list[tuple[Any, ...]] = []
    for seq, message in enumerate(checked(messages, MessageLimits()), 1):
        values = message_values(message)
        rows.append((seq, *(values[column] for column in columns), 1, "t", 1))
    return [message_from(row) for row in rows]


def check(form: str, history: list[Json]) -> None:
    """Saved at once or item by item, stored or exported: it comes back, and every provider takes it."""
    read = messages_of(history)
    kept = stored(read)
    back = WRITTEN[form](kept)
    assert as_json(back) == as_json(history)
    assert problems(form, back) == []
    assert form not in not_shown(read)
    assert as_json(WRITTEN[form]([to_message(to_record(message)) for message in read])) == as_json(history)
    sent = msgspec.json.decode(msgspec.json.encode([record_of(message) for message in read]))
    assert as_json(WRITTEN[form](messages_of(sent))) == as_json(history)
    by_steps: list[Message] = []
    for step in _steps(form, history):
        by_steps += attached(step, by_steps)
    assert as_json(WRITTEN[form](stored(by_steps))) == as_json(history)
    for other, write in WRITTEN.items():
        assert problems(other, write(kept)) == [], other


def _steps(form: str, history: list[Json]) -> Iterator[tuple[Message, ...]]:
    """As an agent saves it: each message as it comes, the items of a response of Responses at once."""
    if form != "openai_responses":
        yield from (
            answer_of(item) if item["role"] in ("assistant", "model") else messages_of(item) for item in history
        )
        return
    for is_models, items in groupby(history, _is_models):
        if is_models:
            yield answer_of([*items])
        else:
            yield from map(messages_of, items)


def _is_models(item: Json) -> bool:
    kind = str(item.get("type", "message"))
    return item.get("role") == "assistant" if kind == "message" else not kind.endswith(("_output", "_response"))


def check_blocks(history: list[Json]) -> None:
    """The blocks of a message hold everything of it, in order."""
    for message in messages_of(history):
        blocks = message.blocks
        texts = [block.text for block in blocks if block.kind in ("text", "tool_result") and not block.part]
        joint = "" if message.role == "assistant" else "\n"
        assert joint.join(texts) == message.content
        assert tuple(block.call for block in blocks if block.kind == "tool_call") == message.tool_calls
        assert [block.part for block in blocks if block.part] == [part for part in message.parts if part]


@each_row("form", HISTORIES)
@given(data=st.data())
@settings(max_examples=12)
def test_what_goes_in_comes_out(form: str, data: st.DataObject) -> None:
    history = data.draw(HISTORIES[form])
    check(form, history)
    check_blocks(history)


@pytest.mark.slow
@each_row("form", HISTORIES)
@given(data=st.data())
@settings(max_examples=400)
def test_what_goes_in_comes_out_of_many_histories(form: str, data: st.DataObject) -> None:
    check(form, data.draw(HISTORIES[form]))


def test_responses_that_come_item_by_item_keep_their_order() -> None:
    calls = [{"type": "function_call", "call_id": f"c{n}", "name": "f", "arguments": "{}"} for n in range(3)]
    outputs = [{"type": "function_call_output", "call_id": f"c{n}", "output": str(n)} for n in (1, 0, 2)]
    program = {"type": "program", "id": "p", "call_id": "p1", "code": "f()", "fingerprint": "x"}
    ended = {"type": "program_output", "id": "po", "call_id": "p1", "result": "3", "status": "completed"}
    histories = [
        [QUESTION, *calls, *outputs],
        [QUESTION, calls[0], calls[1], outputs[0], calls[2], *outputs[1:]],
        [QUESTION, program, calls[0], calls[1], *outputs[:2], calls[2], outputs[2], ended],
    ]
    for history in histories:
        kept = stored([message for item in history for message in messages_of(item)])
        assert to_openai_responses(kept) == history
        for other, write in WRITTEN.items():
            assert problems(other, write(kept)) == [], other


NAMES = list(enumerate("fgf"))
CALLED = [{"function": {"name": name, "arguments": {"n": n}}} for n, name in NAMES]
ANSWERS = [{"role": "tool", "content": str(n)} for n, _ in NAMES]
NAMED = [{**answer, "tool_name": name} for answer, (_, name) in zip(ANSWERS, NAMES, strict=True)]
OPENAI_CALLS = [
    {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": f'{{"n": {n}}}'}} for n, name in NAMES
]
ASKED_GEMINI = {"role": "model", "parts": [{"functionCall": {"name": name, "args": {"n": n}}} for n, name in NAMES]}
TOLD_GEMINI = [
    {"role": "user", "parts": [{"functionResponse": {"name": name, "response": {"result": str(n)}}}]}
    for n, name in NAMES
]
APART: dict[str, tuple[Json, list[Json]]] = {
    "gemini": (ASKED_GEMINI, TOLD_GEMINI),
    "gemini, others first": (ASKED_GEMINI, [TOLD_GEMINI[1], TOLD_GEMINI[0], TOLD_GEMINI[2]]),
    "ollama": ({"role": "assistant", "content": "", "tool_calls": CALLED}, NAMED),
    "ollama without names": ({"role": "assistant", "content": "", "tool_calls": CALLED}, ANSWERS),
    "ollama with ids": (
        {"role": "assistant", "content": "", "tool_calls": [{"id": f"c{n}", **CALLED[n]} for n, _ in NAMES]},
        NAMED,
    ),
    "openai without ids": ({"role": "assistant", "content": None, "tool_calls": OPENAI_CALLS}, ANSWERS),
}


@each_row("apart", APART)
def test_results_that_name_no_call_find_the_next_one(apart: str) -> None:
    asked, told = APART[apart]
    made = list(messages_of([QUESTION, asked]))
    for item in told:
        made += attached(messages_of(item), made)
    calls = {call["id"]: json.loads(call["function"]["arguments"])["n"] for call in to_openai(made)[1]["tool_calls"]}
    answers = [each for each in to_openai(made) if each["role"] == "tool"]
    assert {each["tool_call_id"]: int(each["content"]) for each in answers} == calls
    assert attached(made) == made


def test_what_another_provider_does_not_get_is_named() -> None:
    cited = {"type": "text", "text": "x", "citations": [{"type": "char_location"}]}
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    messages = messages_of(
        [
            {"role": "user", "content": [picture, document]},
            {"role": "assistant", "content": [thought, cited]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "s"}]},
        ]
    )
    found = not_shown(messages)
    of_media = NotShown(seq=None, kind="file", count=1)
    of_answer = [NotShown(seq=None, kind="thinking", count=1), NotShown(seq=None, kind="citations", count=1)]
    signature = NotShown(seq=None, kind="signature", count=1)
    assert found["openai"] == found["ollama"] == (of_media, *of_answer, signature)
    assert found["anthropic"] == (signature,)
    assert found["gemini"] == (of_media, *of_answer)
