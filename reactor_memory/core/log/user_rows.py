"""Whose rows a transaction sees in tables that belong to users. On PostgreSQL it cannot reach the rows of others from
then on, whatever the statements say (row-level security, for roles that it binds); the name counts until the
transaction ends.
"""

from __future__ import annotations

from reactor_memory.database.operations import Query, Steps


def name_user(user_id: str) -> Steps[None]:
    """From here to the end of the transaction only the rows of this user exist."""
    yield Query("name_user", {"user_id": user_id})


def name_all_users() -> Steps[None]:
    """From here to the end of the transaction the rows of all users exist."""
    yield Query("name_all_users", {})
