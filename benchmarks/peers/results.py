"""What a run leaves behind."""

from __future__ import annotations

import msgspec

from benchmarks.peers.contender import Store
from benchmarks.peers.plan import Work


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One contender at one work, beside ours in the same rounds.

    `ratio` is how many times as long as ours it takes; of ``concurrent_32``, how many times as many turns a second
    ours does.
    """

    work: Work
    store: Store
    size: int
    contender: str
    calls: int
    median_us: float
    p99_us: float
    ours_median_us: float
    ratio: float
    turns_per_second: float | None = None
    ours_turns_per_second: float | None = None


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """How a contender was used."""

    name: str
    store: Store
    setting: str
    durability: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a family over a store, or of all of them."""

    rows: tuple[Row, ...]
    profiles: tuple[Profile, ...] = ()
    versions: dict[str, str] = {}
    python: str = ""
    cores: int = 0
    postgres: str = ""


def joined(reports: list[Report]) -> Report:
    """All of them in one. Ours appears in every one of them."""
    profiles = {(profile.name, profile.store): profile for report in reports for profile in report.profiles}
    return Report(
        rows=tuple(row for report in reports for row in report.rows),
        profiles=tuple(profiles.values()),
        versions={name: number for report in reports for name, number in report.versions.items()},
        python=next((report.python for report in reports), ""),
        cores=next((report.cores for report in reports), 0),
        postgres=next((report.postgres for report in reports if report.postgres), ""),
    )
