"""What a client gives is what the next client gets, byte for byte."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.adapters.mcp.answers import NewMessage, message_result, to_message
from reactor_memory.core.validation import MessageLimits, check_messages

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3))
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=3)
CALLS = st.lists(
    st.builds(
        lambda call_id, name, arguments, metadata: {
            "id": call_id,
            "name": name,
            "arguments": arguments,
            "metadata": metadata,
        },
        TEXT,
        TEXT,
        TEXT | OBJECTS,
        st.dictionaries(TEXT, SCALARS, max_size=2),
    ),
    max_size=3,
    unique_by=lambda call: call["id"],
)
MESSAGES = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "tool"]),
        "content": TEXT,
        "name": st.none() | TEXT,
        "parts": st.lists(OBJECTS, max_size=3),
        "tool_calls": CALLS,
        "tool_call_id": TEXT,
    }
)


@given(MESSAGES)
def test_a_message_comes_back_byte_for_byte(sent: dict[str, Any]) -> None:
    message = to_message(NewMessage.model_validate_json(json.dumps(sent)))
    check_messages([message], MessageLimits())
    answer = json.loads(message_result(message, "window").model_dump_json())
    assert json.dumps({key: answer[key] for key in sent}) == json.dumps(sent)
