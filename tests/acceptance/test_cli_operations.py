"""`doctor`, `migrate` and `worker`."""

from __future__ import annotations

import json
import signal
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from reactor_memory.cli.doctor import SELECTED_BY
from reactor_memory.features.facts.spending_caps import day_of
from reactor_memory.testing.builders import wall_clock
from reactor_memory.wiring.plugins import PLUG_POINTS, SOURCE
from tests.acceptance.conftest import CHECKOUT, Run, Start, small_talk, write_sessions
from tests.scenes.postgres_server import execute
from tests.scenes.supabase import AUTH

SAMPLE = CHECKOUT / "reactor_memory" / "data" / "orders.jsonl.gz"


def covered(folder: Path) -> dict[str, int]:
    with closing(sqlite3.connect(folder / "reactor-memory.db")) as database:
        return dict(database.execute("SELECT conversation_id, covered_seq FROM conversation_summaries").fetchall())


# -- doctor ------------------------------------------------------------------------------------------------


def test_a_healthy_database_is_told_so(run: Run, folder: Path) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"s1": small_talk(12)}))
    shown = run("doctor")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.splitlines()[0].strip() == "healthy"
    assert "settings ──" not in shown.out
    assert "not used" not in shown.out
    everything = run("doctor", "--settings").out
    assert "settings ──" in everything
    assert "not used" in everything
    values = run("doctor", "--json").json
    database = dict(values["database"])
    assert (database["sessions"], database["messages"]) == ("1", "12")
    assert database["store"] == f"SQLite {sqlite3.sqlite_version}"
    assert "several processes" in database
    assert values["tokenizer"] == "o200k_base"


@pytest.mark.parametrize(
    ("off", "wrong", "key"),
    [
        (("SUMMARY__ENABLED", "false"), ("SUMMARY__PROVIDER", "gemnii"), "summary.provider"),
        (("SEARCH__ENABLED", "false"), ("SEARCH__EMBEDDER", "wordlama"), "search.embedder"),
        (("SUMMARY__ENABLED", "false"), ("RECALL__INDEX", "elsewhere"), "recall.index"),
        (("SEARCH__ENABLED", "false"), ("STREAMS__BACKEND", "rediss"), "streams.backend"),
        (("HISTORY__STRATEGY", "take-last"), ("CHAT_MEMORY__STRATEGY", "sumarize"), "chat_memory.strategy"),
    ],
)
def test_a_part_that_is_switched_off_is_checked(
    off: tuple[str, str], wrong: tuple[str, str], key: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (off, wrong):
        monkeypatch.setenv(f"REACTOR_MEMORY_{name}", value)
    shown = run("doctor", "--json")
    assert shown.code == 1
    assert [problem.split(":")[0] for problem in json.loads(shown.out)["problems"]] == [key]


def test_before_the_first_save_nothing_is_made(run: Run, folder: Path) -> None:
    values = run("doctor", "--json").json
    assert values["problems"] == []
    assert dict(values["database"])["file"].startswith("reactor-memory.db does not exist yet")
    assert list(folder.iterdir()) == []


def test_a_place_where_no_file_can_be_is_a_problem(run: Run, folder: Path) -> None:
    for place, problem in (
        ("none/x.db", "the folder none does not exist; make it, or name another file"),
        (".", ". is a folder; name a file in it"),
        (f"{__file__}/x.db", f"{__file__} is a file, no folder; name another file"),
    ):
        examined = run("doctor", "--store", place)
        assert examined.code == 1
        assert f"problem: store: {problem}" in " ".join(examined.out.split())
        for command in (["show", "s"], ["chat", "s"], ["studio"], ["sessions"]):
            assert run(*command, "--store", place) == (2, "", f"error: store: {problem}\n"), command
    assert not list(folder.iterdir())


def test_a_folder_that_cannot_be_written_is_a_problem(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "locked").mkdir()

    def may_write(path: Path, mode: int) -> bool:  # root may everywhere
        return path.name != "locked"

    monkeypatch.setattr("os.access", may_write)
    examined = run("doctor", "--store", "locked/x.db")
    assert examined.code == 1
    assert "problem: store: the folder locked cannot be written; allow it, or name another" in examined.out


def test_what_was_selected_is_shown_with_the_reason(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_TOKENS__COUNTER", "estimate")
    values = run("doctor", "--json").json
    used = {
        each["plug_point"]: (each["name"], each["reason"]) for each in values["implementations"] if each["in_force"]
    }
    assert used["token_counter"] == ("estimate", "tokens.counter (environment) names it")
    assert used["database"] == ("sqlite", "store.url (default) names it")
    assert used["summarizer"] == ("extractive", "summary.provider (default) names it")
    assert values["tokenizer"] == "estimate"
    assert {"plugin": "reactor-memory", "source": "reactor-memory", "selected": True, "reason": "conditions met"} in (
        values["plugins"]
    )
    assert "token_counter" in run("doctor").out


def test_every_plug_point_has_a_setting_that_selects_it() -> None:
    assert {*SELECTED_BY, SOURCE} == {*PLUG_POINTS}  # a source is there as soon as its plug-in is


def test_settings_are_shown_with_their_origin_and_without_secrets(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_MODELS__GEMINI__API_KEY", "sk-hidden")
    store = "postgresql://ann:pa55word@localhost:1/db"
    shown = run("doctor", "--settings", "--store", store)
    for text in (shown.out + shown.err, run("doctor", "--store", store, "--json").out):
        assert "hidden" not in text
        assert "pa55word" not in text
    lines = [line.split() for line in shown.out.splitlines()]
    assert ["models.gemini.api_key", "********", "environment"] in lines
    assert ["store.url", "postgresql://ann:********@localhost:1/db", "constructor"] in lines
    assert ["summary.enabled", "true", "default"] in lines


def test_a_database_that_is_away_is_a_problem(run: Run) -> None:
    shown = run("doctor", "--store", "postgresql://localhost:1/db")
    assert (shown.code, shown.err) == (1, "")
    assert "problem: store: the database cannot be reached" in shown.out


def test_a_missing_key_is_a_problem(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"s1": small_talk(2)}))
    monkeypatch.setenv("REACTOR_MEMORY_SUMMARY__PROVIDER", "gemini")
    shown = run("doctor")
    assert shown.code == 1
    assert "problem: models.gemini.api_key: is not set" in shown.out


def test_what_cannot_be_made_is_problem_before_the_first_save(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_SUMMARY__PROVIDER", "gemini")
    shown = run("doctor")
    assert shown.code == 1
    assert "problem: models.gemini.api_key: is not set" in shown.out
    assert list(folder.iterdir()) == []


def test_what_is_found_twice_is_told_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_TOKENS__ENCODING", "nobody")
    shown = run("doctor")
    assert shown.code == 1
    assert shown.out.count("problem: tokens.encoding: is unknown") == 1


def test_who_answers_in_chat_is_shown_and_why_nobody_does(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("doctor", "--json").json["chat"] == "offline echo"
    monkeypatch.setenv("REACTOR_MEMORY_CHAT__PROVIDER", "gemini")
    shown = run("doctor")
    assert shown.code == 1
    assert "problem: models.gemini.api_key: is not set" in shown.out
    monkeypatch.setenv("REACTOR_MEMORY_MODELS__GEMINI__API_KEY", "sk-hidden")
    monkeypatch.setenv("REACTOR_MEMORY_MODELS__GEMINI__MODEL", "a-model")
    values = run("doctor", "--json")
    assert (values.json["chat"], values.json["problems"]) == ("a-model", [])
    assert "hidden" not in values.out


def test_a_model_of_the_server_has_to_be_named(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"s1": small_talk(2)}))
    monkeypatch.setenv("REACTOR_MEMORY_SUMMARY__PROVIDER", "openai")
    monkeypatch.setenv("REACTOR_MEMORY_MODELS__OPENAI__BASE_URL", "http://localhost:1/v1")
    shown = run("doctor")
    assert shown.code == 1
    assert "problem: models.openai.model: must name a model of the server" in shown.out


def test_the_summarizer_and_what_it_cost_are_shown(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"s1": small_talk(2)}))
    monkeypatch.setenv("REACTOR_MEMORY_SUMMARY__PROVIDER", "openai")
    monkeypatch.setenv("REACTOR_MEMORY_MODELS__OPENAI__BASE_URL", "http://localhost:1/v1")
    monkeypatch.setenv("REACTOR_MEMORY_MODELS__OPENAI__MODEL", "a-model")
    shown = dict(run("doctor", "--json").json["database"])
    assert (shown["summarizer"], shown["spent today"]) == ("openai:a-model", "0 tokens")
    with closing(sqlite3.connect(folder / "reactor-memory.db")) as database:
        today = day_of(wall_clock())
        database.execute("INSERT INTO summary_spending VALUES ('s1', 's1', ?, 1200), ('s2', 's2', ?, 34)", [today] * 2)
        database.commit()
    monkeypatch.setenv("REACTOR_MEMORY_SUMMARY__MAX_TOKENS_PER_DAY", "1000")
    shown = dict(run("doctor", "--json").json["database"])
    assert shown["spent today"].startswith("1,234 tokens of 1,000: the cap is reached, extractive reads on")


def test_a_tokenizer_that_is_not_there_is_a_problem(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_TOKENS__ENCODING", "p50k_base")
    shown = run("doctor")
    assert shown.code == 1
    assert "problem: tokens.encoding: " in shown.out


def test_a_damaged_log_is_a_problem(run: Run, folder: Path) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"s1": small_talk(12)}))
    with closing(sqlite3.connect(folder / "reactor-memory.db")) as database:
        database.execute("DELETE FROM messages WHERE seq = 5")
        database.commit()
    shown = run("doctor")
    assert shown.code == 1
    assert "problem: " in shown.out
    assert "s1" in shown.out.rpartition("problem: ")[2]


def test_work_that_was_given_up_is_a_problem(run: Run, folder: Path) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"s1": small_talk(40)}))
    with closing(sqlite3.connect(folder / "reactor-memory.db")) as database:
        database.execute("UPDATE background_work SET parked = 1, attempts = 5, last_error = 'timeout', due_at = NULL")
        database.commit()
    shown = run("doctor")
    assert shown.code == 1
    assert "problem: background work of session 's1' was given up: timeout" in " ".join(shown.out.split())
    assert run("summarize", "s1").code == 0
    assert run("doctor").code == 0


@pytest.mark.postgres
def test_a_healthy_postgresql_is_told_so(run: Run, folder: Path, postgres_dsn: str) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"s1": small_talk(12)}), "--store", postgres_dsn)
    values = run("doctor", "--json", "--store", postgres_dsn).json
    assert values["problems"] == []
    assert dict(values["database"])["store"].startswith("PostgreSQL ")
    assert dict(values["database"])["messages"] == "12"


# -- migrate ------------------------------------------------------------------------------------------------


def test_migrating_makes_the_database(run: Run, folder: Path) -> None:
    shown = run("migrate", "--store", "new.db")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.strip().endswith("is up to date")
    assert run("sessions", "--store", "new.db").out.strip() == "no sessions"


@pytest.mark.parametrize("is_postgres", [False, pytest.param(True, marks=pytest.mark.postgres)])
def test_messages_of_another_tokenizer_are_counted_again(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, is_postgres: bool
) -> None:
    store = request.getfixturevalue("postgres_dsn") if is_postgres else "log.db"
    file = write_sessions(folder / "f.jsonl", {"s1": small_talk(12)})
    run("import", file, "--store", store)
    exact = run("context", "s1", "--store", store, "--json").json["report"]["total_tokens"]
    assert run("migrate", "--recount", "--store", store, "--json").json["recounted"] == 0
    monkeypatch.setenv("REACTOR_MEMORY_TOKENS__COUNTER", "estimate")
    assert run("migrate", "--store", store, "--json").json["recounted"] == 0
    assert run("migrate", "--recount", "--store", store, "--json").json["recounted"] == 12
    assert "counted again" not in run("migrate", "--recount", "--store", store).out
    monkeypatch.delenv("REACTOR_MEMORY_TOKENS__COUNTER")
    assert (
        run("migrate", "--recount", "--store", store).out.strip().endswith("is up to date, 12 messages counted again")
    )
    assert run("context", "s1", "--store", store, "--json").json["report"]["total_tokens"] == exact


@pytest.mark.postgres
def test_postgresql_is_migrated_by_this_command_only(run: Run, folder: Path, empty_postgres_dsn: str) -> None:
    file = write_sessions(folder / "f.jsonl", {"s1": small_talk(2)})
    refused = run("import", file, "--store", empty_postgres_dsn)
    assert refused.code == 2
    assert refused.err.startswith("error: schema: the database has no schema")
    assert "reactor-memory migrate" in refused.err
    assert run("doctor", "--store", empty_postgres_dsn).code == 1
    assert run("migrate", "--store", empty_postgres_dsn).code == 0
    assert run("migrate", "--store", empty_postgres_dsn).code == 0
    assert run("import", file, "--store", empty_postgres_dsn).code == 0
    assert run("doctor", "--store", empty_postgres_dsn).code == 0


@pytest.mark.postgres
def test_tables_of_supabase_are_printed_or_made(run: Run, folder: Path, empty_postgres_dsn: str) -> None:
    execute(empty_postgres_dsn, AUTH)
    printed = run("migrate", "--supabase", "--store", empty_postgres_dsn)
    assert (printed.code, printed.err) == (0, "")
    assert "CREATE TABLE conversations" in printed.out  # nothing was changed, so it is still to be made
    assert run("migrate", "--supabase", "--apply", "--store", empty_postgres_dsn).code == 0
    execute(
        empty_postgres_dsn, "SELECT * FROM user_agent_active_sessions, agent_long_term_memory, chat_message_history"
    )
    again = run("migrate", "--supabase", "--store", empty_postgres_dsn)
    assert "CREATE TABLE conversations" not in again.out
    execute(empty_postgres_dsn, again.out)


def test_tables_of_supabase_need_postgresql(run: Run, folder: Path) -> None:
    for options in (["--supabase"], ["--supabase", "--apply"], ["--apply"]):
        refused = run("migrate", *options, "--store", "new.db")
        assert refused.code == 2
        assert "--supabase" in refused.err
    assert not (folder / "new.db").exists()


# -- worker ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_worker_does_what_is_due(run: Run, folder: Path) -> None:
    run("import", SAMPLE, "--no-memory")
    assert covered(folder) == {}
    assert run("worker", "--once").code == 0
    assert {session_id: seq > 450 for session_id, seq in covered(folder).items()} == {
        "tm4-00-000": True,
        "tm4-00-001": True,
        "tm4-00-002": True,
    }


def test_a_worker_works_also_where_saving_processes_do_not(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_BACKGROUND__ENABLED", "false")
    run("import", write_sessions(folder / "f.jsonl", {"s1": small_talk(40)}), "--no-memory")
    run("worker", "--once")
    assert covered(folder)["s1"] > 0


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_a_worker_ends_when_it_is_told_to(run: Run, start: Start, folder: Path, number: signal.Signals) -> None:
    process = start("worker")
    assert process.stderr is not None
    other_default = process.stderr.readline()
    assert "setting=store.delete_grace_days value=30" in other_default
    assert "reason=serve can restore" in other_default
    assert process.stderr.readline() == "working; stop with Ctrl-C\n"
    run("import", write_sessions(folder / "f.jsonl", {"s1": small_talk(40)}), "--no-memory")
    while not covered(folder):
        assert process.poll() is None
        threading.Event().wait(0.02)
    process.send_signal(number)
    assert process.wait(timeout=200) == 0
    assert "Traceback" not in process.stderr.read()


@pytest.mark.parametrize(("days", "left"), [(None, 1), ("0", 0)])
def test_a_worker_beside_a_service_leaves_what_can_be_restored(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, days: str | None, left: int
) -> None:
    """The service keeps it for 30 days unless the settings say otherwise; a worker of the same settings agrees."""
    run("import", write_sessions(folder / "f.jsonl", {"s1": small_talk(2)}))
    with monkeypatch.context() as service:
        service.setenv("REACTOR_MEMORY_STORE__DELETE_GRACE_DAYS", "30")
        assert run("delete", "s1", "--yes").code == 0
    if days is not None:
        monkeypatch.setenv("REACTOR_MEMORY_STORE__DELETE_GRACE_DAYS", days)
    assert run("worker", "--once").code == 0
    with closing(sqlite3.connect(folder / "reactor-memory.db")) as database:
        assert database.execute("SELECT count(*) > 0 FROM messages").fetchone() == (left,)


def test_a_worker_without_a_database_says_so(run: Run) -> None:
    refused = run("worker", "--store", "postgresql://localhost:1/db")
    assert refused.code == 2
    assert refused.err.startswith("error: store: the database cannot be reached")
