"""`copy`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import anyio
import click

from reactor_memory.cli.invocation import Invocation, as_url
from reactor_memory.cli.log_lines import log_to_stderr
from reactor_memory.cli.session_names import full_id, newest_id

if TYPE_CHECKING:
    from reactor_memory.features.transfer.copy import Copied, SessionCopier
    from reactor_memory.wiring.container import Container

ONLY_THE_STORE: dict[str, Any] = {
    "summary": {"enabled": False},
    "history": {"strategy": "auto"},
    "tokens": {"counter": "estimate"},
    "background": {"enabled": False},
}
"""No other part is needed, so none is made ready."""


@click.command()
@click.argument("source", metavar="FROM_URL", callback=as_url)
@click.argument("target", metavar="TO_URL", callback=as_url)
@click.option("--user", "owner_id", metavar="ID", help="Only the sessions that this user owns.")
@click.option(
    "--session",
    "session_id",
    metavar="ID",
    help="Only this session, with the forks of its group.",
)
@click.option("--last", is_flag=True, help="Only the session with the latest activity, with the forks of its group.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@click.option("-v", "--verbose", is_flag=True, help="Log to stderr.")
def copy(
    source: str,
    target: str,
    owner_id: str | None,
    session_id: str | None,
    last: bool,
    as_json: bool,
    verbose: bool,
) -> None:
    """Copy sessions from one database to another: sqlite:///file.db, postgresql://host/name, or a file name.

    All that is stored of them arrives as it was: forks, owners, titles, pins, archived and withdrawn messages,
    positions, times, counts, and the keys that make a save repeatable. Of deleted sessions only the ids arrive. Facts
    and summaries are made again in the target, by `reactor-memory worker` or the process that loads the session.

    Nothing is written if the target holds another session under an id of the source. A copy that was interrupted
    continues where it stopped when it is repeated, and a complete one changes nothing. Nobody should write to the
    sessions meanwhile.
    """
    if owner_id is not None and session_id is not None:
        raise click.UsageError("give either --user or --session, not both")
    if last and (owner_id is not None or session_id is not None):
        raise click.UsageError("give --last without --user and --session")
    if source == target:
        raise click.UsageError("FROM_URL and TO_URL are the same database")
    log_to_stderr(verbose=verbose)
    copied = anyio.run(_copy, source, target, owner_id, session_id, last)
    from reactor_memory.cli import tables

    Invocation(store=None, user_id=owner_id, as_json=as_json).show(copied, lambda: tables.copied(copied))


async def _copy(source: str, target: str, owner_id: str | None, session_id: str | None, last: bool) -> Copied:
    from reactor_memory.features.transfer.copy import SessionCopier
    from reactor_memory.settings.settings import Settings
    from reactor_memory.wiring.own_parts import system_clock

    clock = system_clock(Settings())
    async with _opened(source, creates=False) as sessions, _opened(target, creates=True) as destination:
        databases = sessions.needed_database(), destination.needed_database()
        copier = SessionCopier(*databases, clock=clock, owner_id=owner_id)
        if last:
            return await _copy_group(copier, await newest_id(sessions.overview()))
        if session_id is None:
            return await _copy_all(copier)
        return await _copy_group(copier, await full_id(sessions.overview(), session_id, user_id=owner_id))


async def _copy_group(copier: SessionCopier, session_id: str) -> Copied:
    from reactor_memory.core.log.branches import group_of

    group_id = group_of(session_id)
    found = await copier.compare_group(group_id)
    with _progress(found.messages) as advance:
        return await copier.copy_group(group_id, advance)


async def _copy_all(copier: SessionCopier) -> Copied:
    found = await copier.compare()
    with _progress(found.messages) as advance:
        return await copier.copy(advance)


@contextmanager
def _progress(messages: int) -> Generator[Callable[[int], None]]:
    from reactor_memory.cli.terminal import progress

    with progress() as bar:
        task = bar.add_task("messages", total=messages)
        yield lambda done: bar.advance(task, done)


@asynccontextmanager
async def _opened(url: str, *, creates: bool) -> AsyncGenerator[Container]:
    invocation = Invocation(store=url, user_id=None, as_json=False, remedy="FROM_URL names one that exists")
    async with invocation.container(invocation.settings(**ONLY_THE_STORE), creates=creates) as container:
        yield container
