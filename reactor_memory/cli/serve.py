"""`serve`: the memory over HTTP, for many users and agents."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import anyio
import click

from reactor_memory.cli.characters import echo
from reactor_memory.cli.defaults import CHAT_SERVER, SERVICE, Defaults, log_differences, sections, unless_set
from reactor_memory.cli.invocation import Invocation, with_invocation
from reactor_memory.errors import MissingExtraError
from reactor_memory.text.documents import page

if TYPE_CHECKING:
    from reactor_memory.server.development import DevelopmentIssuer
    from reactor_memory.settings.service_settings import ServiceSettings
    from reactor_memory.wiring.container import Container


@click.command()
@click.option("--host", help="Where to listen, instead of http.host.")
@click.option("--port", type=click.IntRange(0, 65535), help="Instead of http.port; 0 takes a free one.")
@click.option("--dev", is_flag=True, help="For trying it on this machine: print a token that is ready to use.")
@with_invocation
def serve(invocation: Invocation, host: str | None, port: int | None, dev: bool) -> int:
    """Serve the memory over HTTP, for many users and agents.

    Users come with the tokens of auth.issuers, agents with keys of `reactor-memory keys`. With --dev there is a token
    for --user (or "dev"), and nobody beyond this machine is answered.

    Runs until SIGTERM or Ctrl-C; what was begun is finished within http.shutdown_grace_seconds, or cut off: then the
    exit code is 1. Deleted conversations can be restored for 30 days, and messages are indexed for search, unless
    store.delete_grace_days or search.enabled say otherwise. Logs to stderr, as JSON without --dev.
    """
    from reactor_memory.cli.service_log import log_service

    settings = service_settings(invocation, host, port)
    log_service(as_json=not dev)
    try:
        from reactor_memory.server.development import DevelopmentIssuer
        from reactor_memory.server.process import run
    except ImportError as error:
        raise MissingExtraError("serve", package=(error.name or "litestar").partition(".")[0], extra="http") from None
    issuer = DevelopmentIssuer() if dev else None
    serving = partial(run, settings, development=issuer, ready=partial(_ready, issuer, invocation))
    return anyio.run(serving, backend_options={"use_uvloop": sys.platform != "win32"})


def _ready(issuer: DevelopmentIssuer | None, invocation: Invocation, container: Container, address: str) -> None:
    log_differences(invocation, SERVICE)
    if issuer is not None:
        _welcome(issuer, invocation, container, address)


def _welcome(issuer: DevelopmentIssuer, invocation: Invocation, container: Container, address: str) -> None:
    """What somebody who tries it needs, on one screen."""
    from reactor_memory.server.development import DEFAULT_USER

    user_id = invocation.user_id or DEFAULT_USER
    token = issuer.token(user_id, now=container.clock()())
    echo(
        f"""Serving on {address}, for this machine only. Stop with Ctrl-C.

A token of the user {user_id!r}, as long as this process runs:

export MEMORY={address} TOKEN={token}

curl -s $MEMORY/v1/user/conversations -H "Authorization: Bearer $TOKEN" \\
  -H 'Content-Type: application/json' -d '{{"title": "My first conversation"}}'
curl -s $MEMORY/v1/user/conversations -H "Authorization: Bearer $TOKEN"

The same way goes on in {page("http-service")}, and `reactor-memory keys create --help` for agents.
"""
    )


@click.command("chat-server")
@click.option("--host", help="Where to listen, instead of http.host.")
@click.option("--port", type=click.IntRange(0, 65535), help="Instead of http.port; 0 takes a free one.")
@click.option(
    "--dev", is_flag=True, help="For trying it on this machine: print the address of a page that is ready to use."
)
@with_invocation
def chat_server(invocation: Invocation, host: str | None, port: int | None, dev: bool) -> int:
    """Serve a chat over HTTP, with a page for the browser.

    POST /api/chat with {"message", "session_id", "agent_id"} is one turn of a user, who comes with a token of
    auth.issuers or auth.supabase_url. chat_server.agents names the agents and their prompts; the model that answers is
    the one of chat.provider, or an agent of a plug-in (chat_server.agent). Notes are in the contexts.

    Runs and ends as `serve` does.
    """
    from reactor_memory.cli.service_log import log_service

    settings = service_settings(invocation, host, port, CHAT_SERVER)
    log_service(as_json=not dev)
    try:
        from reactor_memory.server.chat_server import chat_routes
        from reactor_memory.server.development import DEFAULT_USER, DevelopmentIssuer
        from reactor_memory.server.process import run
    except ImportError as error:
        package = (error.name or "litestar").partition(".")[0]
        raise MissingExtraError("chat-server", package=package, extra="http") from None
    issuer = DevelopmentIssuer() if dev else None

    def ready(container: Container, address: str) -> None:
        log_differences(invocation, CHAT_SERVER)
        if issuer is not None:
            token = issuer.token(invocation.user_id or DEFAULT_USER, now=container.clock()())
            echo(f"Serving on {address}, for this machine only. Stop with Ctrl-C. The page of the chat:\n")
            echo(f"{address}/#token={token}\n")

    serving = partial(run, settings, development=issuer, ready=ready, routes=chat_routes())
    return anyio.run(serving, backend_options={"use_uvloop": sys.platform != "win32"})


def service_settings(
    invocation: Invocation, host: str | None, port: int | None, defaults: Defaults = SERVICE
) -> ServiceSettings:
    """The settings, with the defaults of a service where nothing else is set."""
    options = {"http.host": host, "http.port": port}
    chosen = {key: value for key, value in options.items() if value is not None}
    return invocation.settings(**sections(unless_set(invocation, defaults) | chosen))
