"""Random histories as a chat produces them, and as it should not."""

from __future__ import annotations

from hashlib import sha256

from hypothesis import strategies as st
from msgspec.structs import replace

from reactor_memory.models import Message, Pin, Role, ToolCall

MARK = " tokens cut …]"
LEFT_OUT = " characters left out"


def count_text(text: str) -> int:
    """A stand-in for a tokenizer: four characters a token, rounded up."""
    return -(-len(text) // 4)


def count(message: Message) -> int:
    """Stored messages carry their count; the others are counted with their calls."""
    if message.token_count is not None:
        return message.token_count
    arguments = sum(count_text(f"{call.name}{call.arguments}") for call in message.tool_calls)
    return count_text(message.content) + arguments


def pinned(text: str, *, role: Role = "user", seq: int = 1, fact: tuple[str, str] | None = None) -> Pin:
    """A pin, counted in characters by `len`."""
    return Pin(
        seq=seq,
        fact=fact,
        role=role,
        text=text,
        sha256=sha256(text.encode()).hexdigest(),
        token_count=len(text),
        tokenizer="len",
        created_at=0,
    )


def text(size: int) -> str:
    return ("lorem ipsum dolor " * (size // 18 + 1))[:size]


sizes = st.one_of(st.integers(0, 40), st.integers(0, 400), st.integers(0, 6000))
short_ids = st.sampled_from(["a", "b", "c"])


@st.composite
def pairs(draw: st.DrawFn) -> list[Message]:
    """An assistant message with one to three parallel calls, then one or more results of each, in any order."""
    ids = draw(st.lists(short_ids, min_size=1, max_size=3, unique=True))
    calls = [ToolCall(id=key, name="look_up", arguments={"q": text(draw(st.integers(0, 60)))}) for key in ids]
    answers = draw(st.permutations(ids + draw(st.lists(st.sampled_from(ids), max_size=1))))
    results = [Message.tool(text(draw(sizes)), tool_call_id=key) for key in answers]
    return [Message.assistant(text(draw(st.integers(0, 80))), tool_calls=calls), *results]


THOUGHT = Message.assistant(parts=({"type": "reasoning", "id": "rs_1", "summary": []},))


@st.composite
def responses(draw: st.DrawFn) -> list[Message]:
    """What the Responses API gives at once, each item a message of its own: reasoning, perhaps a text, perhaps calls,
    then their results, of which one may be missing.
    """
    ids = draw(st.lists(short_ids, max_size=3, unique=True))
    said = [Message.assistant(text(draw(sizes)))] if not ids or draw(st.booleans()) else []
    calls = [Message.assistant(tool_calls=[ToolCall(id=key, name="look_up")]) for key in ids]
    results = [Message.tool(text(draw(sizes)), tool_call_id=key) for key in draw(st.permutations(ids))]
    missing = draw(st.integers(0, 9)) == 0
    return [*[THOUGHT] * draw(st.sampled_from([1, 1, 2])), *said, *calls, *results[missing:]]


strays = st.one_of(
    st.builds(lambda key: [Message.tool("late", tool_call_id=key)], short_ids),
    st.builds(lambda key: [Message.assistant(tool_calls=[ToolCall(id=key, name="lost")])], short_ids),
    st.builds(lambda size: [Message.system(text(size))], sizes),
    st.just([THOUGHT]),
)
answers = st.builds(lambda size: [Message.assistant(text(size))], sizes)
steps = st.one_of(answers, answers, pairs(), pairs(), responses(), responses(), strays)


@st.composite
def turns(draw: st.DrawFn, *, max_steps: int = 6) -> list[Message]:
    """A user message and what follows: now and then interleaved, now and then up to 200 messages."""
    body = [message for step in draw(st.lists(steps, max_size=max_steps)) for message in step]
    if draw(st.integers(0, 9)) == 0:
        body = draw(st.permutations(body))
    if draw(st.integers(0, 19)) == 0 and body:
        body = (body * 200)[:199]
    return [Message.user(text(draw(sizes))), *body]


def stored(messages: list[Message]) -> tuple[Message, ...]:
    """The messages as a store gives them back: numbered and counted."""
    return tuple(
        replace(message, seq=position, token_count=count(message), tokenizer="stand-in")
        for position, message in enumerate(messages, start=1)
    )


@st.composite
def logs(draw: st.DrawFn, *, max_turns: int = 8) -> tuple[Message, ...]:
    """A stored log, which may begin in the middle of a turn."""
    messages = [message for turn in draw(st.lists(turns(), max_size=max_turns)) for message in turn]
    return stored(messages[draw(st.integers(0, 2)) :])


@st.composite
def plain_histories(draw: st.DrawFn) -> list[Message]:
    """What a caller may pass as a history: leading system messages, turns, perhaps no user message at all."""
    leading = [Message.system(text(size)) for size in draw(st.lists(st.integers(0, 300), max_size=3))]
    body = [message for turn in draw(st.lists(turns(), max_size=6)) for message in turn]
    return leading + body[draw(st.integers(0, 1)) :]


budgets = st.one_of(st.integers(0, 120), st.integers(0, 1200), st.integers(0, 12_000))
