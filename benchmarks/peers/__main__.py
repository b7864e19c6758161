"""``python -m benchmarks.peers``: every family in its environment, one table."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter

import click
import msgspec

from benchmarks.peers import databases
from benchmarks.peers.contender import Store
from benchmarks.peers.families import FAMILIES
from benchmarks.peers.results import Report, joined
from benchmarks.peers.table import STORES, lines, surroundings

ROOT = Path(__file__).parents[2]

_FOLDER = click.Path(file_okay=False, exists=True, resolve_path=True, path_type=Path)


@click.command()
@click.option("--environments", type=_FOLDER, default=ROOT / "build" / "peers", help="Made by `make bench-peers`.")
@click.option("--only", "families", type=click.Choice(list(FAMILIES)), multiple=True, help="These families alone.")
@click.option("--store", "stores", type=click.Choice(list(STORES)), multiple=True, help="These stores alone.")
@click.option("--postgres-url", default="", help="A server that may be filled; else one is started from a wheel.")
@click.option("--quick", is_flag=True, help="Two sizes and few calls: whether it works, not how fast.")
@click.option("--json", "out", type=click.Path(path_type=Path), help="Write all numbers to this file, too.")
def main(
    environments: Path,
    families: Sequence[str],
    stores: Sequence[Store],
    postgres_url: str,
    out: Path | None,
    *,
    quick: bool,
) -> None:
    """Compare the work of a turn with other libraries, interleaved call by call."""
    reports, failed = list[Report](), list[str]()
    for store in stores or list(STORES):
        measured = [family for family in families or FAMILIES if store in FAMILIES[family].stores]
        for family, report in _reports(environments, measured, store, postgres_url, quick=quick):
            reports.append(report) if report else failed.append(f"{family} ({STORES[store]})")
    report = joined(reports)
    for line in lines(report.rows):
        click.echo(line)
    click.echo(f"\n{surroundings(report)}")
    if out is not None:
        out.write_bytes(msgspec.json.format(msgspec.json.encode(report)))
    if failed:
        raise click.ClickException(f"not measured: {', '.join(failed)}")


def _reports(
    environments: Path, families: Sequence[str], store: Store, postgres_url: str, *, quick: bool
) -> Iterator[tuple[str, Report | None]]:
    if store == "sqlite":
        for family in families:
            yield family, _report(environments, family, store, quick=quick)
        return
    with databases.server(postgres_url) as address:
        for family in families:
            yield family, _report(environments, family, store, "--server", address, quick=quick)


def _report(environments: Path, family: str, store: Store, *options: str, quick: bool) -> Report | None:
    """None if the process failed; it has said why."""
    begun = perf_counter()
    click.echo(f"{family}, {STORES[store]} ...", nl=False, err=True)
    # Not in the folder for temporary files, which may be in memory; and no settings of the shell or of this checkout.
    with tempfile.TemporaryDirectory(dir=environments, prefix="databases-") as folder:
        command = [environments / family / "bin" / "python", "-m", "benchmarks.peers.inside", family, store]
        command += ["--folder", folder, *options, *(["--quick"] if quick else [])]
        done = subprocess.run(command, cwd=folder, env={"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, check=False)
    click.echo(f" {perf_counter() - begun:.0f} s", err=True)
    return msgspec.json.decode(done.stdout, type=Report) if done.returncode == 0 else None


if __name__ == "__main__":
    sys.exit(main())
