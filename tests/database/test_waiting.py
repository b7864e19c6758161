"""Whatever ails the database, each of 64 callers has an answer or a typed error by the deadline, and nothing that was
acknowledged is lost.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, cast

import asyncpg
import httpx2
import pytest

from reactor_memory import Message, StoreError
from reactor_memory.core.manager import ConversationManager
from reactor_memory.database.schema import REVISION_TABLE
from reactor_memory.database.sqlite import SqliteDatabase
from reactor_memory.errors import OutcomeUnknownError, StoreFullError, StoreUnavailableError
from reactor_memory.server.app import create_app
from reactor_memory.settings.service_settings import ServiceSettings
from reactor_memory.wiring.service_container import ServiceContainer, open_service_container
from tests.scenes.troubled_databases import Answer, OwnServer, asked, asked_at_once, held, stalls
from tests.server.callers import Service, who_says_so

pytestmark = pytest.mark.anyio

CALLERS = 64
LIMIT_SECONDS = 1.0
PROMISED_SECONDS = LIMIT_SECONDS + 1
POOL = 4
LONG = "and so on " * 400
"""So that what all save does not fit into what a file has left."""

_prefixes = count()


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[ServiceContainer]:
    """Closing it, too, is over in time."""
    store = {"url": url, "auto_migrate": True, "timeout_seconds": LIMIT_SECONDS, "pool_size": POOL}
    memory = open_service_container(ServiceSettings(store=store))  # type: ignore[arg-type]
    container = await memory.__aenter__()
    try:
        yield container
    finally:
        async with stalls() as waited:
            closed = await asked(lambda: memory.__aexit__(None, None, None))
        assert closed.error is None
        assert closed.seconds <= PROMISED_SECONDS + waited.seconds


class Callers:
    """Each has a session of its own, to which it saves two messages under a key."""

    def __init__(self, manager: ConversationManager) -> None:
        self._manager = manager
        self._prefix = f"test-{next(_prefixes)}"

    async def save(self, number: int) -> Any:
        batch = [Message.user(f"question {number} {LONG}"), Message.assistant(f"answer {number}")]
        return await self._manager.save_history(self.session(number), batch, idempotency_key=f"key {number}")

    async def load(self, number: int) -> Any:
        return await self._manager.load_history(self.session(number), message=Message.user("and?"))

    async def stored(self, number: int) -> int:
        return len(await self._manager.read_messages(self.session(number)))

    def session(self, number: int) -> str:
        return f"{self._prefix}-{number}"

    async def ask(self) -> Sequence[Answer]:
        """The answers to the saves; as many loads are asked for at the same time."""
        numbers = range(CALLERS // 2)
        calls = [lambda n=n: self.save(n) for n in numbers] + [lambda n=n: self.load(n) for n in numbers]
        answers = await asked_at_once(calls, within_seconds=PROMISED_SECONDS)
        assert all(answer.error is None or isinstance(answer.error, StoreError) for answer in answers), answers
        return answers[: CALLERS // 2]

    async def check(self, saves: Sequence[Answer]) -> None:
        """What was acknowledged is stored, what failed is not, and what is unknown is settled by saving again."""
        for number, answer in enumerate(saves):
            stored = await self.stored(number)
            if isinstance(answer.error, OutcomeUnknownError):
                assert stored in (0, 2)
            else:
                assert stored == (2 if answer.error is None else 0), answer
            again = await self.save(number)
            assert (again.first_seq, again.last_seq, await self.stored(number)) == (1, 2, 2)


def kinds(saves: Sequence[Answer]) -> set[type[Exception] | None]:
    return {None if answer.error is None else type(answer.error) for answer in saves}


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


class TestSqlite:
    @pytest.mark.slow
    async def test_a_file_that_another_process_writes_to(self, tmp_path: Path) -> None:
        async with opened(url_of(tmp_path / "memory.db")) as container:
            callers = Callers(container.conversation_manager())
            with held(tmp_path / "memory.db", "BEGIN EXCLUSIVE"):
                saves = await callers.ask()
            assert kinds(saves) == {StoreUnavailableError}
            await callers.check(saves)

    async def test_closing_while_another_process_writes_to_the_file(self, tmp_path: Path) -> None:
        path = tmp_path / "memory.db"
        async with opened(url_of(path)) as container:
            callers = Callers(container.conversation_manager())
            await callers.save(99)
            with held(path, "BEGIN EXCLUSIVE"):
                late = [asyncio.create_task(asked(lambda n=n: callers.save(n))) for n in range(8)]
                await asyncio.sleep(0.1)
                await container.message_store().close()
                answers = await asyncio.gather(*late)
        assert all(isinstance(answer.error, StoreUnavailableError) for answer in answers)
        async with opened(url_of(path)) as container:
            assert len((await container.conversation_manager().list_sessions()).sessions) == 1

    async def test_opening_a_file_that_another_process_keeps_for_itself(self, tmp_path: Path) -> None:
        with held(tmp_path / "memory.db", "BEGIN EXCLUSIVE"):
            async with stalls() as waited:
                answer = await asked(opened(url_of(tmp_path / "memory.db")).__aenter__)
        assert isinstance(answer.error, StoreUnavailableError)
        assert answer.seconds <= PROMISED_SECONDS + waited.seconds

    async def test_a_file_that_may_not_grow(self, tmp_path: Path) -> None:
        async with opened(url_of(tmp_path / "memory.db")) as container:
            await check_full(container, lambda pages: limit_pages(container, pages))

    async def test_a_full_disk(self, tmp_path: Path) -> None:
        with small_disk(tmp_path / "disk") as disk:
            async with opened(url_of(disk / "memory.db")) as container:
                callers = Callers(container.conversation_manager())
                await callers.save(99)
                filler = disk / "filler"
                free = shutil.disk_usage(disk).free
                filler.write_bytes(b"x" * free)
                saves = await callers.ask()
                assert StoreFullError in kinds(saves) <= {StoreFullError, None}
                filler.unlink()
                await callers.check(saves)
                assert await callers.stored(99) == 2


async def check_full(container: ServiceContainer, limit: Any) -> None:
    callers = Callers(container.conversation_manager())
    await limit(1)
    saves = await callers.ask()
    assert StoreFullError in kinds(saves) <= {StoreFullError, None}
    await limit(1_000_000)
    await callers.check(saves)


async def limit_pages(container: ServiceContainer, pages: int) -> None:
    """SQLite keeps at least the pages that it has."""
    database = cast("SqliteDatabase", container.database())
    writer = database._writer
    assert writer is not None
    await writer.run(lambda: writer.session.pragma(f"max_page_count = {pages}"), float("inf"), writes=False)


@contextmanager
def small_disk(folder: Path) -> Generator[Path]:
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "none", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("only the superuser may mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@asynccontextmanager
async def locked(dsn: str, *, tables: str = "messages, conversations") -> AsyncGenerator[None]:
    """While another client holds the tables that saves and loads need."""
    connection = await asyncpg.connect(dsn)
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute(f"LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE")
    try:
        yield
    finally:
        await transaction.rollback()
        await connection.close()


@pytest.mark.postgres
class TestPostgres:
    async def test_a_locked_table(self, server: OwnServer) -> None:
        async with opened(server.dsn) as container:
            callers = Callers(container.conversation_manager())
            async with locked(server.dsn):
                saves = await callers.ask()
            assert kinds(saves) <= {StoreUnavailableError, OutcomeUnknownError}
            await callers.check(saves)

    async def test_closing_while_another_holds_the_tables(self, server: OwnServer) -> None:
        async with opened(server.dsn) as container:
            callers = Callers(container.conversation_manager())
            async with locked(server.dsn), stalls() as waited:
                late = [asyncio.create_task(asked(lambda n=n: callers.save(n))) for n in range(8)]
                await asyncio.sleep(0.1)
                closed = await asked(container.database().close)
                answers = await asyncio.gather(*late)
        assert closed.error is None
        assert closed.seconds <= PROMISED_SECONDS + waited.seconds
        assert all(isinstance(answer.error, StoreError) for answer in answers)

    async def test_opening_while_another_holds_the_schema(self, server: OwnServer) -> None:
        async with opened(server.dsn):
            pass
        async with locked(server.dsn, tables=REVISION_TABLE), stalls() as waited:
            answer = await asked(opened(server.dsn).__aenter__)
        assert isinstance(answer.error, StoreUnavailableError)
        assert answer.seconds <= PROMISED_SECONDS + waited.seconds

    @pytest.mark.parametrize("warm", [False, True])
    async def test_a_server_that_is_stopped(self, server: OwnServer, *, warm: bool) -> None:
        async with opened(server.dsn) as container:
            callers = Callers(container.conversation_manager())
            if warm:
                await asyncio.gather(*(callers.load(number) for number in range(2 * POOL)))
            with server.stopped():
                saves = await callers.ask()
            assert kinds(saves) <= {StoreUnavailableError, OutcomeUnknownError}
            await callers.check(saves)

    async def test_closing_while_the_server_is_stopped(self, server: OwnServer) -> None:
        with server_to_stop(server) as stop:
            async with opened(server.dsn) as container:
                callers = Callers(container.conversation_manager())
                await asyncio.gather(*(callers.load(number) for number in range(2 * POOL)))
                stop()
                late = [asyncio.create_task(asked(lambda n=n: callers.save(n))) for n in range(8)]
                await asyncio.sleep(0.1)
            answers = await asyncio.gather(*late)
        assert all(isinstance(answer.error, StoreError) for answer in answers)

    async def test_opening_while_the_server_is_stopped(self, server: OwnServer) -> None:
        with server.stopped():
            async with stalls() as waited:
                answer = await asked(opened(server.dsn).__aenter__)
        assert isinstance(answer.error, StoreUnavailableError)
        assert answer.seconds <= PROMISED_SECONDS + waited.seconds

    async def test_a_server_that_refuses_connections(self, server: OwnServer) -> None:
        async with opened(server.dsn) as container:
            callers = Callers(container.conversation_manager())
            await callers.save(99)
            server.end()
            try:
                saves = await callers.ask()
            finally:
                server.start()
            assert kinds(saves) <= {StoreUnavailableError, OutcomeUnknownError}
            await callers.check(saves)
            assert await callers.stored(99) == 2

    async def test_a_server_that_restarts_meanwhile(self, server: OwnServer) -> None:
        async with opened(server.dsn) as container:
            callers = Callers(container.conversation_manager())
            await callers.save(99)
            restarting = asyncio.create_task(asyncio.to_thread(server.restart))
            saves = await callers.ask()
            await restarting
            await callers.check(saves)


@contextmanager
def server_to_stop(server: OwnServer) -> Generator[Any]:
    stopped = server.stopped()
    began: list[None] = []

    def stop() -> None:
        stopped.__enter__()
        began.append(None)

    try:
        yield stop
    finally:
        if began:
            stopped.__exit__(None, None, None)


# -- over HTTP --------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def serving(url: str) -> AsyncGenerator[Service]:
    async with opened(url) as container:
        app = create_app(container, authenticator=who_says_so)
        transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://service") as client:
            yield Service(client).of(f"user-{next(_prefixes)}")


async def ask_service(service: Service, conversations: Sequence[str]) -> Sequence[int]:
    """The answers to those who post; as many read at the same time."""

    def post(conversation: str) -> Any:
        return service.post(f"/conversations/{conversation}/messages", {"content": "hello"}, key=conversation)

    posts = [lambda c=c: post(c) for c in conversations]
    reads = [lambda c=c: service.get(f"/conversations/{c}/messages") for c in conversations]
    answers = await asked_at_once([*posts, *reads], within_seconds=PROMISED_SECONDS)
    assert {answer.result.status_code for answer in answers} <= {200, 201, 409, 503}
    return [answer.result.status_code for answer in answers[: len(conversations)]]


async def check_service(service: Service, conversations: Sequence[str], answers: Sequence[int]) -> None:
    for conversation, status in zip(conversations, answers, strict=True):
        read = (await service.get(f"/conversations/{conversation}/messages")).json()
        stored = len(read["data"])
        assert stored == 1 if status == 201 else stored <= 1
        if status != 201:
            again = await service.post(
                f"/conversations/{conversation}/messages", {"content": "hello"}, key=conversation
            )
            assert again.status_code in (201, 409), again.text
            read = (await service.get(f"/conversations/{conversation}/messages")).json()
            assert len(read["data"]) == 1 if again.status_code == 201 else len(read["data"]) <= 1


class TestOverHttp:
    async def test_a_file_that_another_process_writes_to(self, tmp_path: Path) -> None:
        async with serving(url_of(tmp_path / "memory.db")) as service:
            conversations = [await service.created() for _ in range(CALLERS // 2)]
            with held(tmp_path / "memory.db", "BEGIN EXCLUSIVE"):
                answers = await ask_service(service, conversations)
            assert set(answers) == {503}
            await check_service(service, conversations, answers)

    @pytest.mark.postgres
    async def test_a_server_that_is_stopped(self, server: OwnServer) -> None:
        async with serving(server.dsn) as service:
            conversations = [await service.created() for _ in range(CALLERS // 2)]
            with server.stopped():
                answers = await ask_service(service, conversations)
            assert set(answers) == {503}
            await check_service(service, conversations, answers)

    @pytest.mark.postgres
    async def test_tables_that_another_holds(self, server: OwnServer) -> None:
        async with serving(server.dsn) as service:
            conversations = [await service.created() for _ in range(CALLERS // 2)]
            async with locked(server.dsn):
                answers = await ask_service(service, conversations)
            assert set(answers) == {503}
            await check_service(service, conversations, answers)
