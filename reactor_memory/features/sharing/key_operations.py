"""The operations on keys of agents; those that are over are kept."""

from __future__ import annotations

import msgspec

from reactor_memory.database.operations import Query, Row, Steps
from reactor_memory.features.sharing.principals import ApiKey, Grant, Operation

_NAMES = msgspec.json.Decoder(tuple[str, ...])
_OPERATIONS = msgspec.json.Decoder(tuple[Operation, ...])


def add_api_key(key: ApiKey) -> Steps[bool]:
    """False if there is a key of this prefix."""
    values = {
        "key_prefix": key.key_prefix,
        "client_id": key.client_id,
        "secret_hash": key.secret_hash,
        "agent_names": msgspec.json.encode(key.grant.agent_names).decode(),
        "operations": msgspec.json.encode(key.grant.operations).decode(),
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
    }
    return bool((yield Query("insert_api_key", values)))


def find_api_key(key_prefix: str) -> Steps[ApiKey | None]:
    rows = yield Query("api_key", {"key_prefix": key_prefix})
    return _api_key(rows[0]) if rows else None


def list_api_keys() -> Steps[tuple[ApiKey, ...]]:
    """All of them, the oldest first."""
    rows = yield Query("api_keys", {})
    return tuple(map(_api_key, rows))


def revoke_api_key(key_prefix: str, *, now: int) -> Steps[bool]:
    """False if there is no such key, or it was revoked before."""
    return bool((yield Query("revoke_api_key", {"key_prefix": key_prefix, "now": now})))


def _api_key(row: Row) -> ApiKey:
    key_prefix, client_id, secret_hash, agent_names, operations, created_at, expires_at, revoked_at = row
    return ApiKey(
        key_prefix=key_prefix,
        client_id=client_id,
        secret_hash=secret_hash,
        grant=Grant(agent_names=_NAMES.decode(agent_names), operations=_OPERATIONS.decode(operations)),
        created_at=created_at,
        expires_at=expires_at,
        revoked_at=revoked_at,
    )
