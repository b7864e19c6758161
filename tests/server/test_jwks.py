"""The public keys of an issuer: which count, and how seldom they are fetched."""

import asyncio

import anyio
import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from reactor_memory.server.jwks import (
    MOST_KEYS,
    FetchOptions,
    KeysUnavailableError,
    RemoteKeys,
    fetch_set,
    keys_of,
)
from reactor_memory.testing import FakeClock
from tests.doubles.fake_key_server import FakeKeyServer
from tests.scenes.signing import ec_key, jwk, key_set, rsa_key
from tests.scenes.tables import each_row

pytestmark = pytest.mark.anyio

FIRST, SECOND = jwk(rsa_key(), "k1"), jwk(rsa_key("second"), "k2")


class Source:
    """What answers with key sets: `document`, or if that is None, nothing but errors."""

    def __init__(self, *entries: object) -> None:
        self.document: bytes | None = key_set(*entries)
        self.fetched = 0
        self.go = asyncio.Event()
        self.go.set()

    async def __call__(self) -> bytes:
        self.fetched += 1
        await self.go.wait()
        if self.document is None:
            raise OSError("the issuer is away")
        return self.document


class Fetched:
    """Keys that a `Source` gives, with a clock."""

    def __init__(self, *entries: object) -> None:
        self.clock, self.source = FakeClock(), Source(*entries)
        options = FetchOptions(refresh_seconds=100, stale_seconds=1000, pause_seconds=10)
        self.keys = RemoteKeys(self.source, algorithm="RS256", clock=self.clock, options=options)

    async def knows(self, key_id: str) -> bool:
        found = await self.keys.find(key_id) is not None
        await anyio.wait_all_tasks_blocked()  # what goes on behind it
        return found


class TestWhichKeysCount:
    def test_those_of_the_algorithm(self) -> None:
        document = key_set(FIRST, jwk(ec_key(), "e1"), SECOND, {"kty": "oct", "kid": "o1", "k": "c2VjcmV0"})
        assert list(keys_of(document, "RS256")) == ["k1", "k2"]
        assert list(keys_of(document, "ES256")) == ["e1"]

    @each_row(
        "weak",
        [
            jwk(rsa_key("weak", 1024), "weak"),
            jwk(rsa_key("other"), "weak", use="enc"),
            jwk(rsa_key("other"), "weak", alg="RS512"),
            jwk(rsa_key("other"), "weak", alg="HS256"),
            jwk(rsa_key("other"), "weak", key_ops=["encrypt"]),
            jwk(rsa_key("other"), "weak", key_ops="verify"),
            jwk(rsa_key("other"), "weak", n="AQAB"),
            jwk(rsa_key("other"), "weak", n=None),
            jwk(rsa_key("other"), "weak", e=3.5),
            {"kid": "weak"},
            {},
        ],
    )
    def test_weak_and_foreign_ones_are_passed_over(self, weak: object) -> None:
        assert list(keys_of(key_set(weak, FIRST), "RS256")) == ["k1"]
        with pytest.raises(ValueError, match="no key for RS256"):
            keys_of(key_set(weak), "RS256")

    def test_other_curves_are_passed_over(self) -> None:
        with pytest.raises(ValueError, match="no key for ES256"):
            keys_of(key_set(jwk(ec_key("large", ec.SECP384R1))), "ES256")

    def test_private_numbers_are_not_taken(self) -> None:
        import jwt

        private = jwt.algorithms.RSAAlgorithm.to_jwk(rsa_key(), as_dict=True) | {"kid": "k1"}
        private.pop("key_ops", None)
        key = keys_of(key_set(private), "RS256")["k1"]
        assert not hasattr(key, "private_numbers")

    def test_of_two_with_one_id_the_first_counts(self) -> None:
        keys = keys_of(key_set(FIRST, jwk(rsa_key("second"), "k1")), "RS256")
        assert keys["k1"].public_numbers() == rsa_key().public_key().public_numbers()

    @each_row("text", [b"", b"{}", b"[]", b"null", b'{"keys": {}}', b'{"keys": ["k"]}', b"<html>", b"\xff"])
    def test_what_is_no_key_set(self, text: bytes) -> None:
        with pytest.raises(ValueError, match=r"key for RS256|JSON|Expected|missing|truncated"):
            keys_of(text, "RS256")

    def test_a_set_without_end(self) -> None:
        with pytest.raises(ValueError, match="length"):
            keys_of(key_set(*[FIRST] * (MOST_KEYS + 1)), "RS256")


class TestWhenTheyAreFetched:
    async def test_not_before_they_are_needed_and_then_once(self) -> None:
        fetched = Fetched(FIRST)
        assert fetched.source.fetched == 0
        for _ in range(3):
            assert await fetched.knows("k1")
        assert fetched.source.fetched == 1

    async def test_many_who_need_them_at_once_share_one_fetch(self) -> None:
        fetched = Fetched(FIRST)
        fetched.source.go.clear()
        found: list[object] = []

        async def find() -> None:
            found.append(await fetched.keys.find("k1"))

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(find)
            await anyio.wait_all_tasks_blocked()
            fetched.source.go.set()
        assert len(found) == 20
        assert None not in found
        assert fetched.source.fetched == 1

    async def test_who_gives_up_waiting_does_not_end_fetch_of_others(self) -> None:
        fetched = Fetched(FIRST)
        fetched.source.go.clear()
        impatient = asyncio.create_task(fetched.keys.find("k1"))
        await anyio.wait_all_tasks_blocked()
        impatient.cancel()
        await asyncio.wait([impatient])
        fetched.source.go.set()
        assert await fetched.knows("k1")
        assert fetched.source.fetched == 1

    async def test_new_key_is_found_and_old_one_serves_beside_it(self) -> None:
        fetched = Fetched(FIRST)
        assert await fetched.knows("k1")
        fetched.source.document = key_set(FIRST, SECOND)
        fetched.clock.advance(10)
        assert await fetched.knows("k2")
        assert await fetched.knows("k1")
        assert fetched.source.fetched == 2

    async def test_key_that_is_gone_does_not_serve_after_next_look(self) -> None:
        fetched = Fetched(FIRST, SECOND)
        assert await fetched.knows("k2")
        fetched.source.document = key_set(FIRST)
        fetched.clock.advance(100)
        assert await fetched.knows("k2")  # nobody waits: the look happens behind it
        assert not await fetched.knows("k2")
        assert await fetched.knows("k1")

    async def test_unknown_keys_without_end_do_not_hammer_the_issuer(self) -> None:
        fetched = Fetched(FIRST)
        for second in range(100):
            assert not await fetched.knows(f"made up {second}")
            fetched.clock.advance(1)
        assert fetched.source.fetched == 10
        assert await fetched.knows("k1")


class TestWhenTheIssuerIsAway:
    async def test_known_keys_serve_for_a_bounded_time(self) -> None:
        fetched = Fetched(FIRST)
        assert await fetched.knows("k1")
        fetched.source.document = None
        fetched.clock.advance(999)
        assert await fetched.knows("k1")
        fetched.clock.advance(1)
        with pytest.raises(KeysUnavailableError):
            await fetched.keys.find("k1")

    async def test_nobody_is_refused_for_want_of_keys(self) -> None:
        fetched = Fetched(FIRST)
        fetched.source.document = None
        with pytest.raises(KeysUnavailableError):
            await fetched.keys.find("k1")
        fetched.source.document = key_set(FIRST)
        with pytest.raises(KeysUnavailableError):  # it was asked a moment ago
            await fetched.keys.find("k1")
        fetched.clock.advance(10)
        assert await fetched.knows("k1")

    async def test_unknown_keys_may_be_new_or_made_up_indistinguishably(self) -> None:
        fetched = Fetched(FIRST)
        assert await fetched.knows("k1")
        fetched.source.document = None
        fetched.clock.advance(10)
        with pytest.raises(KeysUnavailableError):
            await fetched.keys.find("k2")
        assert await fetched.knows("k1")

    async def test_what_is_no_key_set_takes_no_key_away(self) -> None:
        fetched = Fetched(FIRST)
        assert await fetched.knows("k1")
        fetched.source.document = key_set(jwk(rsa_key("weak", 1024), "k1"))
        fetched.clock.advance(200)
        assert await fetched.knows("k1")
        assert await fetched.knows("k1")


class TestFetching:
    async def test_a_key_set(self) -> None:
        async with FakeKeyServer.running(key_set(FIRST)) as server:
            assert list(keys_of(await fetch_set(f"{server.url}/keys", 5), "RS256")) == ["k1"]

    @pytest.mark.parametrize("path", ["moved", "missing", "broken", "cut"])
    async def test_no_redirects_and_no_errors(self, path: str) -> None:
        async with FakeKeyServer.running(key_set(FIRST)) as server:
            with pytest.raises((ValueError, httpx2.HTTPError)):
                await fetch_set(f"{server.url}/{path}", 5)
            assert server.paths == [f"/{path}"]

    async def test_no_answer_without_end(self) -> None:
        async with FakeKeyServer.running(key_set(FIRST)) as server:
            with pytest.raises(ValueError, match="too large"):
                await fetch_set(f"{server.url}/endless", 5)

    async def test_no_waiting_without_end(self) -> None:
        async with FakeKeyServer.running(key_set(FIRST)) as server:
            with pytest.raises(TimeoutError):
                await fetch_set(f"{server.url}/dripping", 0.05)
