"""``python -m benchmarks.corpora``: session files out of corpora."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import click
import msgspec

from benchmarks.corpora import schema_guided, taskmaster
from benchmarks.corpora.joining import join
from reactor_memory.evaluation.sessions import LabelledSession
from reactor_memory.evaluation.transcripts import to_line

_PATH = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group()
def main() -> None:
    """Make session files for `reactor-memory eval` out of your own copy of a corpus. Nothing is downloaded."""


def _command(body: Callable[..., Any]) -> Callable[..., Any]:
    """The options that both corpora have."""
    for option in (
        click.option("--seed", type=int, default=0, show_default=True, help="Of the invented times."),
        click.option("--sessions", type=click.IntRange(min=1), help="Only so many sessions."),
        click.option("--out", type=click.Path(path_type=Path), required=True, help="JSONL; gzip if it ends in .gz."),
        click.argument("files", nargs=-1, required=True, type=_PATH),
    ):
        body = option(body)
    return body


@main.command("schema-guided")
@click.option("--schema", type=_PATH, required=True, help="schema.json of the same part of the corpus.")
@click.option("--per-session", type=click.IntRange(min=1), default=24, show_default=True)
@_command
def make_schema_guided(schema: Path, per_session: int, **options: Any) -> None:
    """Sessions out of dialogues_*.json of Schema-Guided Dialogue."""
    services = _decoded(schema, schema_guided.read_schema)
    _write(lambda text: schema_guided.read_dialogues(text, services), per_session, prefix="sgd", **options)
    click.echo(schema_guided.LICENCE, err=True)


@main.command("taskmaster")
@click.option("--per-session", type=click.IntRange(min=1), default=45, show_default=True)
@_command
def make_taskmaster(per_session: int, **options: Any) -> None:
    """Sessions out of data_*.json of Taskmaster-4."""
    _write(taskmaster.read_conversations, per_session, prefix="tm4", **options)
    click.echo(taskmaster.LICENCE, err=True)


def _write(
    read: Callable[[bytes], Iterator[LabelledSession]],
    per_session: int,
    *,
    prefix: str,
    files: tuple[Path, ...],
    out: Path,
    sessions: int | None,
    seed: int,
) -> None:
    dialogues = (dialogue for file in files for dialogue in _decoded(file, lambda text: list(read(text))))
    joined = islice(join(dialogues, per_session, prefix=prefix, seed=seed), sessions)
    lines = [to_line(session.name, session.messages, session.probes) for session in joined]
    if not lines:
        raise click.ClickException(f"the files hold fewer than {per_session} dialogues: see --per-session")
    out.write_bytes(_packed(lines) if out.suffix == ".gz" else b"".join(lines))


def _packed(lines: Iterable[bytes]) -> bytes:
    return gzip.compress(b"".join(lines), mtime=0)


def _decoded(file: Path, read: Callable[[bytes], Any]) -> Any:
    try:
        return read(file.read_bytes())
    except msgspec.DecodeError as error:
        raise click.ClickException(f"{file}: {error}; see benchmarks/README.md for the files that are wanted") from None


if __name__ == "__main__":
    sys.exit(main())
