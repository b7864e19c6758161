"""What providers give only now and then comes back as it came, and every provider takes it."""

from __future__ import annotations

from typing import Any

from reactor_memory.forms.losses import not_shown
from tests.forms.provider_histories import DATA, Json
from tests.forms.test_given_back import QUESTION, check, check_blocks, messages_of
from tests.scenes.tables import each_row

THOUGHT = {"type": "thinking", "thinking": "hm", "signature": DATA}
HIDDEN = {"type": "redacted_thinking", "data": DATA}
DEEP: Any = {"type": "leaf"}
for _ in range(80):
    DEEP = {"type": "nest", "inner": [DEEP]}
PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}}
CLAUDE_PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}}


def use(call_id: str, **fields: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": "f", "input": {}, **fields}


def told(call_id: str, content: Any = "x", **fields: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **fields}


def claude(*blocks: Any) -> Json:
    return {"role": "assistant", "content": [*blocks]}


def user(*blocks: Any) -> Json:
    return {"role": "user", "content": [*blocks]}


def text(words: str, **fields: Any) -> Json:
    return {"type": "text", "text": words, **fields}


def call(call_id: str, arguments: str = "{}", **fields: Any) -> Json:
    return {"id": call_id, "type": "function", "function": {"name": "f", "arguments": arguments}, **fields}


def result(call_id: str, content: Any = "x") -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def item_call(call_id: str, **fields: Any) -> Json:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}", **fields}


def item_output(call_id: str, output: Any = "x") -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def reasoned(item_id: str, **fields: Any) -> Json:
    return {"type": "reasoning", "id": item_id, "summary": [], **fields}


def item_said(item_id: str, *parts: Json) -> Json:
    return {"type": "message", "id": item_id, "role": "assistant", "status": "completed", "content": [*parts]}


def output_text(words: str, **fields: Any) -> Json:
    return {"type": "output_text", "text": words, "annotations": [], **fields}


def model(*parts: Json) -> Json:
    return {"role": "model", "parts": [*parts]}


def asks(*parts: Json) -> Json:
    return {"role": "user", "parts": [*parts]}


SERVED = {"type": "server_tool_use", "id": "srv", "name": "code_execution", "input": {"code": "1"}}
RAN = {
    "type": "code_execution_tool_result",
    "tool_use_id": "srv",
    "content": {"type": "code_execution_result", "stdout": "", "stderr": "", "return_code": 0, "content": [DEEP]},
}
CITED = {"type": "char_location", "cited_text": "x", "document_index": 0, "start_char_index": 0, "end_char_index": 1}
OBJECT = {"type": "object", "§t": [0, 9], "§v": {"§x": 1}}

ODD: dict[str, list[tuple[str, list[Json]]]] = {
    "anthropic": [
        (
            "redacted thinking between calls",
            [QUESTION, claude(THOUGHT, HIDDEN, use("a"), HIDDEN, use("b")), user(told("a"), told("b"))],
        ),
        ("thinking after each text", [QUESTION, claude(text("1"), THOUGHT, text("2"), HIDDEN, text("3"))]),
        (
            "unknown blocks at any depth",
            [QUESTION, claude(DEEP, text("x"), {"type": "new", "§a": 0, "text": "no text"})],
        ),
        (
            "citations, cache and code",
            [QUESTION, claude(SERVED, RAN, text("x", citations=[CITED], cache_control={"type": "ephemeral"}))],
        ),
        (
            "pictures in results between texts",
            [
                QUESTION,
                claude(use("a")),
                user(
                    told("a", [text("1"), CLAUDE_PICTURE, text("2"), CLAUDE_PICTURE]),
                    text("And?"),
                    CLAUDE_PICTURE,
                    text("So?"),
                ),
            ],
        ),
        (
            "results in another order, failed and empty",
            [
                QUESTION,
                claude(use("a"), use("b"), use("c")),
                user(told("c", "no", is_error=True), told("a", []), {"type": "tool_result", "tool_use_id": "b"}),
            ],
        ),
        (
            "an unknown block in a result",
            [
                QUESTION,
                claude(use("a", input=OBJECT)),
                user(told("a", [DEEP, {"type": "tool_reference", "tool_name": "g"}])),
            ],
        ),
        (
            "two texts in a row and a call before a text",
            [QUESTION, claude(text("1"), text("2"), use("a"), text("3")), user(told("a"))],
        ),
    ],
    "openai": [
        (
            "signatures in parallel calls",
            [
                QUESTION,
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [call("a", extra_content={"google": {"thought_signature": DATA}}), call("b")],
                },
                result("a"),
                result("b"),
            ],
        ),
        (
            "a refusal beside a text",
            [QUESTION, {"role": "assistant", "content": [text("1"), {"type": "refusal", "refusal": "No."}]}],
        ),
        (
            "audio with its transcript",
            [
                QUESTION,
                {
                    "role": "assistant",
                    "content": None,
                    "audio": {"id": "a", "data": DATA, "transcript": "Hi.", "expires_at": 1},
                },
                QUESTION,
                {"role": "assistant", "audio": {"id": "a"}},
            ],
        ),
        (
            "a picture between texts with cache marks",
            [
                {
                    "role": "user",
                    "content": [text("1", cache_control={"type": "ephemeral"}), PICTURE, text("2"), PICTURE, text("")],
                },
                {"role": "assistant", "content": "x"},
            ],
        ),
        (
            "reasoning in three dialects at once",
            [
                QUESTION,
                {
                    "role": "assistant",
                    "content": "x",
                    "reasoning": "a",
                    "reasoning_content": "b",
                    "reasoning_details": [{"type": "reasoning.summary", "summary": "c", "§p": 0}],
                },
            ],
        ),
        (
            "an unknown part, deep",
            [
                {"role": "user", "content": [{"type": "video_url", "video_url": DEEP}, text("x")]},
                {"role": "assistant", "content": "x", "new": DEEP},
            ],
        ),
        (
            "thinking blocks of a dialect beside calls",
            [
                QUESTION,
                {"role": "assistant", "content": [THOUGHT, text("x")], "tool_calls": [call("a")]},
                result("a", [text("1"), PICTURE]),
            ],
        ),
        (
            "arguments that are no object",
            [
                QUESTION,
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [call("a", "[1]"), call("b", '"x"'), call("c", "nul\0l"), call("d", " {} ")],
                },
                *map(result, "abcd"),
            ],
        ),
        (
            "a calls' result in parts",
            [
                QUESTION,
                {"role": "assistant", "tool_calls": [call("a")]},
                result("a", [text("1"), text("2", cache_control={"type": "ephemeral"})]),
            ],
        ),
    ],
    "openai_responses": [
        (
            "encrypted reasoning between parallel calls",
            [
                QUESTION,
                reasoned("r1", encrypted_content=DATA),
                item_call("a", id="fa"),
                reasoned("r2"),
                item_call("b", id="fb"),
                item_output("a"),
                item_output("b"),
            ],
        ),
        (
            "a text, then a call, then a text",
            [
                QUESTION,
                item_said("m1", output_text("1")),
                item_call("a"),
                item_output("a"),
                item_said("m2", output_text("2"), {"type": "refusal", "refusal": "No."}),
            ],
        ),
        (
            "unknown items and parts",
            [
                QUESTION,
                {"type": "new_item", "id": "n", "deep": DEEP},
                item_said("m", {"type": "new_part", "§t": 1}, output_text("x")),
            ],
        ),
        (
            "a compaction and a container's code",
            [
                QUESTION,
                {"type": "compaction", "id": "c", "encrypted_content": DATA},
                {
                    "type": "code_interpreter_call",
                    "id": "ci",
                    "container_id": "cntr",
                    "code": None,
                    "outputs": None,
                    "status": "failed",
                },
                item_said(
                    "m",
                    output_text(
                        "x",
                        annotations=[
                            {
                                "type": "container_file_citation",
                                "container_id": "cntr",
                                "file_id": "f",
                                "filename": "a",
                                "start_index": 0,
                                "end_index": 1,
                            }
                        ],
                    ),
                ),
            ],
        ),
        (
            "pictures in an output and in a question",
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "1"},
                        {"type": "input_image", "detail": "high", "image_url": "https://example.org/a.png"},
                        {"type": "input_text", "text": "2"},
                    ],
                },
                item_call("a"),
                item_output(
                    "a",
                    [
                        {"type": "input_text", "text": "1"},
                        {"type": "input_image", "detail": "low", "file_id": "f"},
                        {"type": "input_text", "text": "2"},
                    ],
                ),
            ],
        ),
        (
            "empty texts",
            [
                QUESTION,
                item_said("m", output_text(""), output_text("x"), output_text("")),
                QUESTION,
                item_call("a", arguments=""),
                item_output("a", ""),
            ],
        ),
        (
            "calls of namespaces and failed ones",
            [
                QUESTION,
                item_call("a", namespace="n", status="incomplete"),
                {
                    "type": "mcp_call",
                    "id": "m",
                    "server_label": "s",
                    "name": "f",
                    "arguments": "{",
                    "error": {"type": "http_error", "code": 500},
                    "output": None,
                    "status": "failed",
                },
                item_output("a"),
            ],
        ),
    ],
    "gemini": [
        (
            "a signature on the first of two calls",
            [
                asks({"text": "?"}),
                model(
                    {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": DATA},
                    {"functionCall": {"name": "f", "args": {"n": 1}}},
                ),
                asks(
                    {"functionResponse": {"name": "f", "response": {"n": 0}}},
                    {"functionResponse": {"name": "f", "response": {"n": 1}}},
                ),
            ],
        ),
        (
            "thoughts between texts",
            [
                asks({"text": "?"}),
                model(
                    {"text": "hm", "thought": True},
                    {"text": "1"},
                    {"text": "hm", "thought": True, "thoughtSignature": DATA},
                    {"text": "2", "thoughtSignature": DATA},
                    {"text": "", "thoughtSignature": DATA},
                ),
            ],
        ),
        (
            "code that ran",
            [
                asks({"text": "?"}),
                model(
                    {"executableCode": {"language": "PYTHON", "code": "1"}},
                    {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": ""}},
                    {"text": "x"},
                ),
            ],
        ),
        (
            "pictures between texts and in a result",
            [
                asks(
                    {"text": "1"},
                    {"inlineData": {"mimeType": "image/png", "data": DATA, "displayName": "a"}},
                    {"text": "2"},
                ),
                model({"functionCall": {"id": "a", "name": "f", "args": OBJECT}}),
                asks(
                    {
                        "functionResponse": {
                            "id": "a",
                            "name": "f",
                            "response": {"result": [1]},
                            "parts": [{"inlineData": {"mimeType": "image/png", "data": DATA}}],
                        }
                    }
                ),
            ],
        ),
        (
            "unknown parts, deep",
            [
                asks({"text": "?"}, {"newPart": DEEP, "§t": [0, 1]}),
                model({"text": "x", "newField": DEEP}, {"other": {"a": None}}),
            ],
        ),
        (
            "a result beside a text",
            [
                asks({"text": "?"}),
                model({"functionCall": {"name": "f", "args": {}}}),
                asks({"functionResponse": {"name": "f", "response": {"error": "no"}}}, {"text": "And?"}),
            ],
        ),
    ],
    "ollama": [
        (
            "equal calls",
            [
                QUESTION,
                {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}] * 3},
                *[{"role": "tool", "content": str(n), "tool_name": "f"} for n in range(3)],
            ],
        ),
        (
            "thinking without a text",
            [
                QUESTION,
                {
                    "role": "assistant",
                    "content": "",
                    "thinking": "hm",
                    "tool_calls": [{"function": {"name": "f", "arguments": OBJECT}}],
                },
                {"role": "tool", "content": "", "tool_name": "f"},
            ],
        ),
        (
            "calls with an index and an id",
            [
                QUESTION,
                {
                    "role": "assistant",
                    "content": "x",
                    "tool_calls": [{"id": "a", "function": {"index": 0, "name": "f", "arguments": {"a": None}}}],
                },
                {"role": "tool", "content": "x", "tool_name": "f"},
            ],
        ),
        (
            "pictures and unknown fields",
            [
                {"role": "user", "content": "x", "images": [DATA, DATA], "new": DEEP},
                {"role": "assistant", "content": "x", "thinking": ""},
            ],
        ),
        (
            "empty and odd texts",
            [
                {"role": "user", "content": ""},
                {"role": "assistant", "content": " \n"},
                {"role": "user", "content": "§t"},
                {"role": "assistant", "content": "\u2028"},
            ],
        ),
    ],
}


@each_row(("form", "name"), [(form, name) for form, found in ODD.items() for name, _ in found])
def test_odd_ones_come_back_as_they_came(form: str, name: str) -> None:
    history = dict(ODD[form])[name]
    check(form, history)
    check_blocks(history)
    assert form not in not_shown(messages_of(history))
