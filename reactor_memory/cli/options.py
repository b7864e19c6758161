"""Kinds of options that several commands have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

import click

STDOUT = "-"


def list_option(name: str, each: click.ParamType[Any], default: Iterable[str], text: str) -> Callable[..., Any]:
    """An option for values separated by commas; each counts once."""

    def listed(context: click.Context, option: click.Parameter, value: str) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(each.convert(part.strip(), option, context) for part in value.split(",")))

    return click.option(name, callback=listed, default=",".join(default), show_default=True, metavar="LIST", help=text)


def file_option(name: str, argument: str, *, text: str, may_print: bool = False) -> Callable[..., Any]:
    """An option for a file that is written at the end; it is refused at once if there is no folder for it."""

    def checked(context: click.Context, option: click.Parameter, file: IO[bytes] | None) -> IO[bytes] | None:
        if file is None:
            return None
        if file.name == STDOUT and not may_print:
            raise click.BadParameter("name a file: the terminal shows the results", context, option)
        folder = Path(file.name).parent
        if not folder.is_dir():
            raise click.BadParameter(f"there is no folder {folder}", context, option)
        return file

    written = click.File("wb", lazy=True, atomic=True)
    return click.option(name, argument, type=written, callback=checked, metavar="FILE", help=text)
