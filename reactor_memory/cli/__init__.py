"""`reactor-memory`: the library for a person with a terminal, and for scripts.

Exit codes: 0 done, 1 done and something is wrong (`doctor`, `demo`, `eval`), 2 refused: nothing was changed, and one
line on stderr says why, 74 done as far as is known, but what it prints could not be written (a full disk), 130
interrupted. Whoever stops reading a pipe has seen enough: 0. A command imports what it needs when it runs, so help is
instant.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NoReturn

import click
from click.exceptions import NoArgsIsHelpError

from reactor_memory.cli.characters import echo_error, replace_unknown_characters
from reactor_memory.cli.lazy_group import Lazy, LazyGroup
from reactor_memory.errors import ReactorMemoryError
from reactor_memory.version import __version__

REFUSED = 2
UNWRITTEN = 74
INTERRUPTED = 130

commands = LazyGroup(
    help="""Memory that LLM agents can trust: what the model sees on its next turn, inside an exact token budget.

    Start with `reactor-memory demo`. Settings come from REACTOR_MEMORY_... variables and config/reactor-memory.yaml;
    `reactor-memory doctor` shows those in force.""",
    lazy={
        "demo": Lazy("reactor_memory.cli.demo:demo", "A long conversation in a small context, next to take-last."),
        "chat": Lazy("reactor_memory.cli.chat:chat", "Talk with a model, or offline with an echo, in a session."),
        "import": Lazy("reactor_memory.cli.transfer:import_", "Store the sessions of JSONL files."),
        "export": Lazy("reactor_memory.cli.transfer:export", "Write a session as a line of JSONL."),
        "copy": Lazy("reactor_memory.cli.copy:copy", "Copy sessions from one database to another."),
        "sessions": Lazy("reactor_memory.cli.sessions:sessions", "List sessions, newest activity first."),
        "show": Lazy("reactor_memory.cli.sessions:show", "Print the messages of a session."),
        "context": Lazy("reactor_memory.cli.memory:context", "Print what the model would see next, and why."),
        "search": Lazy("reactor_memory.cli.memory:search", "Find passages of a session by their words."),
        "facts": Lazy("reactor_memory.cli.memory:facts", "Print the facts that were found in a session."),
        "correct": Lazy("reactor_memory.cli.correct:correct", "Say what a fact of a session really is."),
        "retract": Lazy("reactor_memory.cli.correct:retract", "Say that a fact of a session is none."),
        "mute": Lazy("reactor_memory.cli.correct:mute", "Let no context say anything about a thing."),
        "pin": Lazy("reactor_memory.cli.pins:pin", "Keep a message or a fact in every context."),
        "unpin": Lazy("reactor_memory.cli.pins:unpin", "Take a pin back."),
        "pins": Lazy("reactor_memory.cli.pins:pins", "List what is pinned in a session."),
        "summarize": Lazy("reactor_memory.cli.memory:summarize", "Do the background work of a session now."),
        "fork": Lazy("reactor_memory.cli.sessions:fork", "Branch off a session at a message."),
        "archive": Lazy("reactor_memory.cli.sessions:archive", "Take messages of a session out of view."),
        "restore": Lazy("reactor_memory.cli.sessions:restore", "Bring archived messages of a session back."),
        "delete": Lazy("reactor_memory.cli.sessions:delete", "Delete a session and everything derived from it."),
        "erase": Lazy("reactor_memory.cli.erase:erase", "Destroy messages, or all there is of a user, for good."),
        "prune": Lazy("reactor_memory.cli.prune:prune", "Delete sessions that nobody has used for a while."),
        "eval": Lazy("reactor_memory.cli.eval:eval_", "Measure what contexts keep, by replaying sessions."),
        "bench": Lazy("reactor_memory.cli.bench:bench", "Measure the library beside the bare driver."),
        "migrate": Lazy("reactor_memory.cli.operations:migrate", "Bring the schema of the database up to date."),
        "worker": Lazy("reactor_memory.cli.operations:worker", "Do the background work of a database."),
        "serve": Lazy("reactor_memory.cli.serve:serve", "Serve the memory over HTTP, for many users and agents."),
        "chat-server": Lazy("reactor_memory.cli.serve:chat_server", "Serve a chat over HTTP, with a page."),
        "studio": Lazy("reactor_memory.cli.studio:studio", "Look into a database with a browser, on this machine."),
        "keys": Lazy("reactor_memory.cli.keys:keys", "Make, list and revoke the keys of agents."),
        "mcp": Lazy("reactor_memory.cli.tool_server:mcp", "Serve the memory as tools for MCP clients."),
        "plugin": Lazy("reactor_memory.cli.plugin_commands:plugin", "Run a command that a plug-in brings."),
        "doctor": Lazy("reactor_memory.cli.operations:doctor", "Check settings, plug-ins, tokenizer and database."),
    },
)
commands = click.version_option(__version__, prog_name="reactor-memory")(commands)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit with its code."""
    replace_unknown_characters()
    try:
        code = _run(arguments)
    except BaseExceptionGroup as errors:  # of tasks that ran beside each other
        code = _unwritten(_system_error(errors))
    except OSError as error:
        code = _unwritten(error)
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except OSError as error:
        code = code or _unwritten(error)
    sys.exit(code or 0)


def _run(arguments: Sequence[str] | None) -> int | None:
    try:
        return commands.main(arguments, prog_name="reactor-memory", standalone_mode=False)
    except NoArgsIsHelpError as error:
        error.show()
        return REFUSED
    except (click.ClickException, ReactorMemoryError) as error:
        return _refuse(error)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except SystemExit:  # click and rich end so when a pipe was closed, and nothing else does
        raise BrokenPipeError from None


def _system_error(errors: BaseExceptionGroup) -> OSError:
    """The one among them; raises the group if there is another error in it."""
    found, others = errors.split(OSError)
    if found is None or others is not None:
        raise errors
    return next(_leaves(found))


def _leaves(errors: BaseExceptionGroup[OSError]) -> Iterator[OSError]:
    for each in errors.exceptions:
        if isinstance(each, BaseExceptionGroup):
            yield from _leaves(each)
        else:
            yield each


def _unwritten(error: OSError) -> int:
    """What is left of the output is dropped: the interpreter would try to write it once more, and complain."""
    is_seen = isinstance(error, BrokenPipeError)
    if not is_seen:
        where = f"{error.filename}" if error.filename else "the output cannot be written"
        echo_error(f"{where}: {error.strerror or type(error).__name__}")
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return 0 if is_seen else UNWRITTEN


def _refuse(error: click.ClickException | ReactorMemoryError) -> int:
    text = error.format_message() if isinstance(error, click.ClickException) else str(error)
    if isinstance(error, click.MissingParameter) and error.ctx is not None:
        text = f"{text.rstrip('.')}. {error.ctx.get_usage()}"
    echo_error(" ".join(text.split()))
    return REFUSED


__all__ = ["main"]
