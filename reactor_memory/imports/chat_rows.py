"""Messages of LangChain, as `SQLChatMessageHistory` stores them: JSON, a message a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from reactor_memory.core.context.given_messages import messages_of
from reactor_memory.imports.conversation import Row
from reactor_memory.imports.langchain_messages import in_form_of_openai
from reactor_memory.models import Message
from reactor_memory.text.bounded_json import decoded

_MESSAGE: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


def messages(row: Row, max_bytes: int) -> Sequence[Message]:
    return messages_of([in_form_of_openai(decoded(row.text(), _MESSAGE, max_bytes))])
