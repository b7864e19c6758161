"""A process that is killed while it erases: asked again, the erasure is finished, and nothing else was touched."""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path

import pytest

from reactor_memory import ConversationManager, Message, open_container
from reactor_memory.features.erasure import operations as erasure
from tests.acceptance.scenes import settings, talk
from tests.proofs.processes import module_process, read_until, rest
from tests.scenes.counts import count as count_proven

pytestmark = pytest.mark.slow

ROUNDS = 5
SESSIONS = 30
MARKED = range(5, 25)


@pytest.mark.timeout(300)
def test_kill_of_sqlite(tmp_path: Path) -> None:
    kill_and_ask_again(f"sqlite:///{tmp_path}/memory.db")


@pytest.mark.postgres
@pytest.mark.timeout(300)
def test_kill_of_postgres(postgres_dsn: str) -> None:
    kill_and_ask_again(postgres_dsn)


def kill_and_ask_again(url: str) -> None:
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"seed {seed}")
    chance = random.Random(seed)
    for number in range(ROUNDS):
        user = f"user {number}"
        asyncio.run(fill(url, user))
        killed = erase_until_killed(chance.uniform(0, 0.15), "messages", url, f"{user} 0", user, "5", "24")
        asyncio.run(erased_messages(url, user, was_done=killed))
        erase_until_killed(chance.uniform(0, 0.3), "user", url, user)
        asyncio.run(erased_user(url, user))
        count_proven("kills during erasures; 0 half done, 0 texts left", 2)


def erase_until_killed(seconds: float, *arguments: str) -> bool:
    """Whether it was done before it was killed, `seconds` after it began."""
    with module_process("tests.proofs.erasing_process", *arguments) as process:
        read_until(process, "begin")
        time.sleep(seconds)  # noqa: TID251 - the moment is the point
        process.kill()
        return "done\n" in rest(process)


async def fill(url: str, user: str) -> None:
    async with open_container(settings(url)) as container:
        manager = container.conversation_manager()
        for number in range(SESSIONS):
            await manager.save_history(f"{user} {number}", talk(40 if number == 0 else 2), user_id=user)
        await manager.summarize(f"{user} 0", user_id=user)
        await manager.save_history(f"{user} other", [Message.user("stays")], user_id=f"{user} other")


async def erased_messages(url: str, user: str, *, was_done: bool) -> None:
    """Whole or not at all, before it is asked again; then for good, with what was made of it."""
    async with open_container(settings(url, background={"enabled": False})) as container:
        manager = container.conversation_manager()
        left = set(await seqs(manager, f"{user} 0", user)) & set(MARKED)
        assert not left or (left == set(MARKED) and not was_done)
        again = await container.erasure().erase(f"{user} 0", seq=MARKED, user_id=user)
        assert again.message_count == len(left)
        assert await seqs(manager, f"{user} 0", user) == [1, 2, 3, 4, *range(25, 41)]
        facts = await container.facts().list(f"{user} 0", user_id=user)
        assert facts
        assert not [fact for fact in facts if fact.source_seq in MARKED]
        assert (await container.message_store().check()).problems == ()


async def seqs(manager: ConversationManager, session_id: str, user: str) -> list[int]:
    return [message.seq or 0 for message in await manager.read_messages(session_id, user_id=user)]


async def erased_user(url: str, user: str) -> None:
    async with open_container(settings(url, background={"enabled": False})) as container:
        manager, store = container.conversation_manager(), container.message_store()
        await container.erasure().erase_user(user)
        assert await container.database().read(erasure.owned_groups, user) == ()
        assert (await manager.list_sessions(user_id=user)).sessions == ()
        for number in range(SESSIONS):
            assert await container.summary_store().get_summary(f"{user} {number}") is None
        kept = await manager.read_messages(f"{user} other", user_id=f"{user} other")
        assert [message.content for message in kept] == ["stays"]
        assert (await store.check()).problems == ()
