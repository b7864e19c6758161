"""An issuer for whoever tries the service on their own machine; its secret lives and goes with this process."""

from __future__ import annotations

import secrets

import jwt

from reactor_memory.errors import ConfigurationError
from reactor_memory.server.bearer_tokens import Issuer
from reactor_memory.server.jwks import SharedSecret
from reactor_memory.text.addresses import is_loopback

ISSUER = AUDIENCE = "reactor-memory-development"
DEFAULT_USER = "dev"


class DevelopmentIssuer:
    """Makes tokens, and is the issuer that accepts them."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    @property
    def issuer(self) -> Issuer:
        return Issuer(issuer=ISSUER, audience=AUDIENCE, algorithm="HS256", keys=SharedSecret(self._secret))

    def token(self, user_id: str = DEFAULT_USER, *, now: int, days: int = 7) -> str:
        """A token of this user, from `now` (microseconds UTC) on."""
        begin = now // 1_000_000
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": user_id, "iat": begin, "exp": begin + days * 86_400}
        return jwt.encode(claims, self._secret, algorithm="HS256")


def require_loopback(host: str) -> None:
    """Raises `ConfigurationError` for a host that others can reach: everybody there could call as anybody."""
    named = f"[{host}]" if ":" in host else host
    if not is_loopback(f"http://{named}"):
        raise ConfigurationError(
            "serve --dev", "listens on this machine only: use --host 127.0.0.1, or set auth.issuers and leave out --dev"
        )
