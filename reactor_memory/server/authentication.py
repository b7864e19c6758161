"""Who calls: a user by the token of an issuer, an agent by its key, or both.

* ``Authorization: Bearer <JWT>``: a user.
* ``X-API-Key: <key>``: an agent; with a token, too, on behalf of its user; with ``X-On-Behalf-Of: <user id>``, if the
  key is granted that, on behalf of this user.

Whoever cannot be made out gets 401. Neither tokens nor keys stand in errors and logs.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import NamedTuple

from litestar.exceptions import (
    ClientException,
    HTTPException,
    NotAuthorizedException,
    PermissionDeniedException,
    ServiceUnavailableException,
)

from reactor_memory.core.validation import is_id
from reactor_memory.features.sharing.principals import ApiKey, Principal
from reactor_memory.server.api_keys import KeyRing
from reactor_memory.server.bearer_tokens import TokenError, TokenVerifier
from reactor_memory.server.jwks import KeysUnavailableError

log = logging.getLogger(__name__)

AUTHORIZATION, API_KEY, ON_BEHALF_OF = b"authorization", b"x-api-key", b"x-on-behalf-of"
KEYS_RETRY_SECONDS = 5

_SECRET_PARAMETER = re.compile(
    rb"(^|&)(x-?)?(api-?_?key|access-?_?token|authorization)=|rm_\w{8}_\w{38}", re.IGNORECASE
)


class Credentials(NamedTuple):
    """What a request brought along, each once at most."""

    token: str | None = None
    api_key: str | None = None
    on_behalf_of: str | None = None


class Authenticator:
    """Turns the credentials of a request into a principal."""

    def __init__(self, *, tokens: TokenVerifier, keys: KeyRing) -> None:
        self._tokens = tokens
        self._keys = keys

    async def principal(self, credentials: Credentials) -> Principal:
        """Raises an `HTTPException`: 401 for nobody that we know, 403 for who may not speak for that user, 503 while
        the keys of an issuer cannot be had; and `StoreError`.
        """
        token, api_key, on_behalf_of = credentials
        if token is None and api_key is None:
            raise refused("send a token as Authorization: Bearer, or the key of an agent as X-API-Key")
        key = None if api_key is None else await self._key(api_key)
        user_id = None if token is None else await self._user_id(token)
        if on_behalf_of is not None:
            user_id = named_user(on_behalf_of, user_id, key)
        if key is None:
            return Principal(user_id=user_id)
        return Principal(user_id=user_id, client_id=key.client_id, grant=key.grant)

    async def check(self) -> None:
        """Raises `KeysUnavailableError` while tokens of an issuer cannot be checked."""
        await self._tokens.check()

    async def _key(self, text: str) -> ApiKey:
        key = await self._keys.find(text)
        if key is None:
            raise refused("the key is not valid, or not any more")
        return key

    async def _user_id(self, token: str) -> str:
        try:
            return await self._tokens.user_id(token)
        except TokenError as error:
            log.info("refused a token", extra={"reason": error.reason})
            raise refused("the token is not valid, or not any more", error="invalid_token") from None
        except KeysUnavailableError:
            retry = {"Retry-After": str(KEYS_RETRY_SECONDS)}
            raise ServiceUnavailableException("the keys of the issuer cannot be had", headers=retry) from None


def credentials_of(headers: Iterable[tuple[bytes, bytes]], query: bytes) -> Credentials:
    """What the headers say. A credential in the query string is refused: addresses are written into logs."""
    if query and _SECRET_PARAMETER.search(query):
        raise ClientException("keys and tokens belong in headers: change this one, it may stand in logs now")
    found: dict[bytes, str] = {}
    for name, value in headers:
        if name in (AUTHORIZATION, API_KEY, ON_BEHALF_OF):
            if name in found:
                raise refused("a credential is sent twice")
            found[name] = _decoded(value)
    token = None if AUTHORIZATION not in found else bearer(found[AUTHORIZATION])
    return Credentials(token, found.get(API_KEY), found.get(ON_BEHALF_OF))


def bearer(value: str) -> str:
    scheme, _, token = value.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise refused("the scheme of Authorization must be Bearer")
    return token.strip()


def named_user(on_behalf_of: str, user_id: str | None, key: ApiKey | None) -> str:
    """The user that X-On-Behalf-Of names, if the caller may name them; a token of the same user is always enough."""
    if not is_id(on_behalf_of):
        raise ClientException("X-On-Behalf-Of: names no user")
    if user_id is None and key is not None and key.grant.allows("on-behalf-of"):
        return on_behalf_of
    if user_id == on_behalf_of:
        return on_behalf_of
    raise PermissionDeniedException(
        "X-On-Behalf-Of: needs a key with the grant on-behalf-of, and no other user's token"
    )


def refused(problem: str, *, error: str | None = None) -> HTTPException:
    """401 with the challenge that HTTP asks for."""
    challenge = 'Bearer realm="reactor-memory"' + (f', error="{error}"' if error else "")
    return NotAuthorizedException(problem, headers={"WWW-Authenticate": challenge})


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise refused("a credential is no text") from None
