"""`import` and `export`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, tzinfo
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reactor_memory.cli.invocation import Invocation, with_common_options
from reactor_memory.cli.output import STDOUT, Output, file_option, force_option
from reactor_memory.cli.session_names import SessionCommand
from reactor_memory.errors import ImportFormatError, SummarizationError

if TYPE_CHECKING:
    from reactor_memory.imports.importer import FileSize, Imported, Importer, Origin
    from reactor_memory.memory import Memory
    from reactor_memory.settings.settings import Settings

OFFLINE = "extractive"
"""The summarizer that costs nothing and asks nobody."""

POSTGRES = ("postgresql:", "postgres:", "postgresql+", "postgres+")


def _time_zone(context: click.Context, option: click.Parameter, name: str | None) -> tzinfo | None:
    from zoneinfo import ZoneInfo

    try:
        return None if name is None else ZoneInfo(name)
    except (OSError, LookupError, ValueError):
        raise click.BadParameter("must be the name of a time zone, such as Europe/Berlin", context, option) from None


@click.command("import")
@click.argument("sources", metavar="FILE...", nargs=-1, required=True)
@click.option("--session-prefix", default="", metavar="TEXT", help="Put TEXT before every session id.")
@click.option("--session", "session_id", metavar="ID", help="The id of the only session of the only FILE.")
@click.option("--strict", is_flag=True, help="Stop at a row that cannot be read, and store nothing.")
@click.option(
    "--memory/--no-memory",
    "makes_memory",
    default=None,
    help="Summarize what was imported, or leave that to `worker`. [default: yes, unless a model is paid for it]",
)
@click.option("--table", metavar="NAME", help="With postgresql://: the table, if it is not chat_message_history.")
@click.option(
    "--timezone",
    metavar="NAME",
    callback=_time_zone,
    help="With postgresql://: the zone of times that have none, such as Europe/Berlin. [default: UTC]",
)
@with_common_options
async def import_(
    invocation: Invocation,
    sources: tuple[str, ...],
    session_prefix: str,
    session_id: str | None,
    strict: bool,
    makes_memory: bool | None,
    table: str | None,
    timezone: tzinfo | None,
) -> None:
    """Store the conversations of files; of stdin, if FILE is -.

    \b
    FILE is, as it is or packed with gzip:
      exports of ChatGPT and Claude, the zip file or conversations.json
      messages or requests of OpenAI, Anthropic, Gemini, LangChain: JSON or JSONL
      SQLite files of SQLiteSession and AdvancedSQLiteSession (openai-agents),
        SQLChatMessageHistory (LangChain), SqliteSaver (LangGraph)
      postgresql://host/name with a table of langchain-postgres
      our own JSONL, a session a line: {"id": ..., "messages": [{"role", "content", "at", ...}]}

    What has no id is named after its file. All files are checked before the first message is stored. A row of a
    database that cannot be read is left out and named. An import that was interrupted continues where it stopped when
    it is repeated, and a complete one changes nothing.

    Times and titles are kept. A message without a time gets none.
    """
    from reactor_memory.cli import tables

    settings = invocation.settings(background={"enabled": False})
    tables_of_others = [source for source in sources if source.startswith(POSTGRES)]
    if tables_of_others:
        if len(sources) > 1 or session_prefix or session_id:
            raise click.UsageError("a postgresql:// URL is imported alone, without --session and --session-prefix")
        imported, grown = await _import_table(
            invocation, settings, tables_of_others[0], table, timezone=timezone or UTC, strict=strict
        )
    else:
        if table or timezone:
            raise click.UsageError(f"{'--table' if table else '--timezone'} goes with a postgresql:// URL")
        if session_id is not None and (len(sources) > 1 or session_prefix):
            raise click.UsageError("--session names the session of one FILE, without --session-prefix")
        files = [Path(source) for source in sources]
        imported, grown = await _import_all(invocation, settings, files, session_prefix, session_id, strict)
    remark = await _make_memory(invocation, settings, grown, makes_memory)
    invocation.show(imported, lambda: tables.imported(imported, remark))


async def _import_all(
    invocation: Invocation, settings: Settings, files: Sequence[Path], prefix: str, only: str | None, strict: bool
) -> tuple[list[Imported], Sequence[str]]:
    """What became of the files, and the ids of the sessions that have messages more."""
    from reactor_memory.imports.conversation import stop
    from reactor_memory.imports.importer import BATCH, Importer, Naming, check_files, files_of, say_no_more
    from reactor_memory.wiring.options import manager_options

    limits = manager_options(settings).limits
    naming = Naming(prefix=prefix, only=only)
    left_out: list[ImportFormatError] = []
    with files_of(files) as given:
        sizes = check_files(given, limits, naming=naming, leave_out=stop if strict else left_out.append)
        async with invocation.memory(settings, creates=True) as memory:
            importer = Importer(
                memory.manager,
                user_id=invocation.user_id,
                naming=naming,
                batch=min(BATCH, limits.max_batch_messages),
                max_bytes=limits.max_session_bytes,
                describe=say_no_more if memory.container.in_database() == "off" else partial(_describe, memory),
            )
            imported = await _import_files(importer, sizes, [str(error) for error in left_out])
    return imported, list(importer.grown)


async def _describe(memory: Memory, session_id: str, origin: Origin) -> None:
    from reactor_memory.features.transfer.operations import describe_imported

    await memory.container.database().write(describe_imported, session_id, origin.title, origin.began_at)


def _inside(file: Path) -> tuple[str, ...]:
    """How the places in a file begin: a row of a table, a conversation of a list, or one of a file in an archive."""
    return f"{file} ", f"{file}[", f"{file}/"


async def _import_files(importer: Importer, sizes: Sequence[FileSize], left_out: Sequence[str]) -> list[Imported]:
    """Nothing is stored before every file was compared with the database."""
    from reactor_memory.cli.terminal import progress
    from reactor_memory.imports.importer import Imported, shown_name

    for size in sizes:
        await importer.compare(size.file)
    imported: list[Imported] = []
    with progress() as bar:
        for size in sizes:
            task = bar.add_task(shown_name(size.file), total=size.messages)
            stored = await importer.store(size.file, partial(bar.advance, task))
            imported.append(
                Imported(
                    file=shown_name(size.file),
                    sessions=size.sessions,
                    messages=size.messages,
                    stored=stored,
                    left_out=tuple(each for each in left_out if each.startswith(_inside(size.file))),
                )
            )
    return imported


async def _import_table(
    invocation: Invocation, settings: Settings, url: str, table: str | None, *, timezone: tzinfo, strict: bool
) -> tuple[list[Imported], Sequence[str]]:
    """The sessions of a table of langchain-postgres."""
    from reactor_memory.adapters.langchain_postgres import TABLE, import_chat_history
    from reactor_memory.cli.terminal import progress
    from reactor_memory.imports.importer import Imported

    name, left_out = table or TABLE, list[str]()
    sessions, messages, grown = 0, 0, dict[str, int]()
    async with invocation.memory(settings, creates=True) as memory:
        with progress() as bar:
            task = bar.add_task(name, total=None)
            async for each in import_chat_history(
                memory, url, table=name, user_of=lambda _: invocation.user_id, timezone=timezone, strict=strict
            ):
                sessions += 1
                messages += each.messages
                grown |= {each.session_id: each.stored} if each.stored else {}
                left_out += [f"{name} {each.session_id} {row}" for row in each.left_out]
                bar.advance(task, each.messages)
    stored = sum(grown.values())
    done = Imported(file=name, sessions=sessions, messages=messages, stored=stored, left_out=tuple(left_out))
    return [done], list(grown)


async def _make_memory(
    invocation: Invocation, settings: Settings, session_ids: Sequence[str], is_wanted: bool | None
) -> str:
    """Summarize these sessions, unless that costs and nobody asked for it; what is to be said of it."""
    from reactor_memory.cli.terminal import progress

    summary = settings.summary
    later = "the memory of these sessions is made by `reactor-memory worker --once`, or the process that loads them"
    if not session_ids or not summary.enabled or is_wanted is False:
        return later if session_ids and summary.enabled else ""
    if is_wanted is None and summary.provider != OFFLINE:
        return f"no memory was made yet: summary.provider is {summary.provider}, which may cost; --memory makes it now"
    failed = 0
    async with invocation.memory(settings) as memory:
        with progress() as bar:
            for session_id in bar.track(session_ids, description="memory"):
                try:
                    await memory.summarize(session_id, user_id=invocation.user_id)
                except SummarizationError:
                    failed += 1
    return f"the memory of {failed} sessions could not be made; {later}" if failed else ""


@click.command(cls=SessionCommand)
@file_option("-o", "--output", "output", text="A file, not stdout.", may_print=True, default=STDOUT)
@force_option()
@click.option("--as", "new_id", metavar="ID", help="Write the session under another id (a fork cannot keep its own).")
@with_common_options
async def export(invocation: Invocation, output: Output, new_id: str | None) -> None:
    """Write a session as a line of JSONL.

    The line holds all that the messages have, in the format that `reactor-memory import` reads. Of a fork it holds
    the whole branch.
    """
    from reactor_memory.evaluation.transcripts import to_line

    async with invocation.memory() as memory:
        await memory.get_session(invocation.session_id, user_id=invocation.user_id)
        messages = [
            message async for message in memory.stream_messages(invocation.session_id, user_id=invocation.user_id)
        ]
    output.write(to_line(new_id or invocation.session_id, messages))
