"""Ids, ranges and segments of branches, against models that copy lists."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.core.log.branches import (
    group_of,
    is_fork,
    ranges_between,
    ranges_in_branch,
    root_branch,
)
from reactor_memory.core.log.forks import branch_for_fork
from reactor_memory.core.log.paging import (
    PREVIEW_LENGTH,
    PREVIEW_SOURCE_LENGTH,
    Cursor,
    decode_cursor,
    encode_cursor,
    preview_of,
)
from reactor_memory.errors import InvalidInputError
from reactor_memory.features.facts.segments import segments_of_branch
from reactor_memory.features.recall.indexed_ranges import indexed_ranges
from reactor_memory.models import BranchRange, Session
from reactor_memory.models.ledger import Segment
from tests.scenes.tables import each_row


def part(conversation_id: str, start: int, end: int | None = None) -> BranchRange:
    return BranchRange(conversation_id=conversation_id, start_seq=start, end_seq=end)


def session(session_id: str, last_seq: int, branch: tuple[BranchRange, ...]) -> Session:
    return Session(
        session_id=session_id,
        group_id=group_of(session_id),
        owner_id=None,
        last_seq=last_seq,
        branch=branch,
        created_at=0,
        updated_at=0,
    )


def segment(owner: str, start: int, end: int) -> Segment:
    return Segment(
        conversation_id=owner, start_seq=start, end_seq=end, source_hash="", summarizer="", prompt_version=""
    )


@pytest.mark.parametrize(
    ("session_id", "group_id", "fork"), [("s", "s", False), ("s~f", "s", True), ("s~f~g", "s", True), ("", "", False)]
)
def test_an_id_names_its_group(session_id: str, group_id: str, fork: bool) -> None:
    assert group_of(session_id) == group_id
    assert is_fork(session_id) == fork


class Tree:
    """A group of forks: the branches under test, and beside them the lists that they must read as."""

    def __init__(self) -> None:
        self.branches: dict[str, tuple[BranchRange, ...]] = {"s": root_branch("s")}
        self.stored: dict[tuple[str, int], str] = {}
        self.lists: dict[str, list[str]] = {"s": []}

    def append(self, session_id: str, count: int) -> None:
        entries = self.lists[session_id]
        for _ in range(count):
            text = f"{session_id}:{len(entries) + 1}"
            entries.append(text)
            self.stored[session_id, len(entries)] = text

    def fork(self, session_id: str, at_seq: int) -> None:
        fork_id = f"s~{len(self.branches)}"
        parent = session(session_id, len(self.lists[session_id]), self.branches[session_id])
        self.branches[fork_id] = branch_for_fork(parent, fork_id, at_seq)
        self.lists[fork_id] = self.lists[session_id][: at_seq - 1]

    def read(self, session_id: str, after: int, until: int | None) -> list[str]:
        length = len(self.lists[session_id])
        return [
            self.stored[each.conversation_id, seq]
            for each in ranges_between(self.branches[session_id], after, until)
            for seq in range(each.start_seq, (length if each.end_seq is None else min(each.end_seq, length)) + 1)
        ]


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    tree = Tree()
    for _ in range(draw(st.integers(0, 12))):
        session_id = draw(st.sampled_from(sorted(tree.branches)))
        if draw(st.booleans()):
            tree.append(session_id, draw(st.integers(1, 5)))
        else:
            tree.fork(session_id, draw(st.integers(1, len(tree.lists[session_id]) + 1)))
    return tree


@given(trees(), st.integers(0, 30), st.none() | st.integers(0, 30))
def test_every_branch_reads_as_a_copied_list(tree: Tree, after: int, until: int | None) -> None:
    for session_id, expected in tree.lists.items():
        assert tree.read(session_id, after, until) == expected[after:until]


@given(trees())
def test_a_branch_shows_each_position_of_one_conversation(tree: Tree) -> None:
    for session_id, branch in tree.branches.items():
        assert branch[0].start_seq == 1
        assert branch[-1] == part(session_id, branch[-1].start_seq)
        assert all(older.end_seq == newer.start_seq - 1 for older, newer in itertools.pairwise(branch))
        for seq in range(1, len(tree.lists[session_id]) + 1):
            assert len([owner for owner in tree.branches if ranges_in_branch(branch, [part(owner, seq, seq)])]) == 1


def test_ranges_that_are_empty_are_left_out() -> None:
    branch = (part("s", 1, 3), part("s~a", 4, 5), part("s~b", 6))
    assert ranges_between(branch, 0, None) == branch
    assert ranges_between(branch, 3, 5) == (part("s~a", 4, 5),)
    assert ranges_between(branch, 4, 6) == (part("s~a", 5, 5), part("s~b", 6, 6))
    assert ranges_between(branch, 9, None) == (part("s~b", 10),)
    assert ranges_between(branch, 5, 5) == ()
    assert ranges_between(branch, 0, 0) == ()


BRANCH = (part("s", 1, 6), part("s~a", 7, 10), part("s~b", 11))


@each_row(
    ("borders", "shown"),
    [
        ([], []),
        ([("s", 1, 4), ("s", 5, 8)], [("s", 1, 4)]),
        ([("s", 1, 6), ("s~a", 7, 10), ("s~b", 11, 14)], [("s", 1, 6), ("s~a", 7, 10), ("s~b", 11, 14)]),
        ([("s", 1, 4), ("s~a", 5, 8)], [("s", 1, 4), ("s~a", 5, 8)]),
        ([("s", 1, 4), ("s", 5, 6), ("s~a", 5, 8)], [("s", 1, 4), ("s~a", 5, 8)]),
        ([("s", 1, 4), ("s~a", 5, 8), ("s~a", 9, 12)], [("s", 1, 4), ("s~a", 5, 8)]),
        ([("s", 1, 4), ("s~a", 5, 8), ("s~a", 9, 10), ("s~b", 9, 12)], [("s", 1, 4), ("s~a", 5, 8), ("s~b", 9, 12)]),
        ([("s", 1, 4), ("s", 5, 6), ("s~a", 5, 8), ("s~a", 9, 10)], [("s", 1, 4), ("s~a", 5, 8), ("s~a", 9, 10)]),
        ([("s", 1, 4), ("s~a", 5, 6), ("s~a", 7, 10)], [("s", 1, 4), ("s~a", 5, 6), ("s~a", 7, 10)]),
        ([("s", 1, 4), ("s~b", 5, 12)], [("s", 1, 4), ("s~b", 5, 12)]),
        ([("s", 1, 4), ("s", 5, 6), ("s~a", 7, 9), ("s~b", 5, 12)], [("s", 1, 4), ("s~b", 5, 12)]),
        ([("s~b", 1, 20), ("s", 1, 4)], [("s~b", 1, 20)]),
        ([("s", 1, 4), ("s~b", 11, 14)], [("s", 1, 4)]),
        ([("s", 5, 6)], []),
        ([("s~c", 1, 4)], []),
    ],
)
def test_the_segments_that_a_branch_shows(
    borders: list[tuple[str, int, int]], shown: list[tuple[str, int, int]]
) -> None:
    by_owner: dict[str, list[Segment]] = {}
    for owner, start, end in reversed(borders):
        by_owner.setdefault(owner, []).append(segment(owner, start, end))
    found = segments_of_branch(BRANCH, by_owner)
    assert [(each.conversation_id, each.start_seq, each.end_seq) for each in found] == shown


starts = st.lists(st.integers(1, 20), unique=True, max_size=8).map(sorted)


@given(st.fixed_dictionaries(dict.fromkeys(("s", "s~a", "s~b"), starts)))
def test_segments_cover_without_gap_or_overlap(cuts: dict[str, list[int]]) -> None:
    by_owner = {
        owner: [segment(owner, start, end - 1) for start, end in itertools.pairwise(points)]
        for owner, points in cuts.items()
    }
    found = segments_of_branch(BRANCH, by_owner)
    covered = [seq for each in found for seq in range(each.start_seq, each.end_seq + 1)]
    assert covered == list(range(1, len(covered) + 1))
    ends = {each.conversation_id: each.end_seq for each in BRANCH}
    assert all((last := ends[each.conversation_id]) is None or each.end_seq <= last for each in found)


@given(st.integers(-(2**63), 2**63 - 1), st.text(alphabet=st.characters(exclude_characters="\0", codec="utf-8")))
def test_a_cursor_comes_back(updated_at: int, session_id: str) -> None:
    cursor = Cursor(updated_at=updated_at, session_id=session_id)
    text = encode_cursor(cursor)
    assert decode_cursor(text) == cursor
    assert text.replace("-", "").replace("_", "").isalnum()


@given(st.text())
def test_a_text_that_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        decode_cursor(text)
    assert caught.value.field == "cursor"


def test_a_preview_needs_the_beginning_of_a_message_only() -> None:
    assert preview_of(" " * (PREVIEW_SOURCE_LENGTH - 1) + "ab") == "a"


@given(st.text(max_size=1000))
def test_a_preview_is_one_short_line_of_the_beginning(text: str) -> None:
    preview = preview_of(text)
    assert len(preview) <= PREVIEW_LENGTH
    assert len(preview.splitlines()) <= 1
    assert preview == preview_of(text[:PREVIEW_SOURCE_LENGTH])
    assert " ".join(text.split()).startswith(preview.removesuffix("\u2026"))


class TestIndexedRanges:
    BRANCH = (
        BranchRange(conversation_id="s", start_seq=1, end_seq=9),
        BranchRange(conversation_id="s~a", start_seq=10),
    )

    def ranges(self, **indexed: tuple[int, int]) -> list[tuple[str, int, int | None]]:
        held = {name.replace("fork", "s~a"): span for name, span in indexed.items()}
        return [(p.conversation_id, p.start_seq, p.end_seq) for p in indexed_ranges(self.BRANCH, held)]

    def test_an_ancestor_answers_up_to_the_fork(self) -> None:
        assert self.ranges(s=(1, 20)) == [("s", 1, 9)]
        assert self.ranges(s=(1, 5)) == [("s", 1, 5)]

    def test_a_fork_answers_for_what_it_indexed_itself(self) -> None:
        assert self.ranges(s=(1, 20), fork=(8, 14)) == [("s", 1, 7), ("s~a", 8, 14)]

    def test_behind_a_gap_nothing_counts(self) -> None:
        assert self.ranges(s=(1, 5), fork=(8, 14)) == [("s", 1, 5)]
        assert self.ranges(fork=(8, 14)) == []
        assert self.ranges(s=(2, 9)) == []
        assert self.ranges() == []
