"""Characters that a terminal or a pipe cannot hold: stdout and stderr replace them, and JSON escapes them."""

from __future__ import annotations

import codecs
import re
import shutil
import sys
import textwrap
from contextlib import suppress
from io import TextIOWrapper

import click

LOOKALIKES = str.maketrans(
    {
        "…": "...",
        "→": "->",
        "–": "-",
        "—": "-",
        "─": "-",
        "━": "-",
        "·": "-",
        "•": "*",
        "‘": "'",
        "’": "'",
        "“": '"',
        "”": '"',
        "µ": "u",
        "€": "EUR",
    }
)
"""What a reader takes for the same; everything else becomes a question mark."""

HANDLER = "reactor_memory.lookalikes"
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def replace_unknown_characters() -> None:
    """Let stdout and stderr, whatever their encoding, print every text."""
    codecs.register_error(HANDLER, _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=HANDLER)


def echo(text: str = "", *, nl: bool = True, err: bool = False) -> None:
    """As `click.echo`, which would write UTF-8 where the encoding is ASCII."""
    click.echo(text, file=sys.stderr if err else sys.stdout, nl=nl)


def echo_error(text: str) -> None:
    """One line on stderr, if that can be written; on a terminal as many as it takes, broken between words."""
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison] (it was closed before we began)
        return
    line = f"error: {text}"
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        line = textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
    with suppress(OSError):
        echo(line, err=True)


def json_for_stdout(text: str) -> str:
    """JSON of the same value, with escapes if stdout may not hold all characters."""
    encoding = codecs.lookup(getattr(sys.stdout, "encoding", None) or "utf-8").name
    return text if encoding == "utf-8" else _NOT_ASCII.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    """As JSON has it: characters beyond the first plane are a pair of surrogates."""
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = error.object[error.start : error.end].translate(LOOKALIKES)
    return _NOT_ASCII.sub("?", found), error.end
