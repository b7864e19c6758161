"""`import` and `export`: nothing half done, nothing twice, nothing lost."""

from __future__ import annotations

import gzip
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from reactor_memory.evaluation.transcripts import Transcript, read_lines, to_message
from reactor_memory.models import Message
from tests.acceptance.conftest import Finished, Run, Start, rich_messages, small_talk, write_sessions


def exported(run: Run, session_id: str, *options: object) -> list[Message]:
    done = run("export", session_id, *options)
    assert (done.code, done.err) == (0, "")
    return [to_message(record) for record in msgspec.json.decode(done.out, type=Transcript).messages]


def stored_now(done: Finished) -> int:
    return sum(file["stored"] for file in done.json)


def rows(database: Path) -> int:
    if not database.exists():
        return 0
    with closing(sqlite3.connect(database)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'messages'").fetchone():
            return 0
        return connection.execute("SELECT count(*) FROM messages").fetchone()[0]


def test_an_import_stores_every_session(run: Run, folder: Path) -> None:
    file = write_sessions(folder / "f.jsonl", {"s1": small_talk(250), "s2": small_talk(3)})
    done = run("import", file.name)
    assert (done.code, done.err) == (0, "")
    assert done.out.split()[-4:] == ["f.jsonl", "2", "253", "253"]
    assert exported(run, "s1") == small_talk(250)
    assert exported(run, "s2") == small_talk(3)


def test_a_second_import_stores_nothing(run: Run, folder: Path) -> None:
    file = write_sessions(folder / "f.jsonl", {"s1": small_talk(250), "s2": rich_messages()})
    assert run("import", file, "--json").json == [{"file": str(file), "sessions": 2, "messages": 257, "stored": 257}]
    assert stored_now(run("import", file, "--json")) == 0
    assert rows(folder / "reactor-memory.db") == 257


def test_everything_that_a_message_has_survives_export_and_import(run: Run, folder: Path) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"s1": rich_messages()}))
    first = exported(run, "s1")
    assert first == rich_messages()
    run("export", "s1", "-o", "again.jsonl")
    run("import", "again.jsonl", "--store", "copy.db")
    run("export", "s1", "-o", "copy.jsonl", "--store", "copy.db")
    assert (folder / "copy.jsonl").read_bytes() == (folder / "again.jsonl").read_bytes()


def test_packed_files_are_imported(run: Run, folder: Path) -> None:
    file = write_sessions(folder / "f.jsonl", {"s1": small_talk(5)})
    packed = folder / "f.jsonl.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert stored_now(run("import", packed, "--json")) == 5


@pytest.mark.slow
def test_a_packed_file_is_unpacked_only_to_the_session_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gzip.open(folder / "bomb.jsonl.gz", "wb") as packed:
        packed.write(b'{"id": "s1", "messages": [')
        for _ in range(300):
            packed.write(b" " * 1_000_000)
    monkeypatch.setenv("REACTOR_MEMORY_LIMITS__MAX_SESSION_BYTES", "1000000")
    limited = (
        "import resource, sys; from reactor_memory.cli import main; "
        "resource.setrlimit(resource.RLIMIT_DATA, (256_000_000, 256_000_000)); main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", limited, "import", "bomb.jsonl.gz"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    problem = "error: bomb.jsonl.gz:1: has more than 1000000 bytes (limits.max_session_bytes)\n"
    assert (done.returncode, done.stderr) == (2, problem)
    assert rows(folder / "reactor-memory.db") == 0


def test_a_session_may_have_exactly_the_bytes_of_the_limit(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_sessions(folder / "f.jsonl", {"s1": small_talk(3), "s2": small_talk(2)})
    longest = max(map(len, file.read_bytes().splitlines(keepends=True)))
    monkeypatch.setenv("REACTOR_MEMORY_LIMITS__MAX_SESSION_BYTES", str(longest - 1))
    assert run("import", file).err.startswith(f"error: {file}:1: has more than {longest - 1} bytes")
    monkeypatch.setenv("REACTOR_MEMORY_LIMITS__MAX_SESSION_BYTES", str(longest))
    assert stored_now(run("import", file, "--json")) == 5


def test_a_prefix_stands_before_every_id(run: Run, folder: Path) -> None:
    file = write_sessions(folder / "f.jsonl", {"s1": small_talk(2), "s2": small_talk(2)})
    run("import", file, "--session-prefix", "team-a:")
    assert {each["session_id"] for each in run("sessions", "--json").json["sessions"]} == {"team-a:s1", "team-a:s2"}


def test_an_owner_is_kept(run: Run, folder: Path) -> None:
    file = write_sessions(folder / "f.jsonl", {"s1": small_talk(2)})
    run("import", file, "--user", "ann")
    assert exported(run, "s1", "--user", "ann") == small_talk(2)
    for refused in (
        run("export", "s1", "--user", "bob"),
        run("import", file, "--user", "bob"),
        run("show", "s1", "--user", "bob"),
    ):
        assert (refused.code, refused.err) == (2, "error: session 's1': belongs to another user\n")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "is not valid JSON"),
        ('{"id": "x", "messages": []}', "messages: is empty"),
        ('{"id": "x~1", "messages": [{"role": "user", "content": ""}]}', "session_id: must not contain ~"),
        (
            '{"id": "\\u202ex", "messages": [{"role": "user", "content": ""}]}',
            "session_id: contains a control character",
        ),
        ('{"id": "..", "messages": [{"role": "user", "content": ""}]}', "session_id: is a step in a path"),
        ('{"id": "s3", "messages": [{"role": "user", "content": ""}]}', "id: the session stands in FILE:4 too"),
        (
            '{"id": "x", "messages": [{"role": "tool", "content": "", "tool_call_id": "\\u0000"}]}',
            "messages[0].tool_call_id: contains a NUL",
        ),
        ('{"id": "x", "messages": [{"role": "user", "content": "\\u0000"}]}', "messages[0].content: contains a NUL"),
    ],
)
def test_a_broken_line_17_stops_all_of_the_file(run: Run, folder: Path, line: str, problem: str) -> None:
    file = write_sessions(folder / "f.jsonl", {f"s{number}": small_talk(3) for number in range(16)})
    file.write_bytes(file.read_bytes() + line.encode() + b"\n")
    fine = write_sessions(folder / "fine.jsonl", {"fine": small_talk(3)})
    refused = run("import", fine, file)
    assert refused.code == 2
    assert refused.err.startswith(f"error: {file}:17: {problem.replace('FILE', str(file))}")
    assert refused.err.count("\n") == 1
    assert rows(folder / "reactor-memory.db") == 0


def test_session_that_holds_something_else_stops_all_of_the_file(run: Run, folder: Path) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"s2": small_talk(3)}))
    other = [Message.user("something else")]
    file = write_sessions(folder / "g.jsonl", {"s1": small_talk(3), "s2": other})
    refused = run("import", file)
    assert refused.code == 2
    assert refused.err == f"error: {file}:2: id: the database holds other messages of 's2'; use --session-prefix\n"
    assert rows(folder / "reactor-memory.db") == 3


def test_a_stranger_s_session_stops_all_of_the_file(run: Run, folder: Path) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"s2": small_talk(3)}), "--user", "ann")
    refused = run("import", write_sessions(folder / "g.jsonl", {"s1": small_talk(3), "s2": small_talk(3)}))
    assert (refused.code, rows(folder / "reactor-memory.db")) == (2, 3)


def test_a_file_that_has_grown_is_caught_up_with(run: Run, folder: Path) -> None:
    run("import", "--no-memory", write_sessions(folder / "f.jsonl", {"s1": small_talk(150)}))
    assert (
        stored_now(run("import", "--no-memory", write_sessions(folder / "f.jsonl", {"s1": small_talk(333)}), "--json"))
        == 183
    )
    assert exported(run, "s1") == small_talk(333)


def test_a_session_that_went_on_since_is_left_alone(run: Run, folder: Path) -> None:
    run("import", "--no-memory", write_sessions(folder / "f.jsonl", {"s1": small_talk(150)}))
    assert (
        stored_now(run("import", "--no-memory", write_sessions(folder / "f.jsonl", {"s1": small_talk(120)}), "--json"))
        == 0
    )
    assert exported(run, "s1") == small_talk(150)


def test_smaller_batches_are_sent_where_a_limit_asks_for_them(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_LIMITS__MAX_BATCH_MESSAGES", "7")
    run("import", write_sessions(folder / "f.jsonl", {"s1": small_talk(30)}))
    assert exported(run, "s1") == small_talk(30)


def test_an_exported_fork_is_imported_under_another_id(run: Run, folder: Path) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"s1": small_talk(6)}))
    fork = run("fork", "s1", "--at", 4, "--json").json["session_id"]
    run("export", fork, "--as", "s2", "-o", "fork.jsonl")
    run("import", "fork.jsonl")
    assert exported(run, "s2") == small_talk(3)


def test_a_refused_export_leaves_the_old_file(run: Run, folder: Path) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"s1": small_talk(2)}))
    (folder / "out.jsonl").write_text("old")
    assert run("export", "s9", "-o", "out.jsonl", "--force").err == "error: session 's9': does not exist\n"
    assert (folder / "out.jsonl").read_text() == "old"


# -- interrupted ------------------------------------------------------------------------------------------------

SESSIONS = {f"s{number}": small_talk(230) for number in range(8)}


def hold_up(database: Path, *, after: int, joins: int) -> None:
    """Let every insert behind the first `after` messages count as many rows as they have `joins` of."""
    tables = ", ".join(f"messages AS m{number}" for number in range(joins))
    with closing(sqlite3.connect(database, timeout=60, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER IF EXISTS hold_up")
        connection.execute(
            "CREATE TRIGGER hold_up BEFORE INSERT ON messages "
            f"WHEN (SELECT count(*) FROM messages) >= {after} BEGIN SELECT count(*) FROM {tables}; END"
        )


def let_go(database: Path) -> None:
    with closing(sqlite3.connect(database, timeout=60, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER hold_up")


def wait_for(database: Path, messages: int) -> None:
    while rows(database) < messages:
        threading.Event().wait(0.01)


@pytest.mark.slow
def test_an_import_that_is_killed_is_completed_by_repeating_it(run: Run, start: Start, folder: Path) -> None:
    file = write_sessions(folder / "f.jsonl", SESSIONS)
    database = folder / "log.db"
    run("migrate", "--store", database)
    for after, whole_commits in ((50, 0), (1140, 0), (1160, 1150), (1500, 1150)):
        hold_up(database, after=after, joins=6)
        process = start("import", file, "--no-memory", "--store", database)
        wait_for(database, whole_commits)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        assert rows(database) == whole_commits
    let_go(database)
    assert run("import", file, "--no-memory", "--store", database).code == 0
    for line in read_lines(file):
        assert exported(run, line.session_id, "--store", database) == list(line.messages)
    assert run("doctor", "--store", database).code == 0


@pytest.mark.slow
def test_ctrl_c_ends_an_import_with_130_and_no_traceback(run: Run, start: Start, folder: Path) -> None:
    file = write_sessions(folder / "f.jsonl", SESSIONS)
    database = folder / "log.db"
    run("migrate", "--store", database)
    hold_up(database, after=1750, joins=2)
    process = start("import", file, "--no-memory", "--store", database)
    wait_for(database, 1150)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=200)
    assert (process.returncode, err.strip()) == (130, "")
    let_go(database)
    assert run("import", file, "--no-memory", "--store", database).code == 0
    assert exported(run, "s7", "--store", database) == small_talk(230)


@pytest.mark.slow
def test_two_imports_at_once_store_everything_once(run: Run, start: Start, folder: Path) -> None:
    file = write_sessions(folder / "f.jsonl", SESSIONS)
    database = folder / "log.db"
    run("migrate", "--store", database)
    processes = [start("import", file, "--no-memory", "--store", database) for _ in range(2)]
    for process in processes:
        _, err = process.communicate(timeout=200)
        assert (process.returncode, err) == (0, "")
    assert rows(database) == 8 * 230
    assert exported(run, "s5", "--store", database) == small_talk(230)


# -- PostgreSQL ------------------------------------------------------------------------------------------------


@pytest.mark.postgres
def test_sessions_are_imported_into_postgresql(run: Run, folder: Path, postgres_dsn: str) -> None:
    file = write_sessions(folder / "f.jsonl", {"s1": small_talk(250), "s2": rich_messages()})
    assert stored_now(run("import", file, "--no-memory", "--json", "--store", postgres_dsn)) == 257
    assert stored_now(run("import", file, "--no-memory", "--json", "--store", postgres_dsn)) == 0
    assert exported(run, "s1", "--store", postgres_dsn) == small_talk(250)
    run("import", file, "--no-memory", "--store", "copy.db")
    from_postgres = exported(run, "s2", "--store", postgres_dsn)
    assert [message.tool_calls for message in from_postgres] == [message.tool_calls for message in rich_messages()]


def mode_of(path: Path) -> str:
    return oct(path.stat().st_mode & 0o777)


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_an_export_is_readable_by_its_owner_alone(run: Run, folder: Path) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"s1": small_talk(3)}))
    assert run("export", "s1", "-o", "out.jsonl").code == 0
    assert mode_of(folder / "out.jsonl") == "0o600"
    assert mode_of(folder / "reactor-memory.db") == "0o600"


def test_export_replaces_a_file_only_when_it_is_told_to(run: Run, folder: Path) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"s1": small_talk(3)}))
    (folder / "out.jsonl").write_text("mine")
    refused = run("export", "s1", "-o", "out.jsonl")
    assert (refused.code, (folder / "out.jsonl").read_text()) == (2, "mine")
    assert "out.jsonl exists; --force replaces it" in refused.err
    assert run("export", "s1", "-o", "out.jsonl", "--force").code == 0
    assert (folder / "out.jsonl").read_text() == run("export", "s1").out
    assert mode_of(folder / "out.jsonl") == "0o600"


def test_an_export_into_a_pipe_keeps_the_pipe(run: Run, folder: Path) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"s1": small_talk(3)}))
    os.mkfifo(folder / "pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((folder / "pipe").read_text()))
    reader.start()
    assert run("export", "s1", "-o", "pipe").code == 0
    reader.join(timeout=10)
    assert read == [run("export", "s1").out]
