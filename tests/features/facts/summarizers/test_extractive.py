"""What the offline summarizer finds: words and calls as they are, in any language, the same for ever."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.facts.evidence import verify_facts
from reactor_memory.features.facts.summarizers.extractive import ExtractiveSummarizer
from reactor_memory.models import Message, ToolCall
from reactor_memory.models.ledger import Extraction, Fact
from tests.scenes.tables import each_row

pytestmark = pytest.mark.anyio


def user(text: str) -> Message:
    return Message.user(text)


def says(text: str) -> Message:
    return Message.assistant(text)


def call(name: str, id_: str = "c1", **arguments: object) -> Message:
    return Message.assistant(tool_calls=[ToolCall(id=id_, name=name, arguments=arguments)])


def result(value: object, id_: str = "c1") -> Message:
    return Message.tool(value if isinstance(value, str) else json.dumps(value), tool_call_id=id_)


def numbered(*messages: Message) -> list[Message]:
    return [Message(**{**{f: getattr(m, f) for f in m.__struct_fields__}, "seq": n}) for n, m in enumerate(messages, 1)]


async def extract(*messages: Message) -> Extraction:
    return await ExtractiveSummarizer().summarize(numbered(*messages))


async def facts(*messages: Message) -> tuple[Fact, ...]:
    found = verify_facts((await extract(*messages)).facts, numbered(*messages))
    assert all(fact.verified for fact in found)
    return found


@each_row(
    ("said", "kept"),
    [
        ("Never deploy on Fridays.", "Never deploy on Fridays."),
        ("I'm allergic to nuts.", "I'm allergic to nuts."),
        ("我对花生过敏。", "我对花生过敏。"),
        ("Адрес: anna@example.com", "Адрес: anna@example.com"),
        ("注文番号は 48213 です", "注文番号は 48213 です"),
    ],
)
async def test_what_was_said_is_kept_word_for_word(said: str, kept: str) -> None:
    (fact,) = [each for each in await facts(user(said), says("Noted.")) if each.said_by == "user"]
    assert (fact.value, fact.source_seq) == (kept, 1)


@each_row("answer", [[], {"error": "sold out"}, {"success": False}, "Error: no seats"])
async def test_a_failed_attempt_is_a_fact_marked_as_such(answer: object) -> None:
    found = await facts(call("book_table", place="Blue Door"), result(answer))
    assert {fact.failed for fact in found} == {answer != []}


async def test_two_calls_are_two_anchors() -> None:
    found = await facts(call("book", place="A"), result({}), call("book", "c2", place="B"), result({}, "c2"))
    assert {fact.anchor: fact.value for fact in found if fact.key == "call.act.place"} == {
        "book #1": "A",
        "book #3": "B",
    }


async def test_no_narrative_is_told() -> None:
    extraction = await extract(user("I want 2 tickets for Hamlet in London on May 3rd."), says("Sure."))
    assert (extraction.narrative, extraction.headline) == ("", "")


async def test_nothing_to_say() -> None:
    assert await extract() == Extraction()
    assert await extract(Message.user("", seq=1), Message.tool("", tool_call_id="lost")) == Extraction()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
MESSAGES = st.one_of(
    st.builds(Message.user, st.text(max_size=80)),
    st.builds(Message.assistant, st.text(max_size=80)),
    st.builds(
        lambda n, a: Message.assistant(tool_calls=[ToolCall(id="c", name=n, arguments=a)]),
        st.text(max_size=9),
        st.text(max_size=20) | st.dictionaries(st.text(max_size=8), JSON, max_size=3),
    ),
    st.builds(lambda r: Message.tool(json.dumps(r), tool_call_id="c"), JSON),
)


@given(st.lists(MESSAGES, max_size=8))
async def test_any_messages_give_the_same_extraction_twice(messages: list[Message]) -> None:
    first, second = await extract(*messages), await extract(*messages)
    assert first == second
    assert {fact.source_seq for fact in first.facts} <= set(range(1, len(messages) + 1))


HOSTILE = [
    "a" * 100_000,
    "A " * 50_000,
    "a. " * 33_000,
    "1" * 100_000,
    "1," * 50_000,
    "my x is " * 12_000,
    "$" * 100_000,
    "my " * 33_000,
    "a@" * 50_000,
    "(" * 100_000,
    "yes " * 25_000,
    "\n" * 100_000,
    "。" * 100_000,
    "don't " * 16_000,
    "[" * 100_000,
    '{"a":' * 20_000,
    "1:1" * 33_000,
    "not a but " * 10_000,
    " " * 100_000,
    "D." * 50_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:6]))
async def test_a_hostile_message_costs_no_more_than_its_length(text: str) -> None:
    """With anything worse than a linear scan this would run for minutes."""
    messages = [user(text), says(text), call("run", text=text), result(text), user(text)]
    found = (await extract(*messages)).facts
    assert len(found) < 500
