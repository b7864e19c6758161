"""What a set of probes adds up to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from reactor_memory.evaluation.attribution import Keys, Unit, is_attributable
from reactor_memory.evaluation.metrics import ratio
from reactor_memory.evaluation.probes import Probe, find, shows_stale
from reactor_memory.models import Value


class Scores(Value, frozen=True, kw_only=True):
    """`attributable` is the share of the `probes` that were found where a reader can tell what the value is of, and
    `survival` the share that was found at all. Of the `corrected` ones, `stale` are shown as they were before.
    `evidence_recall` is the mean share of a probe's evidence that stands in its context verbatim; `any_gold` and
    `all_gold` are the shares of probes of which some of it, and all of it, does; None without evidence.
    """

    probes: int = 0
    attributable: float | None = None
    survival: float | None = None
    corrected: int = 0
    stale: int = 0
    evidence_recall: float | None = None
    any_gold: float | None = None
    all_gold: float | None = None


class Finding(NamedTuple):
    """What a context has of one probe. `evidence` is the share of its evidence that is shown, None: it has none."""

    probe: Probe
    found: bool
    attributable: bool
    stale: bool
    evidence: float | None


def look_for(
    probe: Probe, units: Sequence[Unit], *, said: Keys | None = None, evidence: float | None = None
) -> Finding:
    """What the units of a context say about a probe. `said` are the keys of the messages that it is from."""
    texts = [unit.text for unit in units]
    return Finding(
        probe=probe,
        found=find(probe, texts) is not None,
        attributable=is_attributable(probe, units, said),
        stale=shows_stale(probe, texts),
        evidence=evidence,
    )


class ScoreSheet:
    """Adds up findings."""

    def __init__(self) -> None:
        self._probes = 0
        self._found = 0
        self._attributable = 0
        self._corrected = 0
        self._stale = 0
        self._evidence: list[float] = []

    def add(self, finding: Finding) -> None:
        self._probes += 1
        self._found += finding.found
        self._attributable += finding.attributable
        self._corrected += bool(finding.probe.stale)
        self._stale += finding.stale
        if finding.evidence is not None:
            self._evidence.append(finding.evidence)

    def scores(self) -> Scores:
        return Scores(
            probes=self._probes,
            attributable=ratio(self._attributable, self._probes),
            survival=ratio(self._found, self._probes),
            corrected=self._corrected,
            stale=self._stale,
            evidence_recall=ratio(sum(self._evidence), len(self._evidence)),
            any_gold=ratio(sum(share > 0 for share in self._evidence), len(self._evidence)),
            all_gold=ratio(sum(share == 1 for share in self._evidence), len(self._evidence)),
        )
