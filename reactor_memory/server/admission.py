"""The door of the service: who is let in, how often, and who opens it without saying who may call.

The parts are made here of the settings; nothing is fetched before the first token comes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from litestar.connection import ASGIConnection
from litestar.exceptions import NotAuthorizedException, TooManyRequestsException

from reactor_memory.database.database import Database
from reactor_memory.errors import ConfigurationError
from reactor_memory.features.sharing.principals import ApiKey, Principal
from reactor_memory.server.api_keys import KeyRing, holds
from reactor_memory.server.authentication import Authenticator, credentials_of
from reactor_memory.server.bearer_tokens import Issuer, TokenVerifier
from reactor_memory.server.development import DevelopmentIssuer
from reactor_memory.server.jwks import (
    FetchOptions,
    FixedKeys,
    KeySource,
    RemoteKeys,
    SharedSecret,
    fetch_set,
    keys_of,
)
from reactor_memory.settings.service_sections import AuthSettings, IssuerSettings

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock

BURST_SECONDS = 15.0
"""What a caller does not use up may come at once later: as much as for so long."""

FETCH_SECONDS = 5.0
"""How long it may take to fetch keys."""

Connection: TypeAlias = ASGIConnection[Any, Any, Any, Any]


class Admission:
    """Lets requests in: says whose they are (401), and whether it is not too often (429).

    Who fails too often is told so instead of 401. Others at the same address, which may be that of a proxy, are not
    locked out by it: nothing that can be found by trying protects us.
    """

    def __init__(self, authenticator: Authenticator, *, users: Buckets, agents: Buckets, failures: Buckets) -> None:
        self._authenticator = authenticator
        self._users = users
        self._agents = agents
        self._failures = failures

    async def __call__(self, connection: Connection) -> Principal:
        """Raises as `Authenticator.principal`, 400 for a request that cannot be understood, and 429."""
        scope: Any = connection.scope
        try:
            credentials = credentials_of(scope["headers"], scope["query_string"])
            principal = await self._authenticator.principal(credentials)
        except NotAuthorizedException:
            check_rate(self._failures, _address(scope))
            raise
        self._check(principal)
        return principal

    async def check(self) -> None:
        """Raises `KeysUnavailableError` while tokens of an issuer cannot be checked."""
        await self._authenticator.check()

    def _check(self, principal: Principal) -> None:
        """An agent has one bucket, whomever it acts for."""
        if principal.client_id is not None:
            check_rate(self._agents, principal.client_id)
        elif principal.user_id is not None:
            check_rate(self._users, principal.user_id)


def check_rate(buckets: Buckets, name: str) -> None:
    wait = buckets.take(name)
    if wait > 0:
        raise TooManyRequestsException(
            "more requests than allowed: wait as long as Retry-After says",
            headers={"Retry-After": str(math.ceil(wait))},
        )


def admission_of(
    settings: AuthSettings, *, database: Database, clock: Clock, development: DevelopmentIssuer | None = None
) -> Admission:
    """The door that the settings describe. Raises `ConfigurationError` for keys of an issuer that cannot be read.

    `development` is an issuer of this process beside those of the settings.
    """
    issuers = [issuer_of(issuer, clock) for issuer in settings.all_issuers]
    if development is not None:
        issuers.append(development.issuer)
    authenticator = Authenticator(
        tokens=TokenVerifier(issuers, clock=clock),
        keys=KeyRing(database, clock=clock),
    )
    buckets = partial(Buckets, burst_seconds=BURST_SECONDS, clock=clock)
    return Admission(
        authenticator,
        users=buckets(per_minute=settings.user_requests_per_minute),
        agents=buckets(per_minute=settings.agent_requests_per_minute),
        failures=buckets(per_minute=settings.failures_per_minute),
    )


def issuer_of(issuer: IssuerSettings, clock: Clock) -> Issuer:
    told = issuer.model_dump(exclude={"jwks_file", "jwks_url", "secret"})
    return Issuer(keys=_keys_of(issuer, clock), **told)


def _keys_of(issuer: IssuerSettings, clock: Clock) -> KeySource:
    if issuer.secret is not None:
        return SharedSecret(issuer.secret.get_secret_value().encode())
    if issuer.jwks_url is None:
        return _keys_in_file(issuer)
    return RemoteKeys(
        partial(fetch_set, issuer.jwks_url, FETCH_SECONDS),
        algorithm=issuer.algorithm,
        clock=clock,
        options=FetchOptions(),
    )


def _keys_in_file(issuer: IssuerSettings) -> FixedKeys:
    try:
        return FixedKeys(keys_of(issuer.read_jwks(), issuer.algorithm))
    except ValueError:
        problem = f"{issuer.jwks_file} holds no key for {issuer.algorithm}: it must be a JWKS with such a public key"
        raise ConfigurationError("auth.issuers", problem) from None


def require_callers(settings: AuthSettings, keys: Iterable[ApiKey], *, now: int) -> None:
    """Raises `ConfigurationError` if nobody could call: no issuer is set, and no agent has a key that holds."""
    if settings.all_issuers or any(holds(key, now=now) for key in keys):
        return
    raise ConfigurationError(
        "auth.issuers",
        "is empty and no agent has a key, so nobody could call: name the issuer of your users' tokens (of Supabase: "
        "auth.supabase_url), or make a key with `reactor-memory keys create`; to try the service on this machine: "
        "`reactor-memory serve --dev`",
    )


def _address(scope: Any) -> str:
    client = scope.get("client")
    return client[0] if client else ""


class Buckets:
    """Everybody's bucket holds what `per_minute` gives in `burst_seconds` (at least one), and fills steadily.

    Of each only the time is kept at which it will be full. At most `max_names` are kept: the one that was not used for
    longest counts as full again.
    """

    def __init__(self, *, per_minute: int, burst_seconds: float, clock: Clock, max_names: int = 10_000) -> None:
        self._is_unlimited = per_minute == 0
        self._interval = 60e6 / max(per_minute, 1)
        self._tolerance = max(burst_seconds * 1e6 - self._interval, 0.0)
        self._clock = clock
        self._max_names = max_names
        self._full_at: dict[str, float] = {}

    def take(self, name: str) -> float:
        """Take a token: 0, or the seconds to wait for one."""
        if self._is_unlimited:
            return 0.0
        now = self._clock()
        full_at = max(self._full_at.pop(name, now), now)
        wait = full_at - now - self._tolerance
        self._full_at[name] = full_at if wait > 0 else full_at + self._interval
        if len(self._full_at) > self._max_names:
            self._full_at.pop(next(iter(self._full_at)))
        return max(wait, 0.0) / 1e6
