"""The fold of the facts of segments into one state: pure, and the same for every order of arrival.

Everything here keeps the greatest element of each identity, so folding a fold together with new facts equals folding
everything at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, takewhile
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from reactor_memory.features.facts.amendment_fold import amended
from reactor_memory.features.facts.withheld_facts import texts_without_taken_back
from reactor_memory.models.ledger import Fact, Ledger, PostedSummary, Segment, Summary, facts_to_json
from reactor_memory.text.spans import sentences

Count: TypeAlias = Callable[[str], int]
Identity: TypeAlias = tuple[str, str, bool, bool]

_ACT_RANK = {"interrupted": 0, "statement": 0, "decision": 1, "correction": 2}
_SEPARATOR = "; "
_PIECES = re.compile(r"\S(?:.{0,398}\S)?(?=\s|$)|\S{1,400}")
"""At most 400 characters, up to a space if there is one."""

_MARK_TOKENS = 2

SPARE_SHARE = 0.25
"""The facts that rank next are kept as well, up to this share of the working set: they fill the room that later facts
free.
"""


class WorkingSet(NamedTuple):
    """The facts that a summary keeps, and of those that it leaves out the ones that rank next, both in the order given.

    There are `spare` facts whenever facts are left out.
    """

    kept: tuple[Fact, ...] = ()
    spare: tuple[Fact, ...] = ()


def fold(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """The facts that hold, in the order of the log.

    Identity is anchor + key. What the user stated is replaced by the user only, or by a correction of the model that
    the user accepted; else the later message wins, and within one message correction > decision > statement. What a
    tool said and what a person or the model said stand side by side, and so do a failed attempt and a success.
    """
    return tuple(sorted(_current(facts).values(), key=position))


def successors(facts: Iterable[Fact]) -> dict[Fact, Fact]:
    """The verified facts that later ones replaced, each with the one that holds now."""
    verified = tuple(_verified(facts))
    current = _current(verified)
    return {fact: holds for fact in verified if (holds := current[_identity(fact)]) != fact}


def as_of(facts: Iterable[Fact], seq: int) -> tuple[Fact, ...]:
    """The facts as they were right after message `seq`."""
    return fold(fact for fact in facts if fact.source_seq <= seq)


def working_set(facts: Sequence[Fact], *, max_tokens: int, count: Count) -> WorkingSet:
    """The facts worth most for their tokens within `max_tokens`.

    What an anchor's facts of the same worth say stays together. A larger `max_tokens` never loses a fact.
    """
    if sum(len(f"{fact.anchor}{_SEPARATOR}{fact.value}".encode()) for fact in facts) <= max_tokens:
        return WorkingSet(tuple(facts))  # a token is at least one byte, so nothing needs to be counted
    ranked = sorted(_bundles(facts, count), key=attrgetter("rank"), reverse=True)
    kept = _within(ranked, max_tokens)
    spare = _within(ranked[len(kept) :], int(SPARE_SHARE * max_tokens)) or ranked[len(kept) :][:1]
    return WorkingSet(_in_order(kept, facts), _in_order(spare, facts))


def next_working_set(
    before: WorkingSet, facts: Sequence[Fact], known: Iterable[Fact], *, max_tokens: int, count: Count
) -> WorkingSet | None:
    """The working set of a ledger with new `facts`, from the one `before`, which left something out. `known` are all
    verified facts that the ledger had about the anchors of `facts`.

    What is left out ranks below all that is kept or spare, and new facts move no other anchor than theirs: so what is
    found above the lowest rank is all there is. None if that fits, for then the place belongs to something unknown.
    """
    if not before.spare:
        return None
    lowest = min(bundle.rank for bundle in _bundles(before.spare, count))
    moved = {fact.anchor for fact in facts}
    held = [fact for fact in (*before.kept, *before.spare) if fact.anchor not in moved]
    about = fold([*(fact for fact in known if fact.anchor in moved), *facts])
    above = [fact for bundle in _bundles(about, count) if bundle.rank >= lowest for fact in bundle.facts]
    found = working_set(sorted([*held, *above], key=position), max_tokens=max_tokens, count=count)
    return found if found.spare else None


def fold_narrative(lines: Iterable[str], *, max_tokens: int, count: Count) -> str:
    """One line a segment; the oldest sentences are dropped first until the sentences fit into `max_tokens`."""
    kept: list[str] = []
    left = max_tokens
    for line in reversed([line for line in lines if line.strip()]):
        fitting, left = _newest_sentences(sentences(" ".join(line.split())), left, count)
        if fitting:
            kept.append(" ".join(fitting))
        if left < 0:
            break
    return "\n".join(reversed(kept))


def refold(ledger: Ledger, *, max_fact_tokens: int, max_narrative_tokens: int, count: Count) -> Summary:
    """The summary of a whole ledger. Its version, epoch and times are the store's to set."""
    facts = amended(_verified(ledger.facts), ledger.corrections)
    found = working_set(fold(facts), max_tokens=max_fact_tokens, count=count)
    lines = _narrative_lines(texts_without_taken_back(ledger))
    return Summary(
        narrative=fold_narrative(lines, max_tokens=max_narrative_tokens, count=count),
        facts_json=facts_to_json(found.kept),
        spare_json=facts_to_json(found.spare),
        covered_seq=ledger.covered_seq,
        truncated=bool(found.spare),
        stale_ranges=tuple((s.start_seq, s.end_seq) for s in ledger.segments if s.stale),
    )


def fold_into(
    summary: Summary,
    facts: Iterable[Fact],
    segment: Segment,
    *,
    earlier: Iterable[Segment] = (),
    known: Iterable[Fact] = (),
    posted_until: int = 0,
    max_fact_tokens: int,
    max_narrative_tokens: int,
    count: Count,
) -> Summary | None:
    """`summary` with the segments that follow it, `earlier` and then `segment`, as the next version: equal to a refold
    of the ledger. `facts` are those of all of them.

    What an agent posted speaks for the messages up to `posted_until`, and `summary` tells it. A truncated summary needs
    to be told what the ledger knows about the anchors of `facts` (`next_working_set`). None if only the whole ledger
    gives the fold.
    """
    new = tuple(_verified(facts))
    if summary.truncated:
        before = WorkingSet(summary.facts(), summary.spare())
        found = next_working_set(before, new, known, max_tokens=max_fact_tokens, count=count)
    else:
        found = working_set(fold([*summary.facts(), *new]), max_tokens=max_fact_tokens, count=count)
    if found is None:
        return None
    told = (each.narrative for each in (*earlier, segment) if each.end_seq > posted_until)
    lines = [*summary.narrative.splitlines(), *told]
    return replace(
        summary,
        narrative=fold_narrative(lines, max_tokens=max_narrative_tokens, count=count),
        facts_json=facts_to_json(found.kept),
        spare_json=facts_to_json(found.spare),
        lines_json="",
        covered_seq=max(summary.covered_seq, segment.end_seq),
        version=summary.version + 1,
        truncated=bool(found.spare),
    )


def posted_lines(text: str) -> list[str]:
    """A posted summary as lines of a narrative: one a sentence, very long sentences in pieces."""
    return [piece for sentence in sentences(text) for piece in _PIECES.findall(sentence)]


def _narrative_lines(ledger: Ledger) -> Iterator[str]:
    """The lines of a posted summary for the messages that it covers, then the segments that end behind them."""
    posted = ledger.posted or PostedSummary(seq=0, until_seq=0)
    yield from posted_lines(posted.text)
    yield from (segment.narrative for segment in ledger.segments if segment.end_seq > posted.until_seq)


def _current(facts: Iterable[Fact]) -> dict[Identity, Fact]:
    current: dict[Identity, Fact] = {}
    for fact in facts:
        identity = _identity(fact)
        known = current.get(identity)
        if known is None or _precedence(fact) > _precedence(known):
            current[identity] = fact
    return current


def _identity(fact: Fact) -> Identity:
    return fact.anchor, fact.key, fact.said_by == "tool", fact.failed


def _precedence(fact: Fact) -> tuple[bool, bool, int, int, tuple[int, int], str, str, str]:
    """A total order among the facts of one identity."""
    return (
        fact.verified,
        _has_authority(fact),
        fact.source_seq,
        _ACT_RANK[fact.act],
        fact.span,
        fact.value,
        fact.category,
        fact.said_by,
    )


def _has_authority(fact: Fact) -> bool:
    """Whether it may replace what the user stated. A correction that the model made is one only if the user accepted it
    (`verification.proof`).
    """
    return fact.said_by in ("user", "system") or fact.act == "correction"


def position(fact: Fact) -> tuple[int, tuple[int, int], str, str, bool, str]:
    """The place of a fact in the order of the log."""
    return fact.source_seq, fact.span, fact.anchor, fact.key, fact.failed, fact.said_by


def _verified(facts: Iterable[Fact]) -> Iterable[Fact]:
    """The verified facts. Others stay in the ledger: they are not shown and replace nothing."""
    return (fact for fact in facts if fact.verified)


class _Bundle(NamedTuple):
    """The facts of an anchor with the same worth. `rank`: worth first, then worth per token; of equals the newer."""

    rank: tuple[float, float, int, str]
    tokens: int
    facts: tuple[Fact, ...]


def _bundles(facts: Iterable[Fact], count: Count) -> list[_Bundle]:
    found: dict[tuple[str, float], list[Fact]] = {}
    for fact in facts:
        found.setdefault((fact.anchor, fact.worth), []).append(fact)
    return [_bundle(worth, bundle, count) for (_, worth), bundle in found.items()]


def _bundle(worth: float, facts: Sequence[Fact], count: Count) -> _Bundle:
    tokens, first = _tokens(facts, count), facts[0]
    return _Bundle((worth, worth * len(facts) / tokens, first.source_seq, first.anchor), tokens, tuple(facts))


def _tokens(bundle: Sequence[Fact], count: Count) -> int:
    """About what the bundle costs as a line: the number in an anchor weighs as much as the labels of its values."""
    if bundle[0].salience:
        return count(_SEPARATOR.join(fact.value for fact in bundle)) + _MARK_TOKENS
    return count(_SEPARATOR.join([bundle[0].anchor, *(fact.value for fact in bundle)]))


def _within(ranked: Sequence[_Bundle], max_tokens: int) -> Sequence[_Bundle]:
    """The first bundles that take no more than `max_tokens` together."""
    taken = accumulate(bundle.tokens for bundle in ranked)
    return ranked[: sum(1 for _ in takewhile(lambda tokens: tokens <= max_tokens, taken))]


def _in_order(bundles: Iterable[_Bundle], facts: Iterable[Fact]) -> tuple[Fact, ...]:
    chosen = {fact for bundle in bundles for fact in bundle.facts}
    return tuple(fact for fact in facts if fact in chosen)


def _newest_sentences(line: Sequence[str], left: int, count: Count) -> tuple[list[str], int]:
    """The newest sentences that fit into `left` tokens, and what is left: negative once one did not fit."""
    kept: list[str] = []
    for sentence in reversed(line):
        left -= count(sentence) + 1
        if left < 0:
            break
        kept.append(sentence)
    return kept[::-1], left
