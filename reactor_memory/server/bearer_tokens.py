"""Who a user is, by the token (JWT) of an issuer that the settings name; RFC 8725 taken at its word.

A token says itself which issuer and which key it wants to be checked with; what it may be checked with, the settings
say. Nothing of a token stands in an error.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import jwt

from reactor_memory.core.validation import is_id
from reactor_memory.models import Value
from reactor_memory.server.jwks import Algorithm, KeySource, VerifyingKey

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock

LONGEST_KEY_ID = 255
LAST_SECOND = 253_402_300_799
"""Of the year 9999. What ends later was not meant as a time."""

TIMES = ("exp", "nbf", "iat")

_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_CHECKED_BY_PYJWT: Any = {
    "require": ["exp", "iss", "aud", "sub"],
    "verify_signature": True,
    "verify_aud": True,
    "verify_iss": True,
    "verify_sub": True,
    # Times are checked here, by our clock and without the conversions of PyJWT, which takes "1" and 1e300 for times
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
}


class TokenError(Exception):
    """The token cannot be accepted. `reason` is one word for logs, such as ``expired`` or ``signature``."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Issuer(Value, frozen=True, kw_only=True):
    """Whose tokens count, what they must say, and which keys they are signed with."""

    issuer: str
    audience: str
    algorithm: Algorithm
    keys: KeySource
    token_types: Sequence[str] = ("JWT", "at+jwt")
    user_claim: str = "sub"
    user_prefix: str = ""
    leeway_seconds: int = 30


MOST_REMEMBERED = 4096
"""So many tokens that were verified are remembered: about 4 MB."""


class _Verified(NamedTuple):
    """What a signature says for as long as its key counts. Only the times in it have to be looked at again."""

    issuer: Issuer
    key_id: str | None
    key: VerifyingKey
    claims: Mapping[str, Any]
    user_id: str


class TokenVerifier:
    """Checks tokens of `issuers`, which are told apart by ``iss`` and whose users by their prefixes.

    A token that was verified is remembered by its digest, and verified again when its issuer has another key for it.
    """

    def __init__(self, issuers: Sequence[Issuer], *, clock: Clock, max_bytes: int = 8192) -> None:
        self._issuers = {issuer.issuer: issuer for issuer in issuers}
        self._clock = clock
        self._max_bytes = max_bytes
        self._remembered: OrderedDict[bytes, _Verified] = OrderedDict()

    async def user_id(self, token: str) -> str:
        """Whose token it is. Raises `TokenError`, and `KeysUnavailableError` if nobody can say."""
        if len(token) > self._max_bytes:
            raise TokenError("too_long")
        digest = sha256(token.encode(errors="surrogatepass")).digest()
        known = self._remembered.get(digest)
        if known is None or await known.issuer.keys.find(known.key_id) is not known.key:
            known = await self._verified(token)
        self._check_times(known)
        self._remember(digest, known)
        return known.user_id

    def _check_times(self, known: _Verified) -> None:
        check_times(known.claims, now=self._clock() / 1e6, leeway=known.issuer.leeway_seconds)

    def _remember(self, digest: bytes, known: _Verified) -> None:
        self._remembered[digest] = known
        self._remembered.move_to_end(digest)
        if len(self._remembered) > MOST_REMEMBERED:
            self._remembered.popitem(last=False)

    async def _verified(self, token: str) -> _Verified:
        header, unverified = read_parts(token)
        issuer = self._issuers.get(_text(unverified.get("iss")) or "")
        if issuer is None:
            raise TokenError("issuer")
        check_header(header, issuer)
        key = await issuer.keys.find(header.get("kid"))
        if key is None:
            raise TokenError("unknown_key")
        claims = verified_claims(token, key, issuer)
        known = _Verified(issuer, header.get("kid"), key, claims, "")
        self._check_times(known)
        times = {name: claims[name] for name in TIMES if name in claims}
        return known._replace(claims=times, user_id=self._user_of(claims, issuer))

    async def check(self) -> None:
        """Raises `KeysUnavailableError` while tokens of an issuer cannot be checked."""
        for issuer in self._issuers.values():
            await issuer.keys.check()

    def _user_of(self, claims: Mapping[str, Any], issuer: Issuer) -> str:
        """An id that begins as those of another issuer is refused: it would name one of their users."""
        user_id = issuer.user_prefix + (_text(claims.get(issuer.user_claim)) or "")
        others = (each.user_prefix for each in self._issuers.values() if each is not issuer)
        if any(len(prefix) > len(issuer.user_prefix) and user_id.startswith(prefix) for prefix in others):
            raise TokenError("user")
        if user_id == issuer.user_prefix or not is_id(user_id):
            raise TokenError("user")
        return user_id


def read_parts(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims of a token that nobody has checked. Raises `TokenError` for what can be read in two ways."""
    if not _COMPACT.fullmatch(token):
        raise TokenError("malformed")
    header, claims, _ = token.split(".")
    return _object(header), _object(claims)


def check_header(header: Mapping[str, Any], issuer: Issuer) -> None:
    """Where a token says its key is found (``jku``, ``x5u``, ``jwk``, ``x5c``) is not even looked at."""
    if header.get("alg") != issuer.algorithm:
        raise TokenError("algorithm")
    if "crit" in header or "b64" in header:
        raise TokenError("critical")
    if _type_of(header) not in {_short(each) for each in issuer.token_types}:
        raise TokenError("type")
    if "kid" in header and not 0 < len(_text(header["kid"]) or "") <= LONGEST_KEY_ID:
        raise TokenError("unknown_key")


def verified_claims(token: str, key: Any, issuer: Issuer) -> Mapping[str, Any]:
    try:
        return jwt.decode(
            token,
            key,
            algorithms=[issuer.algorithm],
            audience=issuer.audience,
            issuer=issuer.issuer,
            options=_CHECKED_BY_PYJWT,
        )
    except jwt.InvalidSignatureError:
        raise TokenError("signature") from None
    except (jwt.PyJWTError, TypeError, ValueError):
        raise TokenError("claims") from None


def check_times(claims: Mapping[str, Any], *, now: float, leeway: int) -> None:
    """`now` and `leeway` are seconds."""
    for name in TIMES:
        if name in claims and not _is_time(claims[name]):
            raise TokenError("time")
    if claims["exp"] + leeway <= now:
        raise TokenError("expired")
    if max(claims.get("nbf", 0), claims.get("iat", 0)) - leeway > now:
        raise TokenError("not_yet")


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LAST_SECOND


def _type_of(header: Mapping[str, Any]) -> str | None:
    return _short(_text(header["typ"]) or "") if "typ" in header else ""


def _short(media_type: str) -> str:
    return media_type.lower().removeprefix("application/")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _object(part: str) -> dict[str, Any]:
    try:
        text = urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode()
        found = json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise TokenError("malformed") from None
    if not isinstance(found, dict):
        raise TokenError("malformed")
    return cast("dict[str, Any]", found)


def _without_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is given twice")
    return found


def _no_number(name: str) -> Any:
    raise ValueError("is no number of JSON")
