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
from reactor_memory.features.chat import wiring as chat
from reactor_memory.features.chat_memory import wiring as chat_memory
from reactor_memory.features.facts import wiring as facts
from reactor_memory.features.recall import wiring as recall
from reactor_memory.features.responses import wiring as responses
from reactor_memory.features.search import wiring as search
from reactor_memory.features.tiers import wiring as tiers
from reactor_memory.settings.settings import Settings
from reactor_memory.tokens import wiring as tokens
from reactor_memory.wiring.plugins import Plugin
from reactor_memory.wiring.queries import QUERIES
from reactor_memory.wiring.selection import scheme_of

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
        timeout_seconds=store.timeout_seconds,
    )


def take_last_strategy(settings: Settings) -> Strategy:
    return TakeLast()


def automatic_strategy(settings: Settings) -> Strategy:
    return facts.hierarchical_strategy(settings) if settings.summary.enabled else TakeLast()


def no_redactor(settings: Settings) -> Redactor:
    from reactor_memory.features.redaction import unredacted

    return unredacted


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
        "record_store": {},
        "message_store": {},
        "summary_store": {},
        "summarizer": {
            "extractive": facts.extractive_summarizer,
            "gemini": facts.gemini_summarizer,
            "openai": facts.openai_summarizer,
        },
        "chat_model": {
            "auto": chat.automatic_chat_model,
            "echo": chat.echo_chat_model,
            "gemini": chat.gemini_chat_model,
            "openai": chat.openai_chat_model,
        },
        "token_counter": {
            "tiktoken": tokens.tiktoken_counter,
            "quicktok": tokens.quicktok_counter,
            "estimate": tokens.estimate_counter,
        },
        "strategy": {
            "auto": automatic_strategy,
            "take_last": take_last_strategy,
            "hierarchical": facts.hierarchical_strategy,
            tiers.PROGRESSIVE: tiers.progressive_strategy,
        },
        "source": {},
        "recall_index": {"none": recall.no_recall_index},
        "embedder": {
            "none": search.no_embedder,
            "wordllama": search.wordllama_embedder,
            "gemini": search.gemini_embedder,
            "openai": search.openai_embedder,
        },
        "redactor": {"none": no_redactor},
        "memory_management": {
            chat_memory.NOOP: chat_memory.noop_memory_management,
            chat_memory.SUMMARIZING: chat_memory.summarizing_memory_management,
        },
        "stream_store": {"redis": responses.redis_stream_store},
        "clock": {"system": system_clock},
    },
)
