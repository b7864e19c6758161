"""Page tokens: where the next page of a listing begins, signed for whoever got it.

A token holds the keys of the last row that was shown, so pages neither skip nor repeat rows while others are added. It
grants nothing: what may be seen is decided anew for every page.
"""

from __future__ import annotations

import binascii
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from hashlib import blake2b
from secrets import token_hex
from typing import Any, TypeVar, cast

import msgspec

from reactor_memory.database.database import Database
from reactor_memory.errors import PageTokenError
from reactor_memory.features.sharing.principals import Principal
from reactor_memory.features.sharing.service_secrets import service_secret

T = TypeVar("T")

MAX_TOKEN_LENGTH = 1024
"""Characters. Keys of rows are short: what is longer is none of ours."""

_MAC_BYTES = 16


class PageTokens:
    """Makes and reads page tokens with a secret that all processes of a service share."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def of(self, principal: Principal, listing: str, *filters: object) -> ListingTokens:
        """The tokens of one caller in one listing: its name (with ids of the path) and what it was filtered by."""
        return ListingTokens(self._secret, msgspec.json.encode((principal.principal_id, listing, filters)))


class ListingTokens:
    """The tokens of one listing; those of all others are refused."""

    def __init__(self, secret: bytes, binding: bytes) -> None:
        self._secret = secret
        self._binding = binding

    def after(self, token: str | None, keys: type[T]) -> T | None:
        """The keys that the token holds; None without a token. Raises `PageTokenError`."""
        if token is None:
            return None
        signed = _unpacked(token)
        mac, encoded = signed[:_MAC_BYTES], signed[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(encoded)):
            raise PageTokenError
        try:
            found = msgspec.json.decode(encoded, type=keys)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise PageTokenError from None
        if not _fits_columns(msgspec.to_builtins(found)):
            raise PageTokenError
        return found

    def page(self, rows: Sequence[T], limit: int, keys: Callable[[T], object]) -> tuple[Sequence[T], str | None]:
        """The rows of a page, of which one more than `limit` was asked for, and the token of the next one if others
        follow.
        """
        shown = rows[:limit]
        return shown, self.before(keys(shown[-1])) if len(rows) > limit else None

    def before(self, keys: object) -> str:
        """The token of the page behind the row with these keys."""
        encoded = msgspec.json.encode(keys)
        return urlsafe_b64encode(self._mac(encoded) + encoded).rstrip(b"=").decode("ascii")

    def _mac(self, encoded: bytes) -> bytes:
        # The length keeps what a token holds apart from what it is bound to.
        bound = len(self._binding).to_bytes(4) + self._binding + encoded
        return blake2b(bound, key=self._secret, digest_size=_MAC_BYTES, person=b"page token").digest()


def _fits_columns(keys: Any) -> bool:
    """Whether a database can compare its columns with these keys: no number has more than 64 bits."""
    if isinstance(keys, int):
        return -(2**63) <= keys < 2**63
    if isinstance(keys, dict):
        return all(map(_fits_columns, cast("dict[str, Any]", keys).values()))
    return all(map(_fits_columns, cast("list[Any]", keys))) if isinstance(keys, list | tuple) else True


def _unpacked(token: str) -> bytes:
    """The bytes of a token that is written in the one way in which they are written."""
    if len(token) > MAX_TOKEN_LENGTH:
        raise PageTokenError
    try:
        unpacked = urlsafe_b64decode(token.encode("ascii") + b"=" * (-len(token) % 4))
    except (binascii.Error, UnicodeEncodeError):
        raise PageTokenError from None
    if urlsafe_b64encode(unpacked).rstrip(b"=").decode("ascii") != token:
        raise PageTokenError
    return unpacked


class ServiceTokens:
    """The page tokens of a service. Their secret was made once and is kept in the database, for all processes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._tokens: PageTokens | None = None

    async def of(self, principal: Principal, listing: str, *filters: object) -> ListingTokens:
        """As `PageTokens.of`."""
        if self._tokens is None:
            secret = await self._kept_secret()
            self._tokens = PageTokens(blake2b(secret.encode(), digest_size=32, person=b"page token").digest())
        return self._tokens.of(principal, listing, *filters)

    async def _kept_secret(self) -> str:
        candidate = token_hex()
        if self._database.is_read_only:  # then no other process can make one either
            return candidate
        return await self._database.write(service_secret, "page tokens", candidate)
