"""Page tokens: where the next page of a listing begins, signed for whoever got it.

A token holds the keys of the last row that was shown, so pages neither skip nor repeat rows while others are added. It
grants nothing: what may be seen is decided anew for every page.
"""

from __future__ import annotations

import binascii
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import blake2b, scrypt
from typing import TypeVar

import msgspec

from reactor_memory.errors import PageTokenError
from reactor_memory.principals import Principal

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
            return msgspec.json.decode(encoded, type=keys)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise PageTokenError from None

    def before(self, keys: object) -> str:
        """The token of the page behind the row with these keys."""
        encoded = msgspec.json.encode(keys)
        return urlsafe_b64encode(self._mac(encoded) + encoded).rstrip(b"=").decode("ascii")

    def _mac(self, encoded: bytes) -> bytes:
        # The length keeps what a token holds apart from what it is bound to.
        bound = len(self._binding).to_bytes(4) + self._binding + encoded
        return blake2b(bound, key=self._secret, digest_size=_MAC_BYTES, person=b"page token").digest()


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


def page(rows: Sequence[T], limit: int) -> tuple[Sequence[T], bool]:
    """The rows of a page, of which one more than `limit` was asked for, and whether others follow."""
    return rows[:limit], len(rows) > limit


def signing_secret(given: str | None, store_url: str) -> bytes:
    """The key of page tokens: the secret of the settings, else one that all processes on this database find alike.

    The second is made slowly, since it is made from an address that may hold a password.
    """
    if given is not None:
        return blake2b(given.encode(), digest_size=32, person=b"page token").digest()
    return scrypt(store_url.encode(), salt=b"reactor-memory page token", n=2**14, r=8, p=1, dklen=32)
