"""Keys of agents: their form, and how soon a revoked one is refused."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reactor_memory.features.sharing.principals import ApiKey, Grant
from reactor_memory.server.api_keys import KeyRing, checksum, hash_of, is_valid, new_key, prefix_of
from reactor_memory.testing import FakeClock
from tests.doubles.scripted_database import ScriptedDatabase
from tests.scenes.tables import each_row

pytestmark = pytest.mark.anyio

GRANT = Grant(agent_names=("travel",), operations=("read",))


class Keys(ScriptedDatabase):
    """Counts how often it is asked."""

    def __init__(self, *keys: ApiKey) -> None:
        self.keys = {key.key_prefix: key for key in keys}
        self.asked = 0

    async def find_api_key(self, key_prefix: str) -> ApiKey | None:
        self.asked += 1
        return self.keys.get(key_prefix)

    def add(self, key: ApiKey) -> None:
        self.keys[key.key_prefix] = key

    def revoke(self, key_prefix: str, *, now: int) -> None:
        self.keys[key_prefix] = replace(self.keys[key_prefix], revoked_at=now)


def made(**more: Any) -> tuple[ApiKey, str]:
    return new_key("bot", GRANT, now=10, **more)


class TestTheForm:
    def test_a_scanner_of_secrets_knows_a_key(self) -> None:
        key, text = made()
        assert re.fullmatch(r"rm_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}", text)
        assert prefix_of(text) == key.key_prefix
        assert text[-6:] == checksum(text[:-6])

    def test_the_checksum_of_a_known_text(self) -> None:
        """Scanners compute it, too, so it must never change: CRC-32 in base 62, digits before letters."""
        assert checksum("") == "000000"
        assert checksum("123456789") == base62(0xCBF43926)

    def test_what_is_kept_does_not_hold_the_secret(self) -> None:
        key, text = made()
        assert key.secret_hash == hash_of(text)
        assert text.split("_")[2][:32] not in repr(key)
        assert text not in repr(key)

    def test_no_two_are_alike(self) -> None:
        assert len({made()[1] for _ in range(100)}) == 100

    @given(st.integers(0, 49), st.characters(codec="ascii"))
    def test_a_key_with_any_other_character_is_none(self, place: int, character: str) -> None:
        text = "rm_abcdefgh_" + "k" * 32
        text += checksum(text)
        altered = text[:place] + character + text[place + 1 :]
        assert altered == text or prefix_of(altered) is None

    @each_row("text", ["", "rm_", "rm__", "Bearer x", "rm_abcdefgh_" + "k" * 38, "\0", "ключ"])
    def test_what_is_no_key(self, text: str) -> None:
        assert prefix_of(text) is None


def base62(number: int) -> str:
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    return "".join(digits[number // 62**place % 62] for place in reversed(range(6)))


class TestValidity:
    def test_only_the_text_itself(self) -> None:
        key, text = made()
        assert is_valid(key, text, now=10)
        assert not is_valid(key, made()[1], now=10)
        assert not is_valid(key, text + " ", now=10)

    def test_not_after_its_end(self) -> None:
        key, text = made(expires_at=20)
        assert is_valid(key, text, now=19)
        assert not is_valid(key, text, now=20)

    def test_not_once_revoked(self) -> None:
        key, text = made()
        assert not is_valid(replace(key, revoked_at=15), text, now=15)


class TestKeyRing:
    async def test_a_key_is_looked_up_once_for_a_while(self) -> None:
        key, text = made()
        database, clock = Keys(key), FakeClock()
        ring = KeyRing(database, clock=clock)
        for _ in range(5):
            assert await ring.find(text) == key
        clock.advance(4.9)
        assert await ring.find(text) == key
        assert database.asked == 1

    async def test_a_revoked_key_is_refused_after_five_seconds_at_most(self) -> None:
        """By every process, since each looks itself."""
        key, text = made()
        database, clock = Keys(key), FakeClock()
        rings = [KeyRing(database, clock=clock) for _ in range(2)]
        for ring in rings:
            assert await ring.find(text) == key
        database.revoke(key.key_prefix, now=clock())
        clock.advance(5)
        for ring in rings:
            assert await ring.find(text) is None

    async def test_a_clock_that_is_set_back_lengthens_no_life(self) -> None:
        key, text = made()
        database, clock = Keys(key), FakeClock()
        ring = KeyRing(database, clock=clock)
        assert await ring.find(text) == key
        database.revoke(key.key_prefix, now=clock())
        clock.advance(-3600)
        assert await ring.find(text) is None

    async def test_a_key_that_is_over_is_refused_at_once(self) -> None:
        clock = FakeClock()
        key, text = made(expires_at=clock() + 1_000_000)
        ring = KeyRing(Keys(key), clock=clock)
        assert await ring.find(text) == key
        clock.advance(1)
        assert await ring.find(text) is None

    async def test_a_right_prefix_is_not_enough(self) -> None:
        key, text = made()
        forged = f"rm_{key.key_prefix}_{'k' * 32}"
        ring = KeyRing(Keys(key), clock=FakeClock())
        assert await ring.find(forged + checksum(forged)) is None
        assert await ring.find(text) == key
        assert await ring.find(forged + checksum(forged)) is None, "the key of this prefix is known now"
        assert await ring.find(text[:-1] + ("0" if text[-1] != "0" else "1")) is None

    async def test_what_only_looks_like_key_does_not_reach_the_store(self) -> None:
        database = Keys()
        assert await KeyRing(database, clock=FakeClock()).find("rm_abcdefgh_" + "k" * 38) is None
        assert database.asked == 0

    async def test_a_new_key_works_at_once(self) -> None:
        database = Keys()
        ring = KeyRing(database, clock=FakeClock())
        key, text = made()
        assert await ring.find(text) is None
        database.add(key)
        assert await ring.find(text) == key

    async def test_only_so_many_are_remembered(self) -> None:
        keys = [made() for _ in range(3)]
        database = Keys(*(key for key, _ in keys))
        ring = KeyRing(database, clock=FakeClock(), max_known=2)
        for _ in range(2):
            for _, text in keys[1:]:
                assert await ring.find(text)
        assert database.asked == 2
        assert await ring.find(keys[0][1])
        assert await ring.find(keys[1][1])
        assert database.asked == 4
