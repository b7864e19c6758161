"""What the library brings along: a plug-in like any other, of the lowest order."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from reactor_memory.core.context.strategy import Strategy, TakeLast
from reactor_memory.database.database import Database
from reactor_memory.errors import ConfigurationError
from reactor_memory.wiring.plugins import Plugin
from reactor_memory.wiring.queries import QUERIES
from reactor_memory.wiring.selection import (
    PROGRESSIVE,
    estimate_counter,
    imported,
    quicktok_counter,
    scheme_of,
    tiktoken_counter,
)
from reactor_memory.wiring.settings import Settings

if TYPE_CHECKING:
    from reactor_memory.core.ports import Redactor


def system_clock(settings: Settings) -> Callable[[], int]:
    return lambda: time.time_ns() // 1000


def memory_database(settings: Settings) -> Database:
    from reactor_memory.database.sqlite_memory import MemoryDatabase

    return MemoryDatabase(QUERIES, timeout_seconds=settings.store.timeout_seconds)


def sqlite_database(settings: Settings) -> Database:
    from reactor_memory.database.sqlite import SqliteDatabase

    store = settings.store
    return SqliteDatabase(
        _sqlite_path(store.url),
        QUERIES,
        timeout_seconds=store.timeout_seconds,
        inline_reads=store.inline_loads,
        file_mode=int(store.file_mode, 8),
    )


def sqlite_file(settings: Settings) -> Path | None:
    """The file of the database, or None if the settings name another kind of store."""
    return _sqlite_path(settings.store.url) if scheme_of(settings.store.url) == "sqlite" else None


def _sqlite_path(url: str) -> Path:
    path = unquote(url.partition("://")[2].removeprefix("/"))
    if not path or path == ":memory:":
        raise ConfigurationError(
            "store.url", "names no file: write sqlite:///file.db, or memory:// for a database in memory"
        )
    return Path(path)


def postgres_database(settings: Settings) -> Database:
    from reactor_memory.database.postgres import PostgresDatabase

    store = settings.store
    return PostgresDatabase(
        store.url,
        QUERIES,
        pool_size=store.pool_size,
        auto_migrate=store.auto_migrate,
        statement_cache_size=store.statement_cache_size,
        timeout_seconds=store.timeout_seconds,
    )


def take_last_strategy(settings: Settings) -> Strategy:
    return TakeLast()


hierarchical_strategy = imported("reactor_memory.wiring.facts:hierarchical_strategy")


def automatic_strategy(settings: Settings) -> Strategy:
    return hierarchical_strategy(settings) if settings.summary.enabled else TakeLast()


def no_redactor(settings: Settings) -> Redactor:
    from reactor_memory.features.redaction import unredacted

    return unredacted


NOOP = "noop"
SUMMARIZING = "summarize"

OWN_PARTS = Plugin(
    name="reactor-memory",
    order=-1,
    provides={
        "database": {
            "memory": memory_database,
            "sqlite": sqlite_database,
            "postgresql": postgres_database,
            "postgres": postgres_database,
        },
        "message_store": {},
        "summary_store": {},
        "summarizer": {
            "extractive": imported("reactor_memory.wiring.facts:extractive_summarizer"),
            "gemini": imported("reactor_memory.wiring.facts:gemini_summarizer"),
            "openai": imported("reactor_memory.wiring.facts:openai_summarizer"),
        },
        "chat_model": {
            "auto": imported("reactor_memory.wiring.chat:automatic_chat_model"),
            "echo": imported("reactor_memory.wiring.chat:echo_chat_model"),
            "gemini": imported("reactor_memory.wiring.chat:gemini_chat_model"),
            "openai": imported("reactor_memory.wiring.chat:openai_chat_model"),
        },
        "token_counter": {
            "tiktoken": tiktoken_counter,
            "quicktok": quicktok_counter,
            "estimate": estimate_counter,
        },
        "strategy": {
            "auto": automatic_strategy,
            "take_last": take_last_strategy,
            "hierarchical": hierarchical_strategy,
            PROGRESSIVE: imported("reactor_memory.wiring.tiers:progressive_strategy"),
        },
        "recall_index": {"none": imported("reactor_memory.wiring.recall:no_recall_index")},
        "embedder": {
            "none": imported("reactor_memory.wiring.search:no_embedder"),
            "wordllama": imported("reactor_memory.wiring.search:wordllama_embedder"),
            "gemini": imported("reactor_memory.wiring.search:gemini_embedder"),
            "openai": imported("reactor_memory.wiring.search:openai_embedder"),
        },
        "redactor": {"none": no_redactor},
        "memory_management": {
            NOOP: imported("reactor_memory.wiring.chat_memory:noop_memory_management"),
            SUMMARIZING: imported("reactor_memory.wiring.chat_memory:summarizing_memory_management"),
        },
        "stream_store": {"redis": imported("reactor_memory.wiring.responses:redis_stream_store")},
        "clock": {"system": system_clock},
    },
)
