"""`demo`: the main job on a real conversation, in a minute and without a key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reactor_memory.cli.budgets import DEFAULT_BUDGET
from reactor_memory.cli.characters import echo
from reactor_memory.cli.invocation import Invocation, named_or_temporary_store, with_common_options
from reactor_memory.cli.samples import sample_or
from reactor_memory.errors import ImportFormatError

if TYPE_CHECKING:
    from reactor_memory.evaluation.transcripts import Line


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    default=DEFAULT_BUDGET,
    show_default=True,
    metavar="TOKENS",
    help="How large the context may be.",
)
@click.option("--session", "wanted", metavar="ID", help="Which session of the file; the first one if not given.")
@with_common_options
async def demo(invocation: Invocation, file: Path | None, budget: int, wanted: str | None) -> int:
    """Show a long conversation in a small context, next to what take-last would have lost.

    Saves a session, lets the offline summarizer catch up in the background, and prints the exact context that the
    model would get, before each fact the messages that it was made from. FILE is JSONL as for `reactor-memory import`;
    without it, a session of coffee orders that comes with the package. The database is a temporary one unless --store
    names another.

    Exit code 1 if a detail that is called rescued was in take-last's context after all.
    """
    from reactor_memory.cli import progress
    from reactor_memory.cli.demo_view import demo_value, demo_view
    from reactor_memory.cli.replay import replay
    from reactor_memory.text.printable import printable

    with sample_or(file) as path, named_or_temporary_store(invocation) as with_store:
        shown = await replay(with_store, _session_of(path, wanted), budget)
    own, shared = _own_arguments(file, wanted), _shared_options(budget, invocation.user_id)
    commands = progress.commands(shown.ours.report, store=invocation.store, shared=shared, own=own)
    invocation.show({**demo_value(shown), "follow": commands}, lambda: demo_view(shown))
    if not invocation.as_json:
        echo("\n".join(f"  {printable(command)}" for command in commands))
    if shown.refuted:
        echo(f"error: {len(shown.refuted)} details called rescued are in take-last's context", err=True)
    return 1 if shown.refuted else 0


def _own_arguments(file: Path | None, wanted: str | None) -> list[str]:
    return [*([str(file)] if file else []), *(["--session", wanted] if wanted else [])]


def _shared_options(budget: int, user_id: str | None) -> list[str]:
    """What `context` has to be given, too, to show the same."""
    return [
        *(["--budget", str(budget)] if budget != DEFAULT_BUDGET else []),
        *(["--user", user_id] if user_id else []),
    ]


def _session_of(path: Path, wanted: str | None) -> Line:
    from reactor_memory.evaluation.transcripts import read_lines

    for line in read_lines(path):
        if wanted in (None, line.session_id):
            return line
    raise ImportFormatError(str(path), "holds no session" if wanted is None else f"holds no session {wanted!r}")
