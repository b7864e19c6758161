"""What all commands share: the common options, the event loop, the store, the way to print."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias

import anyio
import click

from reactor_memory.cli.characters import echo, json_for_stdout
from reactor_memory.cli.session_names import any_session, full_id, last_id
from reactor_memory.errors import StoreUnavailableError

if TYPE_CHECKING:
    from reactor_memory.memory import Memory
    from reactor_memory.models import Session
    from reactor_memory.models.session_pages import SessionPage
    from reactor_memory.settings.agent_settings import SettingDifference
    from reactor_memory.settings.service_settings import ServiceSettings
    from reactor_memory.settings.settings import Settings
    from reactor_memory.wiring.container import Container

P = ParamSpec("P")

OFFLINE_EMBEDDERS = ("none", "wordllama")


@dataclass(kw_only=True, slots=True)
class Invocation:
    """The common options of one run. Without a `user_id`, what is said of a `session` is said as its owner: whoever may
    open the database may see all of it.
    """

    store: str | None
    user_id: str | None
    as_json: bool
    session: str | None = None
    """As it was given; its full id when the memory is open."""
    last: bool = False
    """The session with the latest activity is meant."""
    counts: Callable[[Session], bool] = any_session
    """Of which sessions the beginning of the id is enough."""
    least: int = 1
    """How many characters of it are enough."""
    remedy: str = "name another with --store"
    """What to do where the database does not exist."""
    differences: tuple[SettingDifference, ...] = ()
    """What counts otherwise than for the agent, after `memory_of_agent`."""

    def settings(self, **sections: Any) -> ServiceSettings:
        """The settings, with what the options and the command decide on top; those of the service are checked, too."""
        from reactor_memory.settings.service_settings import ServiceSettings

        if self.store is not None:
            sections["store"] = {**sections.get("store", {}), "url": self.store}
        return ServiceSettings(**sections)

    @asynccontextmanager
    async def memory(self, settings: Settings | None = None, *, creates: bool = False) -> AsyncGenerator[Memory]:
        """The opened memory. Unless the command `creates` a database, a missing SQLite file stays missing.

        What it saves is no agent's: the settings that are kept with the store stay. Without `settings` no background
        work is done that may cost something.
        """
        from reactor_memory.memory import open_memory

        settings = settings or unpaid(self.settings())
        if not creates:
            self.require_store(settings)
        async with open_memory(keeping_none(settings)) as memory:
            await self._find_session(memory)
            yield memory

    async def _find_session(self, memory: Memory) -> None:
        if self.last:
            self.session, self.last = await last_id(memory, self.user_id), False
        elif self.session is not None and memory.container.in_database() == "on":
            self.session = await full_id(
                memory.overview, self.session, user_id=self.user_id, counts=self.counts, least=self.least
            )
        if self.user_id is None and self.session is not None:
            self.user_id = await _owner_of(memory, self.session)

    @property
    def session_id(self) -> str:
        """The full id of the session of a command that has one, when the memory is open."""
        assert self.session is not None
        return self.session

    @asynccontextmanager
    async def memory_of_agent(self, *, creates: bool = False, **sections: Any) -> AsyncGenerator[Memory]:
        """As `memory`, under the settings that the agent had when it saved last, where neither the `sections` nor the
        environment or the file say otherwise.
        """
        settings = await self.settings_of_agent(**sections)
        settings = settings if "background" in sections else unpaid(settings)
        async with self.memory(settings, creates=creates) as memory:
            yield memory

    async def settings_of_agent(self, **sections: Any) -> Settings:
        """The settings for `memory_of_agent`."""
        from reactor_memory.settings.agent_settings import differences, takeable
        from reactor_memory.wiring.opening import open_container
        from reactor_memory.wiring.own_parts import sqlite_file

        settings = self.settings(**sections)
        file = sqlite_file(settings)
        if file is not None and not file.exists():
            return settings
        async with open_container(without_background(keeping_none(settings))) as container:
            found = await container.overview().agent_settings() if container.in_database() == "on" else None
        if found is None:
            return settings
        said = {each.key for each in settings.origins() if each.origin != "default"}
        for key, value in takeable(found.given).items():
            if key not in said:
                section, _, name = key.partition(".")
                sections[section] = {**sections.get(section, {}), name: value}
        settings = self.settings(**sections)
        self.differences = differences(settings, found.given)
        return settings

    def require_store(self, settings: Settings) -> None:
        """Raises `StoreUnavailableError` for an SQLite file that does not exist."""
        from reactor_memory.wiring.own_parts import sqlite_file

        file = sqlite_file(settings)
        if file is not None and not file.exists():
            from reactor_memory.database.sqlite import check_place

            check_place(file)
            raise StoreUnavailableError(f"store: there is no database {file}; {self.remedy}")

    @asynccontextmanager
    async def container(self, settings: Settings | None = None, *, creates: bool = False) -> AsyncGenerator[Container]:
        """The parts behind the opened memory."""
        async with self.memory(settings, creates=creates) as memory:
            yield memory.container

    async def sessions(self, memory: Memory, *, limit: int, cursor: str | None) -> SessionPage:
        """The sessions of the user, without one those of everybody, if the database can be asked for them."""
        if self.user_id is None and memory.container.in_database() == "on":
            return await memory.overview.sessions(limit=limit, cursor=cursor)
        return await memory.list_sessions(user_id=self.user_id, limit=limit, cursor=cursor)

    def show(self, value: object, render: Callable[[], Any]) -> None:
        """Print `value` as JSON when that was asked for, else what `render` makes of it."""
        if self.as_json:
            import msgspec

            echo(json_for_stdout(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()))
        else:
            from reactor_memory.cli.terminal import print_view

            print_view(render())


def keeping_none(settings: Settings) -> Settings:
    """The settings of a process that is no agent."""
    return settings.model_copy(update={"store": settings.store.model_copy(update={"keep_settings": False})})


def without_background(settings: Settings) -> Settings:
    return settings.model_copy(update={"background": settings.background.model_copy(update={"enabled": False})})


def unpaid(settings: Settings) -> Settings:
    """The settings of a process that looks into a store: it leaves work that may cost something to the agent's own."""
    return without_background(settings) if may_cost(settings) else settings


def may_cost(settings: Settings) -> bool:
    """Whether background work asks anybody but what works offline in this process."""
    from reactor_memory.settings.setting_values import canonical_name

    return (
        canonical_name(settings.summary.provider) != "extractive"
        or canonical_name(settings.search.embedder) not in OFFLINE_EMBEDDERS
    )


async def _owner_of(memory: Memory, session_id: str) -> str | None:
    return None if memory.container.in_database() == "off" else await memory.overview.owner_of(session_id)


@contextmanager
def named_or_temporary_store(invocation: Invocation) -> Generator[Invocation]:
    """The store that was named, or one that is gone afterwards."""
    if invocation.store is not None:
        yield invocation
    else:
        with tempfile.TemporaryDirectory(prefix="reactor-memory-") as folder:
            yield replace(invocation, store=f"sqlite:///{folder}/temporary.db")


Command: TypeAlias = Callable[Concatenate[Invocation, ...], int | None]
AsyncCommand: TypeAlias = Callable[Concatenate[Invocation, P], Coroutine[Any, Any, int | None]]


def with_common_options(body: AsyncCommand[P]) -> Callable[..., int | None]:
    """Adds the options of all commands that print a result, and runs `body` as `with_store_options` does."""
    as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
    return as_json(with_store_options(body))


def with_store_options(body: AsyncCommand[P]) -> Callable[..., int | None]:
    """Adds the options of all commands and runs `body` in an event loop; what it returns is the exit code (None: 0)."""

    @wraps(body)
    def run(invocation: Invocation, **arguments: Any) -> int | None:
        return anyio.run(partial(body, invocation, **arguments))

    return with_invocation(run)


def with_invocation(body: Command) -> Callable[..., int | None]:
    """Adds the options of all commands and runs `body` as it is."""

    @click.option(
        "--store",
        metavar="URL",
        callback=as_url,
        help="Database, instead of the one in the settings: sqlite:///file.db, postgresql://host/name, or a file name.",
    )
    @click.option("--user", "user_id", metavar="ID", help="Who asks; without it, the owner of the session.")
    @click.option("-v", "--verbose", is_flag=True, help="Log to stderr.")
    @wraps(body)
    def run(
        *, store: str | None, user_id: str | None, verbose: bool, as_json: bool = False, **arguments: Any
    ) -> int | None:
        from reactor_memory.cli.log_lines import log_to_stderr

        log_to_stderr(verbose=verbose)
        session, last = arguments.pop("session", None), arguments.pop("last", False)
        return body(Invocation(store=store, user_id=user_id, as_json=as_json, session=session, last=last), **arguments)

    return run


def as_url(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """A file name stands for its SQLite database."""
    from reactor_memory.memory import url_of

    return None if value is None else url_of(value)
