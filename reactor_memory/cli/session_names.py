"""How a session is named on a command line: by its id, by the beginning of the id, or as the one used last."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

if TYPE_CHECKING:
    from reactor_memory.features.overview.overview import Overview
    from reactor_memory.memory import Memory
    from reactor_memory.models import Session
    from reactor_memory.models.session_pages import SessionPage

LAST = "--last"
SHOWN_MATCHES = 5
DESTROYING_LENGTH = 4
"""So many characters of an id are the least by which something is destroyed."""

_IN_PLACE_OF_AN_ID = ""


class SessionCommand(click.Command):
    """A command with a session as its first argument, or with `--last` in place of it."""

    def __init__(self, *args: Any, needs_session: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        last = click.Option([LAST], is_flag=True, help="Of the session with the latest activity, in place of SESSION.")
        self.params = [click.Argument(["session"], required=needs_session), *self.params, last]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        asks_for_last = LAST in args
        try:
            return super().parse_args(ctx, [_IN_PLACE_OF_AN_ID, *args] if asks_for_last else args)
        except click.UsageError as error:
            if not (asks_for_last and "unexpected extra argument" in error.message):
                raise
            raise click.UsageError(f"{error.message.rstrip('.')}; give SESSION or {LAST}, not both", ctx) from None


def any_session(session: Session) -> bool:
    return True


def generated_alone(session: Session) -> bool:
    """Whether nobody gave the session its id: a name that somebody gives to a new one may well begin another name."""
    try:
        UUID(session.session_id.partition("~")[0])
    except ValueError:
        return False
    return True


async def full_id(
    overview: Overview,
    given: str,
    *,
    user_id: str | None,
    counts: Callable[[Session], bool] = any_session,
    least: int = 1,
) -> str:
    """The id that is `given`, or the one that begins with it, among those that `count`; `given` itself if none does.

    Of a fork, the root may be given by its beginning, too. Raises `click.UsageError` if several begin so.
    """
    root, mark, rest = given.partition("~")
    found = await _beginning(overview, root, user_id=user_id, counts=counts, least=least)
    if not mark:
        return found
    return await _beginning(overview, f"{found}~{rest}", user_id=user_id, counts=counts, least=least)


async def _beginning(
    overview: Overview, text: str, *, user_id: str | None, counts: Callable[[Session], bool], least: int
) -> str:
    found = await overview.beginning_with(text, user_id=user_id, limit=SHOWN_MATCHES + 1)
    if found and found[0].session_id == text:
        return text
    ids = [each.session_id for each in found if counts(each)]
    if len(ids) > 1:
        shown = ", ".join(ids[:SHOWN_MATCHES]) + (", ..." if len(ids) > SHOWN_MATCHES else "")
        raise click.UsageError(f"several sessions begin with {text!r}: {shown}; give more of the id")
    if ids and len(text) < least:
        raise click.UsageError(f"{text!r} begins {ids[0]!r}: give at least {least} characters of an id here")
    return ids[0] if ids else text


async def last_id(memory: Memory, user_id: str | None) -> str:
    """The session with the latest activity: of the user, or without one of everybody."""
    if user_id is None and memory.container.in_database() == "on":
        return await newest_id(memory.overview)
    page = await memory.list_sessions(user_id=user_id, limit=1)
    return _first_id(page, f"{LAST}: {user_id} has none")


async def newest_id(overview: Overview) -> str:
    """The session with the latest activity, of everybody."""
    return _first_id(await overview.sessions(limit=1), f"{LAST}: there is no session yet")


def _first_id(page: SessionPage, problem: str) -> str:
    if not page.sessions:
        raise click.UsageError(problem)
    return page.sessions[0].session_id
