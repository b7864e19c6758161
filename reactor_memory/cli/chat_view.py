"""What a chat reads from a terminal or a pipe, and what it prints there. No text of a model steers the terminal."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, cast

from rich.console import Console, RenderableType
from rich.text import Text

from reactor_memory.cli.characters import echo, echo_error
from reactor_memory.cli.context_view import context_view
from reactor_memory.cli.tables import facts
from reactor_memory.cli.terminal import console, print_view
from reactor_memory.core.context.context import Context
from reactor_memory.features.chat import Progress, Reply
from reactor_memory.features.chat.replies import Unseen
from reactor_memory.features.facts.tracing import TracedFact
from reactor_memory.text.printable import printable

PROMPT = "> "
QUESTION_PROMPT = "? "


class Screen:
    """A person at a terminal (`is_interactive`), or lines that come through a pipe: then no prompt is printed."""

    def __init__(self) -> None:
        self.is_interactive = sys.stdin.isatty() and sys.stdout.isatty()
        if reconfigure := getattr(sys.stdin, "reconfigure", None):
            is_ascii = codecs.lookup(sys.stdin.encoding).name == "ascii"  # what is more than that is UTF-8
            reconfigure(encoding="utf-8" if is_ascii else None, errors="replace")
        if self.is_interactive:
            _edit_lines()

    def read(self, asks: bool) -> str | None:
        """The next line, None at the end."""
        prompt = QUESTION_PROMPT if asks else PROMPT
        try:
            return input(prompt if self.is_interactive else "")
        except EOFError:
            self._leave_the_line()
            return None
        except KeyboardInterrupt:
            self._leave_the_line()
            raise

    def _leave_the_line(self) -> None:
        """The cursor of a person still stands behind the prompt."""
        if self.is_interactive:
            echo()

    def greet(self, text: str) -> None:
        """For a person only."""
        if self.is_interactive:
            self.note(text)

    def note(self, text: str) -> None:
        """Notices, which go to stderr: stdout holds the answers."""
        print_view(Text(printable(text), style="dim"), stderr=True)

    def fail(self, problem: str) -> None:
        echo_error(printable(problem))

    def show(self, reply: Reply) -> None:
        if reply.text:
            print_view(_view(reply))

    @contextmanager
    def answer(self) -> Generator[Callable[[str], None]]:
        """What prints the pieces of an answer. In the end a line is ended, however the answer ended."""
        last = ""

        def show(piece: str) -> None:
            nonlocal last
            last = piece or last
            echo(printable(piece), nl=False)

        try:
            yield show
        finally:
            if last and not last.endswith("\n"):
                echo()
        if not last:
            self.note("(no answer)")

    @contextmanager
    def progress(self) -> Generator[Progress]:
        """A spinner for what takes long; nothing where nobody sees it."""
        screen = console(stderr=True)
        if not screen.is_terminal:
            yield Unseen()
            return
        spinner = _Spinner(screen)
        try:
            yield spinner
        finally:
            spinner.stop()


class _Spinner:
    """`Progress` that begins to turn when it is told what is about to be done."""

    def __init__(self, screen: Console) -> None:
        self._screen = screen
        self._status = screen.status("")

    def announce(self, text: str) -> None:
        self._screen.print(Text(printable(text), style="dim"))
        self._status.start()

    def update(self, text: str) -> None:
        self._status.update(Text(printable(text)))

    def stop(self) -> None:
        self._status.stop()


def _edit_lines() -> None:
    """Let `input` edit lines and remember them, where Python can. Lines that are pasted together are one message."""
    with suppress(ImportError):  # no such module on this system: lines are read as they are
        import_module("readline").parse_and_bind("set enable-bracketed-paste on")


def _view(reply: Reply) -> RenderableType:
    if isinstance(reply.report, Context) and reply.report.messages:
        return context_view(reply.report)
    if _holds_facts(reply.report):
        return facts(cast("tuple[TracedFact, ...]", reply.report))
    return Text(printable(reply.text))


def _holds_facts(report: Any) -> bool:
    match report:
        case (TracedFact(), *_):
            return True
        case _:
            return False
