"""Addresses of databases in the forms that the drivers take."""

from __future__ import annotations

from benchmarks.peers.contender import Store


def sqlalchemy_url(place: str, store: Store) -> str:
    """For the asyncio drivers of SQLAlchemy."""
    if store == "sqlite":
        return f"sqlite+aiosqlite:///{place}"
    return "postgresql+asyncpg://" + place.partition("://")[2]
