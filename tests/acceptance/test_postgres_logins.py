"""Logins to PostgreSQL that fail: the library, a command and doctor say to where and why, and nothing secret."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from reactor_memory.errors import ConfigurationError, ReactorMemoryError, StoreError, StoreUnavailableError
from reactor_memory.memory import open_memory
from reactor_memory.settings.settings import Settings
from tests.acceptance.conftest import Run
from tests.scenes.postgres_server import execute


class Logins(NamedTuple):
    """Addresses that do not work, each with what is told of it."""

    failing: dict[str, str]
    place: str


@pytest.fixture
def logins(postgres_dsn: str) -> Iterator[Logins]:
    parts = urlsplit(postgres_dsn)
    host, database = parts.netloc.rpartition("@")[2], parts.path[1:]

    def at(login: str, path: str = parts.path, query: str = "") -> str:
        together = "&".join(filter(None, [parts.query, query]))
        return urlunsplit(parts._replace(netloc=f"{login}@{host}", path=path, query=together))

    before = hba_of(postgres_dsn, "local all checked,full,barred scram-sha-256\nlocal all unlisted reject\n")
    execute(
        postgres_dsn,
        *(f"CREATE ROLE {each} LOGIN PASSWORD 's3cret'" for each in ("checked", "unlisted", "barred", "outside")),
        "CREATE ROLE full LOGIN PASSWORD 's3cret' CONNECTION LIMIT 0",
        f"REVOKE CONNECT ON DATABASE {database} FROM PUBLIC",
        f"GRANT CONNECT ON DATABASE {database} TO checked, unlisted, full, outside",
        "REVOKE ALL ON SCHEMA public FROM PUBLIC",
        "GRANT USAGE ON SCHEMA public TO checked",
    )
    try:
        yield Logins(
            failing={
                at("nobody:s3cret"): "refused the login",
                at("checked:s3cret-wrong"): "refused the login",
                at("checked"): "refused the login",
                at("unlisted:s3cret"): "what pg_hba.conf allows",
                at("checked:s3cret", "/no_such_shop"): "does not exist",
                at("full:s3cret"): "has no connection or memory left",
                at("barred:s3cret"): "does not let the user connect",
                at("checked:s3cret"): "grant SELECT, INSERT, UPDATE and DELETE",
                at("outside:s3cret"): "grant USAGE on it",
                at(
                    "checked:s3cret", query="sslmode=verify-full&sslrootcert=/none.crt"
                ): "a file is not there that sslrootcert",
                at("checked:s3cret", query="sslmode=nonsense"): "has an sslmode that PostgreSQL does not know",
            },
            place=host or "reactor-memory-postgres",
        )
    finally:
        roles = ("checked", "unlisted", "barred", "outside", "full")
        hba_of(postgres_dsn, "", before)
        execute(
            postgres_dsn,
            *(f"DROP OWNED BY {each}" for each in roles),
            *(f"DROP ROLE {each}" for each in roles),
            f"GRANT CONNECT ON DATABASE {database} TO PUBLIC",
            "GRANT USAGE ON SCHEMA public TO PUBLIC",
        )


def hba_of(dsn: str, lines: str, text: str | None = None) -> str:
    """Let the server ask for passwords; what was there before."""

    file = Path(asyncio.run(shown(dsn, "hba_file")))
    before = file.read_text()
    file.write_text(lines + (before if text is None else text))
    execute(dsn, "SELECT pg_reload_conf()")
    return before


async def shown(dsn: str, setting: str) -> str:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(f"SHOW {setting}")
    finally:
        await connection.close()


async def refusal_of(url: str) -> ReactorMemoryError:
    with pytest.raises(ReactorMemoryError) as failed:
        async with open_memory(Settings(store={"url": url})):  # type: ignore[arg-type]
            pass
    return failed.value


def in_process(url: str) -> ReactorMemoryError:
    failed = asyncio.run(refusal_of(url))
    assert type(failed) in (StoreError, StoreUnavailableError, ConfigurationError), url
    assert "s3cret" not in str(failed)
    assert "\n" not in str(failed)
    return failed


def by_command_and_doctor(url: str, failed: ReactorMemoryError, run: Run) -> None:
    """Both say what the library says."""
    listed, examined = run("sessions", "--store", url), run("doctor", "--store", url, "--json")
    assert (listed.code, listed.out, listed.err) == (2, "", f"error: {failed}\n"), url
    assert examined.code == 1, url
    assert str(failed) in examined.out.replace('\\"', '"'), url
    assert "s3cret" not in examined.out + examined.err + listed.err


@pytest.mark.postgres
def test_logins_that_fail_are_told_by_library_command_and_doctor(logins: Logins, run: Run) -> None:
    for number, (url, told) in enumerate(logins.failing.items()):
        failed = in_process(url)
        assert told in str(failed), url
        assert isinstance(failed, ConfigurationError) or logins.place in str(failed), url
        if number in (1, 7):
            by_command_and_doctor(url, failed, run)


@pytest.mark.slow
@pytest.mark.postgres
def test_each_login_that_fails_is_told_alike_everywhere(logins: Logins, run: Run) -> None:
    for url in logins.failing:
        by_command_and_doctor(url, in_process(url), run)


@pytest.mark.postgres
def test_a_refused_login_is_not_tried_again(logins: Logins, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers and what stands before them bar who tries again and again."""
    tried: list[str] = []
    connect = asyncpg.connect

    async def counted(dsn: str, **options: Any) -> Any:
        tried.append(dsn)
        return await connect(dsn, **options)

    monkeypatch.setattr(asyncpg, "connect", counted)
    refused = [url for url, told in logins.failing.items() if "refused" in told or "exist" in told or "user" in told]
    for url in refused:
        in_process(url)
    assert tried == refused
    assert len(refused) == 5
