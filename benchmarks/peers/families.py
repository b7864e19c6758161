"""Libraries that are installed together: one environment each, because their requirements contradict each other."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.peers.contender import Store


class Family(NamedTuple):
    """`module` has the adapters; the versions of `packages` are told with the results."""

    module: str
    packages: tuple[str, ...]
    stores: tuple[Store, ...] = ("sqlite", "postgres")
    """What the family is measured beside; who keeps files has no row for PostgreSQL."""


FAMILIES = {
    "openai-agents": Family("openai_agents", ("openai-agents", "sqlalchemy")),
    "langchain": Family(
        "langchain_histories", ("langchain-core", "langchain-community", "langchain-postgres", "sqlalchemy", "psycopg")
    ),
    "langgraph": Family(
        "langgraph_savers",
        ("langgraph", "langgraph-checkpoint-sqlite", "langgraph-checkpoint-postgres", "langchain-core", "psycopg"),
    ),
    "google-adk": Family("google_adk", ("google-adk", "sqlalchemy")),
    "llama-index": Family("llama_index", ("llama-index-core", "sqlalchemy")),
    "agno": Family("agno_runs", ("agno", "sqlalchemy")),
    "strands-agents": Family("strands_sessions", ("strands-agents",), stores=("sqlite",)),
}

SHARED_PACKAGES = ("aiosqlite", "asyncpg", "msgspec", "tiktoken")
