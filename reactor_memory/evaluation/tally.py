"""What the contexts of one budget add up to, over all sessions of a file."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from reactor_memory.core.context.context import Context
from reactor_memory.core.context.draft import Freshness
from reactor_memory.core.context.verification import verify
from reactor_memory.evaluation.attribution import keys_in
from reactor_memory.evaluation.legibility import is_junk, is_legible, memory_lines, told_share
from reactor_memory.evaluation.metrics import TextCount, percentile, ratio, role_order_breaks, shared_prefix
from reactor_memory.evaluation.pricing import Traffic
from reactor_memory.evaluation.probes import Probe, evidence_share
from reactor_memory.evaluation.scores import Scores, ScoreSheet, look_for
from reactor_memory.evaluation.units import units_of
from reactor_memory.features.facts.hierarchical import LEFT_OUT
from reactor_memory.models import Message, is_models

SHOWN_PROBLEMS = 5

BEHIND: frozenset[Freshness] = frozenset({"stale", "catching_up", "failed"})
"""What a memory is when its background work failed: elsewhere it is drained before a context is loaded."""


class Measures(Scores, frozen=True, kw_only=True):
    """The numbers of a tally. Shares are None when there was nothing to take a share of.

    The scores are those of all probes; `by_kind` has those of each kind. Of the lines of memory in which probes were
    looked for, `legible` is the share that reads as a statement, `junk` the share that says next to nothing. `fill` is
    the mean share of the budget that contexts made anew use while they leave something out. `told` is the mean share of
    the evidence of a context of which one unit holds most words. `prefix_reuse` is the mean over turns of the
    share of a context that the previous one began with too; `prefix_reuse_weighted` is the same share of all tokens
    together. `violations` are the broken rules, over all contexts, and `problems` the first of them. `behind` counts
    the contexts whose memory did not get ready, because a summarizer failed. Times are those of a load, in
    microseconds. `digest` is SHA-256 over the digests of all contexts in order. `traffic` is that of the turns: the
    contexts in which probes are looked for are the examination, not the work.
    """

    by_kind: dict[str, Scores] = {}
    legible: float | None = None
    junk: float | None = None
    fill: float | None = None
    told: float | None = None
    prefix_reuse: float | None
    prefix_reuse_weighted: float | None
    violations: int
    problems: tuple[str, ...]
    behind: int
    p50_us: int
    p99_us: int
    digest: str
    traffic: Traffic


class Tally:
    """Adds up contexts: those of the turns of a session in order, and those that probes are looked for in."""

    def __init__(self, count: TextCount) -> None:
        self._count = count
        self._before: Sequence[Message] | None = None
        self._reuses: list[tuple[int, int]] = []
        self._traffic = Traffic()
        self._times: list[int] = []
        self._digest = hashlib.sha256()
        self._violations = 0
        self._behind = 0
        self._problems: list[str] = []
        self._log: Sequence[Message] = ()
        self._sheet = ScoreSheet()
        self._kinds: defaultdict[str, ScoreSheet] = defaultdict(ScoreSheet)
        self._lines: Counter[str] = Counter()
        self._fills: list[float] = []
        self._told: list[float] = []

    def begin_session(self, log: Sequence[Message] = ()) -> None:
        """The next turn has no previous one. `log` has the messages of the session with their positions."""
        self._before = None
        self._log = log if any(message.parts for message in log) else ()

    def add_turn(self, context: Context, microseconds: int) -> None:
        """A context that a turn begins with."""
        self.add(context, microseconds)
        overhead = context.report.overhead

        def cost(message: Message) -> int:
            return self._count.of(message) + overhead

        whole, shared = sum(map(cost, context.messages)), 0
        if self._before is not None:
            shared = shared_prefix(self._before, context.messages, cost=cost, count_text=self._count.of_text)
            self._reuses.append((shared, whole))
        self._before = context.messages
        self._add_traffic(input_tokens=whole, cached_tokens=shared)

    def add_answer(self, messages: Sequence[Message]) -> None:
        """What the turn went on with: the assistant's part of it is output."""
        written = (message for message in messages if is_models(message))
        self._add_traffic(output_tokens=sum(map(self._count.of, written)))

    def add(self, context: Context, microseconds: int) -> None:
        """Any context: it is checked, timed and goes into the digest."""
        self._times.append(microseconds)
        self._digest.update(context.report.digest.encode())
        self._behind += context.report.freshness in BEHIND
        problems = [*verify(context, count=self._count.of, log=self._log), *role_order_breaks(context)]
        self._violations += len(problems)
        self._problems += problems[: SHOWN_PROBLEMS - len(self._problems)]

    def look_for(self, probes: Sequence[Probe], context: Context, messages: Sequence[Message] = ()) -> None:
        """What the context holds of the probes, whose evidence are positions in `messages`."""
        units = list(units_of(context))
        self._read(context)
        told = told_share([messages[place] for place in _evidence(probes) if place < len(messages)], units)
        self._told += [] if told is None else [told]
        for probe in probes:
            evidence = [messages[position] for position in probe.evidence if position < len(messages)]
            finding = look_for(probe, units, said=keys_in(evidence), evidence=evidence_share(evidence, context))
            self._sheet.add(finding)
            if probe.kind is not None:
                self._kinds[probe.kind].add(finding)

    def add_anew(self, context: Context) -> None:
        """A context for which nothing was laid out before. One that leaves nothing out has no fill."""
        if leaves_out(context):
            filler = sum(self._count.of_text(line.text) for line in memory_lines(context) if is_junk(line))
            self._fills.append((context.report.total_tokens - filler) / context.report.budget)

    def _read(self, context: Context) -> None:
        for line in memory_lines(context):
            self._lines.update(all=1, legible=is_legible(line), junk=is_junk(line))

    def _add_traffic(self, **tokens: int) -> None:
        total = {name: getattr(self._traffic, name) + more for name, more in tokens.items()}
        self._traffic = msgspec.structs.replace(self._traffic, **total)

    def measures(self) -> Measures:
        shares = [shared / whole for shared, whole in self._reuses if whole]
        return Measures(
            **msgspec.structs.asdict(self._sheet.scores()),
            legible=ratio(self._lines["legible"], self._lines["all"]),
            junk=ratio(self._lines["junk"], self._lines["all"]),
            fill=ratio(sum(self._fills), len(self._fills)),
            told=ratio(sum(self._told), len(self._told)),
            by_kind={kind: sheet.scores() for kind, sheet in sorted(self._kinds.items())},
            prefix_reuse=ratio(sum(shares), len(shares)),
            prefix_reuse_weighted=ratio(sum(s for s, _ in self._reuses), sum(w for _, w in self._reuses)),
            violations=self._violations,
            problems=tuple(self._problems),
            behind=self._behind,
            p50_us=percentile(self._times, 0.5),
            p99_us=percentile(self._times, 0.99),
            digest=self._digest.hexdigest(),
            traffic=self._traffic,
        )


def leaves_out(context: Context) -> bool:
    """Whether a context could tell more: lines of memory were left out, or messages that nothing stands for."""
    report = context.report
    return bool(report.dropped or report.unread) or any(LEFT_OUT in remark for remark in report.remarks)


def _evidence(probes: Iterable[Probe]) -> list[int]:
    return sorted({place for probe in probes for place in probe.evidence})
