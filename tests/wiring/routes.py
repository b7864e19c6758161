"""Where a statement goes when tables are distributed: the value that each of its tables' keys is compared with.

Tables and keys are read from the migrations: the key is the column that a primary key begins with.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import sqlglot
from sqlglot import exp

from reactor_memory.core.log.placement import KEYS
from reactor_memory.database.migrations import migration_statements
from reactor_memory.database.schema import REVISION_TABLE

Term: TypeAlias = tuple[str, ...]
"""A column of a source (`column`, number of the source, name), a parameter (`value`, its name), or one of several that
a parameter holds (`each`, its name)."""

_ROUTES = ("value", "each")
_CALLED = re.compile(r"\b([a-z_]\w*)\(")


class Source(NamedTuple):
    """A table, a query or a function that rows come from."""

    number: str
    table: str | None
    columns: Mapping[str, Term | None]


class Route(NamedTuple):
    table: str
    key: str
    by: str | None
    """The parameter that the key is; with ``[]`` one of several. None: every shard is asked."""


@cache
def tables() -> Mapping[str, tuple[str, ...]]:
    """The columns of each table on PostgreSQL."""
    found: dict[str, tuple[str, ...]] = {}
    for statement in _creations():
        schema = statement.this
        found[schema.this.name] = tuple(each.name for each in schema.expressions if isinstance(each, exp.ColumnDef))
    return found


@cache
def placements() -> Mapping[str, str | None]:
    """The column by which each table is distributed; None for one that every shard has a copy of."""
    found: dict[str, str | None] = {}
    for statement in _creations():
        (primary,) = statement.find_all(exp.PrimaryKey)
        first = primary.expressions[0].name
        found[statement.this.this.name] = first if first in KEYS else None
    return found


@cache
def _creations() -> tuple[exp.Create, ...]:
    texts = [each for each in migration_statements("postgresql", None) if "CREATE TABLE" in each]
    parsed = [sqlglot.parse_one(text[text.index("CREATE TABLE") :], dialect="postgres") for text in texts]
    return tuple(each for each in parsed if isinstance(each, exp.Create) and each.this.this.name != REVISION_TABLE)


def parsed(text: str) -> exp.Expression:
    return sqlglot.parse_one(text.replace("<#>", "-"), dialect="postgres")  # an operator of pgvector


def routes(statement: exp.Expression) -> list[Route]:
    return _Reader().read(statement)


def is_routed(statement: exp.Expression, *, is_by_group: bool = False) -> bool:
    """Whether one value leads all tables of the statement to one shard, or one of several where it is run for each."""
    ways = {route.by for route in routes(statement)}
    return not ways or (len(ways) == 1 and None not in ways and (is_by_group or "[]" not in str(ways)))


def faults(text: str, changing: Collection[str], *, is_by_group: bool = False) -> list[str]:
    """Why shards cannot do what the statement says. `changing`: functions that the server does not call immutable."""
    statement = parsed(text)
    found = [f"calls {name}" for name in sorted(_CALLED.findall(text.lower())) if name in changing]
    if is_routed(statement, is_by_group=is_by_group):
        return found if routes(statement) else []
    if list(statement.find_all(exp.Lateral)):
        found.append("LATERAL on several shards")
    if isinstance(statement, exp.Insert) or list(statement.find_all(exp.Insert)):
        found.append("writes to several shards")
    return [*found, f"asks every shard for {', '.join(sorted({each.table for each in routes(statement)}))}"]


class _Reader:
    def __init__(self) -> None:
        self._same: dict[Term, Term] = {}
        self._keys: list[tuple[str, str, Term]] = []
        self._found: list[Route] = []
        self._count = 0

    def read(self, statement: exp.Expression) -> list[Route]:
        self._any(statement, (), {})
        self._settle()
        return self._found

    def _settle(self) -> None:
        self._found += [Route(table, key, self._value_of(term)) for table, key, term in self._keys]
        self._keys = []

    def _value_of(self, term: Term) -> str | None:
        alike = [other for other in {*self._same, *self._same.values(), term} if self._root(other) == self._root(term)]
        values = [f"{each[1]}[]" if each[0] == "each" else each[1] for each in alike if each[0] in _ROUTES]
        return min(values, default=None)

    # -- statements

    def _any(self, node: exp.Expression, outer: tuple[Source, ...], named: Mapping[str, Source]) -> Source:
        named = dict(named)
        with_ = node.args.get("with_") or node.args.get("with")
        for cte in with_.expressions if with_ is not None else ():
            named[cte.alias] = self._any(cte.this, outer, named)
        if isinstance(node, exp.Subquery | exp.Paren):
            return self._any(node.this, outer, named)
        if isinstance(node, exp.SetOperation):
            left = self._any(node.left, outer, named)
            self._any(node.right, outer, named)
            return self._source(None, dict.fromkeys(left.columns))
        if isinstance(node, exp.Select):
            return self._select(node, outer, named)
        if isinstance(node, exp.Insert):
            return self._insert(node, outer, named)
        if isinstance(node, exp.Update | exp.Delete):
            return self._change(node, outer, named)
        return self._source(None, {})

    def _change(self, node: exp.Update | exp.Delete, outer: tuple[Source, ...], named: Mapping[str, Source]) -> Source:
        source = self._from(node.this, (), named)
        self._compare(node.args.get("where"), (source, *outer))
        self._inner(node.args.get("where"), (source, *outer), named)
        for each in node.expressions if isinstance(node, exp.Update) else ():
            self._inner(each, (source, *outer), named)
        return self._returning(node, source)

    def _select(self, node: exp.Select, outer: tuple[Source, ...], named: Mapping[str, Source]) -> Source:
        joins = list(node.args.get("joins") or ())
        sources = self._sources(node, joins, outer, named)
        seen = (*sources, *outer)
        for join in joins:
            self._compare_joined(join, sources, seen)
        self._compare(node.args.get("where"), seen)
        for join in joins:
            self._inner(join.args.get("on"), seen, named)
        for part in ("where", "having", "order", "limit", "group"):
            self._inner(node.args.get(part), seen, named)
        columns: dict[str, Term | None] = {}
        for each in node.expressions:
            self._inner(each, seen, named)
            if isinstance(each, exp.Star) or (isinstance(each, exp.Column) and isinstance(each.this, exp.Star)):
                for source in sources:
                    columns |= {name: self._column_of(source, name) for name in source.columns}
            else:
                columns[each.alias_or_name] = self._term(each.unalias(), seen)
        return self._source(None, columns)

    def _sources(
        self, node: exp.Select, joins: list[exp.Join], outer: tuple[Source, ...], named: Mapping[str, Source]
    ) -> tuple[Source, ...]:
        from_ = node.args.get("from_") or node.args.get("from")
        sources = () if from_ is None else (self._from(from_.this, outer, named),)
        for join in joins:
            sources = (*sources, self._from(join.this, (*sources, *outer), named))
        return sources

    def _compare_joined(self, join: exp.Join, sources: tuple[Source, ...], seen: tuple[Source, ...]) -> None:
        only = next(each for each in sources if each.number.startswith(f"{join.this.alias_or_name}#"))
        self._compare(join.args.get("on"), seen, only if join.side == "LEFT" else None)
        for column in join.args.get("using") or ():
            terms = [term for each in sources if (term := self._column_of(each, column.name)) is not None]
            for left, right in pairwise(terms):
                self._unite(left, right)

    def _insert(self, node: exp.Insert, outer: tuple[Source, ...], named: Mapping[str, Source]) -> Source:
        table = node.this.this.name
        names = [each.name for each in node.this.expressions]
        target = self._table(table)
        key = placements().get(table)
        if isinstance(node.expression, exp.Values):
            rows = [dict(zip(names, row.expressions, strict=True)) for row in node.expression.expressions]
            given = {self._term(row.get(key or ""), outer) for row in rows}
            if len(given) == 1:
                self._unite(self._column_of(target, key or ""), given.pop())
            for row in rows:
                for value in row.values():
                    self._inner(value, outer, named)
        else:
            made = self._any(node.expression, outer, named)
            for name, term in zip(names, made.columns.values(), strict=False):
                if name == key:
                    self._unite(self._column_of(target, name), term)
        return self._returning(node, target)

    def _returning(self, node: exp.Expression, source: Source) -> Source:
        given = node.args.get("returning")
        columns = (
            {each.alias_or_name: self._term(each.unalias(), (source,)) for each in given.expressions} if given else {}
        )
        return self._source(None, columns)

    # -- sources

    def _from(self, node: exp.Expression, outer: tuple[Source, ...], named: Mapping[str, Source]) -> Source:
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            name = node.name
            found = named[name] if name in named else self._table(name)
        elif isinstance(node, exp.Subquery):
            found = self._any(node.this, (), named)
        elif isinstance(node, exp.Lateral):
            found = self._any(node.this, outer, named)
        else:
            found = self._source(None, {})
        return found._replace(number=f"{node.alias_or_name}#{found.number}")

    def _table(self, name: str) -> Source:
        columns = tables().get(name, ())
        source = self._source(name if columns else None, dict.fromkeys(columns))
        key = placements().get(name)
        if key is not None:
            self._keys.append((name, key, ("column", source.number, key)))
        return source

    def _source(self, table: str | None, columns: Mapping[str, Term | None]) -> Source:
        self._count += 1
        return Source(str(self._count), table, columns)

    def _column_of(self, source: Source, name: str) -> Term | None:
        if name not in source.columns:
            return None
        return ("column", source.number.rpartition("#")[2], name) if source.table else source.columns[name]

    def _term(self, node: exp.Expression | None, seen: tuple[Source, ...]) -> Term | None:
        while isinstance(node, exp.Cast | exp.Paren):
            node = node.this
        if isinstance(node, exp.Placeholder):
            return ("value", node.name)
        if isinstance(node, exp.Literal) and node.is_string:
            return ("value", repr(node.name))
        if isinstance(node, exp.Column):
            for source in seen:
                alias = source.number.partition("#")[0]
                if (not node.table or node.table in (alias, source.table)) and node.name in source.columns:
                    return self._column_of(source, node.name)
        return None

    # -- conditions

    def _compare(self, node: exp.Expression | None, seen: tuple[Source, ...], only: Source | None = None) -> None:
        """`only`: the source that a condition of an outer join binds."""
        for each in _conjuncts(node.this if isinstance(node, exp.Where) else node):
            if isinstance(each, exp.EQ):
                left, right = self._term(each.this, seen), self._compared(each.expression, seen)
                if only is None or right is None or right[0] not in _ROUTES or left in self._columns_of(only):
                    self._unite(left, right)

    def _compared(self, node: exp.Expression, seen: tuple[Source, ...]) -> Term | None:
        if isinstance(node, exp.Any):
            inner = self._term(node.this, seen)
            return None if inner is None else ("each", inner[1])
        return self._term(node, seen)

    def _columns_of(self, source: Source) -> set[Term | None]:
        return {self._column_of(source, name) for name in source.columns}

    def _inner(self, node: exp.Expression | None, seen: tuple[Source, ...], named: Mapping[str, Source]) -> None:
        """Queries inside an expression: what they compare binds their own rows alone."""
        if node is None:
            return
        if isinstance(node, exp.Select | exp.SetOperation):
            outside = (self._same, self._keys)
            self._same, self._keys = dict(self._same), []
            self._any(node, seen, named)
            self._settle()
            self._same, self._keys = outside
            return
        for child in node.iter_expressions():
            self._inner(child, seen, named)

    def _unite(self, left: Term | None, right: Term | None) -> None:
        if left is not None and right is not None:
            self._same[self._root(left)] = self._root(right)
            self._same.setdefault(left, self._root(right))

    def _root(self, term: Term) -> Term:
        while (above := self._same.get(term, term)) != term:
            term = above
        return term


def _conjuncts(node: exp.Expression | None) -> Iterator[exp.Expression]:
    if isinstance(node, exp.And):
        yield from _conjuncts(node.this)
        yield from _conjuncts(node.expression)
    elif isinstance(node, exp.Paren):
        yield from _conjuncts(node.this)
    elif node is not None:
        yield node
