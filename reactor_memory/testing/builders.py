"""Short ways to bring a store into a state."""

from __future__ import annotations

import time
from collections.abc import Sequence
from hashlib import sha256
from uuid import uuid4

from msgspec.structs import replace

from reactor_memory.core.ports import MessageStore
from reactor_memory.models import Message, Pin
from reactor_memory.models.requests import Appended, AppendRequest


def wall_clock() -> int:
    """Now in microseconds UTC, of this machine: near enough to the clock of any database for lease times."""
    return time.time_ns() // 1000


def numbered(count: int, *, start: int = 1) -> tuple[Message, ...]:
    """`count` short messages in turn from user and assistant; the text of each holds its number."""
    make = (Message.assistant, Message.user)
    return tuple(make[number % 2](f"message {number}") for number in range(start, start + count))


def pin_of(seq: int, text: str = "", *, fact: tuple[str, str] | None = None, tokens: int = 1) -> Pin:
    """A pin of message `seq` of `numbered`, or of a fact that it states, as a manager makes it."""
    text = text or f"message {seq}"
    return Pin(
        seq=seq,
        fact=fact,
        role="system" if fact else "user",
        text=text,
        sha256=sha256(text.encode()).hexdigest(),
        token_count=tokens,
        tokenizer="characters",
        created_at=1_000 + seq,
    )


def stored_form(message: Message, *, now: int) -> Message:
    """The message with what the manager fills in before an append: id, time and token count, unless they are set."""
    return replace(
        message,
        message_id=message.message_id or str(uuid4()),
        created_at=now if message.created_at is None else message.created_at,
        token_count=len(message.content) if message.token_count is None else message.token_count,
        tokenizer=message.tokenizer or "characters",
    )


async def append_messages(
    store: MessageStore,
    session_id: str,
    messages: Sequence[Message],
    *,
    user_id: str | None = None,
    now: int | None = None,
    idempotency_key: str | None = None,
    fingerprint: str = "fingerprint",
    work_every: int | None = None,
) -> Appended:
    """Append `messages` as one batch, in their `stored_form`, at `now` (default: `wall_clock()`)."""
    at = wall_clock() if now is None else now
    return await store.append(
        AppendRequest(
            session_id=session_id,
            user_id=user_id,
            messages=tuple(stored_form(message, now=at) for message in messages),
            now=at,
            idempotency_key=idempotency_key,
            fingerprint=fingerprint,
            work_every=work_every,
        )
    )
