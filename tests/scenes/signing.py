"""Issuers of the tests: keys of each kind, key sets, and tokens that say whatever a test wants them to say."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

ISSUER, AUDIENCE = "https://id.example.com/", "memory"
SECRET = "a secret of enough bytes for HS256"
NOW = 1_700_000_000


@cache
def rsa_key(name: str = "first", bits: int = 2048) -> rsa.RSAPrivateKey:
    """A key for each name, made once."""
    return rsa.generate_private_key(65537, bits)


@cache
def ec_key(name: str = "first", curve: type[ec.EllipticCurve] = ec.SECP256R1) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(curve())


def public_pem(key: rsa.RSAPrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def jwk(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, kid: str | None = "k1", **more: Any) -> dict[str, Any]:
    """The public part of a key as an entry of a key set."""
    kind = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
    entry: dict[str, Any] = kind.to_jwk(key.public_key(), as_dict=True)  # pyright: ignore
    entry.pop("key_ops", None)
    return entry | ({} if kid is None else {"kid": kid}) | more


def key_set(*entries: object) -> bytes:
    return json.dumps({"keys": entries}).encode()


def claims(**changes: Any) -> dict[str, Any]:
    """Claims that hold now; a change to None takes one away."""
    usual = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": NOW + 60, "iat": NOW}
    return {name: value for name, value in (usual | changes).items() if value is not None}


def token(key: Any = None, *, algorithm: str = "RS256", header: dict[str, Any] | None = None, **changes: Any) -> str:
    """Signed properly, with these headers beside `typ` and `kid`; None takes one away."""
    headers = {"kid": "k1"} | (header or {})
    return signed(json.dumps(claims(**changes)), key, algorithm=algorithm, header=headers)


def signed(payload: str, key: Any = None, *, algorithm: str = "RS256", header: dict[str, Any] | None = None) -> str:
    """The text `payload`, which need not be what PyJWT would write."""
    headers = {"typ": "JWT", "alg": algorithm} | (header or {})
    text = json.dumps({name: value for name, value in headers.items() if value is not None})
    return signed_parts(text, payload, key, algorithm=algorithm)


def signed_parts(header: str, payload: str, key: Any = None, *, algorithm: str = "RS256") -> str:
    signing = f"{encoded(header.encode())}.{encoded(payload.encode())}"
    signer = jwt.algorithms.get_default_algorithms()[algorithm]
    private = rsa_key() if key is None else key
    if isinstance(private, bytes):  # as an attacker does, whatever PyJWT thinks of such a secret
        import hashlib
        import hmac

        return f"{signing}.{encoded(hmac.digest(private, signing.encode(), hashlib.sha256))}"
    return f"{signing}.{encoded(signer.sign(signing.encode(), private))}"


def encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
