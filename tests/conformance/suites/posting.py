"""Summaries that agents post: what a branch is told, what goes when content goes, what no sibling ever sees."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from random import Random

import pytest
from msgspec.structs import replace

from reactor_memory.errors import (
    IdempotencyConflictError,
    InvalidInputError,
    SessionDeletedError,
    SessionNotFoundError,
    SessionOwnershipError,
)
from reactor_memory.features.erasure import operations as erasure
from reactor_memory.features.facts import operations as fact_operations
from reactor_memory.features.facts.merge import refold
from reactor_memory.features.posted_summaries import operations as posted_summaries
from reactor_memory.features.posted_summaries.operations import PostRequest
from reactor_memory.models import Message
from reactor_memory.models.ledger import PostedSummary, Summary
from reactor_memory.models.requests import AppendRequest, ContextQuery
from reactor_memory.testing.branching import fork
from reactor_memory.testing.builders import append_messages, numbered, stored_form, wall_clock
from reactor_memory.testing.log import seqs, texts
from reactor_memory.testing.summary_recording import (
    Store,
    claimed,
    fact,
    layout,
    ledger_of,
    seal,
    segment,
    session_of,
)

telling = partial(refold, max_fact_tokens=1_000_000, max_narrative_tokens=1_000_000, count=len)
"""A fold that tells everything."""


async def post(
    store: Store,
    session_id: str,
    text: str,
    until_seq: int,
    *,
    user_id: str | None = None,
    title: str | None = None,
    key: str | None = None,
) -> Message:
    now = wall_clock()
    message = stored_form(Message(role="summary", content=text, visibility="agent", author_id="bot"), now=now)
    batch = AppendRequest(
        session_id=session_id,
        user_id=user_id,
        messages=(message,),
        now=now,
        idempotency_key=key,
        fingerprint=f"{text} {until_seq}",
    )
    return await store.database.write(
        posted_summaries.post_summary, PostRequest(batch=batch, until_seq=until_seq, title=title), refold=telling
    )


async def ruling_in(store: Store, session_id: str) -> PostedSummary | None:
    return await store.database.read(fact_operations.read_posted, (await session_of(store, session_id)).branch)


async def told(store: Store, session_id: str) -> list[str]:
    """The lines of the narrative."""
    summary = await store.summaries.get_summary(session_id)
    return [] if summary is None else summary.narrative.splitlines()


async def erase(store: Store, session_id: str, *ranges: tuple[int, int]) -> int:
    erased = await store.database.write(
        erasure.erase, session_id, None, ranges=ranges, now=wall_clock(), refold=telling
    )
    return erased.message_count


async def withdraw(store: Store, session_id: str) -> int | None:
    taken = await store.withdraw(session_id, None, seq=None, now=wall_clock(), refold=telling)
    return taken.message.seq


async def sealed(store: Store) -> None:
    """s: 1-4 and 5-8 sealed, each with facts, 9 and 10 not."""
    await append_messages(store, "s", numbered(10))
    for start in (1, 5):
        await seal(store, "s", start, start + 3, [replace(fact(start), verified=True)])


class Posted:
    """The log has the text, the narrative follows at once."""

    async def test_it_is_a_message_of_the_log(self, store: Store) -> None:
        await append_messages(store, "s", numbered(3))
        posted = await post(store, "s", "They met.", 2)
        assert (posted.seq, posted.role, posted.visibility, posted.author_id) == (4, "summary", "agent", "bot")
        assert await store.read("s", None, after=3) == (posted,)
        assert await ruling_in(store, "s") == PostedSummary(seq=4, until_seq=2, text="They met.")
        assert (await append_messages(store, "s", numbered(1))).first_seq == 5

    async def test_a_session_without_a_summary_gets_one_that_covers_nothing(self, store: Store) -> None:
        await append_messages(store, "s", numbered(3))
        await post(store, "s", "They met. They\ntalked.", 3)
        summary = await store.summaries.get_summary("s")
        assert summary is not None
        assert (summary.covered_seq, summary.stale_ranges, summary.facts()) == (0, (), ())
        assert (summary.version, summary.epoch, summary.truncated) == (1, 1, False)
        assert summary.narrative == "They met.\nThey\ntalked."
        assert summary.created_at == summary.updated_at > 0

    async def test_only_the_narrative_changes(self, store: Store) -> None:
        await sealed(store)
        await store.summaries.put_layout("s", layout(8), budget=0, settings_fingerprint="")
        before = await store.summaries.get_summary("s")
        assert before is not None
        await post(store, "s", "They met.", 4)
        after = await store.summaries.get_summary("s")
        assert after is not None
        assert after.narrative == "They met.\ns 5 to 8."
        same = replace(before, narrative=after.narrative, version=3, epoch=1, updated_at=after.updated_at)
        assert after == same
        assert await store.summaries.get_layout("s", budget=0, settings_fingerprint="") is None

    async def test_a_segment_that_ends_behind_it_is_told_whole(self, store: Store) -> None:
        await sealed(store)
        await post(store, "s", "They met.", 7)
        assert await told(store, "s") == ["They met.", "s 5 to 8."]
        await post(store, "s", "They parted.", 8)
        assert await told(store, "s") == ["They parted."]

    async def test_one_that_reaches_furthest_rules_and_of_equals_the_newest(self, store: Store) -> None:
        await sealed(store)
        for text, until in (("far", 8), ("near", 4), ("far again", 8), ("nearer", 2)):
            await post(store, "s", text, until)
        assert await ruling_in(store, "s") == PostedSummary(seq=13, until_seq=8, text="far again")
        assert (await ledger_of(store, "s")).posted == await ruling_in(store, "s")
        assert await told(store, "s") == ["far again"]

    async def test_a_worker_that_read_before_it_writes_no_summary(self, store: Store) -> None:
        await sealed(store)
        lease = await claimed(store, "s")
        before = await store.summaries.get_summary("s") or Summary()
        await post(store, "s", "They met.", 4)
        late = replace(before, version=before.version + 1, covered_seq=10)
        assert not await store.summaries.record_segment(lease, segment("s", 9, 10), (), late)
        known = replace(late, version=before.version + 2)
        assert await store.summaries.record_segment(lease, segment("s", 9, 10), (), known)

    async def test_the_title_is_set_with_it(self, store: Store) -> None:
        await append_messages(store, "s", numbered(2))
        await post(store, "s", "They met.", 2, title="A meeting \U0001f600")
        await post(store, "s", "They met again.", 2)
        assert (await session_of(store, "s")).title == "A meeting \U0001f600"

    async def test_a_repetition_gives_the_first_one(self, store: Store) -> None:
        await append_messages(store, "s", numbered(2))
        first = await post(store, "s", "They met.", 2, title="one", key="k")
        epoch = (await store.summaries.get_summary("s") or Summary()).epoch
        assert await post(store, "s", "They met.", 2, title="two", key="k") == first
        session = await session_of(store, "s")
        assert (session.last_seq, session.title) == (3, "one")
        assert (await store.summaries.get_summary("s") or Summary()).epoch == epoch
        with pytest.raises(IdempotencyConflictError):
            await post(store, "s", "They parted.", 2, key="k")
        await erase(store, "s", (3, 3))
        assert (await post(store, "s", "They met.", 2, key="k")).content == ""
        assert await told(store, "s") == []

    @pytest.mark.parametrize("until_seq", [0, -1, 3])
    async def test_it_tells_of_messages_before_it(self, store: Store, until_seq: int) -> None:
        await append_messages(store, "s", numbered(2))
        with pytest.raises(InvalidInputError, match="until_seq"):
            await post(store, "s", "They met.", until_seq, title="no")
        assert (await session_of(store, "s")).last_seq == 2
        assert await store.summaries.get_summary("s") is None
        assert (await session_of(store, "s")).title is None

    async def test_it_is_refused_where_an_append_is(self, store: Store) -> None:
        with pytest.raises(SessionNotFoundError):
            await post(store, "unknown", "They met.", 1)
        await append_messages(store, "s", numbered(2), user_id="u")
        with pytest.raises(SessionOwnershipError):
            await post(store, "s", "They met.", 1, user_id="other")
        await store.delete("s", "u", now=wall_clock(), purge=False)
        with pytest.raises(SessionDeletedError):
            await post(store, "s", "They met.", 1, user_id="u")

    async def test_nothing_of_it_outlives_its_session(self, store: Store) -> None:
        await append_messages(store, "s", numbered(2))
        await fork(store, "s", "s~f", 3)
        await post(store, "s~f", "They met.", 2)
        branch = (await session_of(store, "s~f")).branch
        await store.delete("s~f", None, now=wall_clock(), purge=True)
        assert await store.database.read(fact_operations.read_posted, branch) is None
        assert await erase(store, "s", (1, 1)) == 1

    async def test_a_window_is_read_as_if_it_cost_nothing(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        await post(store, "s", "long " * 200, 6)
        query = ContextQuery(
            session_id="s",
            user_id=None,
            last_count=4,
            trigger_message_count=2,
            max_messages=9,
            max_tokens=25,
            overhead=1,
            facts=True,
        )
        assert seqs((await store.read_context(query)).messages) == [4, 5, 6, 7]


class PostedInForks:
    """A branch has the summaries whose messages it shows, and no other."""

    async def test_a_fork_behind_it_has_it(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        await post(store, "s", "They met.", 4)
        await fork(store, "s", "s~f", 8)
        await fork(store, "s~f", "s~f2", 8)
        for session_id in ("s~f", "s~f2"):
            assert (await ledger_of(store, session_id)).posted == PostedSummary(seq=7, until_seq=4, text="They met.")

    async def test_no_sibling_text_is_told(self, store: Store) -> None:
        """Whether it was posted before the fork or after it, and however little it says that it tells of."""
        await append_messages(store, "s", numbered(6))
        await post(store, "s", "before", 2)
        await fork(store, "s", "s~at", 7)
        await fork(store, "s", "s~early", 4)
        await post(store, "s", "after", 2)
        for session_id in ("s~at", "s~early"):
            assert await ruling_in(store, session_id) is None
        await append_messages(store, "s~at", numbered(2))
        await post(store, "s~at", "own", 8)
        assert await ruling_in(store, "s~early") is None
        assert [each.text for each in [await ruling_in(store, "s")] if each] == ["after"]
        assert await told(store, "s") == ["after"]

    async def test_a_fork_may_tell_it_otherwise(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        await post(store, "s", "They met.", 4)
        await fork(store, "s", "s~f", 8)
        await post(store, "s~f", "They met in May.", 6)
        assert await told(store, "s~f") == ["They met in May."]
        assert await told(store, "s") == ["They met."]

    async def test_erasing_what_it_tells_of_destroys_it_in_every_branch(self, store: Store) -> None:
        await append_messages(store, "s", numbered(6))
        await post(store, "s", "parent", 3)
        await fork(store, "s", "s~f", 8)
        await append_messages(store, "s~f", numbered(1))
        await post(store, "s~f", "fork", 8)
        await fork(store, "s", "s~other", 3)
        await append_messages(store, "s~other", numbered(2))
        await post(store, "s~other", "other", 2)
        assert await erase(store, "s~f", (3, 3)) == 3
        for session_id in ("s", "s~f"):
            assert await ruling_in(store, session_id) is None
            assert await told(store, session_id) == []
            assert (await store.summaries.get_summary(session_id) or Summary()).epoch == 2
        assert await told(store, "s~other") == ["other"]
        assert seqs(await store.read("s~f", None)) == [1, 2, 4, 5, 6, 8]
        for session_id, seq in (("s", 7), ("s~f", 9)):
            assert (await store.read_background(session_id, after=seq - 1, limit=1)).messages == ()

    async def test_a_deleted_fork_keeps_nothing_either(self, store: Store) -> None:
        await append_messages(store, "s", numbered(3))
        await fork(store, "s", "s~f", 4)
        await post(store, "s~f", "fork", 3)
        branch = (await session_of(store, "s~f")).branch
        await store.delete("s~f", None, now=wall_clock(), purge=False)
        assert await erase(store, "s", (2, 2)) == 2
        assert await store.database.read(fact_operations.read_posted, branch) is None
        assert await told(store, "s~f") == []


class PostedThenErased:
    """Its text goes with what it tells of; without it everything is as it was before."""

    async def test_it_outlives_what_it_does_not_tell_of(self, store: Store) -> None:
        await sealed(store)
        await post(store, "s", "They met.", 4)
        assert await erase(store, "s", (5, 6)) == 2
        assert await told(store, "s") == ["They met."]
        assert (await ruling_in(store, "s") or PostedSummary(seq=0, until_seq=0)).seq == 11

    async def test_also_where_no_segment_holds_the_message(self, store: Store) -> None:
        await sealed(store)
        await post(store, "s", "They met.", 10)
        assert await erase(store, "s", (9, 9)) == 2
        summary = await store.summaries.get_summary("s")
        assert summary is not None
        assert summary.narrative == "s 1 to 4.\ns 5 to 8."
        assert [each.value for each in summary.facts()] == ["value 1", "value 5"]
        assert (summary.covered_seq, summary.stale_ranges) == (8, ())

    async def test_also_where_the_segment_is_stale_already(self, store: Store) -> None:
        await sealed(store)
        await erase(store, "s", (2, 2))
        await post(store, "s", "They met.", 4)
        await erase(store, "s", (3, 3))
        assert await told(store, "s") == ["s 5 to 8."]

    async def test_erasing_it_brings_the_older_one_back(self, store: Store) -> None:
        await sealed(store)
        await post(store, "s", "They met.", 4)
        await post(store, "s", "They met and talked.", 8)
        assert await erase(store, "s", (12, 12)) == 1
        assert await told(store, "s") == ["They met.", "s 5 to 8."]
        assert await erase(store, "s", (11, 11)) == 1
        assert await told(store, "s") == ["s 1 to 4.", "s 5 to 8."]
        assert [each.value for each in (await store.summaries.get_summary("s") or Summary()).facts()] == [
            "value 1",
            "value 5",
        ]

    async def test_one_that_tells_of_it_goes_with_it(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        await post(store, "s", "first", 4)
        await post(store, "s", "made of the first", 5)
        assert await erase(store, "s", (5, 5)) == 2
        assert await told(store, "s") == []

    async def test_withdrawing_it_brings_the_older_one_back(self, store: Store) -> None:
        await sealed(store)
        await post(store, "s", "They met.", 4)
        await post(store, "s", "They met and talked.", 8)
        assert await withdraw(store, "s") == 12
        assert await told(store, "s") == ["They met.", "s 5 to 8."]
        assert await withdraw(store, "s") == 11
        assert await told(store, "s") == ["s 1 to 4.", "s 5 to 8."]

    async def test_withdrawing_it_destroys_its_text(self, store: Store) -> None:
        """Otherwise no erasure of what it tells would find it any more."""
        await append_messages(store, "s", numbered(4))
        await post(store, "s", "canary", 4)
        assert await withdraw(store, "s") == 5
        assert await erase(store, "s", (5, 5)) == 0

    async def test_withdrawing_what_a_fork_tells_of_destroys_its_text(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        await fork(store, "s", "s~f", 5)
        await post(store, "s~f", "canary", 4)
        assert await withdraw(store, "s") == 4
        assert await ruling_in(store, "s~f") is None
        assert await told(store, "s~f") == []
        assert texts(await store.read("s~f", None)) == [f"message {number}" for number in (1, 2, 3)]

    async def test_erasing_twice_changes_nothing_more(self, store: Store) -> None:
        await sealed(store)
        await post(store, "s", "They met.", 4)
        await erase(store, "s", (2, 2))
        before = await store.summaries.get_summary("s")
        assert await erase(store, "s", (2, 2)) == 0
        assert await store.summaries.get_summary("s") == before


@dataclass
class _Told:
    """A message of the model; one that tells of others has `until`."""

    text: str
    until: int = 0
    gone: bool = False


@dataclass
class _Branch:
    session_id: str
    entries: list[_Told] = field(default_factory=list[_Told])

    def ruling(self) -> PostedSummary | None:
        posted = [
            PostedSummary(seq=seq, until_seq=each.until, text=each.text)
            for seq, each in enumerate(self.entries, start=1)
            if each.until and not each.gone
        ]
        return max(posted, key=lambda each: (each.until_seq, each.seq), default=None)


class _Model:
    """The same acts on a store and on lists whose entries branches share."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store = store
        self.random = Random(seed)
        self.branches = [_Branch("s")]

    async def step(self) -> None:
        branch = self.random.choice(self.branches)
        acts = (self.append, self.post, self.fork, self.erase, self.withdraw)
        (act,) = self.random.choices(acts, weights=(6, 5, 3, 2, 2))
        if branch.entries or act == self.append:
            await act(branch)

    async def append(self, branch: _Branch) -> None:
        count = self.random.randint(1, 3)
        await append_messages(self.store, branch.session_id, [Message.user(f"{self.random.random()}")] * count)
        branch.entries += [_Told("") for _ in range(count)]

    async def post(self, branch: _Branch) -> None:
        text, until = f"told {self.random.random()}", self.random.randint(1, len(branch.entries))
        assert (await post(self.store, branch.session_id, text, until)).seq == len(branch.entries) + 1
        branch.entries.append(_Told(text, until))

    async def fork(self, branch: _Branch) -> None:
        at_seq = self.random.randint(1, len(branch.entries) + 1)
        new = _Branch(f"s~{len(self.branches)}", branch.entries[: at_seq - 1])
        await fork(self.store, branch.session_id, new.session_id, at_seq)
        self.branches.append(new)

    async def erase(self, branch: _Branch) -> None:
        seq = self.random.randint(1, len(branch.entries))
        await erase(self.store, branch.session_id, (seq, seq))
        self._forget(branch.entries[seq - 1])

    async def withdraw(self, branch: _Branch) -> None:
        try:
            seq = await withdraw(self.store, branch.session_id)
        except InvalidInputError:
            return
        self._forget(branch.entries[(seq or 0) - 1])

    def _forget(self, entry: _Told) -> None:
        entry.gone = True
        for branch in self.branches:
            for each in branch.entries:
                if any(told_of is entry for told_of in branch.entries[: each.until]):
                    each.gone = True

    async def compare(self) -> None:
        for branch in self.branches:
            if not branch.entries:
                continue
            rules = branch.ruling()
            assert await ruling_in(self.store, branch.session_id) == rules
            in_view = [seq for seq, each in enumerate(branch.entries, start=1) if not each.gone]
            assert seqs(await self.store.read(branch.session_id, None)) == in_view
            summary = await self.store.summaries.get_summary(branch.session_id)
            if summary is not None:
                assert summary.narrative == (rules.text if rules else "")


class RandomlyPosted:
    """Whatever is posted, forked, erased and withdrawn: every branch is told what the model says."""

    @pytest.mark.parametrize("seed", range(6))
    async def test_a_random_history_is_told_as_its_model(self, store: Store, seed: int) -> None:
        model = _Model(store, seed)
        await model.append(model.branches[0])
        for _ in range(60):
            await model.step()
        await model.compare()
