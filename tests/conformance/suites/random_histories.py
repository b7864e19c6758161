"""Random histories of a group of forks, compared with a model that copies lists."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest

from reactor_memory.core.ports import MessageStore
from reactor_memory.errors import InvalidInputError, SessionDeletedError
from reactor_memory.features.pins import operations as pin_operations
from reactor_memory.models import Message
from reactor_memory.testing.builders import append_messages, pin_of, wall_clock
from reactor_memory.testing.log import nothing_left

STEPS = 80


@dataclass
class Entry:
    """A message of the model, shared by all branches that show it."""

    text: str
    withdrawn: bool = False


@dataclass
class Branch:
    session_id: str
    forked_at_seq: int
    entries: list[Entry]
    forks: list[Branch] = field(default_factory=list["Branch"])
    pins: list[int] = field(default_factory=list[int])

    def visible(self) -> list[tuple[int, str]]:
        return [(seq, entry.text) for seq, entry in enumerate(self.entries, start=1) if not entry.withdrawn]

    def with_forks_below(self) -> list[Branch]:
        return [self, *(below for fork in self.forks for below in fork.with_forks_below())]


class Model:
    """The same acts on a store and on lists. A deleted root is followed by a new one."""

    def __init__(self, store: MessageStore, seed: int) -> None:
        self.store = store
        self.random = Random(seed)
        self.made = 0
        self.deleted: list[str] = []
        self.root = self._new_root()

    def _new_root(self) -> Branch:
        self.made += 1
        return Branch(f"root {self.made}", 1, [])

    def _any_branch(self) -> Branch:
        return self.random.choice(self.root.with_forks_below())

    async def step(self) -> None:
        acts = (self.append, self.fork, self.withdraw, self.pin, self.unpin, self.delete)
        (act,) = self.random.choices(acts, weights=(10, 5, 5, 5, 2, 1))
        await act()

    async def append(self) -> None:
        branch = self._any_branch()
        entries = [Entry(f"{branch.session_id} {self.random.random()}") for _ in range(self.random.randint(1, 4))]
        appended = await append_messages(self.store, branch.session_id, [Message.user(entry.text) for entry in entries])
        assert appended.first_seq == len(branch.entries) + 1
        branch.entries += entries
        assert appended.last_seq == len(branch.entries)

    async def fork(self) -> None:
        parent = self._any_branch()
        if not parent.entries:
            return
        self.made += 1
        at_seq = self.random.randint(1, len(parent.entries) + 1)
        pins = [seq for seq in parent.pins if seq < at_seq]
        child = Branch(f"{self.root.session_id}~{self.made}", at_seq, parent.entries[: at_seq - 1], pins=pins)
        await self.store.fork(parent.session_id, None, at_seq=at_seq, fork_id=child.session_id, now=wall_clock())
        parent.forks.append(child)

    async def withdraw(self) -> None:
        branch = self._any_branch()
        if not branch.entries:
            return
        newest = max((seq for seq, _ in branch.visible()), default=0)
        if newest < branch.forked_at_seq:
            with pytest.raises(InvalidInputError):
                await self._withdraw(branch)
            return
        assert await self._withdraw(branch) == newest
        branch.entries[newest - 1].withdrawn = True
        for each in self.root.with_forks_below():
            each.pins = [seq for seq in each.pins if not each.entries[seq - 1].withdrawn]

    async def pin(self) -> None:
        branch = self._any_branch()
        if visible := branch.visible():
            seq, text = self.random.choice(visible)
            await self.store.database.write(
                pin_operations.pin, branch.session_id, None, pin_of(seq, text), max_pins=STEPS, max_pin_tokens=STEPS
            )
            branch.pins += [] if seq in branch.pins else [seq]

    async def unpin(self) -> None:
        branch = self._any_branch()
        if branch.pins:
            seq = self.random.choice(branch.pins)
            assert await self.store.database.write(pin_operations.unpin, branch.session_id, None, seq)
            branch.pins.remove(seq)

    async def _withdraw(self, branch: Branch) -> int | None:
        taken = await self.store.withdraw(branch.session_id, None, seq=None, now=wall_clock(), refold=nothing_left)
        return taken.message.seq

    async def delete(self) -> None:
        branch = self._any_branch()
        if not branch.entries:
            return
        gone = [each.session_id for each in branch.with_forks_below()]
        purge = self.random.random() < 0.5
        found = await self.store.delete(branch.session_id, None, now=wall_clock(), purge=purge)
        assert sorted(found) == sorted(gone)
        self.deleted += gone
        if branch is self.root:
            self.root = self._new_root()
        for each in self.root.with_forks_below():
            each.forks = [fork for fork in each.forks if fork is not branch]

    async def compare(self) -> None:
        for branch in self.root.with_forks_below():
            for _ in range(4):
                await self._compare_reads(branch)
            if branch.entries:
                await self._compare_pins(branch)
        for session_id in self.deleted:
            with pytest.raises(SessionDeletedError):
                await self.store.read(session_id, None)

    async def _compare_reads(self, branch: Branch) -> None:
        length = len(branch.entries)
        after = self.random.randint(0, length + 1)
        until = self.random.choice([None, self.random.randint(0, length + 1)])
        count = self.random.randint(1, length + 1)
        expected = [row for row in branch.visible() if after < row[0] and (until is None or row[0] <= until)]
        for found, part in (
            (await self.store.read(branch.session_id, None, after=after, until=until), expected),
            (await self.store.read(branch.session_id, None, after=after, until=until, last=count), expected[-count:]),
            (await self.store.read(branch.session_id, None, after=after, until=until, limit=count), expected[:count]),
        ):
            assert [(message.seq, message.content) for message in found] == part

    async def _compare_pins(self, branch: Branch) -> None:
        found = await self.store.database.read(pin_operations.read_pins, branch.session_id, None)
        assert [(pin.seq, pin.text) for pin in found] == [(seq, branch.entries[seq - 1].text) for seq in branch.pins]


class RandomHistories:
    """Whatever is appended, forked, withdrawn, pinned and deleted: every branch reads as the model does."""

    @pytest.mark.parametrize("seed", range(6))
    async def test_a_random_history_reads_as_its_model(self, store: MessageStore, seed: int) -> None:
        model = Model(store, seed)
        for _ in range(STEPS):
            await model.step()
        await model.compare()
