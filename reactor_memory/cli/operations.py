"""`migrate`, `worker` and `doctor`."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio
import click

from reactor_memory.cli.characters import echo
from reactor_memory.cli.invocation import Invocation, with_common_options
from reactor_memory.cli.log_lines import log_to_stderr

if TYPE_CHECKING:
    from reactor_memory.core.log.placement import Placed
    from reactor_memory.database.database import Database


@click.command()
@click.option("--recount", "recounting", is_flag=True, help="Count messages again that another tokenizer counted.")
@click.option("--distribute", is_flag=True, help="Distribute the tables over the shards of a Citus cluster.")
@click.option("--supabase", is_flag=True, help="Print the SQL of the tables of a chat on Supabase; change nothing.")
@click.option("--apply", is_flag=True, help="With --supabase: run that SQL.")
@with_common_options
async def migrate(invocation: Invocation, recounting: bool, distribute: bool, supabase: bool, apply: bool) -> None:
    """Bring the schema of the database up to date.

    SQLite files are brought up to date whenever they are opened; PostgreSQL only by this command, or by
    store.auto_migrate.

    After a change of tokens.encoding, messages of the old one are counted again at every load; --recount stores the
    new counts.

    --distribute is for PostgreSQL with the extension Citus: a session with its forks goes to one shard, and so does
    what belongs to a user. Stop what writes to the database before; a second call goes on where one was interrupted.

    --supabase is for a database of Supabase, empty or used: it makes user_agent_active_sessions,
    agent_long_term_memory and chat_message_history over the tables of the store, policies and grants.
    """
    if supabase and not apply:
        echo(await _supabase_script(invocation), nl=False)
        return
    if apply and not supabase:
        raise click.UsageError("--apply belongs to --supabase")
    from reactor_memory.cli import tables
    from reactor_memory.features.entries.operations import recount as recount_entries
    from reactor_memory.features.recounting.recounting import recount

    settings = invocation.settings(store={"auto_migrate": True})
    if supabase:
        _require_postgres(settings.store.url)
    async with invocation.container(settings, creates=True) as container:
        if supabase:
            from reactor_memory.database.supabase import make_supabase_tables

            await container.database().write(make_supabase_tables)
        counter = container.message_counter()
        recounted = 0
        if recounting:
            also = [recount_entries]
            recounted = await recount(container.database(), counter.name, counter.counted, also=also)
        placed = await _distributed(container.database()) if distribute else ()
        schema = dict((await container.message_store().check()).details).get("schema", "")
    shown = {"schema": schema, "recounted": recounted, **({"distributed": dict(placed)} if distribute else {})}
    invocation.show(shown, lambda: tables.migrated(schema, recounted, placed if distribute else None))


async def _distributed(database: Database) -> tuple[Placed, ...]:
    from reactor_memory.core.log.placement import distribute

    return await distribute(database)


async def _supabase_script(invocation: Invocation) -> str:
    """With the migrations that the database needs first."""
    from reactor_memory.database.schema import BehindError, newest_revision
    from reactor_memory.database.supabase import whole_script

    settings = invocation.settings(store={"auto_migrate": False})
    _require_postgres(settings.store.url)
    revision: str | None = newest_revision()
    try:
        async with invocation.container(settings):
            pass
    except BehindError as error:
        revision = error.revision
    return whole_script(revision)


def _require_postgres(url: str) -> None:
    if not url.startswith("postgres"):
        raise click.UsageError("--supabase needs a database of PostgreSQL: name it by --store or store.url")


@click.command()
@click.option("--once", is_flag=True, help="Do what is due and end.")
@with_common_options
async def worker(invocation: Invocation, once: bool) -> None:
    """Do the background work of a database: summaries that are due, and removing what was deleted.

    What was deleted is removed after store.delete_grace_days, and if that is not set after the 30 days for which
    `reactor-memory serve` can restore it. Summaries and the index for search need summary.enabled and search.enabled.

    Runs until SIGTERM or Ctrl-C; work that has begun is finished within background.close_grace_seconds. Any number
    of workers may run on one PostgreSQL database. Logs to stderr.
    """
    from reactor_memory.cli.defaults import WORKER, log_differences, sections, unless_set

    log_to_stderr(verbose=True)
    settings = invocation.settings(**sections(unless_set(invocation, WORKER) | {"background.enabled": True}))
    async with invocation.container(settings, creates=True) as container:
        log_differences(invocation, WORKER)
        if once:
            await _until_nothing(container.background_work().run_once)
        else:
            await _until_stopped()


async def _until_nothing(run_once: Callable[[], Awaitable[int]]) -> None:
    while await run_once():
        pass


async def _until_stopped() -> None:
    """An open container works by itself."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        echo("working; stop with Ctrl-C", err=True)
        async for _ in signals:
            break


@click.command()
@click.option("--settings", "everything", is_flag=True, help="Also every setting in force, and the parts not used.")
@click.option("--deep", is_flag=True, help="Also ask each part once, such as the model that summarizes; it may cost.")
@with_common_options
async def doctor(invocation: Invocation, everything: bool, deep: bool) -> int:
    """Check settings, plug-ins, tokenizer and database.

    Prints the verdict first, then the state of the database, which parts were selected and why, and background work
    that fails; with --settings, and with --json, every setting with its origin (secrets masked), too. Exit code 1 if
    there is a problem.
    """
    from reactor_memory.cli.doctor import examine
    from reactor_memory.cli.doctor_view import examination_view

    found = await examine(invocation, deep=deep)
    invocation.show(found, lambda: examination_view(found, everything=everything))
    return 1 if found.problems else 0
