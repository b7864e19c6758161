"""Who calls, by what a request brings along: users, agents, agents on behalf of users, and nobody."""

from typing import Any

import pytest
from litestar.exceptions import HTTPException

from reactor_memory.errors import ConfigurationError, StoreUnavailableError
from reactor_memory.features.sharing.principals import ApiKey, Grant, Operation, Principal
from reactor_memory.server.admission import Admission, admission_of, require_callers
from reactor_memory.server.api_keys import new_key
from reactor_memory.server.development import DevelopmentIssuer, require_loopback
from reactor_memory.settings.service_sections import AuthSettings
from reactor_memory.settings.settings import Settings
from reactor_memory.testing import FakeClock
from reactor_memory.wiring.service_container import ServiceContainer
from tests.doubles.fake_key_server import FakeKeyServer
from tests.doubles.scripted_database import ScriptedDatabase
from tests.scenes.signing import AUDIENCE, ISSUER, NOW, SECRET, jwk, key_set, rsa_key, token
from tests.scenes.tables import each_row

pytestmark = pytest.mark.anyio


class Keys(ScriptedDatabase):
    """A database with two keys: `plain`, and `acting`, which may name users."""

    def __init__(self) -> None:
        self.plain = new_key("bot", grant("read"), now=1)
        self.acting = new_key("helper", grant("read", "on-behalf-of"), now=1)
        self.away = False

    async def find_api_key(self, key_prefix: str) -> ApiKey | None:
        if self.away:
            raise StoreUnavailableError("away")
        return next((key for key, _ in (self.plain, self.acting) if key.key_prefix == key_prefix), None)


def grant(*operations: Operation) -> Grant:
    return Grant(agent_names=("travel",), operations=operations)


def auth_settings(**changes: Any) -> AuthSettings:
    issuer = {"issuer": ISSUER, "audience": AUDIENCE, "algorithm": "HS256", "secret": SECRET}
    return AuthSettings(**({"issuers": [issuer], "allow_shared_secrets": True} | changes))


class Door:
    """An `Admission`, its keys and its clock."""

    def __init__(self, settings: AuthSettings | None = None) -> None:
        self.keys, self.clock = Keys(), FakeClock(NOW * 1_000_000)
        self.admission: Admission = admission_of(settings or auth_settings(), database=self.keys, clock=self.clock)

    async def enter(self, *headers: tuple[str, str], query: str = "", address: str = "192.0.2.1") -> Principal:
        scope = {
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
            "query_string": query.encode(),
            "client": (address, 1),
        }
        return await self.admission(type("Connection", (), {"scope": scope}))  # pyright: ignore[reportArgumentType]

    async def refuses(self, *headers: tuple[str, str], **more: str) -> HTTPException:
        with pytest.raises(HTTPException) as caught:
            await self.enter(*headers, **more)
        return caught.value


def user_token(subject: str = "ann", **changes: Any) -> str:
    return token(SECRET.encode(), algorithm="HS256", sub=subject, **changes)


def bearer(text: str) -> tuple[str, str]:
    return ("Authorization", f"Bearer {text}")


def api_key(text: str) -> tuple[str, str]:
    return ("X-API-Key", text)


def on_behalf_of(user_id: str) -> tuple[str, str]:
    return ("X-On-Behalf-Of", user_id)


class TestWhoCalls:
    async def test_a_user_by_a_token(self) -> None:
        assert await Door().enter(bearer(user_token())) == Principal(user_id="ann")

    @pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer "])
    async def test_whatever_the_case_of_the_scheme(self, scheme: str) -> None:
        assert (await Door().enter(("Authorization", f"{scheme} {user_token()}"))).user_id == "ann"

    async def test_an_agent_by_its_key(self) -> None:
        door = Door()
        assert await door.enter(api_key(door.keys.plain.text)) == Principal(client_id="bot", grant=grant("read"))

    async def test_an_agent_on_behalf_of_the_user_of_a_token(self) -> None:
        door = Door()
        found = await door.enter(api_key(door.keys.plain.text), bearer(user_token()))
        assert found == Principal(user_id="ann", client_id="bot", grant=grant("read"))

    async def test_agent_on_behalf_of_a_user_that_it_may_name(self) -> None:
        door = Door()
        found = await door.enter(api_key(door.keys.acting.text), on_behalf_of("anna-lü"))
        assert (found.user_id, found.client_id) == ("anna-lü", "helper")

    async def test_naming_the_user_of_the_token_says_nothing_new(self) -> None:
        door = Door()
        assert (await door.enter(bearer(user_token()), on_behalf_of("ann"))).user_id == "ann"
        assert (await door.enter(bearer(user_token()), on_behalf_of("ann"), api_key(door.keys.plain.text))).is_agent


class TestWhoIsRefused:
    @pytest.mark.parametrize("key", ["plain", None])
    async def test_who_may_not_name_users(self, key: str | None) -> None:
        door = Door()
        who = api_key(door.keys.plain.text) if key else bearer(user_token("bob"))
        assert (await door.refuses(who, on_behalf_of("ann"))).status_code == 403

    async def test_who_names_another_user_than_their_token(self) -> None:
        door = Door()
        both = (api_key(door.keys.acting.text), bearer(user_token("bob")))
        assert (await door.refuses(*both, on_behalf_of("ann"))).status_code == 403

    @pytest.mark.parametrize("name", ["", "a\x00b", "x" * 256])
    async def test_a_name_of_nobody(self, name: str) -> None:
        door = Door()
        assert (await door.refuses(api_key(door.keys.acting.text), on_behalf_of(name))).status_code == 400

    @each_row(
        "value", ["", "Bearer", "Bearer ", "Basic YW5uOmFubg==", "Bearer x", "Bearer a b", user_token(), "Bearerx"]
    )
    async def test_another_authorization(self, value: str) -> None:
        refusal = await Door().refuses(("Authorization", value))
        assert refusal.status_code == 401
        assert (refusal.headers or {})["WWW-Authenticate"].startswith('Bearer realm="reactor-memory"')

    async def test_nobody(self) -> None:
        door = Door()
        assert (await door.refuses()).status_code == 401
        assert (await door.refuses(on_behalf_of("ann"))).status_code == 401

    async def test_a_token_that_is_over_or_of_another_issuer(self) -> None:
        for changes in ({"exp": NOW - 3600}, {"iss": "https://evil/"}, {"aud": "another"}):
            refusal = await Door().refuses(bearer(user_token(**changes)))
            assert refusal.status_code == 401
            assert 'error="invalid_token"' in (refusal.headers or {})["WWW-Authenticate"]

    @pytest.mark.parametrize("text", ["", "x", "rm_abcdefgh_" + "k" * 38, "rm_" + "x" * 10_000])
    async def test_an_unknown_key(self, text: str) -> None:
        assert (await Door().refuses(api_key(text))).status_code == 401

    async def test_bad_key_beside_good_token_and_the_other_way_round(self) -> None:
        door = Door()
        assert (await door.refuses(api_key("x"), bearer(user_token()))).status_code == 401
        assert (await door.refuses(api_key(door.keys.plain.text), bearer("x"))).status_code == 401

    async def test_a_key_is_no_token(self) -> None:
        door = Door()
        assert (await door.refuses(bearer(door.keys.plain.text))).status_code == 401

    @pytest.mark.parametrize("name", ["Authorization", "X-API-Key", "X-On-Behalf-Of"])
    async def test_what_is_said_twice(self, name: str) -> None:
        door = Door()
        values = {"Authorization": bearer(user_token())[1], "X-API-Key": door.keys.acting.text, "X-On-Behalf-Of": "ann"}
        once = list(values.items())
        assert (await door.refuses(*once, (name, values[name]))).status_code == 401

    @each_row("name", ["api_key", "apikey", "API-Key", "x-api-key", "access_token", "authorization"])
    async def test_credentials_in_the_address(self, name: str) -> None:
        door = Door()
        for query in (f"{name}={door.keys.plain.text}", f"limit=1&{name}=x"):
            assert (await door.refuses(bearer(user_token()), query=query)).status_code == 400

    async def test_a_key_in_the_address_under_any_name(self) -> None:
        door = Door()
        assert (await door.refuses(query=f"q={door.keys.plain.text}")).status_code == 400

    async def test_bytes_that_are_no_text(self) -> None:
        scope = {"headers": [(b"x-api-key", b"\xff")], "query_string": b"", "client": None}
        with pytest.raises(HTTPException) as caught:
            await Door().admission(type("Connection", (), {"scope": scope}))  # pyright: ignore[reportArgumentType]
        assert caught.value.status_code == 401

    async def test_no_refusal_repeats_a_credential(self) -> None:
        door = Door()
        canary = "canary-8c1f"
        for headers in (
            [bearer(canary)],
            [api_key(canary)],
            [("Authorization", canary)],
            [api_key("x"), bearer(canary)],
        ):
            refusal = await door.refuses(*headers)
            told = f"{refusal!r} {refusal.detail} {refusal.headers} {refusal.extra}"
            assert canary not in told


class TestWhatIsAway:
    async def test_the_store_of_the_keys(self) -> None:
        door = Door()
        door.keys.away = True
        with pytest.raises(StoreUnavailableError):
            await door.enter(api_key(door.keys.plain.text))
        assert (await door.enter(bearer(user_token()))).user_id == "ann"

    async def test_the_keys_of_an_issuer(self) -> None:
        """By a URL, from the first token on: 503 while they cannot be had, and not 401."""
        async with FakeKeyServer.running(key_set(jwk(rsa_key()))) as server:
            server.document, document = None, server.document
            issuer = {"issuer": ISSUER, "audience": AUDIENCE, "jwks_url": f"{server.url}/keys"}
            door = Door(auth_settings(issuers=[issuer], allow_shared_secrets=False))
            assert server.paths == []
            refusal = await door.refuses(bearer(token()))
            assert refusal.status_code == 503
            assert int((refusal.headers or {})["Retry-After"]) > 0
            server.document = document
            door.clock.advance(30)
            assert (await door.enter(bearer(token()))).user_id == "ann"
            assert server.paths == ["/keys", "/keys"]


class TestHowOften:
    async def test_users_and_agents_have_limits_of_their_own(self) -> None:
        door = Door(auth_settings(user_requests_per_minute=1, agent_requests_per_minute=8))
        who = [bearer(user_token())], [bearer(user_token("bob"))]
        for headers in who:
            await door.enter(*headers)
            refusal = await door.refuses(*headers)
            assert refusal.status_code == 429
            assert (refusal.headers or {})["Retry-After"] == "60"
        for user_id in ("ann", "bob"):  # one bucket, whomever the agent acts for
            await door.enter(api_key(door.keys.acting.text), on_behalf_of(user_id))
        assert (await door.refuses(api_key(door.keys.acting.text), on_behalf_of("eve"))).status_code == 429
        await door.enter(api_key(door.keys.plain.text))

    async def test_who_fails_too_often_has_to_wait_others_not(self) -> None:
        door = Door(auth_settings(failures_per_minute=8))
        assert [(await door.refuses(bearer("x"))).status_code for _ in range(3)] == [401, 401, 429]
        assert (await door.refuses(bearer("x"), address="192.0.2.2")).status_code == 401
        assert (await door.enter(bearer(user_token()))).user_id == "ann"
        door.clock.advance(30)
        assert (await door.refuses(bearer("x"))).status_code == 401


class TestDevelopment:
    async def test_its_token_is_accepted_beside_those_of_the_settings(self) -> None:
        clock = FakeClock(NOW * 1_000_000)
        development = DevelopmentIssuer()
        door = Door()
        door.admission = admission_of(auth_settings(), database=door.keys, clock=clock, development=development)
        assert (await door.enter(bearer(development.token(now=clock())))).user_id == "dev"
        assert (await door.enter(bearer(development.token("ann", now=clock())))).user_id == "ann"
        assert (await door.enter(bearer(user_token()))).user_id == "ann"
        clock.advance(8 * 86_400)
        assert (await door.refuses(bearer(development.token(now=NOW * 1_000_000)))).status_code == 401

    async def test_its_token_is_worth_nothing_elsewhere(self) -> None:
        door = Door()
        text = DevelopmentIssuer().token(now=door.clock())
        assert (await door.refuses(bearer(text))).status_code == 401
        other = DevelopmentIssuer()
        door.admission = admission_of(auth_settings(), database=door.keys, clock=door.clock, development=other)
        assert (await door.refuses(bearer(text))).status_code == 401

    @pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "::1"])
    def test_it_listens_on_this_machine(self, host: str) -> None:
        require_loopback(host)

    @each_row("host", ["0.0.0.0", "::", "", "192.168.0.1", "example.com", "127.0.0.1.example.com", "fe80::1"])
    def test_and_on_no_other(self, host: str) -> None:
        with pytest.raises(ConfigurationError, match="this machine only"):
            require_loopback(host)


class TestSomebodyMustBeAbleToCall:
    def test_without_issuers_and_keys_nobody_is_served(self) -> None:
        lasting, ending = (new_key("bot", grant("read"), now=1, expires_at=end).key for end in (None, 5))
        require_callers(AuthSettings(), [lasting], now=1)
        require_callers(auth_settings(), [], now=1)
        require_callers(AuthSettings(), [ending], now=4)
        for keys in ([ending], []):
            with pytest.raises(ConfigurationError, match="reactor-memory keys create"):
                require_callers(AuthSettings(), keys, now=5)


class TestSettings:
    def test_settings_of_a_memory_alone_serve_nobody(self) -> None:
        container = ServiceContainer(settings=Settings(store={"url": "memory://"}))  # pyright: ignore[reportArgumentType]
        with pytest.raises(ConfigurationError, match=r"^http: the service needs ServiceSettings"):
            container.service_settings()

    @each_row(
        ("issuer", "problem"),
        [
            ({"algorithm": "HS256"}, "needs secret"),
            ({"algorithm": "RS256"}, "needs either jwks_file or jwks_url"),
            ({"jwks_url": "https://id/", "jwks_file": "keys.json"}, "needs either"),
            ({"jwks_url": "https://id/", "secret": SECRET}, "needs either"),
            ({"algorithm": "HS256", "secret": SECRET, "jwks_url": "https://id/"}, "needs secret"),
            ({"algorithm": "HS256", "secret": "short"}, "at least 32 bytes"),
            ({"algorithm": "none", "secret": SECRET}, "RS256"),
            ({"jwks_url": "http://id.example.com/"}, "must begin with https"),
            ({"jwks_url": "http://127.0.0.1.example.com/"}, "must begin with https"),
            ({"jwks_url": "https://user:pw@id/"}, "without user, password"),
            ({"jwks_url": "https://id/", "unknown": 1}, "is no setting"),
        ],
    )
    def test_an_impossible_issuer(self, issuer: dict[str, Any], problem: str) -> None:
        with pytest.raises(ConfigurationError, match=problem) as caught:
            AuthSettings(issuers=[{"issuer": "i", "audience": "a", **issuer}], allow_shared_secrets=True)  # pyright: ignore
        assert "auth.issuers" in str(caught.value)
        assert SECRET not in str(caught.value)

    @pytest.mark.parametrize("field", ["issuer", "user_prefix"])
    def test_issuers_whose_users_would_be_mixed_up(self, field: str) -> None:
        issuers = [
            {"issuer": f"i{number}", "audience": "a", "user_prefix": f"p{number}", "jwks_url": "https://id/"}
            | {field: "x"}
            for number in range(2)
        ]
        with pytest.raises(ConfigurationError, match=f"needs a {field} of its own"):
            AuthSettings(issuers=issuers)  # pyright: ignore[reportArgumentType]

    def test_shared_secrets_only_on_purpose(self) -> None:
        with pytest.raises(ConfigurationError, match="allow_shared_secrets: true"):
            auth_settings(allow_shared_secrets=False)

    @pytest.mark.parametrize("text", [None, b"{}", key_set(jwk(rsa_key("weak", 1024)))])
    def test_a_file_without_a_key(self, tmp_path: Any, text: bytes | None) -> None:
        path = tmp_path / "keys.json"
        if text is not None:
            path.write_bytes(text)
        with pytest.raises(ConfigurationError, match=r"keys\.json"):
            Door(auth_settings(issuers=[{"issuer": "i", "audience": "a", "jwks_file": path}]))

    async def test_a_file_with_one(self, tmp_path: Any) -> None:
        path = tmp_path / "keys.json"
        path.write_bytes(key_set(jwk(rsa_key())))
        door = Door(auth_settings(issuers=[{"issuer": ISSUER, "audience": AUDIENCE, "jwks_file": path}]))
        assert (await door.enter(bearer(token()))).user_id == "ann"
