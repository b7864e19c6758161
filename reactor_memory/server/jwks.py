"""The public keys of an issuer: read strictly, and fetched from a URL without ever being fetched too often.

A set serves while its source does not answer, for a bounded time. A token that names a key nobody has heard of makes
us look again, at most once in a while, whoever asks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeAlias

import httpx2
import jwt
import msgspec

from reactor_memory.models import Value
from reactor_memory.settings.service_sections import LARGEST_SET_BYTES
from reactor_memory.text.bounded_json import decoded

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock

log = logging.getLogger(__name__)

Algorithm: TypeAlias = Literal["RS256", "ES256", "HS256"]
VerifyingKey: TypeAlias = Any
"""What PyJWT verifies with: a public key of `cryptography`, or the bytes of a secret."""

WEAKEST_RSA_BITS, LARGEST_RSA_BITS = 2048, 8192
MOST_KEYS = 100

_NUMBERS = {"RS256": ("n", "e"), "ES256": ("x", "y")}
_KINDS = {"RS256": {"kty": "RSA"}, "ES256": {"kty": "EC", "crv": "P-256"}}


class KeySet(msgspec.Struct, frozen=True):
    """A JWKS as it comes."""

    keys: Annotated[list[dict[str, Any]], msgspec.Meta(max_length=MOST_KEYS)]


_KEY_SET = msgspec.json.Decoder(KeySet)


class KeysUnavailableError(Exception):
    """The keys of the issuer cannot be had now, so nobody can say whether a token is good."""


class KeySource(Protocol):
    async def find(self, key_id: str | None) -> VerifyingKey | None:
        """The key of this id, or without one the only key that there is. Raises `KeysUnavailableError`."""
        ...

    async def check(self) -> None:
        """Raises `KeysUnavailableError` while there are no keys to check tokens with."""
        ...


class FixedKeys:
    """Keys that never change."""

    def __init__(self, keys: Mapping[str, VerifyingKey]) -> None:
        self._keys = keys

    async def find(self, key_id: str | None) -> VerifyingKey | None:
        return choose(self._keys, key_id)

    async def check(self) -> None:
        pass


class SharedSecret:
    """One secret, whatever the token calls it."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    async def find(self, key_id: str | None) -> VerifyingKey | None:
        return self._secret

    async def check(self) -> None:
        pass


class FetchOptions(Value, frozen=True, kw_only=True):
    """When keys are fetched again: after `refresh_seconds`, or for an unknown key, but never within `pause_seconds` of
    the try before. They serve for `stale_seconds`.
    """

    refresh_seconds: float = 600
    stale_seconds: float = 86_400
    pause_seconds: float = 30


class RemoteKeys:
    """Keys that `fetch` answers as a JWKS. While they are known, nobody waits for it."""

    def __init__(
        self, fetch: Callable[[], Awaitable[bytes]], *, algorithm: Algorithm, clock: Clock, options: FetchOptions
    ) -> None:
        self._fetch = fetch
        self._algorithm: Algorithm = algorithm
        self._clock = clock
        self._options = options
        self._keys: Mapping[str, VerifyingKey] = {}
        self._fetched_at: int | None = None
        self._tried_at: int | None = None
        self._failed = False
        self._refreshing: asyncio.Task[None] | None = None

    async def find(self, key_id: str | None) -> VerifyingKey | None:
        key = self._usable(key_id)
        if key is None:
            await self._refresh()
            key = self._usable(key_id)
        elif self._older_than(self._options.refresh_seconds, self._fetched_at):
            self._begin_refresh()
        if key is None and (self._failed or not self._is_serving()):
            raise KeysUnavailableError
        return key

    async def check(self) -> None:
        if not self._is_serving():
            await self._refresh()
        if not self._is_serving():
            raise KeysUnavailableError

    def _usable(self, key_id: str | None) -> VerifyingKey | None:
        return choose(self._keys, key_id) if self._is_serving() else None

    def _is_serving(self) -> bool:
        return not self._older_than(self._options.stale_seconds, self._fetched_at)

    def _older_than(self, seconds: float, since: int | None) -> bool:
        return since is None or self._clock() - since >= seconds * 1e6

    async def _refresh(self) -> None:
        """Wait for the refresh that is under way, or for a new one if it is time for one."""
        self._begin_refresh()
        if self._refreshing is not None:
            await asyncio.shield(self._refreshing)

    def _begin_refresh(self) -> None:
        if self._refreshing is None and self._older_than(self._options.pause_seconds, self._tried_at):
            self._tried_at = self._clock()
            self._refreshing = asyncio.create_task(self._fetch_keys())

    async def _fetch_keys(self) -> None:
        try:
            self._keys = keys_of(await self._fetch(), self._algorithm)
            self._fetched_at, self._failed = self._clock(), False
        except Exception as error:  # whatever it is, the keys that are known go on serving
            self._failed = True
            log.warning("cannot fetch the keys of an issuer", extra={"reason": type(error).__name__})
        finally:
            self._refreshing = None


async def fetch_set(url: str, timeout_seconds: float) -> bytes:
    """The document at `url`: no redirects, no more than `LARGEST_SET_BYTES`."""
    async with asyncio.timeout(timeout_seconds):
        client = httpx2.AsyncClient(follow_redirects=False, timeout=timeout_seconds)
        async with client, client.stream("GET", url, headers={"Accept": "application/json"}) as response:
            if response.status_code != 200:
                raise ValueError("the answer is no key set")
            return await _limited(response)


async def _limited(response: httpx2.Response) -> bytes:
    document = bytearray()
    async for piece in response.aiter_bytes():
        document += piece
        if len(document) > LARGEST_SET_BYTES:
            raise ValueError("the key set is too large")
    return bytes(document)


def choose(keys: Mapping[str, VerifyingKey], key_id: str | None) -> VerifyingKey | None:
    if key_id is not None:
        return keys.get(key_id)
    return next(iter(keys.values())) if len(keys) == 1 else None


def keys_of(document: bytes, algorithm: Algorithm) -> Mapping[str, VerifyingKey]:
    """The keys of a JWKS that are for signatures of this algorithm, by their id; others are passed over.

    Raises `ValueError` if there is none.
    """
    keys: dict[str, VerifyingKey] = {}
    for entry in decoded(document, _KEY_SET, LARGEST_SET_BYTES).keys:
        key = _key_of(entry, algorithm)
        if key is not None:
            keys.setdefault(str(entry.get("kid", "")), key)
    if not keys:
        raise ValueError(f"the key set has no key for {algorithm}")
    return keys


def _key_of(entry: Mapping[str, Any], algorithm: Algorithm) -> VerifyingKey | None:
    """Made of the public numbers only, whatever else the entry holds."""
    if not _is_for(entry, algorithm):
        return None
    public = _KINDS[algorithm] | {name: entry.get(name) for name in _NUMBERS[algorithm]}
    try:
        key = jwt.PyJWK(public, algorithm).key
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    return key if _is_strong(key, algorithm) else None


def _is_for(entry: Mapping[str, Any], algorithm: Algorithm) -> bool:
    operations = entry.get("key_ops", ["verify"])
    return (
        all(entry.get(name) == value for name, value in _KINDS[algorithm].items())
        and entry.get("use", "sig") == "sig"
        and entry.get("alg", algorithm) == algorithm
        and isinstance(operations, list)
        and "verify" in operations
    )


def _is_strong(key: VerifyingKey, algorithm: Algorithm) -> bool:
    return algorithm != "RS256" or WEAKEST_RSA_BITS <= key.key_size <= LARGEST_RSA_BITS
