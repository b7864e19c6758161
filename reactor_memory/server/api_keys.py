"""Keys of agents: how they look, how they are made, and how they are known again.

``rm_<prefix>_<secret><checksum>``: the prefix names the key in lists and logs; the checksum lets a scanner of secrets
tell a key from what only looks like one, and us from asking the database about it. The secret is random and long, so
that its SHA-256 needs no salt and no slowness.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import string
import zlib
from typing import TYPE_CHECKING, NamedTuple

from reactor_memory.database.database import Database
from reactor_memory.features.sharing import key_operations
from reactor_memory.features.sharing.principals import ApiKey, Grant

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock

LONGEST_USE_OF_A_LOOK = 5_000_000
"""Microseconds. A key that was revoked, by whatever process, is refused after this time everywhere."""

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_PREFIX_LENGTH, _SECRET_LENGTH, _CHECKSUM_LENGTH = 8, 32, 6
_FORM = re.compile(rf"rm_([0-9A-Za-z]{{{_PREFIX_LENGTH}}})_[0-9A-Za-z]{{{_SECRET_LENGTH + _CHECKSUM_LENGTH}}}")


class NewKey(NamedTuple):
    """A key as it is kept, and its text, which nobody can tell again."""

    key: ApiKey
    text: str


def new_key(client_id: str, grant: Grant, *, now: int, expires_at: int | None = None) -> NewKey:
    prefix = _random(_PREFIX_LENGTH)
    unchecked = f"rm_{prefix}_{_random(_SECRET_LENGTH)}"
    text = unchecked + checksum(unchecked)
    key = ApiKey(
        key_prefix=prefix,
        client_id=client_id,
        secret_hash=hash_of(text),
        grant=grant,
        created_at=now,
        expires_at=expires_at,
    )
    return NewKey(key, text)


def prefix_of(text: str) -> str | None:
    """The prefix of a key, or None if it is none."""
    match = _FORM.fullmatch(text)
    if match is None or checksum(text[:-_CHECKSUM_LENGTH]) != text[-_CHECKSUM_LENGTH:]:
        return None
    return match[1]


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def checksum(text: str) -> str:
    """CRC-32 in digits of base 62."""
    rest, digits = zlib.crc32(text.encode()), ""
    for _ in range(_CHECKSUM_LENGTH):
        rest, digit = divmod(rest, len(_ALPHABET))
        digits = _ALPHABET[digit] + digits
    return digits


def is_valid(key: ApiKey, text: str, *, now: int) -> bool:
    """Whether the text is this key, and the key still holds."""
    return hmac.compare_digest(key.secret_hash, hash_of(text)) and holds(key, now=now)


def holds(key: ApiKey, *, now: int) -> bool:
    """Whether it was neither revoked nor is over."""
    return key.revoked_at is None and (key.expires_at is None or now < key.expires_at)


class KeyRing:
    """The keys in the database, each looked at again after `LONGEST_USE_OF_A_LOOK`."""

    def __init__(self, database: Database, *, clock: Clock, max_known: int = 10_000) -> None:
        self._database = database
        self._clock = clock
        self._max_known = max_known
        self._known: dict[str, tuple[ApiKey, int]] = {}

    async def find(self, text: str) -> ApiKey | None:
        """The key with this text, if there is one that still holds. Raises `StoreError`."""
        match = _FORM.fullmatch(text)
        if match is None or (match[1] not in self._known and prefix_of(text) is None):
            return None
        key = await self._look(match[1])
        return key if key is not None and is_valid(key, text, now=self._clock()) else None

    async def _look(self, prefix: str) -> ApiKey | None:
        # The age of an answer counts from the question, and never backwards, should the clock be set back
        now = self._clock()
        key, asked_at = self._known.get(prefix, (None, 0))
        if key is not None and 0 <= now - asked_at < LONGEST_USE_OF_A_LOOK:
            return key
        found = await self._database.read(key_operations.find_api_key, prefix)
        self._known.pop(prefix, None)
        if found is not None:
            self._known[prefix] = (found, now)
            if len(self._known) > self._max_known:
                self._known.pop(next(iter(self._known)))
        return found


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))
