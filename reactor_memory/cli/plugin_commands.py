"""`plugin`: the commands of installed plug-ins. None of them is imported before it is asked for, or listed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint
from typing import Any

import click
from click.exceptions import Exit

from reactor_memory.cli.tried_parts import told
from reactor_memory.errors import PluginError, ReactorMemoryError
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.own_parts import OWN_PARTS
from reactor_memory.wiring.plugins import Plugin, discover, evaluate, imported, load


class PluginGroup(click.Group):
    """The plug-ins that take part and have commands. One that is broken is named, and is in the way of no other."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_found()[0])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found, broken = _found()
        if cmd_name in broken:
            raise PluginError(cmd_name, broken[cmd_name])
        return CommandsOf(*found[cmd_name]) if cmd_name in found else None

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        broken = _found()[1]
        if broken:
            with formatter.section("Left out"):
                formatter.write_dl(sorted(broken.items()))


class CommandsOf(click.Group):
    """The commands of one plug-in; `title` names it in errors."""

    def __init__(self, plugin: Plugin, title: str) -> None:
        super().__init__(plugin.name, help=f"The commands of {title}.", no_args_is_help=True)
        self._plugin = plugin
        self._title = title

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._plugin.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._plugin.commands:
            return None
        try:
            command = imported(self._plugin.commands[cmd_name])
        except Exception as error:  # it is anybody's code
            raise PluginError(
                self._title, f"its command {cmd_name} cannot be imported: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(command, click.Command):
            raise PluginError(self._title, f"its command {cmd_name} is no click.Command but a {type(command).__name__}")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._summary(ctx, name)) for name in self.list_commands(ctx)])

    def _summary(self, ctx: click.Context, name: str) -> str:
        try:
            command = self.get_command(ctx, name)
            return "" if command is None else command.get_short_help_str(limit=80)
        except Exception as error:
            return f"({told(error)})"

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (ReactorMemoryError, click.ClickException, click.Abort, Exit, OSError, BaseExceptionGroup):
            raise
        except Exception as error:
            name = ctx.invoked_subcommand or ""
            raise PluginError(self._title, f"its command {name} fails with a {type(error).__name__}") from error


def _found() -> tuple[Mapping[str, tuple[Plugin, str]], Mapping[str, str]]:
    """The plug-ins with commands, with their titles, by name; and what is wrong with others."""
    broken: dict[str, str] = {}
    sound: list[EntryPoint] = []
    for each in discover():
        try:
            load(each)
            sound.append(each)
        except PluginError as error:
            broken[each.name] = str(error)
    try:
        report = evaluate([OWN_PARTS, *sound], Settings())
    except ReactorMemoryError as error:
        return {}, broken | {each.name: str(error) for each in sound}
    return {plugin.name: (plugin, title) for plugin, title in report.taking_part if plugin.commands}, broken


plugin = PluginGroup(
    "plugin",
    help="Run a command that a plug-in brings: `reactor-memory plugin NAME COMMAND`.",
    no_args_is_help=True,
)
