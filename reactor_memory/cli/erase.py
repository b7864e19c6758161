"""`erase`."""

from __future__ import annotations

import re
import sys

import click
from msgspec.structs import replace

from reactor_memory.cli.invocation import Invocation, with_common_options
from reactor_memory.cli.session_names import DESTROYING_LENGTH, SessionCommand

_POSITIONS = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")


def _positions(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    ranges: list[tuple[int, int]] = []
    for each in given:
        match = _POSITIONS.fullmatch(each.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last:
            raise click.BadParameter(f"{each!r} is neither a position (7) nor a range of them (7-12)", context, option)
        ranges.append((first, last))
    return tuple(ranges)


def _check_target(session: str | None, ranges: tuple[tuple[int, int], ...], user_id: str | None) -> None:
    if session is None and (ranges or user_id is None):
        raise click.UsageError("name a SESSION with --seq, or a --user without a session")
    if session is not None and not ranges:
        raise click.UsageError("name the messages with --seq; a whole session is deleted with `reactor-memory delete`")


def _question(session: str | None, ranges: tuple[tuple[int, int], ...], user_id: str | None) -> str:
    if session is None:
        return f"Destroy all sessions and notes of user {user_id} for good?"
    named = ", ".join(str(start) if start == end else f"{start}-{end}" for start, end in ranges)
    return f"Destroy messages {named} of {session} and of its forks for good?"


@click.command(cls=SessionCommand, needs_session=False)
@click.option(
    "--seq", "ranges", multiple=True, metavar="SEQ", callback=_positions, help="A message, or a range of them: 7-12."
)
@click.option("--rewrite", is_flag=True, help="Also write the files of the database anew; locks its tables.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_common_options
async def erase(
    invocation: Invocation,
    ranges: tuple[tuple[int, int], ...],
    rewrite: bool,
    yes: bool,
) -> int:
    """Destroy messages, or everything of a user, for good.

    With SESSION and --seq: these messages, in every fork that shows them, and all that was made of them; what is left
    is read again in the background. Without SESSION: all sessions of --user with their forks, also deleted ones, and
    the user's notes. Whatever was cut off is finished by running it again. Exit code 1 if the answer was no.

    A SQLite file holds no trace of it afterwards, unless somebody reads it meanwhile: then a line says so, the exit
    code is 3, and the next process that does background work goes on, until `doctor` shows nothing of it.

    PostgreSQL keeps dead rows until it reuses their place; --rewrite clears them out now. Backups, and the write-ahead
    log of PostgreSQL, are yours to expire.
    """
    from reactor_memory.cli import tables
    from reactor_memory.core.log.scrubbing import FILES, scrub

    _check_target(invocation.session, ranges, invocation.user_id)
    if not yes and not sys.stdin.isatty():
        raise click.UsageError("erasing asks first: run it in a terminal or add --yes")
    invocation.least = DESTROYING_LENGTH
    async with invocation.memory() as memory:
        if not yes and not click.confirm(_question(invocation.session, ranges, invocation.user_id), err=True):
            return 1
        if invocation.session is None:
            erased = await memory.erasure.erase_user(invocation.user_id or "")
        else:
            erased = await memory.erasure.erase(invocation.session_id, seq=ranges, user_id=invocation.user_id)
        if rewrite:
            is_clean = await scrub(memory.container.database(), rewrite=True)
            left = (*(each for each in erased.left if each != FILES), *(() if is_clean else (FILES,)))
            erased = replace(erased, is_scrubbed=not left, left=left)
    invocation.show(erased, lambda: tables.erased(erased))
    return tables.exit_code_of(erased)
