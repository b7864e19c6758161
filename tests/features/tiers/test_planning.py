"""What steps write: whatever is said, summarised and undone in between, nothing is lost and nothing told twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reactor_memory.errors import SummarizationError
from reactor_memory.features.tiers import operations as range_summaries
from reactor_memory.features.tiers.classification import COMPRESSED, CONDENSED, Level, TierSizes
from reactor_memory.features.tiers.plan import View, covered_until, plan, view_of
from reactor_memory.features.tiers.progressive_tiers import ProgressiveTiers, TierReport
from reactor_memory.models import Message
from reactor_memory.models.ledger import RangeSummary
from reactor_memory.models.turns import find_pairs
from reactor_memory.testing import ScriptedCondenser, append_messages
from tests.core.context.histories import stored, turns
from tests.features.tiers.scenes import tiers_over
from tests.scenes.stores import SqlStore, memory_store

SIZES = TierSizes(recent_count=2, condensed_count=4, longest_turn=6)


def summary(kind: str, start: int, end: int, **fields: object) -> RangeSummary:
    values: dict[str, object] = {
        "summary_id": f"{kind} {start}",
        "kind": kind,
        "start_seq": start,
        "end_seq": end,
        "message_count": end - start + 1,
        "text": f"{start} to {end}",
        "token_count": 1,
        "tokenizer": "t",
        "started_at": start,
        "ended_at": end,
        "created_at": 0,
    }
    return RangeSummary(**{**values, **fields})  # type: ignore[arg-type]


def talk(first: int, last: int) -> tuple[Message, ...]:
    made = [Message.user("q") if seq % 2 else Message.assistant("a") for seq in range(1, last + 1)]
    return tuple(replace(m, message_id=f"id {m.seq}", created_at=m.seq) for m in stored(made) if (m.seq or 0) >= first)


def written(view: View, sizes: TierSizes = SIZES) -> list[tuple[Level, int, int, int]]:
    return [(each.kind, each.start_seq, each.end_seq, each.message_count) for each in plan(view, sizes).writings]


def test_the_first_step() -> None:
    assert written(View(messages=talk(1, 12))) == [(COMPRESSED, 1, 6, 6), (CONDENSED, 7, 10, 4)]
    assert written(View(messages=talk(1, 6))) == [(CONDENSED, 1, 4, 4)]
    assert written(View(messages=talk(1, 2))) == []
    assert written(View()) == []


def test_condensed_text_is_compressed_once_all_is_past_the_tier() -> None:
    before = (summary(COMPRESSED, 1, 6, message_count=6), summary(CONDENSED, 7, 10))
    assert written(View(summaries=before, messages=talk(11, 14))) == [(CONDENSED, 11, 12, 2)]
    step = plan(View(summaries=before, messages=talk(11, 16)), SIZES)
    assert [(each.kind, each.start_seq, each.end_seq, each.message_count) for each in step.writings] == [
        (COMPRESSED, 1, 10, 10),
        (CONDENSED, 11, 14, 4),
    ]
    assert step.writings[0].replaced == before
    assert step.writings[0].message_ids == ()
    assert step.writings[0].period == (1, 10)
    assert step.writings[1].message_ids == ("id 11", "id 12", "id 13", "id 14")


def test_a_summary_of_another_service_is_condensed() -> None:
    other = (summary("summary", 1, 4),)
    assert written(View(summaries=other, messages=talk(5, 10))) == [(COMPRESSED, 1, 4, 4), (CONDENSED, 5, 8, 4)]


def test_what_was_undone_before_others_is_summarised_again() -> None:
    undone_first = View(summaries=(summary(CONDENSED, 7, 10),), messages=(*talk(1, 6), *talk(11, 12)))
    assert written(undone_first) == [(COMPRESSED, 1, 6, 6)]
    undone_second = View(
        summaries=(summary(CONDENSED, 1, 2), summary(CONDENSED, 5, 6)), messages=(*talk(3, 4), *talk(7, 8))
    )
    assert written(undone_second) == [(COMPRESSED, 1, 2, 2), (CONDENSED, 3, 4, 2)]


def test_ranges_follow_each_other_where_messages_were_taken_back() -> None:
    messages = tuple(message for message in talk(1, 12) if message.seq not in (1, 6, 7))
    assert written(View(messages=messages)) == [(COMPRESSED, 1, 4, 3), (CONDENSED, 5, 10, 4)]


def test_a_branch_summarises_its_own_messages_only() -> None:
    inherited = (summary(COMPRESSED, 1, 2, message_count=2),)
    view = View(summaries=inherited, messages=talk(3, 16), own_start=9)
    assert written(view) == [(COMPRESSED, 9, 10, 2), (CONDENSED, 11, 14, 4)]
    assert written(View(messages=talk(1, 16), own_start=15)) == []


@pytest.mark.parametrize(
    ("level", "expected"), [(CONDENSED, [(CONDENSED, 1, 10, 10)]), (COMPRESSED, [(COMPRESSED, 1, 10, 10)])]
)
def test_a_level_brings_everything_to_it(level: Level, expected: list[tuple[Level, int, int, int]]) -> None:
    assert written(View(messages=talk(1, 12)), SIZES.at(level)) == expected


def test_to_compress_everything_also_takes_what_is_condensed() -> None:
    view = View(summaries=(summary(CONDENSED, 1, 4),), messages=talk(5, 6))
    assert written(view) == []
    assert written(view, SIZES.at(COMPRESSED)) == [(COMPRESSED, 1, 4, 4)]


def test_covered_is_what_summaries_cover_from_the_beginning() -> None:
    assert covered_until([]) == 0
    assert covered_until([summary(COMPRESSED, 1, 6), summary(CONDENSED, 7, 8), summary(CONDENSED, 11, 12)]) == 8


# -- whatever happens -------------------------------------------------------------------------------------------------


@dataclass
class Conversation:
    """A session under random use, and what must be true of it at all times."""

    store: SqlStore = field(default_factory=memory_store)
    condenser: ScriptedCondenser = field(default_factory=ScriptedCondenser)
    said: list[Message] = field(default_factory=list)

    async def say(self, messages: list[Message]) -> None:
        await append_messages(self.store, "s", messages)
        self.said += messages

    async def view(self) -> View:
        session = await self.store.get_session("s", None)
        if session is None:
            return View()
        live = await self.store.database.read(range_summaries.read_range_summaries, "s", None)
        return view_of(session, live, await self.store.read("s", None))

    async def check(self) -> None:
        view = await self.view()
        assert view.message_count == len(self.said)
        shown = [(message.seq or 0, message.seq or 0) for message in view.messages]
        shown += [(each.start_seq, each.end_seq) for each in view.summaries]
        last = 0
        for start, end in sorted(shown):
            assert start == last + 1, "shown twice, or not at all"
            last = end
        assert last == len(self.said)
        for one, other in pairwise(view.summaries):
            assert (one.kind, other.kind) != (CONDENSED, COMPRESSED)
        for each in view.summaries:
            inside = range(each.start_seq, each.end_seq + 1)
            assert each.message_count == len(inside)
            for pair in find_pairs(self.said):
                members = {place + 1 in inside for place in (pair.call, *pair.results)}
                assert len(members) == 1, "a pair straddles a border"
        await self._check_texts(view)

    async def _check_texts(self, view: View) -> None:
        """The text of each summary was made of all that it stands for: the condenser names what it read."""
        for each in view.summaries:
            names = {f"m{seq}" for seq in range(each.start_seq, each.end_seq + 1)}
            assert set(each.text.split()) == names


sizes = st.builds(
    TierSizes, recent_count=st.integers(0, 8), condensed_count=st.integers(0, 12), longest_turn=st.integers(2, 20)
)
acts = st.one_of(
    turns(max_steps=3),
    turns(max_steps=3),
    st.sampled_from(["step", "step", "step", CONDENSED, COMPRESSED, "fail 1", "fail 2"]),
    st.integers(0, 5),
)


@settings(max_examples=2 * settings().max_examples)
@given(script=st.lists(acts, max_size=14), sizes=sizes, retention=st.sampled_from(["archive", "keep"]))
def test_at_all_times_every_message_is_shown_once_and_counted(
    script: list[list[Message] | str | int], sizes: TierSizes, retention: str
) -> None:
    async def run() -> None:
        session = Conversation()
        await session.store.open()
        tiers = tiers_over(session.store, session.condenser, sizes, retention=retention)
        for act in script:
            await _act(session, tiers, act)
            await session.check()
        await session.store.close()

    anyio.run(run)


async def _act(session: Conversation, tiers: ProgressiveTiers, act: list[Message] | str | int) -> None:
    if isinstance(act, list):
        await session.say(act)
    elif isinstance(act, int):
        await _undo(session, tiers, act)
    elif act.startswith("fail"):
        await _fail(session, tiers, int(act[-1]))
    else:
        await _step(session, tiers, None if act == "step" else act)  # type: ignore[arg-type]


async def _step(session: Conversation, tiers: ProgressiveTiers, level: Level | None) -> None:
    """A step, and a second one, for which nothing is left to do and nobody is asked."""
    foreseen = await tiers.summarize("s", level=level, dry_run=True)
    report = await tiers.summarize("s", level=level)
    view = await session.view()
    if report.skipped_reason is None:
        assert replace(foreseen, tokens=report.tokens, summary_ids=report.summary_ids) == report
        assert report.after == len(view.messages) + len(view.summaries)
        assert report.recent_n == len(view.messages)
    calls = len(session.condenser.condensed)
    again = await tiers.summarize("s", level=level)
    assert isinstance(again, TierReport)
    assert again.skipped_reason
    assert len(session.condenser.condensed) == calls
    assert await session.view() == view


async def _undo(session: Conversation, tiers: ProgressiveTiers, place: int) -> None:
    """Restoring a summary brings back what was there before, and a second time there is nothing to undo."""
    live = (await session.view()).summaries
    if not live:
        return
    undone = live[place % len(live)]
    assert await tiers.restore("s", undone.summary_id)
    assert not await tiers.restore("s", undone.summary_id)
    everything = {
        each.summary_id
        for each in await session.store.database.read(range_summaries.read_range_summaries, "s", None, live=False)
    }
    assert undone.summary_id not in everything


async def _fail(session: Conversation, tiers: ProgressiveTiers, call: int) -> None:
    """Whichever call of a step fails, the view stays what it was, byte for byte."""
    before = await session.view()
    session.condenser.fail_after(call - 1, SummarizationError("unavailable", "down"))
    try:
        await tiers.summarize("s")
    except SummarizationError:
        assert await session.view() == before
    session.condenser.recover()
