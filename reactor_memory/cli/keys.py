"""`keys create`, `keys list` and `keys revoke`: the keys by which agents call the service."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, get_args

import click

from reactor_memory.cli.characters import echo
from reactor_memory.cli.invocation import Invocation, with_common_options
from reactor_memory.cli.lazy_group import Lazy, LazyGroup
from reactor_memory.errors import ConfigurationError
from reactor_memory.features.sharing import key_operations
from reactor_memory.features.sharing.principals import OPERATIONS, Grant, Operation

if TYPE_CHECKING:
    from rich.console import RenderableType

    from reactor_memory.features.sharing.principals import ApiKey

_CLIENT = re.compile(r"[A-Za-z0-9._-]{1,100}")
MICROSECONDS_PER_DAY = 86_400_000_000

keys = LazyGroup(
    help="Make, list and revoke the keys by which agents call `reactor-memory serve`.",
    lazy={
        "create": Lazy("reactor_memory.cli.keys:create", "Make a key for an agent, and print it once."),
        "list": Lazy("reactor_memory.cli.keys:list_", "List the keys, those that are over included."),
        "revoke": Lazy("reactor_memory.cli.keys:revoke", "End a key: within five seconds nobody accepts it."),
    },
)


def _as_operations(context: click.Context, option: click.Parameter, value: str) -> tuple[Operation, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in value.split(",")))
    for name in names:
        if name not in get_args(Operation):
            raise click.BadParameter(f"{name!r} is none of {', '.join(OPERATIONS)}")
    return tuple(name for name in OPERATIONS if name in names)


def _as_client(context: click.Context, option: click.Parameter, value: str) -> str:
    """Of characters that part nothing where it stands among other names."""
    if not _CLIENT.fullmatch(value):
        raise click.BadParameter("must be 1 to 100 letters, digits, dots, hyphens and underscores")
    return value


def _as_agents(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for name in values:
        if not (0 < len(name) <= 100 and name.isprintable() and name == name.strip()):
            raise click.BadParameter("must be 1 to 100 printable characters")
    return values


@click.command()
@click.option("--client", "client_id", required=True, metavar="NAME", callback=_as_client, help="The agent's own name.")
@click.option(
    "--agent",
    "agent_names",
    required=True,
    multiple=True,
    metavar="NAME",
    callback=_as_agents,
    help="An agent whose conversations it may use; several times for several, '*' for all.",
)
@click.option(
    "--allow",
    "operations",
    required=True,
    metavar="LIST",
    callback=_as_operations,
    help=f"What it may do there, separated by commas: {', '.join(OPERATIONS)}.",
)
@click.option(
    "--expires-in-days", type=click.IntRange(1, 36_500), metavar="N", help="When it ends; never if not given."
)
@with_common_options
async def create(
    invocation: Invocation,
    client_id: str,
    agent_names: tuple[str, ...],
    operations: tuple[Operation, ...],
    expires_in_days: int | None,
) -> None:
    """Make a key for an agent, and print it.

    It cannot be shown again: only a hash of it is kept. A client may have several keys, so that one can take the place
    of another before that is revoked.
    """
    from reactor_memory.server.api_keys import new_key

    if invocation.settings().store.url.startswith("memory://"):
        raise ConfigurationError("store.url", "memory:// keeps nothing after the command, and so no key")
    async with invocation.container(creates=True) as container:
        now = container.clock()()
        ends = None if expires_in_days is None else now + expires_in_days * MICROSECONDS_PER_DAY
        grant = Grant(agent_names=agent_names, operations=operations)
        key, text = new_key(client_id, grant, now=now, expires_at=ends)
        await container.database().write(key_operations.add_api_key, key)
    if invocation.as_json:
        invocation.show(key_fields(key, now=now) | {"key": text}, str)
    else:
        echo(text)
        echo("This key is not shown again: keep it where secrets are kept.", err=True)


@click.command("list")
@with_common_options
async def list_(invocation: Invocation) -> None:
    """List the keys by their prefixes, the oldest first."""
    async with invocation.container() as container:
        found = await container.database().read(key_operations.list_api_keys)
        now = container.clock()()
    invocation.show([key_fields(key, now=now) for key in found], lambda: _table(found, now=now))


@click.command()
@click.argument("prefix")
@with_common_options
async def revoke(invocation: Invocation, prefix: str) -> int:
    """End the key with this PREFIX, the eight characters behind rm_.

    Every process of the service refuses it within five seconds. Exit code 1 if there is no such key, or it was revoked
    before.
    """
    async with invocation.container() as container:
        revoked = await container.database().write(key_operations.revoke_api_key, prefix, now=container.clock()())
    invocation.show({"revoked": revoked}, lambda: "revoked" if revoked else "no key of this prefix is in force")
    return 0 if revoked else 1


def key_fields(key: ApiKey, *, now: int) -> dict[str, Any]:
    """What may be told of a key."""
    return {
        "prefix": key.key_prefix,
        "client": key.client_id,
        "agents": key.grant.agent_names,
        "allow": key.grant.operations,
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "state": _state(key, now=now),
    }


def _state(key: ApiKey, *, now: int) -> str:
    from reactor_memory.server.api_keys import holds

    if key.revoked_at is not None:
        return "revoked"
    return "in force" if holds(key, now=now) else "expired"


def _table(found: tuple[ApiKey, ...], *, now: int) -> RenderableType:
    from reactor_memory.cli.tables import moment, table
    from reactor_memory.text.printable import printable

    if not found:
        return "no keys"
    made = table("prefix", "client", "agents", "may", "created", "state")
    for key in found:
        agents, operations = ", ".join(key.grant.agent_names), ", ".join(key.grant.operations)
        made.add_row(
            key.key_prefix,
            printable(key.client_id),
            printable(agents),
            operations,
            moment(key.created_at),
            _state(key, now=now),
        )
    return made
