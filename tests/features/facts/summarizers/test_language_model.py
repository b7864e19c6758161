"""What a question costs is told, also where there is no answer to the next one."""

import asyncio

import anyio
import pytest

from reactor_memory.errors import SummarizationError
from reactor_memory.features.facts.summarizers.language_model import LanguageModelSummarizer
from reactor_memory.models import Message
from reactor_memory.models.ledger import Usage
from reactor_memory.providers.questions import Reply, Request
from reactor_memory.tokens.estimate import EstimateCounter

pytestmark = pytest.mark.anyio

LONG = tuple(Message.user(f"word{seq} " + "more words " * 600, seq=seq) for seq in range(1, 4))


class OneAnswer:
    """Answers the first question, and no other."""

    def __init__(self) -> None:
        self.asked = 0
        self.is_stuck = anyio.Event()

    async def ask(self, request: Request) -> Reply:
        self.asked += 1
        if self.asked > 1:
            self.is_stuck.set()
            await anyio.sleep_forever()
        return Reply('{"facts": [], "narrative": "They talked.", "headline": ""}', Usage(tokens_read=900))

    async def aclose(self) -> None: ...


def summarizer_of(client: OneAnswer) -> LanguageModelSummarizer:
    return LanguageModelSummarizer(
        "m", client, counter=EstimateCounter(), max_narrative_tokens=100, max_input_tokens=2000
    )


async def test_the_callers_deadline_does_not_hide_what_was_spent_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client, loop = OneAnswer(), asyncio.get_running_loop()
    now = loop.time

    async def let_time_pass() -> None:
        await client.is_stuck.wait()
        monkeypatch.setattr(loop, "time", lambda: now() + 5940)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(let_time_pass)
        with pytest.raises(SummarizationError) as caught, anyio.fail_after(6000):
            await summarizer_of(client).summarize(LONG)
    assert (caught.value.reason, caught.value.retryable, caught.value.tokens) == ("timeout", True, 900)


async def test_who_is_cancelled_is_cancelled() -> None:
    client = OneAnswer()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(summarizer_of(client).summarize, LONG)
        await client.is_stuck.wait()
        tasks.cancel_scope.cancel()
    assert client.asked == 2
