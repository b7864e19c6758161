"""``python -m benchmarks.service``: appends a second, and how long contexts and listings take."""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Callable, Sequence

import click

from benchmarks.service.load import Measured, measure
from benchmarks.service.running import (
    appends,
    context,
    cpu_seconds,
    database,
    long_conversation,
    messages,
    new_conversation,
    service,
)

READERS = 8

STORES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
APPENDS, CONTEXTS, LISTS = "append a message", "context of 1,000 messages", "list 20 messages"
AIMS: dict[str, tuple[str, Callable[[Measured], bool]]] = {
    APPENDS: ("500 a second", lambda found: found.per_second >= 500),
    CONTEXTS: ("p99 40 ms", lambda found: found.milliseconds(0.99) <= 40),
}


@click.command()
@click.option("--store", "stores", type=click.Choice(list(STORES)), multiple=True, help="These stores alone.")
@click.option("--postgres-url", default="", help="A server that may be filled; else one is started from a wheel.")
@click.option("--seconds", default=8.0, show_default=True, help="Of each measurement.")
@click.option("--clients", default=32, show_default=True, help="Connections that append at once.")
def main(stores: Sequence[str], postgres_url: str, seconds: float, clients: int) -> None:
    """Measure one process of the service, with its clients on the same machine."""
    click.echo("| work | store | clients | a second | p50 ms | p99 ms | CPU ms of the service | failed | aim | |")
    click.echo("|---|---|--:|--:|--:|--:|--:|--:|---|---|")
    for store in stores or list(STORES):
        asyncio.run(_measure_store(store, postgres_url, seconds, clients))
    click.echo(f"\nPython {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores.")


async def _measure_store(store: str, postgres_url: str, seconds: float, clients: int) -> None:
    async with database(store, postgres_url) as url, service(url) as running:
        conversation = await long_conversation(running)
        reading = [lambda: context(running, conversation)] * READERS
        listing = [lambda: messages(running, conversation)] * clients
        appending = [appends(running, await new_conversation(running)) for _ in range(clients)]
        for work, asked in ((CONTEXTS, reading), (LISTS, listing), (APPENDS, appending)):
            await measure(running.port, asked, seconds / 8)  # warms up
            before = cpu_seconds(running.process)
            found = await measure(running.port, asked, seconds)
            click.echo(line(work, STORES[store], len(asked), found, cpu_seconds(running.process) - before))


def line(work: str, store: str, clients: int, found: Measured, cpu: float) -> str:
    aim, is_met = AIMS.get(work, ("", None))
    verdict = "" if is_met is None else "met" if is_met(found) else "missed"
    numbers = (
        f"{found.per_second:,.0f} | {found.milliseconds(0.5):.1f} | {found.milliseconds(0.99):.1f} | "
        f"{1000 * cpu / len(found.latencies):.2f}"
    )
    return f"| {work} | {store} | {clients} | {numbers} | {found.failed} | {aim} | {verdict} |"


if __name__ == "__main__":
    main()
