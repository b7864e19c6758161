"""Histories as each provider takes and gives them, drawn by the rules that it publishes.

A history is a list of dicts in the provider's own form. It begins with the user, every call has its result, and what
only models give (reasoning, server tools, citations) stands where the documentation says.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]

DATA = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
TEXTS = st.sampled_from(
    ["Hello.", "é\u2028ü", "two\nlines", '{"a": 1}', "[1, 2]", "12", "Is it 7?", "你好", "§t", "a\tb"]
)
ARGUMENTS = st.sampled_from(
    [{}, {"q": "é"}, {"n": [1, {"deep": None}], "§p": 0}, {"nul": "a\0b"}, {"long": "x" * 200}, {"_raw": "x"}]
)
ARGUMENT_TEXTS = st.sampled_from(
    ["{}", '{"q": "\\u00e9"}', '{ "spaced" : 1 }', '{"broken": ', "", '{"nul":"a\\u0000"}']
)
UNKNOWN = st.sampled_from([{}, {}, {"some_new_field": {"§a": 1, "b": [None, "x" * 80]}}, {"another": None}])


@st.composite
def _turns(draw: st.DrawFn, turn: Any) -> list[Json]:
    history: list[Json] = []
    for number in range(draw(st.integers(1, 3))):
        history += draw(turn(number))
    return history


def _maybe(draw: st.DrawFn, **fields: Any) -> Json:
    return {key: value for key, value in fields.items() if draw(st.booleans())}


# -- OpenAI: chat completions and their dialects -----------------------------------------------------------------------


@st.composite
def _openai_turn(draw: st.DrawFn, number: int) -> list[Json]:
    messages: list[Json] = []
    if draw(st.integers(0, 5)) == 0:
        messages.append({"role": draw(st.sampled_from(["system", "developer"])), "content": draw(TEXTS)})
    messages.append({"role": "user", "content": draw(_openai_content()), **_maybe(draw, name="ann")})
    for step in range(draw(st.integers(0, 2))):
        calls = [draw(_openai_call(f"call_{number}_{step}_{place}")) for place in range(draw(st.integers(1, 3)))]
        said = draw(st.sampled_from([None, "I shall look.", ""]))
        messages.append({"role": "assistant", "content": said, "tool_calls": calls, **draw(_openai_extras())})
        messages += [
            {"role": "tool", "tool_call_id": call["id"], "content": draw(_openai_result()), **draw(UNKNOWN)}
            for call in draw(st.permutations(calls))
        ]
    answer: Json = {"role": "assistant", "content": draw(_openai_answer()), **draw(_openai_extras())}
    if draw(st.integers(0, 4)) == 0:
        answer = draw(
            st.sampled_from(
                [
                    {"role": "assistant", "content": None, "refusal": "No."},
                    {"role": "assistant", "content": None, "audio": {"id": "audio_1"}},
                    {"role": "assistant", "audio": {"id": "a", "data": DATA, "transcript": "Hi.", "expires_at": 7}},
                ]
            )
        )
    return [*messages, answer]


@st.composite
def _openai_content(draw: st.DrawFn) -> Any:
    if draw(st.booleans()):
        return draw(TEXTS)
    parts = [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "input_audio", "input_audio": {"data": DATA, "format": "wav"}},
        {"type": "file", "file": {"file_id": "file-1"}},
    ]
    text = st.builds(lambda words, more: {"type": "text", "text": words, **more}, TEXTS, _cache())
    return draw(st.lists(st.one_of(text, text, st.sampled_from(parts)), min_size=1, max_size=5))


def _cache() -> st.SearchStrategy[Json]:
    return st.sampled_from([{}, {}, {"cache_control": {"type": "ephemeral"}}])


@st.composite
def _openai_call(draw: st.DrawFn, call_id: str) -> Json:
    if draw(st.integers(0, 5)) == 0:
        return {"id": call_id, "type": "custom", "custom": {"name": "query", "input": draw(TEXTS)}}
    call_id = draw(st.sampled_from([call_id, f"{call_id}__thought__{'c2ln' * 100}"]))
    function = {"name": draw(st.sampled_from(["find", "shop_find"])), "arguments": draw(ARGUMENT_TEXTS)}
    extras = [
        {},
        {},
        {"index": 0},
        {"extra_content": {"google": {"thought_signature": DATA}}},
        {"provider_specific_fields": {"thought_signature": DATA}},
    ]
    return {"id": call_id, "type": "function", "function": function, **draw(st.sampled_from(extras))}


@st.composite
def _openai_extras(draw: st.DrawFn) -> Json:
    dialects: list[Json] = [
        {},
        {},
        {"refusal": None, "annotations": []},
        {"reasoning_content": "First I look."},
        {"reasoning": "hm", "reasoning_details": [{"type": "reasoning.encrypted", "data": DATA, "index": 0}]},
        {"thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": DATA}], "reasoning_content": "hm"},
        {"annotations": [{"type": "url_citation", "url_citation": {"url": "https://example.org", "title": "A"}}]},
        {"provider_specific_fields": {"citations": None}},
        {"images": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}, "index": 0}]},
    ]
    return {**draw(st.sampled_from(dialects)), **draw(UNKNOWN)}


@st.composite
def _openai_result(draw: st.DrawFn) -> Any:
    texts = st.lists(st.builds(lambda words: {"type": "text", "text": words}, TEXTS), min_size=1, max_size=2)
    return draw(st.one_of(TEXTS, texts))


@st.composite
def _openai_answer(draw: st.DrawFn) -> Any:
    texts = st.lists(st.builds(lambda words: {"type": "text", "text": words}, TEXTS), min_size=1, max_size=2)
    return draw(st.one_of(TEXTS, TEXTS, texts))


# -- OpenAI: Responses -------------------------------------------------------------------------------------------------


@st.composite
def _responses_turn(draw: st.DrawFn, number: int) -> list[Json]:
    items: list[Json] = []
    if draw(st.integers(0, 5)) == 0:
        items.append({"role": "developer", "content": draw(TEXTS)})
    items.append(draw(_responses_said()))
    for step in range(draw(st.integers(0, 2))):
        items += draw(_responses_step(f"{number}_{step}"))
    if draw(st.booleans()):
        items.append(draw(_reasoning_item(f"rs_{number}")))
    answer = {
        "type": "message",
        "id": f"msg_{number}",
        "role": "assistant",
        "status": "completed",
        "content": draw(st.lists(_output_part(), min_size=1, max_size=3)),
        **_maybe(draw, phase="final_answer"),
    }
    return [*items, answer]


@st.composite
def _responses_said(draw: st.DrawFn) -> Json:
    if draw(st.booleans()):
        return {"role": "user", "content": draw(TEXTS)}
    parts = [
        {"type": "input_image", "image_url": f"data:image/png;base64,{DATA}", "detail": "auto"},
        {"type": "input_image", "file_id": "file-1", "detail": "high"},
        {"type": "input_file", "file_id": "file-2"},
    ]
    text = st.builds(lambda words: {"type": "input_text", "text": words}, TEXTS)
    content = draw(st.lists(st.one_of(text, text, st.sampled_from(parts)), min_size=1, max_size=4))
    return {"role": "user", "content": content, **_maybe(draw, type="message")}


def _reasoning_item(item_id: str) -> st.SearchStrategy[Json]:
    return st.sampled_from(
        [
            {"type": "reasoning", "id": item_id, "summary": []},
            {"type": "reasoning", "id": item_id, "summary": [], "encrypted_content": DATA, "status": None},
            {"type": "reasoning", "id": item_id, "summary": [{"type": "summary_text", "text": "I look."}]},
        ]
    )


def _output_part() -> st.SearchStrategy[Json]:
    citation = {"type": "url_citation", "url": "https://example.org", "title": "A", "start_index": 0, "end_index": 1}
    text = st.builds(
        lambda words, notes: {"type": "output_text", "text": words, "annotations": notes, "logprobs": []},
        TEXTS,
        st.sampled_from([[], [citation]]),
    )
    return st.one_of(text, text, st.just({"type": "refusal", "refusal": "No."}))


@st.composite
def _responses_step(draw: st.DrawFn, number: str) -> list[Json]:
    items: list[Json] = [draw(_reasoning_item(f"rs_{number}"))] if draw(st.booleans()) else []
    calls = [
        {
            "type": "function_call",
            "call_id": f"call_{number}_{place}",
            "name": "find",
            "arguments": draw(ARGUMENT_TEXTS),
            **_maybe(draw, id=f"fc_{number}_{place}", status="completed"),
        }
        for place in range(draw(st.integers(1, 2)))
    ]
    outputs = [
        {"type": "function_call_output", "call_id": call["call_id"], "output": draw(TEXTS), **draw(UNKNOWN)}
        for call in calls
    ]
    served = draw(st.sampled_from([*_SERVED, None]))
    if served is not None:
        return [*items, *(dict(item) for item in served(number))]
    return [*items, *calls, *outputs]


_SERVED: list[Any] = [
    lambda n: [
        {"type": "web_search_call", "id": f"ws_{n}", "status": "completed", "action": {"type": "search", "query": "q"}}
    ],
    lambda n: [{"type": "file_search_call", "id": f"fs_{n}", "status": "completed", "queries": ["q"], "results": None}],
    lambda n: [
        {
            "type": "code_interpreter_call",
            "id": f"ci_{n}",
            "status": "completed",
            "code": "1",
            "container_id": "c",
            "outputs": [{"type": "logs", "logs": "1"}],
        }
    ],
    lambda n: [
        {"type": "mcp_list_tools", "id": f"ml_{n}", "server_label": "s", "tools": []},
        {"type": "mcp_call", "id": f"mc_{n}", "server_label": "s", "name": "f", "arguments": "{}", "output": "x"},
    ],
    lambda n: [
        {"type": "mcp_approval_request", "id": f"ma_{n}", "server_label": "s", "name": "f", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": f"ma_{n}", "approve": False},
    ],
    lambda n: [{"type": "image_generation_call", "id": f"ig_{n}", "status": "completed", "result": DATA}],
    lambda n: [
        {
            "type": "computer_call",
            "id": f"cc_{n}",
            "call_id": f"comp_{n}",
            "status": "completed",
            "pending_safety_checks": [],
            "action": {"type": "click", "button": "left", "x": 1, "y": 2},
        },
        {
            "type": "computer_call_output",
            "call_id": f"comp_{n}",
            "output": {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{DATA}"},
        },
    ],
    lambda n: [
        {
            "type": "local_shell_call",
            "id": f"ls_{n}",
            "call_id": f"shell_{n}",
            "status": "completed",
            "action": {"type": "exec", "command": ["ls"], "env": {}},
        },
        {"type": "local_shell_call_output", "id": f"shell_{n}", "output": "a.txt"},
    ],
    lambda n: [
        {
            "type": "shell_call",
            "id": f"sc_{n}",
            "call_id": f"sh_{n}",
            "status": "completed",
            "action": {"commands": ["ls"]},
        },
        {
            "type": "shell_call_output",
            "call_id": f"sh_{n}",
            "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 2}}],
        },
    ],
    lambda n: [
        {
            "type": "apply_patch_call",
            "call_id": f"ap_{n}",
            "status": "completed",
            "operation": {"type": "delete_file", "path": "a"},
        },
        {"type": "apply_patch_call_output", "call_id": f"ap_{n}", "status": "failed", "output": "no such file"},
    ],
    lambda n: [
        {"type": "custom_tool_call", "call_id": f"cu_{n}", "name": "sql", "input": "SELECT 1", "id": f"ctc_{n}"},
        {"type": "custom_tool_call_output", "call_id": f"cu_{n}", "output": [{"type": "input_text", "text": "1"}]},
    ],
    lambda n: [{"type": "compaction", "id": f"cmp_{n}", "encrypted_content": DATA}],
    lambda n: [{"type": "item_reference", "id": f"ref_{n}"}],
    lambda n: [{"type": "an_item_of_next_year", "id": f"new_{n}", "payload": {"§t": [0, 1], "x": "y" * 100}}],
]


# -- Anthropic ---------------------------------------------------------------------------------------------------------


@st.composite
def _anthropic_history(draw: st.DrawFn) -> list[Json]:
    """Roles take turns: the results of calls and what the user says next are one message."""
    history: list[Json] = []
    for number in range(draw(st.integers(1, 3))):
        history.append({"role": "user", "content": draw(_anthropic_said())})
        for step in range(draw(st.integers(0, 2))):
            calls = [
                {
                    "type": "tool_use",
                    "id": f"toolu_{number}_{step}_{place}",
                    "name": "find",
                    "input": draw(ARGUMENTS),
                    **draw(_cache()),
                    **_maybe(draw, caller={"type": "direct"}),
                }
                for place in range(draw(st.integers(1, 3)))
            ]
            history.append({"role": "assistant", "content": [*draw(_anthropic_blocks()), *calls]})
            results = [draw(_anthropic_result(call["id"])) for call in draw(st.permutations(calls))]
            also = [{"type": "text", "text": draw(TEXTS)}] if draw(st.integers(0, 3)) == 0 else []
            history.append({"role": "user", "content": [*results, *also]})
        text = {"type": "text", "text": draw(TEXTS)}
        blocks = [*draw(_anthropic_blocks()), text]
        history.append({"role": "assistant", "content": draw(st.sampled_from([blocks, blocks, text["text"]]))})
    return history


@st.composite
def _anthropic_said(draw: st.DrawFn) -> Any:
    if draw(st.booleans()):
        return draw(TEXTS)
    parts = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "x" * 100},
            "title": "A",
            "citations": {"enabled": True},
            "cache_control": {"type": "ephemeral", "ttl": "1h"},
        },
        {"type": "container_upload", "file_id": "file_1"},
        {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "found"}]},
    ]
    text = st.builds(lambda words, more: {"type": "text", "text": words, **more}, TEXTS, _cache())
    return draw(st.lists(st.one_of(text, text, st.sampled_from(parts)), min_size=1, max_size=5))


@st.composite
def _anthropic_blocks(draw: st.DrawFn) -> list[Json]:
    """What the model says around its calls: interleaved thinking, the tools of the server with their results."""
    cited = {
        "type": "web_search_result_location",
        "cited_text": "x",
        "url": "u",
        "title": None,
        "encrypted_index": DATA,
    }
    pieces = [
        [{"type": "thinking", "thinking": "hm", "signature": DATA}],
        [{"type": "redacted_thinking", "data": DATA}],
        [{"type": "text", "text": draw(TEXTS), "citations": draw(st.sampled_from([None, [cited]]))}],
        [{"type": "text", "text": draw(TEXTS)}],
        [
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
            {
                "type": "web_search_tool_result",
                "tool_use_id": "srvtoolu_1",
                "content": [
                    {
                        "type": "web_search_result",
                        "url": "u",
                        "title": "t",
                        "encrypted_content": DATA,
                        "page_age": None,
                    }
                ],
            },
        ],
        [
            {"type": "server_tool_use", "id": "srvtoolu_2", "name": "bash_code_execution", "input": {"command": "ls"}},
            {
                "type": "bash_code_execution_tool_result",
                "tool_use_id": "srvtoolu_2",
                "content": {
                    "type": "bash_code_execution_result",
                    "stdout": "x" * 50,
                    "stderr": "",
                    "return_code": 1,
                    "content": [],
                },
            },
        ],
        [{"type": "a_block_of_next_year", "id": "n", "payload": {"§a": 0}}],
    ]
    chosen = draw(st.lists(st.sampled_from(pieces), max_size=4, unique_by=id))
    return [dict(block) for piece in chosen for block in piece]


@st.composite
def _anthropic_result(draw: st.DrawFn, call_id: str) -> Json:
    result: Json = {"type": "tool_result", "tool_use_id": call_id, **draw(_cache()), **_maybe(draw, is_error=False)}
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return {**result, "content": draw(TEXTS)}
    if kind == 1:
        return {**result, "content": "It failed.", "is_error": True}
    if kind == 2:
        picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}}
        text = {"type": "text", "text": draw(TEXTS)}
        return {**result, "content": draw(st.permutations([text, picture, {"type": "text", "text": "end"}]))}
    return result


# -- Gemini ------------------------------------------------------------------------------------------------------------


@st.composite
def _gemini_history(draw: st.DrawFn) -> list[Json]:
    is_camel = draw(st.booleans())
    history: list[Json] = []
    for number in range(draw(st.integers(1, 3))):
        history.append({"role": "user", "parts": draw(_gemini_said())})
        for step in range(draw(st.integers(0, 2))):
            ids = [f"f{number}{step}{place}" for place in range(draw(st.integers(1, 3)))]
            has_ids = draw(st.booleans())
            calls = [draw(_gemini_call(call_id if has_ids else None)) for call_id in ids]
            history.append({"role": "model", "parts": [*draw(_gemini_thoughts()), *calls]})
            responses = [draw(_gemini_response(call_id if has_ids else None)) for call_id in ids]
            history.append({"role": "user", "parts": responses})
        answer = {"text": draw(TEXTS), **_maybe(draw, thought_signature=DATA)}
        history.append({"role": "model", "parts": [*draw(_gemini_thoughts()), answer]})
    return [_camel(content) for content in history] if is_camel else history


@st.composite
def _gemini_said(draw: st.DrawFn) -> list[Json]:
    parts = [
        {"inline_data": {"mime_type": "image/png", "data": DATA}},
        {"file_data": {"file_uri": "gs://a/b.pdf", "mime_type": "application/pdf"}},
        {"inline_data": {"mime_type": "audio/wav", "data": DATA}, "media_resolution": {"level": "LOW"}},
    ]
    text = st.builds(lambda words: {"text": words}, TEXTS)
    return draw(st.lists(st.one_of(text, text, st.sampled_from(parts)), min_size=1, max_size=5))


@st.composite
def _gemini_thoughts(draw: st.DrawFn) -> list[Json]:
    pieces = [
        [{"text": "hm", "thought": True}],
        [{"text": "hm", "thought": True, "thought_signature": DATA}],
        [{"text": draw(TEXTS)}],
        [
            {"executable_code": {"code": "print(1)", "language": "PYTHON"}},
            {"code_execution_result": {"outcome": "OUTCOME_FAILED", "output": "x" * 50}},
        ],
        [{"a_part_of_next_year": {"x": None, "y": "z" * 50}}],
    ]
    chosen = draw(st.lists(st.sampled_from(pieces), max_size=3, unique_by=id))
    return [dict(part) for piece in chosen for part in piece]


@st.composite
def _gemini_call(draw: st.DrawFn, call_id: str | None) -> Json:
    call: Json = {"name": "find", "args": draw(ARGUMENTS)}
    if call_id is not None:
        call["id"] = call_id
    return {"function_call": call, **_maybe(draw, thought_signature=DATA)}


@st.composite
def _gemini_response(draw: st.DrawFn, call_id: str | None) -> Json:
    values: list[Json] = [{"result": "seven"}, {"result": [1, None]}, {"output": {"a": "é"}}, {"error": "no"}, {}]
    response: Json = {"name": "find", "response": draw(st.sampled_from(values))}
    if call_id is not None:
        response["id"] = call_id
    if draw(st.integers(0, 3)) == 0:
        response["parts"] = [{"inline_data": {"mime_type": "image/png", "data": DATA}}]
    return {"function_response": response, **draw(st.sampled_from([{}, {"part_metadata": {"k": 1}}]))}


def _camel(content: Json) -> Json:
    """The same in the JSON of the API."""
    return {**content, "parts": [_camel_part(part) for part in content["parts"]]}


def _camel_part(part: Json) -> Json:
    files = ("inline_data", "file_data")
    return {
        _camel_key(key): {_camel_key(inner): value[inner] for inner in value} if key in files else value
        for key, value in part.items()
    }


def _camel_key(key: str) -> str:
    head, *rest = key.split("_")
    return head + "".join(word.capitalize() for word in rest)


# -- Ollama ------------------------------------------------------------------------------------------------------------


@st.composite
def _ollama_turn(draw: st.DrawFn, number: int) -> list[Json]:
    messages: list[Json] = [{"role": "user", "content": draw(TEXTS), **_maybe(draw, images=[DATA, DATA])}]
    for _ in range(draw(st.integers(0, 2))):
        calls = [
            {"function": {"name": name, "arguments": draw(ARGUMENTS), **_maybe(draw, index=0)}}
            for name in draw(st.lists(st.sampled_from(["find", "book"]), min_size=1, max_size=3))
        ]
        messages.append({"role": "assistant", "content": "", "tool_calls": calls, **_maybe(draw, thinking="hm")})
        messages += [{"role": "tool", "content": draw(TEXTS), "tool_name": call["function"]["name"]} for call in calls]
    return [*messages, {"role": "assistant", "content": draw(TEXTS), **_maybe(draw, thinking="So it is.")}]


HISTORIES: dict[str, st.SearchStrategy[list[Json]]] = {
    "openai": _turns(_openai_turn),
    "openai_responses": _turns(_responses_turn),
    "anthropic": _anthropic_history(),
    "gemini": _gemini_history(),
    "ollama": _turns(_ollama_turn),
}


def as_json(value: Any) -> str:
    """JSON text that does not depend on the order of keys."""
    return json.dumps(value, sort_keys=True)
