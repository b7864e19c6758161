"""Libraries that are installed together: one environment each, because their requirements contradict each other."""

from __future__ import annotations

from typing import NamedTuple


class Family(NamedTuple):
    """`module` has the adapters; the versions of `packages` are told with the results."""

    module: str
    packages: tuple[str, ...]


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
}

SHARED_PACKAGES = ("aiosqlite", "asyncpg", "msgspec", "tiktoken")
