"""How the texts of a step are asked for."""

from __future__ import annotations

import pytest

from reactor_memory.errors import SummarizationError
from reactor_memory.features.facts import operations as fact_operations
from reactor_memory.features.facts.spending_caps import day_of
from reactor_memory.features.tiers.classification import COMPRESSED, CONDENSED
from reactor_memory.features.tiers.plan import Writing
from reactor_memory.features.tiers.portions import CUT
from reactor_memory.features.tiers.writer import MOST_ROUNDS
from reactor_memory.models import Message
from reactor_memory.testing import FakeClock, ScriptedCondenser
from tests.features.tiers.scenes import writer_over
from tests.features.tiers.test_planning import summary, talk
from tests.scenes.stores import SqlStore

pytestmark = pytest.mark.anyio


def long_talk(messages: int, words: int = 40) -> tuple[Message, ...]:
    return tuple(Message.user("word " * words, seq=seq) for seq in range(1, messages + 1))


async def test_earlier_texts_and_messages_are_read_in_order_of_log(store: SqlStore) -> None:
    condenser = ScriptedCondenser()
    writing = Writing(
        kind=COMPRESSED,
        start_seq=1,
        end_seq=14,
        replaced=(summary(COMPRESSED, 1, 6), summary(CONDENSED, 9, 12)),
        messages=(*talk(7, 8), *talk(13, 14)),
    )
    answer = await writer_over(store, condenser).write("s", writing)
    (call,) = condenser.condensed
    assert [(message.role, message.seq) for message in call.messages] == [
        ("summary", 1),
        ("user", 7),
        ("assistant", 8),
        ("summary", 9),
        ("user", 13),
        ("assistant", 14),
    ]
    assert call.prompt == "compress"
    assert answer.text == "1 to 6 m7 m8 9 to 12 m13 m14"
    assert answer.usage.total == 11


async def test_a_long_run_is_read_in_portions_then_their_texts(store: SqlStore) -> None:
    condenser = ScriptedCondenser()
    writer = writer_over(store, condenser, chunk_tokens=250, max_tokens=100)
    writing = Writing(kind=CONDENSED, start_seq=1, end_seq=9, messages=long_talk(9))
    answer = await writer.write("s", writing)
    *portions, last = (call.messages for call in condenser.condensed)
    assert len(portions) > 1
    assert [message.seq for run in portions for message in run] == list(range(1, 10))
    assert {message.role for message in last} == {"summary"}
    assert answer.text == " ".join(f"m{seq}" for seq in range(1, 10))
    assert answer.usage.total == 11 * len(condenser.condensed)


async def test_endless_run_ends_after_a_few_rounds_and_says_so(store: SqlStore) -> None:
    condenser = ScriptedCondenser()
    writer = writer_over(store, condenser, chunk_tokens=70, max_tokens=50)
    condenser.texts = ["word " * 40] * 10_000
    await writer.write("s", Writing(kind=CONDENSED, start_seq=1, end_seq=40, messages=long_talk(40, words=30)))
    assert len(condenser.condensed) <= 40 * MOST_ROUNDS + 1
    assert condenser.condensed[-1].messages[0].content == CUT


async def test_a_text_that_is_too_long_is_cut_and_marked(store: SqlStore) -> None:
    condenser = ScriptedCondenser()
    condenser.texts = ["This is one sentence of an answer. " * 100]
    answer = await writer_over(store, condenser, max_tokens=60).write(
        "s", Writing(kind=CONDENSED, start_seq=1, end_seq=2, messages=talk(1, 2))
    )
    assert answer.text.endswith(f"answer. {CUT}")
    assert len(answer.text) < 400


async def test_a_blank_text_is_a_failure(store: SqlStore) -> None:
    condenser = ScriptedCondenser()
    condenser.texts = [" \n "]
    with pytest.raises(SummarizationError, match="blank"):
        await writer_over(store, condenser).write(
            "s", Writing(kind=CONDENSED, start_seq=1, end_seq=2, messages=talk(1, 2))
        )


async def test_where_a_cap_is_reached_somebody_writes_who_costs_nothing(store: SqlStore) -> None:
    condenser = ScriptedCondenser()
    writer = writer_over(store, condenser, cap=11)
    writing = Writing(kind=CONDENSED, start_seq=1, end_seq=2, messages=talk(1, 2))
    await writer.write("s", writing)
    assert (await store.database.read(fact_operations.read_spending, "s", day=day_of(FakeClock()()))).session == 11
    assert (await writer.write("s", writing)).text == "m1 m2"
    assert len(condenser.condensed) == 1
