"""Tokens of users: only what an issuer of the settings signed, for us, for now, counts."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.server import bearer_tokens
from reactor_memory.server.bearer_tokens import Issuer, TokenError, TokenVerifier, read_parts
from reactor_memory.server.jwks import FixedKeys, SharedSecret, VerifyingKey, choose, keys_of
from reactor_memory.testing import FakeClock
from tests.scenes.signing import (
    AUDIENCE,
    ISSUER,
    NOW,
    SECRET,
    claims,
    ec_key,
    encoded,
    jwk,
    key_set,
    public_pem,
    rsa_key,
    signed,
    signed_parts,
    token,
)
from tests.scenes.tables import each_row

pytestmark = pytest.mark.anyio


def issuer(**changes: Any) -> Issuer:
    usual: dict[str, Any] = {
        "issuer": ISSUER,
        "audience": AUDIENCE,
        "algorithm": "RS256",
        "keys": FixedKeys(keys_of(key_set(jwk(rsa_key())), "RS256")),
        "leeway_seconds": 10,
    }
    return Issuer(**(usual | changes))


HMAC_ISSUER = issuer(algorithm="HS256", keys=SharedSecret(SECRET.encode()))


def verifier(*issuers: Issuer, max_bytes: int = 8192) -> TokenVerifier:
    return TokenVerifier(issuers or [issuer()], clock=FakeClock(NOW * 1_000_000), max_bytes=max_bytes)


async def refusal(text: str, *issuers: Issuer) -> str:
    with pytest.raises(TokenError) as caught:
        await verifier(*issuers).user_id(text)
    return caught.value.reason


class TestWhatIsAccepted:
    async def test_a_token_of_each_algorithm(self) -> None:
        elliptic = issuer(algorithm="ES256", keys=FixedKeys(keys_of(key_set(jwk(ec_key())), "ES256")))
        assert await verifier().user_id(token()) == "ann"
        assert await verifier(elliptic).user_id(token(ec_key(), algorithm="ES256")) == "ann"
        assert await verifier(HMAC_ISSUER).user_id(token(SECRET.encode(), algorithm="HS256")) == "ann"

    @pytest.mark.parametrize("audience", [AUDIENCE, [AUDIENCE], ["another", AUDIENCE]])
    async def test_us_among_the_audience(self, audience: object) -> None:
        assert await verifier().user_id(token(aud=audience)) == "ann"

    @pytest.mark.parametrize("kind", ["JWT", "jwt", "at+jwt", "application/at+jwt"])
    async def test_each_type_of_a_token(self, kind: str) -> None:
        assert await verifier().user_id(token(header={"typ": kind})) == "ann"

    async def test_a_token_without_a_type_if_the_settings_say_so(self) -> None:
        assert await verifier(issuer(token_types=("",))).user_id(token(header={"typ": None})) == "ann"

    async def test_a_token_that_names_no_key_where_there_is_one(self) -> None:
        assert await verifier().user_id(token(header={"kid": None})) == "ann"

    async def test_clocks_that_differ_a_little(self) -> None:
        assert await verifier().user_id(token(exp=NOW - 9, iat=NOW + 9, nbf=NOW + 9)) == "ann"

    async def test_times_with_fractions_of_a_second(self) -> None:
        assert await verifier().user_id(token(exp=NOW + 60.5, iat=NOW - 0.5, nbf=NOW - 0.25)) == "ann"
        assert await verifier().user_id(token(exp=NOW - 9.5, iat=NOW + 9.5)) == "ann"
        assert await refusal(token(exp=NOW - 10.5)) == "expired"

    async def test_another_claim_as_the_user(self) -> None:
        rules = issuer(user_claim="email", user_prefix="corp:")
        assert await verifier(rules).user_id(token(email="ann@example.com")) == "corp:ann@example.com"

    async def test_where_token_wants_its_key_to_be_found_is_ignored(self) -> None:
        elsewhere: dict[str, Any] = {
            "jku": "http://127.0.0.1:1/",
            "x5u": "http://127.0.0.1:1/",
            "jwk": jwk(rsa_key("evil")),
            "x5c": [],
        }
        assert await verifier().user_id(token(header=elsewhere)) == "ann"
        assert await refusal(token(rsa_key("evil"), header=elsewhere)) == "signature"


class TestAlgorithms:
    @each_row("name", ["none", "None", "NONE", "nOnE"])
    @each_row("signature", ["", "AAAA"])
    async def test_none_is_none_in_every_case(self, name: str, signature: str) -> None:
        header = json.dumps({"alg": name, "typ": "JWT", "kid": "k1"}).encode()
        unsigned = f"{encoded(header)}.{encoded(json.dumps(claims()).encode())}.{signature}"
        assert await refusal(unsigned) == ("algorithm" if signature else "malformed")

    @pytest.mark.parametrize("form", ["pem", "pem-stripped", "jwk", "jwk-spaced"])
    async def test_a_public_key_is_no_secret(self, form: str) -> None:
        """HS256, signed with what everybody may know."""
        public = jwk(rsa_key())
        secret = {
            "pem": public_pem(rsa_key()),
            "pem-stripped": public_pem(rsa_key()).strip(),
            "jwk": json.dumps(public, separators=(",", ":")).encode(),
            "jwk-spaced": json.dumps(public).encode(),
        }[form]
        assert await refusal(token(secret, algorithm="HS256")) == "algorithm"
        # Not even where another issuer signs so: its key is its own
        other = issuer(issuer="https://other/", user_prefix="o:", algorithm="HS256", keys=SharedSecret(SECRET.encode()))
        assert await refusal(token(secret, algorithm="HS256"), issuer(), other) == "algorithm"

    @each_row("algorithm", ["HS256", "ES256", "RS384", "PS256", "rs256", "", None, 256, ["RS256"]])
    async def test_a_tokens_algorithm_must_be_what_the_settings_say(self, algorithm: object) -> None:
        assert await refusal(token(header={"alg": algorithm})) == "algorithm"

    async def test_a_signature_of_another_algorithm_under_the_right_name(self) -> None:
        assert await refusal(token(SECRET.encode(), algorithm="HS256", header={"alg": "RS256"})) == "signature"
        assert await refusal(token(algorithm="RS384", header={"alg": "RS256"})) == "signature"


class TestHeaders:
    @each_row("kind", [None, "", "JWE", "JOSE", "id+jwt", 1, ["JWT"]])
    async def test_a_missing_or_other_type(self, kind: object) -> None:
        assert await refusal(token(header={"typ": kind})) == "type"

    @each_row("critical", [["exp"], ["b64"], ["unknown"], [], "exp"])
    async def test_what_is_critical_to_the_token_is_unknown_to_us(self, critical: object) -> None:
        assert await refusal(token(header={"crit": critical})) == "critical"

    async def test_another_encoding_of_the_claims(self) -> None:
        assert await refusal(token(header={"b64": False})) == "critical"

    @each_row(
        "key_id",
        [
            "unknown",
            "../../../../dev/null",
            "/etc/passwd",
            "k1' OR '1'='1",
            "k1\x00",
            "http://127.0.0.1:1/keys",
            "file:///etc/passwd",
            "K1",
            "",
            "x" * 10_000,
            1,
            ["k1"],
            {"k1": 1},
            True,
        ],
    )
    async def test_a_key_that_is_not_in_the_set(self, key_id: object) -> None:
        signed_by_a_long_name = verifier(max_bytes=100_000)
        with pytest.raises(TokenError, match="unknown_key"):
            await signed_by_a_long_name.user_id(token(header={"kid": key_id}))

    async def test_a_key_must_be_named_where_there_are_two(self) -> None:
        both = issuer(keys=FixedKeys(keys_of(key_set(jwk(rsa_key()), jwk(rsa_key("second"), "k2")), "RS256")))
        assert await refusal(token(header={"kid": None}), both) == "unknown_key"
        assert await verifier(both).user_id(token(rsa_key("second"), header={"kid": "k2"})) == "ann"
        assert await refusal(token(rsa_key("second")), both) == "signature"


class TestClaims:
    @pytest.mark.parametrize("name", ["exp", "iss", "aud", "sub"])
    async def test_each_required_claim(self, name: str) -> None:
        assert await refusal(token(**{name: None})) == ("issuer" if name == "iss" else "claims")

    @each_row("audience", ["another", "", "memory2", "MEMORY", ["another"], [], 1, {"memory": 1}, [None]])
    async def test_an_audience_without_us(self, audience: object) -> None:
        assert await refusal(token(aud=audience)) == "claims"

    @each_row("name", ["https://evil/", "https://id.example.com", "", [ISSUER], 1, {}])
    async def test_an_issuer_that_nobody_set(self, name: object) -> None:
        assert await refusal(token(iss=name)) == "issuer"

    @pytest.mark.parametrize("subject", [1, True, ["ann"], {"id": "ann"}])
    async def test_a_subject_that_is_no_text(self, subject: object) -> None:
        assert await refusal(token(sub=subject)) == "claims"

    @each_row("subject", ["", "a\0b", "a\nb", "a\x7f", "x" * 256, "\ud800", ".", "..", "\u202ea"])
    async def test_a_subject_that_names_no_user(self, subject: str) -> None:
        assert await refusal(token(sub=subject)) == "user"

    async def test_a_missing_claim_for_the_user(self) -> None:
        assert await refusal(token(), issuer(user_claim="email", user_prefix="corp:")) == "user"

    @each_row("end", [10**20, 1e300, -1, -(10**20), str(NOW + 60), "never", True, [NOW + 60], {}])
    async def test_an_end_that_is_no_time(self, end: object) -> None:
        assert await refusal(token(exp=end)) == "time"

    @pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
    async def test_an_end_that_is_no_number_of_json(self, number: str) -> None:
        assert await refusal(signed(json.dumps(claims(exp="?")).replace('"?"', number))) == "malformed"

    async def test_an_end_beyond_every_number(self) -> None:
        assert await refusal(signed(json.dumps(claims(exp="?")).replace('"?"', "1e999"))) == "time"

    @pytest.mark.parametrize("end", [0, NOW - 3600, NOW - 10])
    async def test_a_token_that_is_over(self, end: int) -> None:
        assert await refusal(token(exp=end)) == "expired"

    @pytest.mark.parametrize("claim", ["nbf", "iat"])
    async def test_a_token_that_has_not_begun(self, claim: str) -> None:
        assert await refusal(token(**{claim: NOW + 11})) == "not_yet"
        assert await refusal(token(**{claim: str(NOW)})) == "time"


class TestForms:
    @each_row(
        "text",
        [
            "",
            ".",
            "..",
            "a.b",
            "a.b.c.d",
            "a.b.c.d.e",
            "é.é.é",
            "\0",
            "e30.e30.e30",
            "W10.W10.AAAA",
            "bnVsbA.bnVsbA.AAAA",
            f"{token()}\n",
            f" {token()}",
            token() + "=",
            token().replace(".", "..", 1),
        ],
    )
    async def test_what_is_no_token(self, text: str) -> None:
        assert await refusal(text) in ("malformed", "issuer")

    async def test_a_name_given_twice_can_be_read_two_ways(self) -> None:
        twice = json.dumps(claims())[:-1] + ', "sub": "bob"}'
        assert await refusal(signed(twice)) == "malformed"
        header = '{"alg": "RS256", "typ": "JWT", "kid": "k1", "alg": "RS256"}'
        assert await refusal(signed_parts(header, json.dumps(claims()))) == "malformed"
        nested = json.dumps(claims(act={}))[:-2] + '{"a": 1, "a": 2}}'
        assert await refusal(signed(nested.replace('"act": {{', '"act": {'))) == "malformed"

    async def test_claims_that_nest_without_end(self) -> None:
        deep = json.dumps(claims())[:-1] + ', "x": ' + "[" * 100_000 + "]" * 100_000 + "}"
        with pytest.raises(TokenError, match="malformed"):
            await verifier(max_bytes=10**6).user_id(signed(deep))

    async def test_a_long_token_is_not_even_read(self) -> None:
        long = token(padding="x" * 8192)
        assert await refusal(long) == "too_long"
        assert await verifier(max_bytes=len(long)).user_id(long) == "ann"

    async def test_an_altered_token(self) -> None:
        whole = token()
        for part in range(3):
            parts = whole.split(".")
            parts[part] = parts[part][:-2] + ("A" if parts[part][-2] != "A" else "Q") + parts[part][-1]
            assert await refusal(".".join(parts)) in (
                "malformed",
                "signature",
                "issuer",
                "algorithm",
                "type",
                "critical",
            )

    @given(st.text(max_size=80) | st.binary(max_size=60).map(encoded).map(lambda part: f"{part}.{part}.{part}"))
    def test_no_text_raises_anything_else(self, text: str) -> None:
        with suppress(TokenError):
            read_parts(text)


class TestSeveralIssuers:
    FIRST = issuer()
    SECOND = issuer(
        issuer="https://partner.example.com/",
        user_prefix="partner:",
        keys=FixedKeys(keys_of(key_set(jwk(rsa_key("partner"))), "RS256")),
    )

    async def test_the_same_subject_of_two_issuers_is_two_users(self) -> None:
        both = verifier(self.FIRST, self.SECOND)
        assert await both.user_id(token()) == "ann"
        assert await both.user_id(token(rsa_key("partner"), iss=self.SECOND.issuer)) == "partner:ann"

    async def test_no_issuer_signs_for_another(self) -> None:
        assert await refusal(token(rsa_key("partner")), self.FIRST, self.SECOND) == "signature"
        assert await refusal(token(iss=self.SECOND.issuer), self.FIRST, self.SECOND) == "signature"

    async def test_no_subject_takes_the_place_of_a_user_of_another(self) -> None:
        assert await refusal(token(sub="partner:ann"), self.FIRST, self.SECOND) == "user"
        assert await refusal(token(sub="partner:"), self.FIRST, self.SECOND) == "user"
        assert await verifier(self.FIRST).user_id(token(sub="partner:ann")) == "partner:ann"


class Keys:
    """Keys of an issuer that change."""

    def __init__(self, *entries: object) -> None:
        self.turn_to(*entries)

    def turn_to(self, *entries: object) -> None:
        self.keys = keys_of(key_set(*entries), "RS256")

    async def find(self, key_id: str | None) -> VerifyingKey | None:
        return choose(self.keys, key_id)

    async def check(self) -> None: ...


class TestRemembering:
    """A token is verified once as long as its key counts, and its times are looked at each time."""

    @pytest.fixture
    def verified(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        texts: list[str] = []
        real = bearer_tokens.verified_claims

        def noted(text: str, *rest: Any) -> Any:
            texts.append(text)
            return real(text, *rest)

        monkeypatch.setattr(bearer_tokens, "verified_claims", noted)
        return texts

    async def test_each_token_is_verified_once(self, verified: list[str]) -> None:
        tokens, checked = verifier(), [token(), token(sub="bob"), token()]
        assert [await tokens.user_id(each) for each in checked] == ["ann", "bob", "ann"]
        assert len(verified) == len(set(checked))

    async def test_a_token_ends_when_it_says(self) -> None:
        clock = FakeClock(NOW * 1_000_000)
        tokens, text = TokenVerifier([issuer()], clock=clock), token(exp=NOW + 60)
        assert await tokens.user_id(text) == "ann"
        clock.advance(69)
        assert await tokens.user_id(text) == "ann"
        clock.advance(1)
        with pytest.raises(TokenError, match="expired"):
            await tokens.user_id(text)

    @pytest.mark.parametrize(("left", "reason"), [("k2", "unknown_key"), ("k1", "signature")])
    async def test_a_token_ends_with_its_key(self, left: str, reason: str) -> None:
        keys = Keys(jwk(rsa_key()))
        tokens, text = verifier(issuer(keys=keys)), token()
        assert await tokens.user_id(text) == "ann"
        keys.turn_to(jwk(rsa_key("second"), left))
        with pytest.raises(TokenError, match=reason):
            await tokens.user_id(text)

    async def test_what_was_refused_is_refused_again(self) -> None:
        tokens, text = verifier(), token(rsa_key("second"))
        for _ in range(2):
            with pytest.raises(TokenError, match="signature"):
                await tokens.user_id(text)

    async def test_an_altered_token_is_another(self) -> None:
        tokens, text = verifier(), token()
        assert await tokens.user_id(text) == "ann"
        header, _, signature = text.split(".")
        with pytest.raises(TokenError, match="signature"):
            await tokens.user_id(".".join((header, token(sub="bob").split(".")[1], signature)))

    async def test_the_token_used_longest_ago_is_forgotten(
        self, verified: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(bearer_tokens, "MOST_REMEMBERED", 2)
        tokens, (ann, bob, eve) = verifier(), [token(sub=name) for name in ("ann", "bob", "eve")]
        for text in (ann, bob, ann, eve, ann, bob):
            await tokens.user_id(text)
        assert verified == [ann, bob, eve, bob]


async def test_no_error_repeats_anything_of_a_token() -> None:
    for text in (
        token(sub="canary\0"),
        token(iss="canary"),
        "canary",
        token(header={"kid": "canary"}),
        token(exp="canary"),
    ):
        with pytest.raises(TokenError) as caught:
            await verifier().user_id(text)
        assert "canary" not in f"{caught.value!r} {caught.value.__cause__!r}"
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
