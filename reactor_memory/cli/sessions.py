"""`sessions`, `show`, `fork`, `archive`, `restore` and `delete`."""

from __future__ import annotations

import sys

import click

from reactor_memory.cli.invocation import Invocation, with_common_options
from reactor_memory.cli.session_names import DESTROYING_LENGTH, SessionCommand


@click.command()
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="How many.")
@click.option("--cursor", metavar="TEXT", help="Where the page before ended.")
@with_common_options
async def sessions(invocation: Invocation, limit: int, cursor: str | None) -> None:
    """List sessions, newest activity first: those of --user, or everybody's."""
    from reactor_memory.cli import tables

    async with invocation.memory() as memory:
        page = await invocation.sessions(memory, limit=limit, cursor=cursor)
    invocation.show(page, lambda: tables.sessions(page))


@click.command(cls=SessionCommand)
@click.option("--newest", type=click.IntRange(min=1), default=20, show_default=True, help="How many messages.")
@click.option("--all", "everything", is_flag=True, help="All messages.")
@click.option("--archived", is_flag=True, help="Those that are archived or cleared, too.")
@with_common_options
async def show(invocation: Invocation, newest: int, everything: bool, archived: bool) -> None:
    """Print the messages of a session as they are stored, of a fork the whole branch."""
    from reactor_memory.cli import tables

    async with invocation.memory() as memory:
        found = await memory.get_session(invocation.session_id, user_id=invocation.user_id)
        last = found.last_seq if everything else newest
        messages = await memory.read_messages(
            invocation.session_id, user_id=invocation.user_id, last=max(last, 1), archived=archived
        )
    shown = {"session": found, "messages": tables.message_values(messages)}
    invocation.show(shown, lambda: tables.session(found, messages))


@click.command(cls=SessionCommand)
@click.option("--at", "at_seq", type=click.IntRange(min=1), required=True, metavar="SEQ", help="Its first own message.")
@with_common_options
async def fork(invocation: Invocation, at_seq: int) -> None:
    """Branch off a session at a message.

    The fork shares the messages before SEQ and continues the numbering with SEQ. Nothing is copied. Prints its id.
    """
    async with invocation.memory() as memory:
        branch = await memory.fork(invocation.session_id, at_seq=at_seq, user_id=invocation.user_id)
    invocation.show(branch, lambda: branch.session_id)


@click.command(cls=SessionCommand)
@click.option("--until", "until_seq", type=click.IntRange(min=1), metavar="SEQ", help="The last message; else all.")
@click.option("--clear", is_flag=True, help="Let memory show nothing of them either: no facts, no recall.")
@click.option("--summary", metavar="TEXT", help="What stands in their place.")
@with_common_options
async def archive(invocation: Invocation, until_seq: int | None, clear: bool, summary: str | None) -> None:
    """Take messages out of view.

    Their facts stay in contexts, unless --clear is given. Nothing is destroyed: `restore` brings all of it back, and
    `show --archived` prints it.
    """
    async with invocation.memory() as memory:
        done = await memory.archive(
            invocation.session_id, until_seq=until_seq, clear=clear, summary=summary, user_id=invocation.user_id
        )
    invocation.show(done, lambda: f"messages archived: {done.message_count}")


@click.command(cls=SessionCommand)
@click.option("--from", "from_seq", type=click.IntRange(min=1), default=1, metavar="SEQ", help="The first message.")
@with_common_options
async def restore(invocation: Invocation, from_seq: int) -> None:
    """Bring archived messages back into view and memory."""
    async with invocation.memory() as memory:
        count = await memory.restore(invocation.session_id, from_seq=from_seq, user_id=invocation.user_id)
    invocation.show({"restored": count}, lambda: f"messages restored: {count}")


@click.command(cls=SessionCommand)
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_common_options
async def delete(invocation: Invocation, yes: bool) -> int:
    """Delete a session and everything derived from it.

    A root goes with all its forks, a fork with the forks below it. Its id is never used again. Exit code 1 if the
    answer was no, 3 if bytes of it are left (as `erase` says).
    """
    from reactor_memory.cli import tables

    if not yes and not sys.stdin.isatty():
        raise click.UsageError("deleting asks first: run it in a terminal or add --yes")
    invocation.least = DESTROYING_LENGTH
    async with invocation.memory() as memory:
        found = await memory.get_session(invocation.session_id, user_id=invocation.user_id)
        question = f"Delete {found.session_id} ({tables.count(found.last_seq, 'message')}) and its forks?"
        if not yes and not click.confirm(question, err=True):
            return 1
        gone = await memory.delete(invocation.session_id, user_id=invocation.user_id)
    invocation.show(tables.deletion_values(gone), lambda: tables.deleted(gone))
    return tables.exit_code_of(gone)
