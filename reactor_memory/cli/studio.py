"""`studio`: a page on this machine, to look into a store."""

from __future__ import annotations

import sys
from functools import partial

import anyio
import click

from reactor_memory.cli.characters import echo
from reactor_memory.cli.defaults import STUDIO, sections, unless_set
from reactor_memory.cli.invocation import Invocation, keeping_none, may_cost, unpaid, with_invocation
from reactor_memory.errors import MissingExtraError


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where to listen; 0, the default: a free port.")
@click.option("--write", "writes", is_flag=True, help="Allow to chat, pin, correct, retract, withdraw and erase.")
@click.option("--background", "works", is_flag=True, help="Do the background work of the store, also what may cost.")
@with_invocation
def studio(invocation: Invocation, port: int, writes: bool, works: bool) -> int:
    """Look into a store with a browser: sessions, contexts, facts, evaluations.

    Prints an address that opens once, in one browser, on this machine only. Nothing is changed without --write. Runs
    until Ctrl-C.

    Summaries that are due are made only with --background, and with --write if they are made offline: a model may cost
    something.
    """
    try:
        from reactor_memory.studio.serving import run
    except ImportError as error:
        raise MissingExtraError(
            "studio", package=(error.name or "litestar").partition(".")[0], extra="studio"
        ) from None
    from reactor_memory.cli.tables import difference
    from reactor_memory.settings.setting_values import masked_url

    recorded = sections(unless_set(invocation, STUDIO)) if writes else {}
    invocation.require_store(invocation.settings())
    settings = anyio.run(partial(invocation.settings_of_agent, background={"enabled": works or writes}, **recorded))
    is_idle = not works and may_cost(settings)
    settings = unpaid(settings) if is_idle else settings
    shared = {"store": masked_url(settings.store.url), "differences": list(map(difference, invocation.differences))}
    anyio.run(
        partial(run, keeping_none(settings), port=port, writes=writes, ready=partial(_welcome, is_idle), **shared)
    )
    return 0


def _welcome(is_idle: bool, address: str) -> None:
    echo(f"The Studio opens once at this address, on this machine. Stop it with Ctrl-C.\n\n{address}\n")
    if is_idle:
        echo("No summaries are made here, as they may cost something; --background makes those that are due.\n")
    sys.stdout.flush()
