"""The stand-ins that ship for tests do what their users rely on."""

import anyio
import pytest

from reactor_memory.errors import SummarizationError
from reactor_memory.models import Message
from reactor_memory.models.ledger import NOTHING_KNOWN, Extraction, Fact, Known
from reactor_memory.testing import FakeClock, ScriptedSummarizer, numbered

pytestmark = pytest.mark.anyio

MESSAGES = (Message.user("a", seq=3), Message.assistant("b", seq=4))


def test_a_clock_stands_still_until_it_is_moved() -> None:
    clock = FakeClock(5)
    assert (clock(), clock()) == (5, 5)
    clock.advance(1.5)
    assert clock() == 1_500_005


def test_numbered_messages_take_turns() -> None:
    assert [(each.role, each.content) for each in numbered(3, start=2)] == [
        ("assistant", "message 2"),
        ("user", "message 3"),
        ("assistant", "message 4"),
    ]
    assert numbered(1)[0].role == "user"


async def test_answers_come_in_the_order_of_the_script() -> None:
    known = Known(facts=(Fact(anchor="user", key="k", value="v", source_seq=1),))
    summarizer = ScriptedSummarizer([Extraction(narrative="first"), SummarizationError("timeout", "too slow")])
    summarizer.then(lambda messages: Extraction(narrative=str(len(messages))))
    assert (await summarizer.summarize(MESSAGES, known=known)).narrative == "first"
    with pytest.raises(SummarizationError):
        await summarizer.summarize(MESSAGES)
    assert (await summarizer.summarize(MESSAGES)).narrative == "2"
    assert (await summarizer.summarize(MESSAGES)).narrative == "Messages 3 to 4 were read."
    assert [call.seqs for call in summarizer.calls] == [(3, 4)] * 4
    assert [call.known for call in summarizer.calls] == [known, *[NOTHING_KNOWN] * 3]


async def test_a_default_may_fail_for_ever() -> None:
    summarizer = ScriptedSummarizer(default=SummarizationError("unavailable", "is down"))
    for _ in range(3):
        with pytest.raises(SummarizationError):
            await summarizer.summarize(MESSAGES)


async def test_held_calls_wait_and_are_counted() -> None:
    summarizer = ScriptedSummarizer()
    summarizer.hold()
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(summarizer.summarize, MESSAGES)
        await anyio.wait_all_tasks_blocked()
        assert (summarizer.running, len(summarizer.calls)) == (3, 3)
        summarizer.let_go()
    assert (summarizer.running, summarizer.most_running) == (0, 3)
    await summarizer.aclose()
    assert summarizer.closed == 1


async def test_a_cancelled_call_no_longer_runs() -> None:
    summarizer = ScriptedSummarizer(delay_seconds=60)
    with anyio.move_on_after(0):
        await summarizer.summarize(MESSAGES)
    assert (summarizer.running, len(summarizer.calls)) == (0, 1)
