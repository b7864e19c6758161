"""The plan of a prepared statement as the server tells it: one that it keeps, or one that it makes for the values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec


async def prepare(connection: Any, text: str, values: Sequence[Any], *, analyze: bool = False) -> str:
    """Prepare the statement on the connection; what tells its plan for these values, as JSON. With `analyze` that runs
    it, too.
    """
    kinds = [kind.name for kind in (await connection.prepare(text)).get_parameters()]
    given = ", ".join(f"{_literal(value)}::{kind}" for value, kind in zip(values, kinds, strict=True))
    await connection.execute(f"PREPARE asked AS {text}")
    return f"EXPLAIN ({'ANALYZE, ' if analyze else ''}FORMAT JSON) EXECUTE asked{f'({given})' if given else ''}"


async def told(connection: Any, explained: str) -> Any:
    return msgspec.json.decode(await connection.fetchval(explained))[0]


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return f"ARRAY[{', '.join(map(_literal, value))}]"
    if value is None or isinstance(value, bool | int):
        return "NULL" if value is None else str(value)
    if isinstance(value, bytes):
        return rf"'\x{value.hex()}'"
    return "'" + str(value).replace("'", "''") + "'"
