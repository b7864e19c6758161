"""Statements of SQL by name, parsed and compiled once for each engine.

A file of them holds named blocks with ``:name`` parameters. A block ``-- name: x`` serves both engines; a twin
``-- name: x [postgres]`` directly below replaces it on PostgreSQL. A line ``-- include: x`` stands for the text of
another block of the file; one that is no statement by itself begins with ``-- part: x``. For asyncpg the parameters
become ``$n``, one number a name; for SQLite ``?``, which it binds faster than names.

A comment ``-- by group: parts[1]`` says that a statement asks for several groups at once: `parts` is a JSON list of
lists with the group at place 1, and the key of each table is one of `group_ids`, an array of these groups. Where tables
are distributed, it is run for each group alone, whose key is a value then. ``-- passed on`` says that a statement names
whom its transaction is for: its columns are settings below ``reactor_memory.``, which then have to reach all shards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

_OWN_FILE = Path(__file__).with_name("statements.sql")

_HEADER = re.compile(r"^-- (name|part): (\w+)( \[postgres\])?$", re.MULTILINE)
_INCLUDE = re.compile(r"^-- include: (\w+)$", re.MULTILINE)
_BY_GROUP = re.compile(r"^-- by group: (\w+)\[(\d)\]$", re.MULTILINE)
_ONE_OF_GROUPS = re.compile(r"ANY\(:group_ids::text\[\]\)(?: AND group_id = \w+ ->> \d)?")
_COMMENT_LINE = re.compile(r"^--[^\n]*\n?", re.MULTILINE)
_LITERAL_OR_PARAMETER = re.compile(r"'(?:[^']|'')*'|::\w+|:([a-z_]\w*)")
_OVERWRITES = re.compile(
    r"\b(?:UPDATE|DELETE FROM)\s+(?:conversations|messages|entries|conversation_summaries|context_layouts)\b"
    r"(?!\s+SET last_seq = last_seq \+)"
)
"""What takes away or changes what a load may have read. A row that is put in the place of another is no such statement:
it says the same of the same messages, and newer. Nor is the counter of a session, which moves with what is appended.
"""


class ByGroup(NamedTuple):
    """Which parameter of a statement is a JSON list about several groups, and where the group stands in each item."""

    parameter: str
    place: int


class PostgresQuery(NamedTuple):
    """A statement with ``$n`` parameters, and which named value each number takes. `alone`: about one group, if it asks
    for several at once.
    """

    text: str
    parameters: tuple[str, ...]
    by_group: ByGroup | None = None
    is_passed_on: bool = False
    alone: PostgresQuery | None = None

    def arguments(self, values: Mapping[str, Any]) -> list[Any]:
        return [values[name] for name in self.parameters]


class SqliteQuery(NamedTuple):
    """A statement with ``?`` parameters, and what takes their values out of named ones. `overwrites`: what a load may
    have read.
    """

    text: str
    arguments: Callable[[Mapping[str, Any]], tuple[Any, ...]]
    overwrites: bool = False


class Block(NamedTuple):
    """A named block as it stands in the file, comments included."""

    name: str
    only_postgres: bool
    text: str

    @property
    def statement(self) -> str:
        return _COMMENT_LINE.sub("", self.text).strip()

    @property
    def by_group(self) -> ByGroup | None:
        found = _BY_GROUP.search(self.text)
        return None if found is None else ByGroup(found[1], int(found[2]))

    @property
    def is_passed_on(self) -> bool:
        return "\n-- passed on\n" in f"\n{self.text}\n"


def parse(source: str) -> tuple[Block, ...]:
    """The statements of a file of queries, in its order."""
    headers = list(_HEADER.finditer(source))
    ends = [header.start() for header in headers[1:]] + [len(source)]
    texts = [source[header.end() : end].strip() for header, end in zip(headers, ends, strict=True)]
    named = {header[2]: text for header, text in zip(headers, texts, strict=True)}
    return tuple(
        Block(header[2], header[3] is not None, _INCLUDE.sub(lambda include: named[include[1]], text))
        for header, text in zip(headers, texts, strict=True)
        if header[1] == "name"
    )


def to_numbered(text: str) -> PostgresQuery:
    """Replace ``:name`` by ``$n``; string literals and ``::casts`` are left alone."""
    numbers: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        name = match[1]
        return match[0] if name is None else f"${numbers.setdefault(name, len(numbers) + 1)}"

    numbered = _LITERAL_OR_PARAMETER.sub(number, text)
    return PostgresQuery(numbered, tuple(numbers))


def to_positional(text: str) -> SqliteQuery:
    """Replace every ``:name`` by ``?``; string literals are left alone."""
    names: list[str] = []

    def position(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        names.append(match[1])
        return "?"

    return SqliteQuery(_LITERAL_OR_PARAMETER.sub(position, text), _values_of(names), bool(_OVERWRITES.search(text)))


def _values_of(names: Sequence[str]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """`itemgetter` takes many values at the speed of C, but it gives no tuple of fewer than two."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: tuple(values[name] for name in names)


class Statements:
    """The statements of the files, and those of the seam itself; compiled for an engine when it is first asked for."""

    def __init__(self, *files: Path) -> None:
        self._files = (_OWN_FILE, *files)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        return parse("\n\n".join(file.read_text(encoding="utf-8") for file in self._files))

    @cached_property
    def sqlite(self) -> Mapping[str, SqliteQuery]:
        return {block.name: to_positional(block.statement) for block in self.blocks if not block.only_postgres}

    @cached_property
    def postgres(self) -> Mapping[str, PostgresQuery]:
        """A twin stands below its portable block, so it wins."""
        return {block.name: _for_postgres(block) for block in self.blocks}


def _for_postgres(block: Block) -> PostgresQuery:
    query = to_numbered(block.statement)._replace(by_group=block.by_group, is_passed_on=block.is_passed_on)
    return query if block.by_group is None else query._replace(alone=to_numbered(about_one_group(block.statement)))


def about_one_group(statement: str) -> str:
    """A kept plan opens the shard of a value alone; that of one of an array, or of a part of JSON, it does not know."""
    return _ONE_OF_GROUPS.sub(":group_id::text", statement)
