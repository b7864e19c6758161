"""How streamed responses are wired."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactor_memory.errors import ConfigurationError, MissingExtraError

if TYPE_CHECKING:
    from reactor_memory.database.database import Database
    from reactor_memory.features.responses.models import ResponseStore
    from reactor_memory.features.responses.response_streams import StreamBackend, StreamOptions
    from reactor_memory.settings.settings import Settings


LEAST_POLL_SECONDS, MOST_POLL_SECONDS = 0.05, 1.0
"""How often to look for what other processes wrote: the pauses grow from the first to the second."""

EXPIRES_SECONDS = 120.0
"""A response whose producer is silent for so long is given up."""

HEARTBEAT_SECONDS = 15.0
"""A stream with nothing new sends a comment this often, so that nothing in between cuts it off."""

MOST_OPEN = 50
"""Streams that one caller may read at a time, in one process."""

RECHECK_SECONDS = 30.0
"""How often it is checked that readers still may read."""

MAX_PIECES = 100_000
"""Of one response."""


def sql_stream_store(database: Database) -> ResponseStore:
    from reactor_memory.features.responses.database_store import SqlResponseStore

    return SqlResponseStore(database)


def redis_stream_store(settings: Settings) -> ResponseStore:
    try:
        from reactor_memory.features.responses.redis_store import RedisResponses
    except ImportError:
        raise MissingExtraError("streams.backend", package="redis", extra="redis") from None
    streams = settings.streams
    if streams.redis_url is None:
        raise ConfigurationError("streams.redis_url", "is not set: say where Redis or Valkey is")
    try:
        return RedisResponses(streams.redis_url.get_secret_value(), keep_microseconds=int(streams.keep_seconds * 1e6))
    except ValueError:
        raise ConfigurationError(
            "streams.redis_url", "is no address of a server, such as redis://host:6379/0"
        ) from None


def stream_backend_of(store: ResponseStore | None, settings: Settings) -> StreamBackend | None:
    """A store that tells of no changes is polled."""
    if store is None:
        return None
    from reactor_memory.features.responses.models import ResponseSignals
    from reactor_memory.features.responses.polling import PolledSignals
    from reactor_memory.features.responses.response_streams import StreamBackend
    from reactor_memory.features.responses.watch import Watches

    if isinstance(store, ResponseSignals):
        return StreamBackend(store, Watches(store))
    polled = PolledSignals(store, min_seconds=LEAST_POLL_SECONDS, max_seconds=MOST_POLL_SECONDS)
    return StreamBackend(store, Watches(polled))


def stream_options(settings: Settings) -> StreamOptions:
    from reactor_memory.features.responses.reader import FollowOptions
    from reactor_memory.features.responses.response_streams import StreamOptions

    streams = settings.streams
    return StreamOptions(
        expires_microseconds=int(EXPIRES_SECONDS * 1e6),
        max_size=streams.max_bytes,
        max_events=MAX_PIECES,
        max_open=MOST_OPEN,
        follow=FollowOptions(
            keep_microseconds=int(streams.keep_seconds * 1e6),
            recheck_seconds=RECHECK_SECONDS,
            heartbeat_seconds=HEARTBEAT_SECONDS,
        ),
    )
