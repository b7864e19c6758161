"""A small file of each form that `import` takes."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "files"


def as_text(value: Any) -> str:
    return json.dumps(value)


def zipped(files: Mapping[str, Any]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in files.items():
            archive.writestr(name, json.dumps(value))
    return packed.getvalue()


OWN: Any = {
    "id": "order",
    "messages": [
        {"role": "user", "content": "Where is order A-1042?", "at": "2026-02-02T08:00:08+00:00"},
        {
            "role": "assistant",
            "content": "",
            "at": 1_770_000_000_000_000,
            "tool_calls": [{"id": "c1", "name": "find", "arguments": {"id": "A-1042"}}],
        },
        {"role": "tool", "content": "Lyon", "tool_call_id": "c1", "metadata": {"ms": 3}},
        {"role": "assistant", "content": "In Lyon.", "parts": [{"type": "image", "url": "u"}]},
    ],
    "probes": [{"question": "Where?", "anchor": ["A-1042"], "value": ["Lyon"]}],
}
CHAT: Any = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": [{"type": "text", "text": "Where is order A-1042?"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": '{"city": "Lyon"}'},
        {"role": "assistant", "content": "In Lyon."},
    ],
}
RESPONSES: dict[str, Any] = {
    "model": "m",
    "instructions": "You help.",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "Where is order A-1042?"}]},
        {"type": "reasoning", "id": "r1", "summary": list[Any]()},
        {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"id": "A-1042"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "Lyon"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "In Lyon."}]},
    ],
}
ANTHROPIC: Any = {
    "model": "m",
    "max_tokens": 100,
    "system": [{"type": "text", "text": "You help."}],
    "messages": [
        {"role": "user", "content": "Where is order A-1042?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "find", "input": {"id": "A-1042"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "Lyon"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "In Lyon."}]},
    ],
}
GEMINI: Any = {
    "system_instruction": {"parts": [{"text": "You help."}]},
    "contents": [
        {"role": "user", "parts": [{"text": "Where is order A-1042?"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "find", "args": {"id": "A-1042"}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "find", "response": {"city": "Lyon"}}}]},
        {"role": "model", "parts": [{"text": "In Lyon."}]},
    ],
}
LANGCHAIN: Any = [
    {"type": "system", "data": {"content": "You help."}},
    {"type": "human", "data": {"content": "Where is order A-1042?", "additional_kwargs": {}}},
    {
        "type": "ai",
        "data": {
            "content": [{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "c1", "name": "find"}],
            "tool_calls": [{"name": "find", "args": {"id": "A-1042"}, "id": "c1", "type": "tool_call"}],
        },
    },
    {"type": "tool", "data": {"content": "Lyon", "tool_call_id": "c1", "name": "find"}},
    {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "AIMessage"], "kwargs": {"content": "In Lyon."}},
]


def _node(parent: str | None, children: list[str], role: str, text: str, at: float | None) -> Any:
    message = {
        "author": {"role": role, "name": None},
        "content": {"content_type": "text", "parts": [text]},
        "create_time": at,
        "metadata": {},
    }
    return {"message": message, "parent": parent, "children": children}


CHATGPT: Any = [
    {
        "title": "Order A-1042",
        "create_time": 1_700_000_000.25,
        "mapping": {
            "root": {"message": None, "parent": None, "children": ["a"]},
            "a": _node("root", ["b"], "user", "Where is order A-1042?", 1_700_000_000.5),
            "b": _node("a", [], "assistant", "In Lyon.", 1_700_000_009.5),
        },
        "current_node": "b",
        "conversation_id": "6553f100-0000-8000-8000-000000000001",
    }
]
CLAUDE: Any = [
    {
        "uuid": "0b9c0000-0000-4000-8000-000000000002",
        "name": "Where my order is",
        "created_at": "2026-01-02T03:04:04.000000Z",
        "chat_messages": [
            {"sender": "human", "text": "Where is order A-1042?", "created_at": "2026-01-02T03:04:05.000000Z"},
            {"sender": "assistant", "text": "", "content": [{"type": "text", "text": "In Lyon."}]},
        ],
    }
]

SAMPLES: Mapping[str, bytes] = {
    "own": (as_text(OWN) + "\n" + as_text(OWN | {"id": "other"}) + "\n").encode(),
    "chat completions": as_text(CHAT).encode(),
    "batches": (as_text({"custom_id": "1", "body": CHAT}) + "\n" + as_text({"body": RESPONSES})).encode(),
    "responses": as_text(RESPONSES).encode(),
    "anthropic": as_text(ANTHROPIC).encode(),
    "gemini": as_text(GEMINI).encode(),
    "list": as_text(CHAT["messages"]).encode(),
    "langchain": as_text(LANGCHAIN).encode(),
    "chatgpt": as_text(CHATGPT).encode(),
    "claude": as_text(CLAUDE).encode(),
    "archive of chatgpt": zipped({"user.json": {}, "conversations.json": CHATGPT, "chat.html": "x"}),
    "archive of claude": zipped({"users.json": [], "data/conversations.json": CLAUDE}),
    **{path.stem.replace("_", " "): path.read_bytes() for path in sorted(FOLDER.glob("*.db"))},
}
