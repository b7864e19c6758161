"""`bench`: what the library costs beside the bare driver, measured call by call in one process."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click

from reactor_memory.cli.characters import echo
from reactor_memory.cli.options import list_option
from reactor_memory.cli.output import STDOUT, Output, file_option, force_option
from reactor_memory.text.documents import page

if TYPE_CHECKING:
    from reactor_memory.evaluation.bench.results import Store

STORES = ("sqlite", "postgres", "memory")
WORKS = ("append_turn", "load_last_20", "load_hierarchical", "load_200_trim", "cold_load", "concurrent_32")
SIZES = ("100", "1000", "10000", "100000")
SMALLEST = 50
"""Shorter sessions have no memory to speak of."""

REFERENCES = ("reference_sqlite", "reference_postgres", "reference_commits")


def _in_event_loop(body: Callable[..., Any]) -> Callable[..., None]:
    @wraps(body)
    def run(**arguments: Any) -> None:
        anyio.run(partial(body, **arguments))

    return run


def _show_reference(context: click.Context, option: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    folder = Path(__file__).parents[1] / "evaluation" / "bench"
    for name in REFERENCES:
        text = (folder / name).with_suffix(".py").read_text(encoding="utf-8")
        echo(f"# reactor_memory/evaluation/bench/{name}.py\n{text}")
    context.exit()


@click.command(epilog=f"What each row means: {page('performance')}")
@click.option("--store", type=click.Choice(STORES), default="sqlite", show_default=True, help="What to measure.")
@list_option("--sizes", click.IntRange(min=SMALLEST), SIZES, "Messages of the sessions.")
@list_option("--works", click.Choice(WORKS), WORKS, "What to do with them.")
@click.option("--calls", type=click.IntRange(min=1), default=300, show_default=True, help="Of each work and length.")
@click.option(
    "--seconds", type=click.FloatRange(min=0.01), default=1.0, show_default=True, help="A slice of concurrent_32."
)
@click.option("--slices", type=click.IntRange(min=1), default=5, show_default=True, help="Slices of concurrent_32.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another number: other numbers in the sessions.")
@click.option(
    "--file",
    type=click.Path(path_type=Path),
    help="Text to make the sessions of, as for `reactor-memory import`; else what comes with the package.",
)
@click.option("--url", metavar="URL", help="A PostgreSQL server; a database is made there, and dropped.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False, writable=True),
    help="Where databases are made: on a disk, else no commit waits for one (default: the temporary folder).",
)
@file_option("--json", "results", may_print=True, text="Write the results as JSON; `-`: print them, and no table.")
@file_option("--html", "page", text="Write the results as a page with curves.")
@force_option()
@click.option(
    "--show-reference",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_reference,
    help="Print the bare code that all ratios refer to.",
)
@click.option("-v", "--verbose", is_flag=True, help="Log to stderr.")
@_in_event_loop
async def bench(
    store: Store,
    sizes: tuple[int, ...],
    works: tuple[Any, ...],
    calls: int,
    seconds: float,
    slices: int,
    seed: int,
    file: Path | None,
    url: str | None,
    folder: Path | None,
    results: Output | None,
    page: Output | None,
    verbose: bool,
) -> None:
    """Measure the library beside the bare driver of its database.

    Sessions are made of real text in a database that is gone afterwards. The library and the reference, which reads and
    writes the same rows and does nothing else, take turns call by call in this process. Only ratios
    within a run can be compared.
    """
    from reactor_memory.cli.bench_page import bench_page
    from reactor_memory.cli.bench_view import bench_view, results_json
    from reactor_memory.cli.log_lines import log_to_stderr
    from reactor_memory.cli.terminal import print_view, progress
    from reactor_memory.evaluation.bench.run import Plan, run
    from reactor_memory.settings.settings import Settings

    log_to_stderr(verbose=verbose)
    if url is not None and store != "postgres":
        raise click.BadOptionUsage("url", "--url goes with --store postgres")
    plan = Plan(
        store=store,
        works=works,
        sizes=tuple(sorted(sizes)),
        calls=calls,
        seconds=seconds,
        slices=slices,
        seed=seed,
        texts=_texts(file),
        url=url,
        folder=folder,
    )
    with progress() as bar:
        found = await run(plan, Settings, lambda title, total: partial(bar.advance, bar.add_task(title, total=total)))
    if results is None or results.name != STDOUT:
        print_view(bench_view(found))
    if results is not None:
        results.write(results_json(found))
    if page is not None:
        page.write(bench_page(found).encode())


def _texts(file: Path | None) -> tuple[Any, ...]:
    """The messages of all sessions of the file, one behind the other."""
    from reactor_memory.cli.samples import sample_or
    from reactor_memory.errors import ImportFormatError
    from reactor_memory.evaluation.transcripts import read_lines

    with sample_or(file) as path:
        texts = tuple(message for line in read_lines(path) for message in line.messages)
    if not texts:
        raise ImportFormatError(str(file), "holds no message")
    return texts
