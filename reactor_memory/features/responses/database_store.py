"""Responses that are being written, in the database of the log."""

from __future__ import annotations

from collections.abc import Sequence

from reactor_memory.database.database import Database
from reactor_memory.features.responses import operations as responses
from reactor_memory.features.responses.models import Addition, Ending, Piece, Response


class SqlResponseStore:
    """`ResponseStore` over the database of the log, which takes responses away together with their messages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def open(self) -> None:
        await self._database.open()

    async def close(self) -> None:
        await self._database.close()

    async def start_response(self, response: Response, *, keep_until: int) -> Response:
        return await self._database.write(responses.start_response, response, keep_until=keep_until)

    async def append_pieces(self, addition: Addition) -> Response | None:
        return await self._database.write_relaxed(responses.append_pieces, addition)

    async def finish_response(self, ending: Ending) -> Response | None:
        return await self._database.write(responses.finish_response, ending)

    async def request_stop(self, conversation_id: str, response_id: str, *, now: int) -> Response | None:
        return await self._database.write(responses.request_stop, conversation_id, response_id, now=now)

    async def get_response(self, conversation_id: str, response_id: str) -> Response | None:
        return await self._database.read(responses.get_response, conversation_id, response_id)

    async def list_responses(self, conversation_ids: Sequence[str], *, limit: int) -> tuple[Response, ...]:
        return await self._database.read(responses.list_responses, conversation_ids, limit=limit)

    async def read_pieces(self, conversation_id: str, response_id: str, *, after: int, limit: int) -> tuple[Piece, ...]:
        return await self._database.read(responses.read_pieces, conversation_id, response_id, after=after, limit=limit)

    async def forget_responses(self, conversation_ids: Sequence[str]) -> None:
        await self._database.write(responses.forget_responses, conversation_ids)

    async def forget_answers(self, conversation_ids: Sequence[str], message_ids: Sequence[str]) -> None:
        await self._database.write(responses.forget_answers, conversation_ids, message_ids)

    async def remove_expired_responses(self, *, now: int, keep_microseconds: int, limit: int = 1000) -> int:
        return await self._database.write(
            responses.remove_expired_responses, now=now, keep_microseconds=keep_microseconds, limit=limit
        )
