"""A group of commands that imports a command when it is run."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import NamedTuple

import click


class Lazy(NamedTuple):
    """Where a command is (`module:name`), and its line in the help of the group."""

    path: str
    summary: str


class LazyGroup(click.Group):
    """Lists its commands without importing any of them."""

    def __init__(self, *, lazy: Mapping[str, Lazy], help: str) -> None:  # noqa: A002 - the name is click's
        super().__init__(help=help, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return None
        module, _, name = self._lazy[cmd_name].path.partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As in every group, with the command that was probably meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = get_close_matches(args[0], self._lazy, n=1) if args else []
            if not near:
                raise
            raise click.UsageError(f"{error.message.rstrip('.')}; did you mean {near[0]}?", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.summary) for name, lazy in self._lazy.items()])
