"""`correct`, `retract` and `mute`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reactor_memory.cli.invocation import Invocation, with_common_options
from reactor_memory.cli.session_names import SessionCommand

if TYPE_CHECKING:
    from reactor_memory.models.ledger import Category

fact_option = click.option(
    "--fact", type=(str, str), required=True, metavar="ANCHOR KEY", help="A fact, as `facts --json` names it."
)


@click.command(cls=SessionCommand)
@click.argument("value")
@fact_option
@with_common_options
async def correct(invocation: Invocation, value: str, fact: tuple[str, str]) -> None:
    """Say what a fact of a session really is.

    VALUE holds instead of all that was said of the fact so far, also after it is extracted again, until a later message
    states another value. The messages stay as they are. Prints the fact as it stands now.
    """
    from reactor_memory.cli import tables
    from reactor_memory.features.facts.tracing import TracedFact

    async with invocation.memory() as memory:
        fixed = await memory.facts.correct(invocation.session_id, fact=fact, value=value, user_id=invocation.user_id)
    invocation.show(fixed, lambda: tables.facts([TracedFact(fact=fixed, quote="")]))


@click.command(cls=SessionCommand)
@fact_option
@with_common_options
async def retract(invocation: Invocation, fact: tuple[str, str]) -> None:
    """Say that a fact of a session is none: no context shows it until a later message states it again."""
    async with invocation.memory() as memory:
        await memory.facts.retract(invocation.session_id, fact=fact, user_id=invocation.user_id)
    invocation.show({"retracted": fact}, lambda: "retracted")


@click.command(cls=SessionCommand)
@click.option("--anchor", metavar="ANCHOR", help="A thing, as `facts --json` names it.")
@click.option("--category", metavar="CATEGORY", help="A kind of facts, such as DECISION.")
@click.option("--undo", is_flag=True, help="Say it again.")
@with_common_options
async def mute(invocation: Invocation, anchor: str | None, category: Category | None, undo: bool) -> None:
    """Let no context of a session say anything about a thing, or of a category, also after later messages.

    `facts --all` shows what is muted.
    """
    async with invocation.memory() as memory:
        act = memory.facts.unmute if undo else memory.facts.mute
        changed = await act(invocation.session_id, anchor=anchor, category=category, user_id=invocation.user_id)
    done = "not muted any more" if undo else "muted"
    invocation.show({"muted": not undo, "changed": changed}, lambda: done if changed else f"was {done} before")
