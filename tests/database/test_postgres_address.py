"""A connection that is not made: the error says to where and why, and nothing secret."""

from __future__ import annotations

import errno
import socket
import ssl
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from reactor_memory.database.postgres import PostgresDatabase
from reactor_memory.database.postgres_address import UNKNOWN, place_of
from reactor_memory.database.postgres_errors import unconnected
from reactor_memory.errors import StoreError, StoreUnavailableError
from reactor_memory.memory import open_memory
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.queries import QUERIES
from tests.scenes.tables import each_row


@each_row(
    "dsn, place",
    [
        ("postgresql://me:s3cret@db.example:6543/shop", 'db.example:6543, database "shop"'),
        ("postgresql://me:s3cret@db.example/shop", 'db.example:5432, database "shop"'),
        ("postgresql://db.example", "db.example:5432, database of the user's name"),
        ("postgresql://me:s3cret@[::1]/shop", '[::1]:5432, database "shop"'),
        ("postgresql://me:s3cret@a:1,b/shop", 'a:1, b:5432, database "shop"'),
        ("postgresql:///shop?host=/run/pg&password=s3cret", '/run/pg, database "shop"'),
        ("postgresql:///shop?password=s3cret", 'the host of PGHOST or this machine, database "shop"'),
        ("postgresql://me:p@s3cret@db/shop", 'db:5432, database "shop"'),
        ("postgresql://me:s3/cret@db/shop", UNKNOWN),
        ("postgresql://me:s3?cret@db/shop", UNKNOWN),
        ("postgresql://me:s3#cret@db/shop", UNKNOWN),
        ("postgresql://[s3cret", UNKNOWN),
        ("postgresql://me@db/shop?port=s3cret", UNKNOWN),
        ("postgresql://me@db/shop?port=6543", 'db:6543, database "shop"'),
    ],
)
def test_a_place_names_host_port_and_database_alone(dsn: str, place: str) -> None:
    assert place_of(dsn) == place
    assert "cret" not in place


@each_row(
    "error, why",
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "s3cret"), "the connection was refused; start PostgreSQL there"),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed, [Errno 111]"), "the connection was refused"),
        (socket.gaierror(-2, "s3cret"), "the host is unknown; correct it in store.url"),
        (TimeoutError("s3cret"), "no answer within 4 s; check host, port and firewall"),
        (ssl.SSLError("s3cret"), "SSL failed; check the certificate"),
        (ConnectionError("server rejected SSL upgrade"), "SSL failed"),
        (FileNotFoundError(errno.ENOENT, "s3cret"), "there is no socket; start PostgreSQL"),
        (OSError(errno.EHOSTUNREACH, "s3cret"), "No route to host; check that it runs"),
    ],
)
def test_every_reason_has_its_remedy(error: Exception, why: str) -> None:
    told = str(unconnected(error, "postgresql://me:s3cret@db/shop", 4))
    assert told.startswith(f'store: the database cannot be reached: db:5432, database "shop": {why}')
    assert "s3cret" not in told


def from_server(sqlstate: str, text: str = "s3cret") -> Exception:
    error: Any = asyncpg.PostgresError(text)
    error.sqlstate = sqlstate
    return error


NO_ENTRY = 'no pg_hba.conf entry for host "{}", user "me", database "shop", no encryption'


@each_row(
    "error, told",
    [
        (from_server("28P01"), 'refused the login: db:5432, database "shop"; check user and password'),
        (from_server("28000", NO_ENTRY.format("10.0.0.7")), "pg_hba.conf allows, which may want SSL (sslmode=require"),
        (from_server("28000", NO_ENTRY.format("[local]")), "check user and password, and what pg_hba.conf allows"),
        (from_server("3D000"), 'does not exist: db:5432, database "shop"; create it'),
        (from_server("42501"), 'does not let the user connect: db:5432, database "shop"; grant CONNECT on it'),
        (from_server("53300"), 'has no connection or memory left: db:5432, database "shop"; try again'),
        (from_server("57P03"), 'is stopping or starting: db:5432, database "shop"; try again'),
        (from_server("57P01"), 'is stopping or starting: db:5432, database "shop"; try again'),
        (
            from_server("57P03", "the database system is starting up"),
            'is stopping or starting: db:5432, database "shop"',
        ),
        (
            from_server("57P03", "the database system is not accepting connections"),
            'is a standby that takes no connections: db:5432, database "shop"; set hot_standby there, or name',
        ),
        (from_server("08P01", "SSL required"), 'wants SSL: db:5432, database "shop"; set sslmode=require in store.url'),
        (from_server("28000", "connection is insecure (try `sslmode=require`)"), 'wants SSL: db:5432, database "shop"'),
        (from_server("XX000", "SSL/TLS connection is required by the pooler"), 'wants SSL: db:5432, database "shop"'),
        (from_server("08P01"), 'the connection to the database broke; try again (db:5432, database "shop")'),
        (from_server("XX000"), 'the database failed (SQLSTATE XX000) (db:5432, database "shop")'),
    ],
)
def test_what_a_server_answers_to_a_login_is_told(error: Exception, told: str) -> None:
    failed = unconnected(error, "postgresql://me:s3cret@db/shop", 4)
    assert told in str(failed)
    assert ("SSL" in str(failed)) == ("SSL" in told)
    assert "s3cret" not in str(failed)
    assert "10.0.0.7" not in str(failed)
    assert type(failed) in (StoreUnavailableError, StoreError)


async def failure_of(url: str) -> str:
    settings = Settings(store={"url": url, "timeout_seconds": 2.0})  # type: ignore[arg-type]
    with pytest.raises(StoreUnavailableError) as failed:
        async with open_memory(settings):
            pass
    return str(failed.value)


@pytest.mark.anyio
async def test_a_server_that_says_nothing_is_named() -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        port = mute.getsockname()[1]
        told = await failure_of(f"postgresql://me:s3cret@127.0.0.1:{port}/shop")
    assert told.startswith(
        f'store: the database cannot be reached: 127.0.0.1:{port}, database "shop": no answer within 1.6 s'
    )


@pytest.mark.anyio
async def test_a_closed_port_is_named() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    told = await failure_of(f"postgresql://127.0.0.1:{port}/shop")
    assert f'127.0.0.1:{port}, database "shop": the connection was refused' in told


@pytest.mark.anyio
@pytest.mark.postgres
async def test_what_the_server_lacks_is_named(postgres_dsn: str) -> None:
    parts = urlsplit(postgres_dsn)
    missing = urlunsplit(parts._replace(path="/no_such_shop"))
    told = await failure_of(missing)
    assert told.startswith("store: the database does not exist: ")
    assert told.endswith('database "no_such_shop"; create it, or correct the name in store.url')
    stranger = urlunsplit(parts._replace(netloc=f"stranger:s3cret@{parts.netloc.rpartition('@')[2]}"))
    told = await failure_of(stranger)
    assert "the database refused the login: " in told
    assert "check user and password" in told
    assert "stranger" not in told
    assert "s3cret" not in told


@pytest.mark.anyio
async def test_a_certificate_that_is_refused_is_no_wrong_address(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*given: object, **options: object) -> None:
        raise ssl.SSLCertVerificationError("s3cret")

    monkeypatch.setattr(asyncpg, "connect", refused)
    told = await failure_of("postgresql://me:s3cret@db/shop?sslmode=verify-full")
    assert told.startswith('store: the database cannot be reached: db:5432, database "shop": SSL failed; check the')


@pytest.mark.anyio
async def test_a_pooler_that_refuses_settings_and_wants_ssl_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver tells of its second try alone, the one without SSL."""
    given: list[set[str]] = []

    async def required(*dsn: object, server_settings: dict[str, str], **options: object) -> None:
        given.append(server_settings.keys() - {"application_name"})
        raise asyncpg.ProtocolViolationError("SSL required") if given[-1] else asyncpg.InvalidPasswordError("reached")

    monkeypatch.setattr(asyncpg, "connect", required)
    with pytest.raises(StoreError, match="refused the login"):
        await PostgresDatabase("postgresql://me@db/shop", QUERIES).open()
    assert list(map(bool, given)) == [True, False]
