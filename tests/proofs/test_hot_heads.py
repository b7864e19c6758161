"""A load of a session that is kept in memory gives what a load from the file gives, whatever was done in between, by
this process or by another one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest
from msgspec.structs import astuple

from reactor_memory import open_memory
from reactor_memory.core.context.context import Context
from reactor_memory.errors import ReactorMemoryError
from reactor_memory.testing import ScriptedSummarizer
from reactor_memory.wiring.service_container import ServiceContainer
from tests.acceptance.scenes import USER, service_parts, settings, talk
from tests.proofs.processes import ROOT
from tests.proofs.random_talk import remember_words
from tests.proofs.test_row_lifetimes import USERS, History

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

STEPS = 60
SUMMARY = {"trigger_message_count": 8, "recent_message_count": 4, "segment_message_count": 4}
REQUESTS: Sequence[dict[str, Any]] = ({}, {"budget": 600}, {"budget": 600, "query": ""}, {"before_seq": 4})


@asynccontextmanager
async def parts(url: str, *, hot: int, seed: int) -> AsyncGenerator[ServiceContainer]:
    sections: dict[str, Any] = {"search": {"enabled": True}, "notes": {"enabled": seed % 8 == 0}, "summary": SUMMARY}
    if seed % 3 == 0:
        tiers = {"recent_count": 4, "condensed_count": 4, "auto_threshold": 8, "retention": "archive"}
        sections |= {"history": {"strategy": "progressive"}, "tiers": tiers}
    if seed % 3 == 1:
        sections |= {"history": {"strategy": "take_last", "max_conversation_turns": 3}}
    sections["store"] = {"url": url, "hot_bytes": hot}
    async with service_parts(ScriptedSummarizer(default=remember_words), url, **sections) as container:
        yield container


def exact(context: Context) -> object:
    return [astuple(each) for each in context.messages], context.report, context.system


async def answer(container: ServiceContainer, session: str, user: str, request: dict[str, Any]) -> object:
    try:
        return exact(await container.conversation_manager().load_history(session, user_id=user, **request))
    except ReactorMemoryError as error:
        return type(error), str(error)


class Hits:
    """How often what was kept was given again."""

    def __init__(self, container: ServiceContainer) -> None:
        self.count = 0
        loader = container.context_loader()
        again = loader.again

        async def noting(*arguments: Any) -> Context | None:
            found = await again(*arguments)
            self.count += found is not None
            return found

        loader.again = noting


@pytest.mark.parametrize("seed", range(16))
async def test_random_acts_of_two_stores_never_show_what_was(seed: int, tmp_path: Path) -> None:
    """Every act of every feature, in the store that keeps heads and in one beside it."""
    chance = Random(seed)
    url = f"sqlite:///{tmp_path}/memory.db"
    async with parts(url, hot=200_000, seed=seed) as hot, parts(url, hot=0, seed=seed) as cold:
        hits = Hits(hot)
        here, there = (History(each, chance, has_tiers=seed % 3 == 0) for each in (hot, cold))
        there.sessions = here.sessions
        known: dict[str, str] = {}
        for user in USERS:
            await here.begin(user)
        for _ in range(STEPS):
            actor = chance.choice((here, there))
            actor.sessions = here.sessions
            await actor.step()
            here.sessions = actor.sessions
            known |= here.sessions
            for each in (hot, cold):
                await each.conversation_manager().drain()
            for session in chance.sample(sorted(known), min(3, len(known))):
                user = chance.choice((known[session], known[session], *USERS))
                request = chance.choice(REQUESTS)
                await answer(cold, session, user, request)  # one that lays out a context reports more than the next
                for _ in range(3):
                    assert await answer(hot, session, user, request) == await answer(cold, session, user, request)
        assert hits.count > 10 or seed % 8 == 0, hits.count


CHANGES = """
import asyncio, sys
from random import Random
from reactor_memory import open_memory
from reactor_memory.errors import ReactorMemoryError
from tests.acceptance.scenes import USER, settings, talk

async def change(url, seed):
    chance, is_told = Random(seed), False
    async with open_memory(settings(url)) as memory:
        while True:
            act = chance.randrange(8)
            try:
                last = (await memory.get_session("s", user_id=USER)).last_seq
                if act < 3:
                    await memory.save_history("s", talk(chance.randint(1, 3), start=last), user_id=USER)
                elif act == 3:
                    await memory.withdraw("s", user_id=USER)
                elif act == 4:
                    await memory.erasure.erase("s", seq=chance.randint(max(1, last - 20), last), user_id=USER)
                elif act == 5:
                    await memory.archive("s", user_id=USER, clear=chance.random() < 0.5)
                elif act == 6:
                    await memory.restore("s", user_id=USER)
                else:
                    await memory.pins.add("s", seq=last, user_id=USER)
                    await memory.pins.remove("s", seq=last, user_id=USER)
            except ReactorMemoryError:
                pass
            await asyncio.sleep(0.005)
            if not is_told:
                print("it changes", flush=True)
                is_told = True

asyncio.run(change(sys.argv[1], int(sys.argv[2])))
"""


async def test_another_process_changes_a_session_while_it_is_loaded(tmp_path: Path) -> None:
    """Where the proof is the same before and after, the loads between show the same."""
    url = f"sqlite:///{tmp_path}/memory.db"
    chosen = [settings(url, store={"url": url, "hot_bytes": hot}) for hot in (1_000_000, 0)]
    async with open_memory(chosen[0]) as hot, open_memory(chosen[1]) as cold:
        await hot.save_history("s", talk(40), user_id=USER)
        heads = hot.container.hot_heads()
        assert heads is not None
        compared, proofs = 0, set[str]()
        command = [sys.executable, "-c", CHANGES, url, "1"]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:  # noqa: ASYNC220
            try:
                assert process.stdout is not None
                assert process.stdout.readline()
                with anyio.fail_after(120):
                    while compared < 100 or len(proofs) < 40:
                        before = await heads.proof("s")
                        shown = [exact(await each.load_history("s", user_id=USER)) for each in (hot, hot, cold)]
                        if before == await heads.proof("s"):
                            assert shown[0] == shown[1] == shown[2]
                            compared += 1
                        proofs.add(repr(before))
                        await anyio.sleep(0.002)
            finally:
                process.kill()
