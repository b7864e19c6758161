"""The sections of settings that the service over HTTP reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    SecretStr,
    model_validator,
)
from pydantic_settings import NoDecode

from reactor_memory.errors import ConfigurationError
from reactor_memory.settings.setting_values import PluginName, Section, WebUrl, names_of, web_url
from reactor_memory.text.addresses import is_loopback

_ORIGIN = re.compile(r"https?://[a-z0-9.:\[\]-]+")

SHORTEST_SECRET = 32
LARGEST_SET_BYTES = 256 * 1024
"""Bytes of a secret that signs tokens: it must not be found by trying."""


def _origin(text: str) -> str:
    """An origin as browsers send it, so that comparing texts is enough."""
    origin = web_url(text.strip())
    if not _ORIGIN.fullmatch(origin):
        raise ValueError("must be an origin as browsers send it, such as https://app.example: in lower case, no path")
    return origin


Port = Annotated[int, Field(ge=0, le=65535)]
Origins = Annotated[tuple[Annotated[str, AfterValidator(_origin)], ...], NoDecode, BeforeValidator(names_of)]


class IssuerSettings(BaseModel):
    """Whose tokens tell who a user is: signed with one algorithm, by keys from one place.

    `token_types` are the values of the header ``typ`` that count; an empty one stands for a token without it.
    """

    model_config = Section.model_config

    issuer: Annotated[str, Field(min_length=1)]
    audience: Annotated[str, Field(min_length=1)]
    algorithm: Literal["RS256", "ES256", "HS256"] = "RS256"
    jwks_file: Path | None = None
    jwks_url: WebUrl | None = None
    secret: SecretStr | None = None
    token_types: tuple[str, ...] = ("JWT", "at+jwt")
    user_claim: Annotated[str, Field(min_length=1)] = "sub"
    user_prefix: Annotated[str, Field(max_length=100)] = ""
    leeway_seconds: Annotated[int, Field(ge=0, le=300)] = 30

    @model_validator(mode="after")
    def _keys_from_one_place(self) -> Self:
        given = {name for name in ("jwks_file", "jwks_url", "secret") if getattr(self, name) is not None}
        wanted = [{"secret"}] if self.algorithm == "HS256" else [{"jwks_file"}, {"jwks_url"}]
        if given not in wanted:
            takes = "secret" if self.algorithm == "HS256" else "either jwks_file or jwks_url"
            raise ValueError(f"{self.algorithm} needs {takes}, and nothing else")
        return self

    @model_validator(mode="after")
    def _keys_unaltered_on_the_way(self) -> Self:
        url = self.jwks_url or "https://"
        if urlsplit(url).scheme != "https" and not is_loopback(url):
            raise ValueError(
                "jwks_url must begin with https://, or name this machine: others could answer with their keys"
            )
        return self

    @model_validator(mode="after")
    def _secret_long_enough(self) -> Self:
        if self.secret is not None and len(self.secret.get_secret_value().encode()) < SHORTEST_SECRET:
            raise ValueError(f"secret must have at least {SHORTEST_SECRET} bytes")
        return self

    def read_jwks(self) -> bytes:
        """What `jwks_file` holds."""
        from reactor_memory.text.bounded_files import UnreadableError, read_at_most

        try:
            return read_at_most(Path(self.jwks_file or ""), LARGEST_SET_BYTES)
        except OSError as error:
            raise ConfigurationError("auth.issuers", f"cannot read {self.jwks_file}: {error.strerror}") from None
        except UnreadableError as error:
            raise ConfigurationError("auth.issuers", f"{self.jwks_file} {error}") from None


class AuthSettings(Section):
    """Who may call the service, and how often."""

    prefix = "auth"

    issuers: tuple[IssuerSettings, ...] = ()
    supabase_url: WebUrl | None = None
    supabase_jwt_secret: SecretStr | None = None
    allow_shared_secrets: bool = False
    user_requests_per_minute: NonNegativeInt = 1200
    agent_requests_per_minute: NonNegativeInt = 60000
    failures_per_minute: NonNegativeInt = 60

    @property
    def all_issuers(self) -> tuple[IssuerSettings, ...]:
        """With that of the project of Supabase, whose tokens are checked with its secret, or else its public keys."""
        if self.supabase_url is None:
            return self.issuers
        issuer = f"{self.supabase_url}/auth/v1"
        if self.supabase_jwt_secret is None:
            keys = {"algorithm": "ES256", "jwks_url": f"{issuer}/.well-known/jwks.json"}
        else:
            keys = {"algorithm": "HS256", "secret": self.supabase_jwt_secret}
        return (*self.issuers, IssuerSettings.model_validate({"issuer": issuer, "audience": "authenticated", **keys}))

    @model_validator(mode="after")
    def _supabase_whole(self) -> Self:
        if self.supabase_jwt_secret is not None:
            if self.supabase_url is None:
                raise self._refuse(
                    "supabase_url", "is needed with auth.supabase_jwt_secret: https://PROJECT.supabase.co"
                )
            if len(self.supabase_jwt_secret.get_secret_value().encode()) < SHORTEST_SECRET:
                raise self._refuse("supabase_jwt_secret", f"must have at least {SHORTEST_SECRET} bytes")
        return self

    @model_validator(mode="after")
    def _issuers_apart(self) -> Self:
        for field in ("issuer", "user_prefix"):
            values = [getattr(issuer, field) for issuer in self.all_issuers]
            if len(set(values)) < len(values):
                raise self._refuse("issuers", f"each needs a {field} of its own, or their users would be mixed up")
        return self

    @model_validator(mode="after")
    def _secrets_on_purpose(self) -> Self:
        if not self.allow_shared_secrets and any(issuer.secret for issuer in self.issuers):
            problem = "HS256 lets everybody who checks tokens make them, too: use RS256 or ES256, or `serve --dev` for"
            raise self._refuse("issuers", f"{problem} development, or set auth.allow_shared_secrets: true")
        return self


class ServedAgent(BaseModel):
    """An agent of the chat server: its system prompt, and who answers as it (`chat_server.agent` if None)."""

    model_config = Section.model_config

    system: str = ""
    agent: PluginName | None = None


class ChatServerSettings(Section):
    """What ``reactor-memory chat-server`` serves. An agent of any id is answered, or those of `agents` alone."""

    prefix = "chat_server"

    agent: PluginName = "model"
    agents: dict[str, ServedAgent] = Field(default_factory=dict[str, ServedAgent])
    any_agent: bool = True


class HttpSettings(Section):
    """What ``reactor-memory serve`` accepts."""

    prefix = "http"

    max_body_bytes: PositiveInt = 1024 * 1024
    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    port: Port = 8080
    cors_origins: Origins = ()
    idle_timeout_seconds: PositiveFloat = 75
    drain_delay_seconds: NonNegativeFloat = 0
    shutdown_grace_seconds: PositiveFloat = 20
    metrics_host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    metrics_port: Port | None = None
