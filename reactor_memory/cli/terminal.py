"""Consoles: stdout for results, stderr for progress."""

from __future__ import annotations

import os

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from reactor_memory.cli.characters import echo

WIDTH = 100
"""Columns at most, and where neither a terminal nor COLUMNS names fewer."""


def console(*, stderr: bool = False) -> Console:
    """Colours and width as the terminal allows; plain text elsewhere."""
    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    console.width = min(console.width, WIDTH) if console.is_terminal or _has_columns() else WIDTH
    return console


def print_view(view: RenderableType, *, stderr: bool = False) -> None:
    """Print what a command shows; without the blanks that fill a line where it is no terminal."""
    screen = console(stderr=stderr)
    if screen.is_terminal:
        screen.print(view)
        return
    with screen.capture() as captured:
        screen.print(view)
    echo("".join(f"{line.rstrip(' ')}\n" for line in captured.get().splitlines()), nl=False, err=stderr)


def progress(*, hidden: bool = False) -> Progress:
    """A progress bar on stderr, if that is a terminal."""
    screen = console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=screen, disable=hidden or not screen.is_terminal, transient=True)


def _has_columns() -> bool:
    return os.environ.get("COLUMNS", "").isdecimal()
