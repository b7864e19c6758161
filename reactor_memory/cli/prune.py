"""`prune`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from reactor_memory.cli.invocation import Invocation, with_common_options

_AGE = re.compile(r"(\d{1,5})\s*([hdw])")
_SECONDS = {"h": 3_600, "d": 86_400, "w": 604_800}


if TYPE_CHECKING:
    _ParamType = click.ParamType[float]
else:
    _ParamType = click.ParamType  # takes no parameter in older versions


class Age(_ParamType):
    """A time such as 90d, in seconds."""

    name = "age"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> float:
        match = _AGE.fullmatch(value.strip())
        if match is None or not int(match[1]):
            self.fail(f"{value!r} is no age: write 90d, 12h or 8w", param, ctx)
        return float(int(match[1]) * _SECONDS[match[2]])


@click.command()
@click.option("--older-than", required=True, type=Age(), metavar="AGE", help="Since when nobody used it: 90d, 12h, 8w.")
@click.option("--yes", is_flag=True, help="Delete them; without it, nothing is changed.")
@with_common_options
async def prune(invocation: Invocation, older_than: float, yes: bool) -> int:
    """Delete whole sessions that nobody has used for a while.

    Without --yes a dry run: prints what would go. A session goes with its forks, when none of them was saved to since;
    whoever owns it. With store.delete_grace_days the content stays in the database that long. Exit code 3 if bytes of
    it are left (as `erase` says).
    """
    from reactor_memory.cli import tables

    if invocation.user_id is not None:
        raise click.UsageError("prune is for all users; without --user")
    async with invocation.container() as container:
        pruner = container.pruner()
        idle = [group async for group in pruner.idle(older_than_seconds=older_than)]
        gone = await pruner.prune(older_than_seconds=older_than) if yes else None
    if gone is None:
        invocation.show({"would_delete": idle}, lambda: tables.idle_groups(idle))
        return 0
    invocation.show(tables.deletion_values(gone), lambda: tables.deleted(gone, otherwise="nothing is that old"))
    return tables.exit_code_of(gone)
