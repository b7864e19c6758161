"""`import` and `export`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reactor_memory.cli.invocation import Invocation, with_common_options
from reactor_memory.cli.output import STDOUT, Output, file_option, force_option

if TYPE_CHECKING:
    from reactor_memory.imports.importer import FileSize, Imported, Importer


@click.command("import")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path, allow_dash=True))
@click.option("--session-prefix", default="", metavar="TEXT", help="Put TEXT before every session id.")
@with_common_options
async def import_(invocation: Invocation, files: tuple[Path, ...], session_prefix: str) -> None:
    """Store the conversations of files; of stdin, if FILE is -.

    They are our own JSONL, a session a line: {"id": ..., "messages": [{"role", "content", "at", ...}]}; messages and
    requests of OpenAI, Anthropic, Gemini and LangChain, as JSON or JSONL; and conversations.json of an export of
    ChatGPT or Claude. What has no id is named after its file. A file may be packed with gzip.

    All files are checked before the first message is stored. An import that was interrupted continues where it stopped
    when it is repeated, and a complete one changes nothing.

    Summaries are left to `reactor-memory worker`, or to the process that loads the session.
    """
    from reactor_memory.cli import tables
    from reactor_memory.imports.importer import BATCH, Importer, Naming, check_files, files_of
    from reactor_memory.wiring.options import manager_options

    settings = invocation.settings(background={"enabled": False})
    limits = manager_options(settings).limits
    naming = Naming(prefix=session_prefix)
    with files_of(files) as given:
        sizes = check_files(given, limits, naming=naming)
        async with invocation.memory(settings, creates=True) as memory:
            importer = Importer(
                memory.manager,
                user_id=invocation.user_id,
                naming=naming,
                batch=min(BATCH, limits.max_batch_messages),
                max_bytes=limits.max_session_bytes,
            )
            imported = await _import_files(importer, sizes)
    invocation.show(imported, lambda: tables.imported(imported))


async def _import_files(importer: Importer, sizes: Sequence[FileSize]) -> list[Imported]:
    """Nothing is stored before every file was compared with the database."""
    from reactor_memory.cli.terminal import progress
    from reactor_memory.imports.importer import Imported, shown_name

    for size in sizes:
        await importer.compare(size.file)
    imported: list[Imported] = []
    with progress() as bar:
        for size in sizes:
            task = bar.add_task(size.file.name, total=size.messages)
            stored = await importer.store(size.file, partial(bar.advance, task))
            imported.append(
                Imported(file=shown_name(size.file), sessions=size.sessions, messages=size.messages, stored=stored)
            )
    return imported


@click.command()
@click.argument("session")
@file_option("-o", "--output", "output", text="A file, not stdout.", may_print=True, default=STDOUT)
@force_option()
@click.option("--as", "new_id", metavar="ID", help="Write the session under another id (a fork cannot keep its own).")
@with_common_options
async def export(invocation: Invocation, session: str, output: Output, new_id: str | None) -> None:
    """Write a session as a line of JSONL.

    The line holds all that the messages have, in the format that `reactor-memory import` reads. Of a fork it holds
    the whole branch.
    """
    from reactor_memory.evaluation.transcripts import to_line

    async with invocation.memory() as memory:
        await memory.get_session(session, user_id=invocation.user_id)
        messages = [message async for message in memory.stream_messages(session, user_id=invocation.user_id)]
    output.write(to_line(new_id or session, messages))
