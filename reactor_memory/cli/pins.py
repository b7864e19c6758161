"""`pin`, `unpin` and `pins`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from reactor_memory.cli.invocation import Invocation, with_common_options
from reactor_memory.cli.session_names import SessionCommand


def _naming_a_target(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that name a message or a fact; the memory refuses none and both."""
    seq = click.option("--seq", type=click.IntRange(min=1), metavar="SEQ", help="A message.")
    fact = click.option("--fact", type=(str, str), metavar="ANCHOR KEY", help="A fact, as `facts --json` names it.")
    return seq(fact(command))


@click.command(cls=SessionCommand)
@_naming_a_target
@with_common_options
async def pin(invocation: Invocation, seq: int | None, fact: tuple[str, str] | None) -> None:
    """Keep a message or a fact in every context of a session, word for word.

    Only plain text can be pinned, and a fact only if it is verified: nothing that a tool said. Pins are never given up
    to a budget, so there is a limit: context.max_pins and context.max_pin_tokens. Prints the pin.
    """
    from reactor_memory.cli import tables

    async with invocation.memory() as memory:
        made = await memory.pins.add(invocation.session_id, seq=seq, fact=fact, user_id=invocation.user_id)
    invocation.show(made, lambda: tables.pins([made]))


@click.command(cls=SessionCommand)
@_naming_a_target
@with_common_options
async def unpin(invocation: Invocation, seq: int | None, fact: tuple[str, str] | None) -> None:
    """Take a pin back. Forks of the session keep theirs."""
    async with invocation.memory() as memory:
        was_pinned = await memory.pins.remove(invocation.session_id, seq=seq, fact=fact, user_id=invocation.user_id)
    invocation.show({"unpinned": was_pinned}, lambda: "unpinned" if was_pinned else "was not pinned")


@click.command(cls=SessionCommand)
@with_common_options
async def pins(invocation: Invocation) -> None:
    """List what is pinned in a session, in the order of its contexts."""
    from reactor_memory.cli import tables

    async with invocation.memory() as memory:
        found = await memory.pins.list(invocation.session_id, user_id=invocation.user_id)
    invocation.show(found, lambda: tables.pins(found))
