"""What people get wrong: each is refused in one line that names what is wrong and what would be right."""

from __future__ import annotations

import io
import shlex
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from reactor_memory import Memory, Settings, open_memory
from reactor_memory.errors import ReactorMemoryError
from tests.acceptance.conftest import Finished, Run

COMMANDS = {
    "sesions": "sessions",
    "shows trip": "show",
    "ctx trip": "did you mean context",
    "context": "SESSION",
    "context nobody": "nobody",
    "context trip --budget 0": "x>=1",
    "context trip --budget many": "not a valid integer",
    "context trip --seq 3": "--why",
    "context trip --why --seq 99": "ends with 4",
    "context trip --why --fact a": "requires 2 arguments",
    "context trip --turn 99": "ends with message 4",
    "context trip --turn 1 --query x": "--turn",
    "context trip --budgt 100": "--budget",
    "show nobody": "nobody",
    "show trip --newest 0": "x>=1",
    "facts nobody": "nobody",
    "search trip": "QUERY",
    "search nobody thing": "nobody",
    "correct trip the-thing the-key value": "fact",
    "retract trip the-thing the-key": "fact",
    "pin trip": "seq",
    "pin trip --seq 99": "99",
    "unpin trip": "seq",
    "fork trip": "--at",
    "fork trip --at 99": "at_seq",
    "fork nobody --at 1": "nobody",
    "archive trip --until 99": "from 1 to 4",
    "restore nobody": "nobody",
    "delete trip": "--yes",
    "delete nobody --yes": "nobody",
    "erase": "--",
    "erase trip": "--seq",
    "erase trip --seq 99 --yes": "from 1 to 4",
    "prune": "--",
    "import": "FILE",
    "import missing.jsonl": "missing.jsonl",
    "import wrong.txt": "wrong.txt",
    "import empty.jsonl": "holds no session",
    "import folder": "folder",
    "export nobody": "nobody",
    "export trip -o there.jsonl": "--force",
    "copy sqlite:///agent.db": "TO",
    "copy agent.db sqlite:///agent.db": "are the same database",
    "copy sqlite:///missing.db sqlite:///other.db": "missing.db",
    "eval missing.jsonl": "missing.jsonl",
    "eval --budgets ten": "budgets",
    "eval --strategies best": "hierarchical",
    "eval --require nice>=1": "attributable",
    "eval --require attributable>=high": "attributable",
    "demo missing.jsonl": "missing.jsonl",
    "demo --session nobody": "nobody",
    "bench --sizes none": "sizes",
    "serve --port 99999": "65535",
    "studio --port -1": "65535",
    "keys create": "Missing",
    "keys revoke": "Missing",
    "summarize nobody": "nobody",
    "sessions --cursor nonsense": "cursor",
    "sessions --limit 0": "x>=1",
    "sessions --store mysql://host/name": "postgresql",
    "sessions --store sqlite:agent.db": "sqlite:///",
    "sessions --store missing.db": "missing.db",
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first test leaves its store to the others."""
    return tmp_path_factory.mktemp("stored") / "reactor-memory.db"


@pytest.fixture
def filled(run: Run, folder: Path, stored: Path) -> Run:
    line = '{"id": "trip", "messages": [' + ", ".join(['{"role": "user", "content": "Hello"}'] * 4) + "]}\n"
    (folder / "trip.jsonl").write_text(line)
    (folder / "there.jsonl").write_text("kept")
    (folder / "wrong.txt").write_text("Hello")
    (folder / "empty.jsonl").write_text("\n")
    (folder / "folder").mkdir()
    if not stored.exists():
        assert run("import", "trip.jsonl").code == 0
        shutil.copy("reactor-memory.db", stored)
    shutil.copy(stored, "reactor-memory.db")
    return run


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_command_is_refused_in_one_line(filled: Run, folder: Path, command: str) -> None:
    done = filled(*shlex.split(command))
    assert done.code == 2, (done.out, done.err)
    (line,) = done.err.strip().splitlines()
    assert line.startswith("error: ")
    assert COMMANDS[command].lower() in line.lower()
    assert "Traceback" not in line
    assert (folder / "there.jsonl").read_text() == "kept"


CALLS: dict[str, tuple[Callable[[Memory], Awaitable[Any]], str]] = {
    "a number": (lambda memory: memory.save_history("s", 7), "must be a Message"),  # type: ignore[arg-type]
    "bytes": (lambda memory: memory.save_history("s", b"Hello"), "Message"),  # type: ignore[arg-type]
    "an unknown role": (lambda memory: memory.save_history("s", {"role": "boss", "content": "x"}), "role"),
    "no role": (lambda memory: memory.save_history("s", {"content": "x"}), "role"),
    "a whole response": (lambda memory: memory.save_history("s", {"choices": []}), "choices[0].message"),
    "no session": (lambda memory: memory.save_history("", "x"), "session_id"),
    "a session that is no text": (lambda memory: memory.save_history(7, "x"), "session_id"),  # type: ignore[arg-type]
    "the mark of forks": (lambda memory: memory.save_history("a~b", "x"), "~"),
    "an empty user": (lambda memory: memory.save_history("s", "x", user_id=""), "user_id"),
    "a budget of nothing": (lambda memory: memory.load_history("s", budget=0), "budget"),
    "a budget of text": (lambda memory: memory.load_history("s", budget="4000"), "budget"),  # type: ignore[arg-type]
    "a position before the first": (lambda memory: memory.fork("trip", at_seq=0), "at_seq"),
    "two targets": (lambda memory: memory.pins.add("trip", seq=1, fact=("a", "b")), "either"),
    "no target": (lambda memory: memory.pins.add("trip"), "seq"),
    "a limit of nothing": (lambda memory: memory.list_sessions(limit=0), "limit"),
    "two ends": (lambda memory: memory.read_messages("trip", last=1, limit=1), "either"),
    "an unknown session": (lambda memory: memory.get_session("nobody"), "nobody"),
    "no search": (lambda memory: memory.search.search("x"), "search.enabled"),  # type: ignore[attr-defined]
    "no tiers": (lambda memory: memory.tiers.get("s"), "history.strategy"),  # type: ignore[attr-defined]
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", CALLS)
async def test_wrong_call_is_refused_with_the_field_and_the_remedy(name: str) -> None:
    call, told = CALLS[name]
    async with open_memory("memory://") as memory:
        await memory.save_history("trip", ["Hello"])
        with pytest.raises(ReactorMemoryError) as raised:
            await call(memory)
        assert told in str(raised.value)
        assert "\n" not in str(raised.value)
        assert len(await memory.read_messages("trip")) == 1


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"store": {"ulr": "x"}}, "url"),
        ({"summary": {"mode": "best"}}, "ledger"),
        ({"context": {"max_tokens": -1}}, "max_tokens"),
        ({"summry": {}}, "summary"),
        ({"history": {"strategy": "magic"}}, "hierarchical"),
    ],
)
def test_wrong_setting_is_refused_with_key_and_what_is_allowed(given: dict[str, Any], told: str) -> None:
    async def opened() -> None:
        async with open_memory(Settings(**given)):
            pass

    with pytest.raises(ReactorMemoryError) as raised:
        anyio.run(opened)
    assert told in str(raised.value)


FILES = {
    "reactor_memory:\n  store: [1,\n": "is no valid YAML, line 3:",
    "reactor_memory:\n\tstore: {}\n": "is no valid YAML, line 2: found character",
    "- a list\n": "needs the key reactor_memory",
    "reactor_memory: 7\n": "needs the key reactor_memory",
    "reactor_memory:\n  stor: {}\n": "did you mean store?",
    "reactor_memory:\n  store: agent.db\n": "store: is a section: its settings stand below it",
    "reactor_memory:\n  context:\n    max_tokens: lots\n": "context.max_tokens: must be a valid integer",
    "reactor_memory:\n  summary:\n    enabled: maybe\n": "summary.enabled: must be a valid boolean",
    "reactor_memory:\n  summary:\n    provider: gemni\n": "there are: extractive, gemini, openai",
}


@pytest.mark.parametrize("text", FILES)
def test_a_wrong_file_of_settings_is_refused_with_the_place(filled: Run, folder: Path, text: str) -> None:
    (folder / "config").mkdir()
    (folder / "config" / "reactor-memory.yaml").write_text(text)
    refused(filled("context", "trip"), FILES[text])


def test_a_folder_in_place_of_the_settings_is_refused(filled: Run, folder: Path) -> None:
    (folder / "config" / "reactor-memory.yaml").mkdir(parents=True)
    refused(filled("sessions"), "config/reactor-memory.yaml: cannot read")


VARIABLES = {
    ("STOR__URL", "x"): "did you mean REACTOR_MEMORY_STORE__URL?",
    ("STORE__ULR", "x"): "did you mean store.url?",
    ("CONTEXT__MAX_TOKENS", "many"): "must be a valid integer",
    ("CONFIG", "nowhere.yaml"): "cannot read nowhere.yaml",
    ("TOKENS__ENCODING", "o300k"): "known are cl100k_base",
    ("HISTORY__STRATEGY", "progresive"): "there are: auto, hierarchical, progressive",
    ("STORE__FILE_MODE", "999"): "0600",
    ("SUMMARY__TRIGGER_MESSAGE_COUNT", "-3"): "must be greater than 0",
    ("REDACTOR", "pii"): "there are: none",
    ("STORE__URL", "postgresql://app@127.0.0.1:1/memory"): "cannot be reached",
    ("STORE__URL", "postgresql://app@localhost:port/memory"): "is not an address of a PostgreSQL database",
}


@pytest.mark.parametrize("given", VARIABLES)
def test_a_wrong_variable_is_refused_with_what_is_allowed(
    filled: Run, monkeypatch: pytest.MonkeyPatch, given: tuple[str, str]
) -> None:
    name, value = given
    monkeypatch.setenv(f"REACTOR_MEMORY_{name}", value)
    refused(filled("context", "trip"), VARIABLES[given])


CONTENTS: dict[str, tuple[bytes, str]] = {
    "no gzip.jsonl.gz": (b"\x1f\x8b\x08broken", "damaged or not complete"),
    "deep.json": (b"[" * 100_000, "nested too deeply"),
    "bytes.jsonl": (b"\x00\x01\x02", "in no form that is read"),
    "nul.json": (b'[{"role": "user", "content": "a\\u0000b"}]', "NUL character"),
    "surrogate.json": (b'[{"role": "user", "content": "\\ud800"}]', "not valid JSON"),
    "date.jsonl": (b'{"id": "d", "messages": [{"role": "user", "content": "x", "at": "31.12.2025"}]}', "its offset"),
    "day.jsonl": (b'{"id": "d", "messages": [{"role": "user", "content": "x", "at": "2025-12-31"}]}', "its offset"),
    "key.jsonl": (b'{"id": "d", "messages": [{"role": "user", "contnet": "x"}]}', "unknown field `contnet`"),
    "slip.json": (b'[{"role": "user", "contnet": "x"}]', "did you mean content?"),
    "role.jsonl": (b'{"id": "d", "messages": [{"role": "human", "content": "x"}]}', "must be one of user, assistant"),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_a_file_that_cannot_be_imported_names_the_place(filled: Run, folder: Path, name: str) -> None:
    content, told = CONTENTS[name]
    (folder / name).write_bytes(content)
    refused(filled("import", name), told)


def test_a_store_that_is_none_is_refused(filled: Run, folder: Path) -> None:
    (folder / "text.db").write_text("Hello")
    refused(filled("sessions", "--store", "text.db"), "is no SQLite database")
    refused(filled("sessions", "--store", "folder"), "is a folder")
    refused(filled("import", "trip.jsonl", "--store", "no/where/agent.db"), "does not exist; make it")


def test_an_unreachable_model_is_named_with_its_address(filled: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_CHAT__PROVIDER", "openai")
    for name, value in (("MODEL", "m"), ("BASE_URL", "http://127.0.0.1:1/v1")):
        monkeypatch.setenv(f"REACTOR_MEMORY_MODELS__OPENAI__{name}", value)
    monkeypatch.setattr("sys.stdin", io.StringIO("Hello\n"))
    done = filled("chat", "trip")
    assert done.code == 1
    assert "cannot be reached at http://127.0.0.1:1, ConnectError" in done.err
    assert "Traceback" not in done.err


def refused(done: Finished, told: str) -> None:
    assert done.code == 2, (done.out, done.err)
    (line,) = done.err.strip().splitlines()
    assert line.startswith("error: ")
    assert told in line
    assert "Traceback" not in line
