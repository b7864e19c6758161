"""`mcp`: the memory as tools for any client of the Model Context Protocol."""

from __future__ import annotations

from typing import Literal

import click

from reactor_memory.cli.characters import echo
from reactor_memory.cli.invocation import Invocation, with_store_options
from reactor_memory.cli.log_lines import log_alike


@click.command()
@click.option(
    "--transport",
    type=click.Choice(["stdio", "http"]),
    default="stdio",
    show_default=True,
    help="stdio: for the client that starts this command; http: streamable HTTP.",
)
@click.option(
    "--agent", "agent_name", metavar="NAME", default="mcp", show_default=True, help="Whose notes and sessions."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="With http: where to listen.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0 takes a free one.")
@click.option("--allow-remote", is_flag=True, help="Listen where others can reach it: all of them act as the user.")
@with_store_options
async def mcp(
    invocation: Invocation,
    transport: Literal["stdio", "http"],
    agent_name: str,
    host: str,
    port: int,
    allow_remote: bool,
) -> None:
    """Serve the memory as tools of the Model Context Protocol.

    Everything is done as the user named by --user, whom no tool can change; there is no other check, so over HTTP only
    this machine is answered unless --allow-remote is given. Without --user the tools serve sessions that have no owner,
    and notes and session_resolve are left out.
    """
    from reactor_memory.adapters.mcp import memory_server

    log_alike("mcp", "uvicorn")
    if transport == "http":
        _check_host(host, allow_remote)
    async with invocation.memory(invocation.settings(), creates=True) as memory:
        server = memory_server(memory, user_id=invocation.user_id, agent_name=agent_name)
        if transport == "stdio":
            await server.run_stdio_async()
        else:
            from reactor_memory.adapters.mcp.http import serve_http

            await serve_http(server, host=host, port=port, listening=_tell)


def _check_host(host: str, allow_remote: bool) -> None:
    from reactor_memory.adapters.mcp.http import address_of
    from reactor_memory.text.addresses import is_loopback

    if not allow_remote and not is_loopback(address_of(host, 0)):
        raise click.UsageError("--host: others could reach it and act as the user; --allow-remote says they may")


def _tell(address: str) -> None:
    echo(f"listening on {address}; stop with Ctrl-C", err=True)
