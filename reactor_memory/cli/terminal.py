"""Consoles: stdout for results, stderr for progress."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

WIDTH = 100
"""Columns when the output is no terminal, and at most in one."""


def console(*, stderr: bool = False) -> Console:
    """Colours and width as the terminal allows; plain text elsewhere."""
    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    console.width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    return console


def progress(*, hidden: bool = False) -> Progress:
    """A progress bar on stderr, if that is a terminal."""
    screen = console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=screen, disable=hidden or not screen.is_terminal, transient=True)
