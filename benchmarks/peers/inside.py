"""``python -m benchmarks.peers.inside``: one measurement, in the environment of its family."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import click
import msgspec

from benchmarks.peers import databases
from benchmarks.peers.adapters.ours import ReactorMemory
from benchmarks.peers.contender import MakeContender, Store
from benchmarks.peers.families import FAMILIES, SHARED_PACKAGES
from benchmarks.peers.measuring import Measurement
from benchmarks.peers.plan import FULL, QUICK
from benchmarks.peers.results import Report, Row


@click.command()
@click.argument("family", type=click.Choice(list(FAMILIES)))
@click.argument("store", type=click.Choice(["sqlite", "postgres"]))
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="An empty one, for SQLite files.")
@click.option("--server", default="", help="The PostgreSQL server; databases are made in it and dropped.")
@click.option("--quick", is_flag=True)
def main(family: str, store: Store, folder: Path, server: str, *, quick: bool) -> None:
    """Write a report to standard output, as JSON."""
    report = asyncio.run(_report(family, store, folder, server, quick=quick))
    sys.stdout.buffer.write(msgspec.json.encode(report))


async def _report(family: str, store: Store, folder: Path, server: str, *, quick: bool) -> Report:
    module = import_module(f"benchmarks.peers.adapters.{FAMILIES[family].module}")
    makers: list[MakeContender] = [partial(ReactorMemory, store=store), *module.contenders(store)]
    measurement = Measurement(store, QUICK if quick else FULL)
    rows = await _measured(measurement, makers, [f"peers_{number}" for number in range(len(makers))], folder, server)
    packages = (*FAMILIES[family].packages, *SHARED_PACKAGES)
    return Report(
        rows=tuple(rows),
        profiles=measurement.profiles,
        versions={name: version(name) for name in packages},
        python=platform.python_version(),
        cores=os.cpu_count() or 0,
        postgres=await databases.version(server) if server else "",
    )


async def _measured(
    measurement: Measurement, makers: list[MakeContender], names: list[str], folder: Path, server: str
) -> list[Row]:
    if not server:
        return await measurement.run(zip(makers, [str(folder / f"{name}.db") for name in names], strict=True))
    async with databases.databases(server, names) as places:
        return await measurement.run(zip(makers, places, strict=True))


if __name__ == "__main__":
    main()
