"""Responses that are being written in Redis, or Valkey: a hash and a stream for each.

Everything there has a time to live, so nothing is to be cleared away, and everything may be gone: what the server lost
is an unknown response, never a part of one. Many readers of one response share the one connection that waits for it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import quote

import anyio
from msgspec import structs
from redis import exceptions
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff

from reactor_memory.errors import StoreCorruptError, StoreError, StoreFullError, StoreUnavailableError
from reactor_memory.features.responses.models import Addition, Ending, Piece, Response, check_size, gap
from reactor_memory.features.responses.redis_scripts import APPEND, FINISH, FORGET, START, STOP

MAX_CONNECTIONS = 64
MAX_WAITING = 32
"""Connections that wait for entries of a stream; beyond that responses are looked at now and then."""

_MAX_BLOCK_SECONDS = 2.0  # below the socket timeout, so that a server that hangs is noticed
_POLL_SECONDS = 0.1
_RETRIES = 3
_TO_MILLISECONDS = 1000

_NUMBERS = ("fence", "last_event", "size", "created_at", "updated_at", "expires_at")


class _Keys(NamedTuple):
    """Ids are quoted, so that no brace of theirs ends the hash tag."""

    root: str

    @classmethod
    def of(cls, prefix: str, conversation_id: str) -> _Keys:
        return cls(f"{prefix}:{{{quote(conversation_id, safe='')}}}")

    @property
    def listed(self) -> str:
        return f"{self.root}:listed"

    @property
    def fences(self) -> str:
        return f"{self.root}:fences"

    def response(self, response_id: str) -> str:
        return f"{self.root}:response:{response_id}"

    def pieces(self, response_id: str) -> str:
        return f"{self.root}:pieces:{response_id}"

    def all_of(self, response_id: str) -> list[str]:
        return [self.listed, self.fences, self.response(response_id), self.pieces(response_id)]


class RedisResponses:
    """A `ResponseStore` with signals. `url` is ``redis://``, ``rediss://``, ``unix://``, or the same with ``valkey``.

    A running response lives on for `keep_microseconds` after it expired. Nothing is asked of the server before the
    first call; one that is away is a `StoreUnavailableError`, and is found again when it is back.
    """

    def __init__(self, url: str, *, keep_microseconds: int, prefix: str = "reactor-memory") -> None:
        self._keep_microseconds = keep_microseconds
        self._prefix = prefix
        retry = Retry(ExponentialBackoff(cap=0.5, base=0.05), _RETRIES)
        # The pool's own types are unknown to pyright
        pool: Any = BlockingConnectionPool.from_url(  # pyright: ignore[reportUnknownMemberType]
            _as_redis(url), max_connections=MAX_CONNECTIONS, timeout=5, retry=retry, decode_responses=True
        )
        self._client: Any = Redis(connection_pool=pool)
        self._waiting = anyio.CapacityLimiter(MAX_WAITING)
        self._start, self._append, self._finish, self._stop, self._forget = map(
            self._client.register_script, (START, APPEND, FINISH, STOP, FORGET)
        )

    async def open(self) -> None:
        """Nothing to do: the pool connects when it is asked."""

    async def close(self) -> None:
        await self._client.connection_pool.disconnect()

    async def start_response(self, response: Response, *, keep_until: int) -> Response:
        keys, now = self._keys(response.conversation_id), response.created_at
        arguments = (
            response.response_id,
            keys.response(""),
            keys.pieces(""),
            now,
            keep_until,
            _milliseconds(keep_until - now),
            self._ttl(now=now, expires_at=response.expires_at),
        )
        with _translated():
            answer = await self._start(keys.all_of(response.response_id), [*arguments, *_fields(response)])
        return _required(_response(answer))

    async def append_pieces(self, addition: Addition) -> Response | None:
        keys = self._keys(addition.conversation_id)
        arguments = (
            addition.client_id,
            addition.fence,
            addition.now,
            addition.expires_at,
            self._ttl(now=addition.now, expires_at=addition.expires_at),
            addition.first_event,
            addition.max_events,
            addition.max_size,
        )
        with _translated():
            answer = await self._append(keys.all_of(addition.response_id), [*arguments, *addition.texts])
        _refuse(answer, addition)
        return _response(answer)

    async def finish_response(self, ending: Ending) -> Response | None:
        fields = {"state": ending.state, "expires_at": ending.expires_at, "message_id": ending.message_id}
        ttl = _milliseconds(ending.expires_at - ending.now)
        arguments = (ending.client_id, ending.fence, ending.now, ttl, *_pairs(fields))
        with _translated():
            answer = await self._finish(self._both(ending.conversation_id, ending.response_id), arguments)
        return _response(answer)

    async def request_stop(self, conversation_id: str, response_id: str, *, now: int) -> Response | None:
        with _translated():
            return _response(await self._stop(self._both(conversation_id, response_id), [now]))

    async def get_response(self, conversation_id: str, response_id: str) -> Response | None:
        with _translated():
            return _from_fields(await self._client.hgetall(self._keys(conversation_id).response(response_id)))

    async def list_responses(self, conversation_ids: Sequence[str], *, limit: int) -> tuple[Response, ...]:
        found: list[Response] = []
        for keys in map(self._keys, conversation_ids):
            with _translated():
                ids = await self._client.zrevrange(keys.listed, 0, limit - 1)
                pipeline = self._client.pipeline(transaction=False)
                for response_id in ids:
                    pipeline.hgetall(keys.response(response_id))
                responses = map(_from_fields, await pipeline.execute())
            found += [response for response in responses if response is not None]
        return tuple(found)

    async def read_pieces(self, conversation_id: str, response_id: str, *, after: int, limit: int) -> tuple[Piece, ...]:
        key, pieces = self._keys(conversation_id).pieces(response_id), list[Piece]()
        start = f"{after + 1}-0"
        while len(pieces) < limit:
            with _translated():
                entries = await self._client.xrange(key, start, "+", count=limit)
            if not entries:
                break
            pieces += [_piece(entry) for entry in entries if "text" in entry[1]]
            start = f"({entries[-1][0]}"
        return tuple(pieces[:limit])

    async def forget_responses(self, conversation_ids: Sequence[str]) -> None:
        for keys in map(self._keys, conversation_ids):
            with _translated():
                await self._forget([keys.listed], [keys.response(""), keys.pieces("")])

    async def forget_answers(self, conversation_ids: Sequence[str], message_ids: Sequence[str]) -> None:
        if not message_ids:
            return
        for keys in map(self._keys, conversation_ids):
            with _translated():
                await self._forget([keys.listed], [keys.response(""), keys.pieces(""), *message_ids])

    async def remove_expired_responses(self, *, now: int, keep_microseconds: int, limit: int = 1000) -> int:
        """The server removes them itself."""
        return 0

    async def wait_for_change(self, known: Response, *, timeout_seconds: float) -> Response | None:
        """As `ResponseSignals`, and it may come back sooner with nothing new."""
        newest, latest = await self._newest_entry(known)
        if latest != known:
            return latest
        async with self._place_to_wait() as is_free:
            if is_free:
                await self._next_entry(known, newest, min(timeout_seconds, _MAX_BLOCK_SECONDS))
            else:
                await anyio.sleep(min(timeout_seconds, _POLL_SECONDS))
        return await self.get_response(known.conversation_id, known.response_id)

    async def _newest_entry(self, known: Response) -> tuple[str, Response | None]:
        """The newest entry of the stream together with the response: whatever changes later adds an entry behind it."""
        response, pieces = self._both(known.conversation_id, known.response_id)
        pipeline = self._client.pipeline()
        pipeline.xrevrange(pieces, count=1)
        pipeline.hgetall(response)
        with _translated():
            entries, fields = await pipeline.execute()
        return (entries[0][0] if entries else "0-0"), _from_fields(fields)

    async def _next_entry(self, known: Response, behind: str, seconds: float) -> None:
        key = self._keys(known.conversation_id).pieces(known.response_id)
        with _translated():
            await self._client.xread({key: behind}, count=1, block=max(1, int(seconds * 1000)))

    @asynccontextmanager
    async def _place_to_wait(self) -> AsyncGenerator[bool]:
        try:
            self._waiting.acquire_nowait()
        except anyio.WouldBlock:
            yield False
            return
        try:
            yield True
        finally:
            self._waiting.release()

    def _keys(self, conversation_id: str) -> _Keys:
        return _Keys.of(self._prefix, conversation_id)

    def _both(self, conversation_id: str, response_id: str) -> list[str]:
        keys = self._keys(conversation_id)
        return [keys.response(response_id), keys.pieces(response_id)]

    def _ttl(self, *, now: int, expires_at: int) -> int:
        return _milliseconds(expires_at - now + self._keep_microseconds)


def _as_redis(url: str) -> str:
    return f"redis{url.removeprefix('valkey')}" if url.startswith("valkey") else url


def _milliseconds(microseconds: int) -> int:
    return max(1, microseconds // _TO_MILLISECONDS)


def _fields(response: Response) -> list[Any]:
    """But for the fence, which the server gives."""
    fields = structs.asdict(response) | {"stop_requested": +response.stop_requested, "fence": None}
    return _pairs(fields)


def _pairs(fields: Mapping[str, Any]) -> list[Any]:
    return list(chain.from_iterable((name, value) for name, value in fields.items() if value is not None))


def _response(answer: Sequence[str]) -> Response | None:
    return _from_fields(dict(zip(answer[1::2], answer[2::2], strict=True)))


def _from_fields(fields: Mapping[str, str]) -> Response | None:
    if not fields:
        return None
    values: dict[str, Any] = {**fields}
    values["stop_requested"] = fields["stop_requested"] == "1"
    values.update({name: int(fields[name]) for name in _NUMBERS})
    return Response(**values)


def _required(response: Response | None) -> Response:
    if response is None:
        raise StoreCorruptError("stream store: answered with nothing to a new response")
    return response


def _refuse(answer: Sequence[str], addition: Addition) -> None:
    refusal, numbers = answer[0], dict(zip(answer[1::2], answer[2::2], strict=True))
    if refusal == "gap":
        raise gap(int(numbers["last_event"]))
    if refusal == "large":
        check_size(last_event=int(numbers["last_event"]), size=int(numbers["size"]), addition=addition)


def _piece(entry: tuple[str, Mapping[str, str]]) -> Piece:
    entry_id, fields = entry
    return Piece(event=int(entry_id.partition("-")[0]), text=fields["text"])


@contextmanager
def _translated() -> Generator[None]:
    """Errors of the driver as our own, without their texts: these may hold the address."""
    try:
        yield
    except exceptions.OutOfMemoryError:
        raise StoreFullError("stream store: the memory of the server is full; try again later") from None
    except (
        exceptions.ConnectionError,
        exceptions.TimeoutError,
        exceptions.ReadOnlyError,
        exceptions.ClusterDownError,
        OSError,
    ):
        raise StoreUnavailableError("stream store: cannot be reached; check that it runs, then try again") from None
    except exceptions.RedisError as error:
        raise StoreError(f"stream store: the server failed ({type(error).__name__})") from None
