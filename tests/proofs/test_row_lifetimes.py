"""Random histories of all features, and that no row of any table outlives what it belongs to.

What a row belongs to is read from the schema: its columns say to which conversation, which message, which user. So the
tables of a new feature are covered without being named.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reactor_memory import Memory, Message
from reactor_memory.core.log.branches import ranges_between
from reactor_memory.core.log.rows import branch_from
from reactor_memory.errors import InvalidInputError, LimitExceededError, SessionDeletedError, SharingConflictError
from reactor_memory.features.items.operations import ItemChange, change_items
from reactor_memory.features.sharing.principals import Principal
from reactor_memory.features.transfer.copy import SessionCopier
from reactor_memory.models import BranchRange
from reactor_memory.testing import ScriptedSummarizer
from reactor_memory.wiring.service_container import ServiceContainer
from tests.acceptance.scenes import service_parts
from tests.proofs.random_talk import RandomTalk, own_words, remember_words
from tests.scenes.stores import sqlite_database

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

STEPS = 60
USERS = ("ann", "bob")

ON_RECORD = {"audit_records"}
"""What was done stays on record, without a word of what was said."""

OF_USERS = ("text", "value", "active_session_id", "access_level")
"""An empty version of the notes stays, so that no late writer goes on from an older one."""

REPEATED = "It said"
"""How a text begins that repeats the words of others."""

SEQS = ("seq", "source_seq", "start_seq", "end_seq", "covered_seq", "window_start_seq")

OF_MESSAGES = ("seq", "source_seq")
"""Columns that name the one message without which a row has no right to be."""

LENGTHS = {("context_layouts", "seq"), ("load_records", "seq"), ("fact_corrections", "seq")}
"""They say how long the session was then, and name no message."""


@pytest.mark.parametrize("seed", range(24))
async def test_no_row_outlives_what_it_belongs_to(seed: int, tmp_path: Path) -> None:
    chance = Random(seed)
    summary = {"trigger_message_count": 8, "recent_message_count": 4, "segment_message_count": 4}
    sections: dict[str, Any] = {"search": {"enabled": True}, "notes": {"enabled": True}, "summary": summary}
    sections["context"] = {"record": "all"}
    if seed % 3 == 0:
        tiers = {"recent_count": 4, "condensed_count": 4, "auto_threshold": 8, "retention": "archive"}
        sections |= {"history": {"strategy": "progressive"}, "tiers": tiers}
    url, copied = f"sqlite:///{tmp_path}/memory.db", tmp_path / "copied.db"
    async with service_parts(ScriptedSummarizer(default=remember_words), url, **sections) as container:
        history = History(container, chance, has_tiers="tiers" in sections)
        for user in USERS:
            await history.begin(user)
        for _ in range(STEPS):
            await history.step()
        await history.come_and_go("carl")
        await history.manager.drain()
        target = sqlite_database(copied)
        await target.open()
        try:
            await SessionCopier(container.database(), target, clock=container.clock()).copy(lambda _: None)
        finally:
            await target.close()
    for path in (tmp_path / "memory.db", copied):
        assert list(faults_in(path, history)) == []


class History:
    """What two users do with their sessions, and which words of them must be gone."""

    def __init__(self, container: ServiceContainer, chance: Random, *, has_tiers: bool) -> None:
        self.container = container
        self.memory = Memory(container)
        self.manager = container.conversation_manager()
        self.chance = chance
        self.talk = RandomTalk(chance)
        self.sessions: dict[str, str] = {}
        self.destroyed: set[str] = set()
        self.withdrawn: set[str] = set()
        self.gone_users: set[str] = set()
        self.acts = [self.save] * 6 + [self.fork, self.pin, self.correct, self.post, self.archive, self.restore]
        self.acts += [self.withdraw, self.erase, self.erase, self.delete, self.load, self.keep, self.forget_user]
        self.acts += [self.summarise_tiers] if has_tiers else []

    async def begin(self, user: str) -> None:
        name = f"{user}-{self.chance.randrange(10**6)}"
        self.sessions[name] = user
        await self.manager.save_history(name, self.talk.first_batch(), user_id=user)
        await self.keep(name, user)

    async def come_and_go(self, user: str) -> None:
        await self.begin(user)
        await self.begin(USERS[0])
        own = list(self.sessions)[-1]
        await self.container.sharing().add(Principal(user_id=USERS[0]), own, user, "reader")
        await self.memory.erasure.erase_user(user)
        self.gone_users.add(user)

    async def step(self) -> None:
        if not self.sessions:
            await self.begin(self.chance.choice(USERS))
        session = self.chance.choice(sorted(self.sessions))
        with suppress(InvalidInputError, LimitExceededError, SessionDeletedError, SharingConflictError):
            await self.chance.choice(self.acts)(session, self.sessions[session])

    async def save(self, session: str, user: str) -> None:
        await self.manager.save_history(session, self.talk.batch(), user_id=user, agent_name="agent")
        if self.chance.random() < 0.3:
            await self.manager.drain()

    async def load(self, session: str, user: str) -> None:
        query = "word" if "word00001" in self.destroyed | self.withdrawn else "word00001"
        await self.manager.load_history(session, user_id=user, agent_name="agent", budget=600, query=query)

    async def fork(self, session: str, user: str) -> None:
        last = (await self.manager.get_session(session, user_id=user)).last_seq
        fork = await self.manager.fork(session, at_seq=self.chance.randint(1, last + 1), user_id=user)
        self.sessions[fork.session_id] = user

    async def pin(self, session: str, user: str) -> None:
        last = (await self.manager.get_session(session, user_id=user)).last_seq
        await self.memory.pins.add(session, seq=self.chance.randint(1, max(1, last)), user_id=user)

    async def correct(self, session: str, user: str) -> None:
        facts = await self.memory.facts.list(session, user_id=user)
        if facts:
            fact = self.chance.choice(facts)
            await self.memory.facts.correct(session, fact=(fact.anchor, fact.key), value="something", user_id=user)

    async def post(self, session: str, user: str) -> None:
        last = (await self.manager.get_session(session, user_id=user)).last_seq
        told = " ".join(sorted(own_words(await self._texts(session, user))))
        await self.memory.post_summary(
            session, text=f"{REPEATED} {told}.", title=told[:50] or None, until_seq=last, user_id=user
        )

    async def archive(self, session: str, user: str) -> None:
        await self.container.archiver().archive(session, user_id=user, clear=self.chance.random() < 0.5)

    async def restore(self, session: str, user: str) -> None:
        await self.container.archiver().restore(session, user_id=user)

    async def summarise_tiers(self, session: str, user: str) -> None:
        await self.memory.tiers.summarize(session, user_id=user)

    async def withdraw(self, session: str, user: str) -> None:
        message = await self.memory.withdraw(session, user_id=user)
        self.withdrawn |= said_first(message)

    async def erase(self, session: str, user: str) -> None:
        last = (await self.manager.get_session(session, user_id=user)).last_seq
        first = self.chance.randint(1, max(1, last))
        end = min(last, first + self.chance.randrange(4))
        said = await self.manager.read_messages(session, user_id=user, after=first - 1, until=end, archived=True)
        await self.memory.erasure.erase(session, seq=range(first, end + 1), user_id=user)
        self.destroyed |= {word for message in said for word in said_first(message)}

    async def delete(self, session: str, user: str) -> None:
        for gone in (await self.manager.delete(session, user_id=user)).session_ids:
            self.sessions.pop(gone, None)

    async def keep(self, session: str, user: str) -> None:
        """Notes, an active session, an item, and a member."""
        self.gone_users.discard(user)
        await self.memory.notes.apply(user, "agent", "append", content=f"- {self.chance.random()}")
        await self.memory.sessions.get_or_create(user, "agent")
        other = next(each for each in USERS if each != user)
        await self._item(user)
        self.gone_users.discard(other)
        await self.container.sharing().add(Principal(user_id=user), session, other, "reader")

    async def _item(self, user: str) -> None:
        change = ItemChange(namespace="n", key=str(self.chance.randrange(3)), value={"a": 1})
        await self.container.database().write(change_items, user, [change], now=self.container.clock()())

    async def forget_user(self, session: str, user: str) -> None:
        if self.chance.random() < 0.3:
            await self.memory.erasure.erase_user(user)
            self.gone_users.add(user)
            self.sessions = {name: owner for name, owner in self.sessions.items() if owner != user}

    async def _texts(self, session: str, user: str) -> str:
        return " ".join(each.content for each in await self.manager.read_messages(session, user_id=user))


def said_first(message: Message) -> set[str]:
    """The words of this message that no other said before it. A posted text only repeats, so what it repeats stays when
    it goes.
    """
    return set() if message.content.startswith(REPEATED) else own_words(message.content)


class Stored:
    """What a database holds of conversations and their messages."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self.living: dict[tuple[str, str], int] = {}
        self._branches: dict[str, tuple[BranchRange, ...]] = {}
        for group, name, last, path in database.execute(
            "SELECT group_id, conversation_id, last_seq, path FROM conversations WHERE purged_at IS NULL"
        ):
            self.living[group, name] = last
            self._branches[name] = branch_from(name, path)
        self.groups = {group for group, _ in self.living}
        self.indexed = {number for (number,) in database.execute("SELECT number FROM recall_ranges")}
        self._gone = set(
            database.execute("SELECT conversation_id, seq FROM messages WHERE state IN ('erased', 'withdrawn')")
        )

    def is_gone(self, session_id: str, seq: int) -> bool:
        """Whether this message of the branch was erased or withdrawn."""
        parts = ranges_between(self._branches[session_id], seq - 1, seq)
        return any((part.conversation_id, seq) in self._gone for part in parts)


def faults_in(path: Path, history: History) -> Iterator[str]:
    with closing(sqlite3.connect(path)) as database:
        stored = Stored(database)
        for table, columns in tables_of(database):
            rows = [dict(zip(columns, row, strict=True)) for row in database.execute(f'SELECT * FROM "{table}"')]
            yield from (f"{table}: {fault}" for row in rows for fault in faults_of(table, row, stored, history))


def tables_of(database: sqlite3.Connection) -> Iterator[tuple[str, Sequence[str]]]:
    for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall():
        if table.startswith(("sqlite_", "recall_terms", "search_entries_")):
            continue  # what a full-text index is made of
        yield table, [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]


def faults_of(table: str, row: dict[str, Any], stored: Stored, history: History) -> Iterator[str]:
    if table not in {"conversations", *ON_RECORD} and "group_id" in row:
        yield from faults_of_owner(table, row, stored)
    place = {"recall_passages": "place", "recall_postings": "doc"}.get(table)
    if place and row[place] >> 40 not in stored.indexed:
        yield "belongs to no conversation"
    if row.get("user_id") in history.gone_users and any(row.get(name) for name in OF_USERS):
        yield "belongs to a user who was erased"
    words = own_words(" ".join(str(value) for value in row.values() if isinstance(value, (str, bytes))))
    if gone := words & history.destroyed:
        yield f"holds erased words: {gone}"
    if table not in {"messages", "conversations"} and (gone := words & history.withdrawn):
        yield f"holds withdrawn words: {gone}"


def faults_of_owner(table: str, row: dict[str, Any], stored: Stored) -> Iterator[str]:
    """What is wrong with the group, the conversation or the message that the row belongs to."""
    if "conversation_id" not in row or row["conversation_id"] == "":
        if row["group_id"] not in (None, row.get("user_id"), *stored.groups):
            yield f"belongs to a group that is gone: {row['group_id']}"
        return
    session_id = row["conversation_id"]
    last = stored.living.get((row["group_id"], session_id))
    if last is None:
        yield f"belongs to a conversation that is gone: {session_id}"
        return
    yield from (f"{name} {row[name]} is behind the end" for name in SEQS if (row.get(name) or 0) > last)
    for name in OF_MESSAGES if table != "messages" else ():
        if row.get(name) and (table, name) not in LENGTHS and stored.is_gone(session_id, row[name]):
            yield f"{name} {row[name]} of {session_id} is a message that is gone"
