"""Items of the OpenAI Agents SDK, as its sessions store them: JSON of the Responses API, an item a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from reactor_memory.forms.response_items import plain_item, to_message
from reactor_memory.imports.conversation import Row
from reactor_memory.models import Message
from reactor_memory.text.bounded_json import decoded

_ITEM: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


def messages(row: Row, max_bytes: int) -> Sequence[Message]:
    """An item is one message, so that an agent finds its session as it was."""
    return (to_message(plain_item(decoded(row.text(), _ITEM, max_bytes), 0)),)
