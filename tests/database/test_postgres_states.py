"""Servers that take no connection for now, and those that want SSL: the real ones say so, and the library tells it."""

from __future__ import annotations

import asyncio
import datetime
import socket
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import CalledProcessError
from time import monotonic
from urllib.parse import urlsplit

import asyncpg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from reactor_memory.errors import StoreUnavailableError
from reactor_memory.memory import open_memory
from reactor_memory.settings.settings import Settings
from tests.database.test_poolers import MODES, PROGRAM, pooled
from tests.scenes.troubled_databases import OwnServer, own_server

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

ANYBODY = "host all all all trust\n"
ANYBODY_WITH_SSL = "hostssl all all all trust\n"
NOT_OVER = "restore_command = 'sleep 60'"


class Place:
    """A server of its own on a port of this machine."""

    def __init__(self, server: OwnServer) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.server = server
        self.url = f"postgresql://postgres:s3cret@127.0.0.1:{self._port}/postgres"
        self.name = f'127.0.0.1:{self._port}, database "postgres"'
        self._settings = (server.folder / "postgresql.conf").read_text()

    @contextmanager
    def begun(self, settings: str = "", *, signal: str | None = None, lets_in: str = ANYBODY) -> Generator[None]:
        """While it starts, or after that."""
        self.server.end()
        (self.server.folder / "postgresql.conf").write_text(f"{self._settings}\n{settings}\n")
        (self.server.folder / "pg_hba.conf").write_text(f"local all all trust\n{lets_in}")
        if signal:
            (self.server.folder / signal).touch()
        try:
            self.server.begin(self._port)
            yield
        finally:
            with suppress(CalledProcessError):  # it may have ended by itself
                self.server.end()
            for each in ("recovery.signal", "standby.signal"):
                (self.server.folder / each).unlink(missing_ok=True)
            (self.server.folder / "postgresql.conf").write_text(self._settings)
            self.server.start()

    def until(self, words: str, query: str = "") -> str:
        """What is told when it is this, after at most a minute of something else."""
        ends = monotonic() + 60
        while words not in (told := told_of(self.url + query)):
            assert monotonic() < ends, told
        return told


def told_of(url: str) -> str:
    told = asyncio.run(opened(url))
    assert "s3cret" not in told
    assert "\n" not in told
    return told


async def opened(url: str) -> str:
    settings = Settings(store={"url": url, "timeout_seconds": 2.0, "auto_migrate": True})  # type: ignore[arg-type]
    try:
        async with open_memory(settings):
            return "opened"
    except StoreUnavailableError as error:
        return str(error)


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with own_server() as server:
        yield Place(server)


@pytest.mark.parametrize(
    ("settings", "signal"),
    [
        (NOT_OVER, "recovery.signal"),
        (NOT_OVER, "standby.signal"),
        (f"{NOT_OVER}\nhot_standby = off", "standby.signal"),
    ],
    ids=["recovering", "becoming a standby", "becoming a standby without reads"],
)
def test_a_server_that_starts_up_is_named(place: Place, settings: str, signal: str) -> None:
    with place.begun(settings, signal=signal):
        told = place.until("starting")
        assert "starting up" in (place.server.folder / "log").read_text()
    assert told == f"store: the database is stopping or starting: {place.name}; try again"


def test_a_standby_that_takes_no_connection_is_named(place: Place) -> None:
    with place.begun("hot_standby = off\nrestore_command = 'false'", signal="standby.signal"):
        told = place.until("standby")
    assert told.startswith(f"store: the database is a standby that takes no connections: {place.name}; set hot_standby")


def test_a_server_that_is_stopping_is_named(place: Place) -> None:
    async def stopping() -> str:
        staying = await asyncpg.connect(place.url)
        try:
            place.server.leave()
            return await asyncio.to_thread(place.until, "stopping")
        finally:
            await staying.close()

    with place.begun():
        place.until("opened")
        told = asyncio.run(stopping())
    assert told == f"store: the database is stopping or starting: {place.name}; try again"


def test_a_server_that_does_not_answer_is_named(place: Place) -> None:
    with place.begun():
        place.until("opened")
        with place.server.stopped():
            told = place.until("cannot be reached")
    assert told.endswith(f"{place.name}: no answer within 1.6 s; check host, port and firewall")


def test_a_server_that_lets_in_nobody_without_ssl_is_named(place: Place) -> None:
    with place.begun(lets_in=ANYBODY_WITH_SSL):
        without = place.until("pg_hba", "?sslmode=disable")
        unable = place.until("SSL", "?sslmode=require")  # this build of the server has none
    assert without.startswith(f"store: the database refused the login: {place.name}; ")
    assert without.endswith("which may want SSL (sslmode=require in store.url)")
    assert unable.startswith(f"store: the database cannot be reached: {place.name}: SSL failed; ")


TLS_FILES = (("key", "key"), ("cert", "crt"))


def signed(folder: Path) -> Path:
    """The folder, with the key and the certificate of a server on this machine."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)  # noqa: TID251 - the driver compares it with the time of the machine
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "server.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    (folder / "server.key").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    for each in folder.iterdir():
        each.chmod(0o644)
    return folder


@pytest.fixture
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return signed(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def other_certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return signed(tmp_path_factory.mktemp("other"))


@pytest.mark.skipif(PROGRAM is None, reason="there is no pgbouncer (apt-get install pgbouncer)")
def test_what_helps_with_ssl_is_said_and_helps(postgres_dsn: str, certificate: Path, other_certificate: Path) -> None:
    files = "".join(f"client_tls_{each}_file = {certificate}/server.{end}\n" for each, end in TLS_FILES)
    with pooled(
        postgres_dsn, certificate, *MODES["by transaction"], more=f"client_tls_sslmode = require\n{files}"
    ) as url:
        port = urlsplit(url).port
        url = url.replace("@127.0.0.1", ":s3cret@127.0.0.1")
        named = url.replace("@127.0.0.1", "@localhost")
        answers = {
            "?sslmode=disable": "wants SSL: 127.0.0.1:{}",
            "?sslmode=require": "opened",
            "": "opened",
            f"?sslmode=verify-ca&sslrootcert={certificate}/server.crt": "opened",
            f"?sslmode=verify-ca&sslrootcert={other_certificate}/server.crt": "SSL failed",
            f"?sslmode=verify-full&sslrootcert={certificate}/server.crt": "SSL failed",
        }
        for query, told in answers.items():
            assert told.format(port) in told_of(url + query), query
        assert told_of(f"{named}?sslmode=verify-full&sslrootcert={certificate}/server.crt") == "opened"
