"""Whose rows a transaction sees. On PostgreSQL it cannot reach those of others from then on, whatever its statements
say (row-level security, for roles that it binds); the names count until the transaction ends.
"""

from __future__ import annotations

from reactor_memory.database.operations import Query, Steps


def name_user(user_id: str) -> Steps[None]:
    """From here to the end of the transaction only the rows of this user exist, and messages of no group."""
    yield Query("name_user", {"user_id": user_id})


def name_reader(user_id: str, group_id: str) -> Steps[None]:
    """As `name_user`, and messages of this group, which the user was found to have access to."""
    yield Query("name_reader", {"user_id": user_id, "group_id": group_id})


def name_all_users() -> Steps[None]:
    """From here to the end of the transaction the rows of all users exist."""
    yield Query("name_all_users", {})
