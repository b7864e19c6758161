"""The commands about one session: `show`, `context`, facts, pins, `summarize`, `fork`, `archive`, `delete`."""

from __future__ import annotations

import io
import json
import os
import pty
import shutil
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from reactor_memory import Message
from reactor_memory.models.ledger import Extraction
from reactor_memory.testing import ScriptedSummarizer
from tests.acceptance import scenes
from tests.acceptance.conftest import CHECKOUT, Finished, Run, rich_messages, small_talk, write_sessions
from tests.acceptance.scenes import USER, agent_memory, extract, save

SAMPLE = CHECKOUT / "reactor_memory" / "data" / "orders.jsonl.gz"
ORDERS = "tm4-00-000"
STORE = "reactor-memory.db"

COMMANDS = [
    "show",
    "context",
    "facts",
    "pin",
    "unpin",
    "pins",
    "summarize",
    "export",
    "archive",
    "restore",
    "delete",
    "fork",
]
OPTIONS = {"delete": ["--yes"], "fork": ["--at", 1], "pin": ["--seq", 1], "unpin": ["--seq", 1]}
"""What these commands need beside a session."""


@pytest.fixture
def talk(run: Run, folder: Path) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"s1": small_talk(40), "s2": rich_messages()}), "--no-memory")


@pytest.fixture(scope="module")
def summarised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first test that asks for the orders leaves them to the others."""
    return tmp_path_factory.mktemp("orders") / STORE


@pytest.fixture
def orders(run: Run, folder: Path, summarised: Path) -> None:
    if not summarised.exists():
        run("import", SAMPLE, "--no-memory")
        assert run("summarize", ORDERS).code == 0
        shutil.move(folder / STORE, summarised)
    shutil.copy(summarised, folder / STORE)


def lines_of(shown: Finished) -> list[str]:
    assert (shown.code, shown.err) == (0, "")
    return shown.out.splitlines()


# -- sessions and show ------------------------------------------------------------------------------------------------


def test_sessions_are_listed_page_by_page(run: Run, talk: None) -> None:
    first = run("sessions", "--limit", 1, "--json").json
    second = run("sessions", "--limit", 1, "--cursor", first["next_cursor"], "--json").json
    assert [each["session_id"] for page in (first, second) for each in page["sessions"]] == ["s2", "s1"]
    assert second["next_cursor"] is None
    shown = lines_of(run("sessions"))
    assert shown[0].split() == ["session", "owner", "messages", "last", "activity", "begins"]
    assert shown[2].split()[:3] == ["s1", "-", "40"]
    assert shown[2].rstrip().endswith("message 1")


def test_everybodys_sessions_are_listed_with_their_owners_and_user_narrows(run: Run, talk: None, folder: Path) -> None:
    run("import", write_sessions(folder / "g.jsonl", {"s3": small_talk(2)}), "--user", "ann")
    listed = run("sessions", "--json").json["sessions"]
    assert {each["session_id"]: each["owner_id"] for each in listed} == {"s1": None, "s2": None, "s3": "ann"}
    page = run("sessions", "--limit", 2, "--json").json
    rest = run("sessions", "--limit", 2, "--cursor", page["next_cursor"], "--json").json
    assert [*page["sessions"], *rest["sessions"]] == listed
    assert "owner ann" in run("show", "s3").out
    assert run("context", "s3").code == 0
    assert [each["session_id"] for each in run("sessions", "--user", "ann", "--json").json["sessions"]] == ["s3"]
    assert lines_of(run("sessions", "--user", "bob")) == ["no sessions"]


def test_a_broken_cursor_is_refused(run: Run, talk: None) -> None:
    refused = run("sessions", "--cursor", "x")
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)


def test_show_prints_the_newest_messages(run: Run, talk: None) -> None:
    shown = lines_of(run("show", "s1", "--newest", 2))
    assert shown[0] == "s1 · 40 messages · no owner"
    assert shown[1].startswith("… 38 older messages")
    assert [line.split() for line in shown[2:]] == [
        ["39", "user"],
        ["message", "39"],
        ["40", "assistant"],
        ["message", "40"],
    ]


def test_show_prints_all_of_a_message(run: Run, talk: None) -> None:
    shown = "\n".join(lines_of(run("show", "s2", "--all")))
    for text in ("user Ann", 'calls book {"seats":2', "calls book {malformed  c2", "tool book answers c1", "[image]"):
        assert text in shown
    values = run("show", "s2", "--all", "--json").json
    assert values["session"]["last_seq"] == 7
    assert values["messages"][2]["tool_calls"][0]["arguments"]["big"] == 2**70
    assert [message["seq"] for message in values["messages"]] == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_session_is_refused(run: Run, talk: None, command: str) -> None:
    options = OPTIONS.get(command, [])
    assert run(command, "s9", *options) == Finished(2, "", "error: session 's9': does not exist\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_stranger_is_refused(run: Run, folder: Path, command: str) -> None:
    run("import", write_sessions(folder / "f.jsonl", {"s1": small_talk(2)}), "--user", "ann")
    options = OPTIONS.get(command, [])
    refused = run(command, "s1", "--user", "bob", *options)
    assert refused == Finished(2, "", "error: session 's1': belongs to another user\n")


# -- fork and delete ------------------------------------------------------------------------------------------------


def test_a_fork_shares_what_came_before(run: Run, talk: None) -> None:
    (fork,) = lines_of(run("fork", "s1", "--at", 4))
    assert fork.startswith("s1~")
    values = run("show", fork, "--json").json
    assert (values["session"]["last_seq"], values["session"]["forked_at_seq"]) == (3, 4)
    assert [message["content"] for message in values["messages"]] == ["message 1", "message 2", "message 3"]
    assert "forked from s1 at 4" in lines_of(run("show", fork))[0]


def test_a_fork_behind_the_end_is_refused(run: Run, talk: None) -> None:
    refused = run("fork", "s1", "--at", 99)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "at_seq" in refused.err


def test_messages_are_archived_and_restored(run: Run, talk: None) -> None:
    count = len(run("show", "s1", "--all", "--json").json["messages"])
    assert run("archive", "s1", "--clear").out == f"messages archived: {count}\n"
    assert run("archive", "s1", "--json").json["message_count"] == 0
    assert run("show", "s1", "--all", "--json").json["messages"] == []
    assert len(run("show", "s1", "--all", "--archived", "--json").json["messages"]) == count
    assert run("facts", "s1", "--json").json == []
    assert run("restore", "s1").out == f"messages restored: {count}\n"
    assert len(run("show", "s1", "--all", "--json").json["messages"]) == count
    assert run("archive", "s1", "--until", count + 1).code == 2


def test_a_session_is_deleted_with_its_forks(run: Run, talk: None) -> None:
    fork = run("fork", "s1", "--at", 4, "--json").json["session_id"]
    assert sorted(run("delete", "s1", "--yes", "--json").json["deleted"]) == ["s1", fork]
    assert run("show", "s1").err == "error: session 's1': was deleted; begin a new session under a new id\n"
    assert [each["session_id"] for each in run("sessions", "--json").json["sessions"]] == ["s2"]


def test_deleting_asks_first(run: Run, talk: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    refused = run("delete", "s1")
    assert refused == Finished(2, "", "error: deleting asks first: run it in a terminal or add --yes\n")
    assert run("show", "s1").code == 0


@pytest.mark.parametrize(("answer", "code", "left"), [(b"n\n", 1, 40), (b"y\n", 0, 0)])
def test_the_answer_counts(
    run: Run, talk: None, folder: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes, code: int, left: int
) -> None:
    terminal, theirs = pty.openpty()
    with open(theirs, encoding="utf-8") as stdin:  # noqa: PTH123 (a descriptor)
        monkeypatch.setattr(sys, "stdin", stdin)
        os.write(terminal, answer)
        done = run("delete", "s1")
    os.close(terminal)
    assert (done.code, done.err) == (code, "Delete s1 (40 messages) and its forks? [y/N]: ")
    with closing(sqlite3.connect(folder / "reactor-memory.db")) as database:
        counted = database.execute("SELECT count(*) FROM messages WHERE conversation_id = 's1'").fetchone()
    assert counted == (left,)


# -- pins ------------------------------------------------------------------------------------------------


def test_what_is_pinned_is_listed_and_stands_in_the_context(run: Run, talk: None) -> None:
    made = run("pin", "s1", "--seq", 3, "--json").json
    assert (made["seq"], made["role"], made["text"], made["fact"]) == (3, "user", "message 3", None)
    assert run("pins", "s1", "--json").json == [made]
    header, row = lines_of(run("pins", "s1"))
    assert header.split() == ["message", "what", "tokens", "text"]
    assert row.split() == ["3", "user", str(made["token_count"]), "message", "3"]
    value = run("context", "s1", "--budget", 100, "--json").json
    assert next(message for message in value["messages"] if message["part"] == "pins")["content"] == "message 3"
    assert value["report"]["verbatim"] == {"pins": [made["sha256"]]}
    assert any(line.startswith("pins · ") for line in lines_of(run("context", "s1")))


def test_pinning_twice_is_one_pin_until_it_is_unpinned(run: Run, talk: None) -> None:
    assert run("pin", "s1", "--seq", 3) == run("pin", "s1", "--seq", 3)
    assert lines_of(run("unpin", "s1", "--seq", 3)) == ["unpinned"]
    assert lines_of(run("unpin", "s1", "--seq", 3)) == ["was not pinned"]
    assert run("unpin", "s1", "--seq", 3, "--json").json == {"unpinned": False}
    assert lines_of(run("pins", "s1")) == ["nothing is pinned"]


@pytest.mark.parametrize(
    ("seq", "problem"), [(3, "tool calls"), (4, "a tool message"), (5, "a tool"), (99, "message 99")]
)
def test_tool_output_cannot_be_pinned(run: Run, talk: None, seq: int, problem: str) -> None:
    refused = run("pin", "s2", "--seq", seq)
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert refused.err.startswith("error: seq: ")
    assert problem in refused.err
    assert run("pins", "s2", "--json").json == []


@pytest.mark.parametrize("options", [[], ["--seq", 1, "--fact", "a", "k"]])
@pytest.mark.parametrize("command", ["pin", "unpin"])
def test_what_to_pin_is_named_once(run: Run, talk: None, command: str, options: list[object]) -> None:
    refused = run(command, "s1", *options)
    assert refused == Finished(2, "", "error: seq: give either seq or fact, and only one of them\n")


def test_a_fact_is_pinned_by_its_anchor_and_key(run: Run, orders: None) -> None:
    found = [fact for fact in run("facts", ORDERS, "--json").json if fact["verified"] and fact["said_by"] != "tool"]
    fact = found[0]
    made = run("pin", ORDERS, "--fact", fact["anchor"], fact["key"], "--json").json
    assert (made["seq"], made["fact"]) == (fact["source_seq"], [fact["anchor"], fact["key"]])
    assert fact["value"] in made["text"]
    (pinned,) = [m for m in run("context", ORDERS, "--json").json["messages"] if m["part"] == "pins"]
    assert pinned["content"] == made["text"]
    assert lines_of(run("unpin", ORDERS, "--fact", fact["anchor"], fact["key"])) == ["unpinned"]


def test_more_pins_than_allowed_are_refused(run: Run, talk: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_CONTEXT__MAX_PINS", "1")
    assert run("pin", "s1", "--seq", 1).code == 0
    refused = run("pin", "s1", "--seq", 2)
    assert refused.code == 2
    assert refused.err.startswith(
        "error: pins: has 2 pins, the limit is 1: raise the setting context.max_pins or unpin"
    )


# -- memory ------------------------------------------------------------------------------------------------


def test_a_context_keeps_its_budget_and_says_what_left(run: Run, orders: None) -> None:
    value = run("context", ORDERS, "--json").json
    report = value["report"]
    assert (report["budget"], report["freshness"]) == (2000, "fresh")
    assert 1000 < report["total_tokens"] <= 2000
    assert [message["part"] for message in value["messages"]] == report["parts"]
    assert value["messages"][0]["content"].startswith("Conversation Facts:\n")
    assert value["messages"][-1]["seq"] == 536
    smaller = run("context", ORDERS, "--budget", 600, "--json").json["report"]
    assert smaller["total_tokens"] <= 600


def test_a_context_is_shown_with_what_each_part_costs(run: Run, orders: None) -> None:
    shown = lines_of(run("context", ORDERS))
    report = run("context", ORDERS, "--json").json["report"]
    assert shown[0].startswith(f"Context of {ORDERS}: {report['total_tokens']:,} of 2,000 tokens · hierarchical · ")
    for part in ("facts", "window"):
        assert any(line.startswith(f"{part} · {report['tokens'][part]:,} tokens") for line in shown)
        assert any(line.split()[:2] == [part, f"{report['tokens'][part]:,}"] for line in shown)
    assert any(line.split()[:4] == ["log", "messages", "1", "to"] and "covered by memory" in line for line in shown)
    assert max(map(len, shown)) <= 100


def test_a_context_is_shown_with_the_reason_for_everything_dropped(run: Run, orders: None) -> None:
    arguments = ("context", ORDERS, "--query", "a Steamer", "--message", "Please repeat: " + "a Latte, " * 400)
    report = run(*arguments, "--json").json["report"]
    assert {entry["reason"] for entry in report["dropped"] + report["clamped"]} >= {"over_budget"}
    shown = lines_of(run(*arguments))
    left_out = shown[next(i for i, line in enumerate(shown) if line.startswith("left out")) :]
    assert sum("no room left in the budget" in line for line in left_out) == sum(
        entry["reason"] == "over_budget" for entry in report["dropped"]
    )


def test_a_message_and_a_query_are_taken_into_account(run: Run, orders: None) -> None:
    value = run(
        "context", ORDERS, "--message", "How are you?", "--query", "order 13087", "--budget", 4000, "--json"
    ).json
    assert value["messages"][-1] == {"part": "current", "seq": None, "role": "user", "content": "How are you?"}
    assert "13087" in json.dumps([message for message in value["messages"] if message["part"] == "recalled"])
    assert run("show", ORDERS, "--json").json["session"]["last_seq"] == 536


def test_budget_that_cannot_work_is_refused_with_one_that_can(run: Run, talk: None) -> None:
    refused = run("context", "s1", "--budget", 1, "--message", "a question of some length, is it not?")
    assert refused.code == 2
    smallest = int(refused.err.split()[-2])
    text = "a question of some length, is it not?"
    assert run("context", "s1", "--budget", smallest, "--message", text).code == 0


def test_without_summaries_a_context_is_take_last(run: Run, talk: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_SUMMARY__ENABLED", "false")
    report = run("context", "s1", "--budget", 200, "--json").json["report"]
    assert (report["freshness"], report["covered_seq"]) == ("none", 0)
    ((first, last),) = report["unread"]
    assert (first, last < 40) == (1, True)
    shown = " ".join(run("context", "s1", "--budget", 200).out.split())
    assert "no memory (summary.enabled is false)" in shown
    assert "no facts: summary.enabled is false" in run("facts", "s1").out
    assert f"log messages 1 to {last} not in memory and too old" in shown


def test_a_short_session_is_told_when_memory_begins(run: Run, talk: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_SUMMARY__TRIGGER_MESSAGE_COUNT", "60")
    begins = "40 of 60 messages, memory begins above that"
    assert f"no memory ({begins})" in " ".join(run("context", "s1").out.split())
    assert f"no facts: {begins}" in " ".join(run("facts", "s1").out.split())


def test_facts_are_shown_with_their_source_and_as_of_message(run: Run, orders: None) -> None:
    now = run("facts", ORDERS, "--json").json
    then = run("facts", ORDERS, "--as-of", 20, "--json").json
    assert 0 < len(then) < len(now)
    assert max(fact["source_seq"] for fact in then) <= 20
    shown = lines_of(run("facts", ORDERS, "--as-of", 20))
    assert shown[0].split() == ["message", "about", "what", "value", "kind", "said", "by", "as", "it", "was", "said"]
    assert len(shown) > len(then)


SAID, MEANT = "Yeah I'd like a macchiato please.", "Yeah I'd like a flat white please."
"""What a person corrects."""


def corrected(run: Run) -> dict[str, Any]:
    said = next(fact for fact in run("facts", ORDERS, "--json").json if fact["value"] == SAID)
    return run("correct", ORDERS, MEANT, "--fact", *name_of(said), "--json").json


def name_of(fact: dict[str, Any]) -> tuple[str, str]:
    return fact["anchor"], fact["key"]


@pytest.mark.slow
def test_facts_are_shown_with_their_words_and_what_replaced_them(run: Run, orders: None) -> None:
    extracted = run("facts", ORDERS, "--json").json
    assert run("facts", ORDERS, "--all", "--json").json == extracted  # each quotation has a name of its own
    assert all(fact["value"].casefold() in fact["quote"].casefold() for fact in extracted if fact["verified"])
    fixed = corrected(run)
    found = run("facts", ORDERS, "--all", "--json").json
    holding = run("facts", ORDERS, "--json").json
    assert all(fact["successor"] is None for fact in holding)
    assert len(holding) < len(found) == len(extracted) + 1
    (replaced,) = [fact for fact in found if fact["successor"] and name_of(fact) == name_of(fixed)]
    assert (replaced["value"], replaced["quote"], replaced["successor"]) == (SAID, SAID, fixed)
    assert [fact["value"] for fact in holding if name_of(fact) == name_of(fixed)] == [MEANT]
    assert "(replaced by a" in run("facts", ORDERS, "--all").out
    assert "(replaced" not in run("facts", ORDERS).out


@pytest.mark.slow
def test_why_answers_for_every_message_fact_and_line(run: Run, orders: None) -> None:
    corrected(run)
    value = run("context", ORDERS, "--why", "--json").json
    assert [fate["seq"] for fate in value["messages"]] == list(range(1, 537))
    assert len(value["facts"]) == len(run("facts", ORDERS, "--all", "--json").json)
    reasons = {fate["reason"] for fate in value["facts"]}
    assert {"shown", "verbatim", "superseded", "below_floor"} <= reasons
    block = run("context", ORDERS, "--json").json["messages"][0]["content"].split("\n")[2:]
    assert [line["text"] for line in value["lines"] if line["part"] == "facts" and line["kept"]] == block
    shown = run("context", ORDERS, "--why")
    assert (shown.code, shown.err) == (0, "")
    for words in ("in memory", "a later fact holds in its place", "lines of memory", "lines of facts needed rank"):
        assert words in shown.out
    assert max(map(len, shown.out.splitlines())) <= 100


def test_why_answers_for_lines_of_narrative_without_room(run: Run, folder: Path) -> None:
    def told(messages: Sequence[Message]) -> Extraction:
        found = extract(messages)
        story = f"The customer went through a list and told the number {found.facts[0].value} among others."
        return replace(found, narrative=story)

    async def remember() -> None:
        async with agent_memory(ScriptedSummarizer(default=told), f"sqlite:///{folder / STORE}") as memory:
            await save(memory, "s", scenes.talk(120))
            await memory.summarize("s", user_id=USER)

    anyio.run(remember)
    asked = ("context", "s", "--budget", 400, "--why")
    lines = [line for line in run(*asked, "--json").json["lines"] if line["part"] == "narrative"]
    untold = [line for line in lines if line["reason"] == "over_budget"]
    assert len(untold) > 0
    assert run(*asked).out.count("no room beside all facts") == len(untold)


def test_why_answers_for_one_message_or_fact(run: Run, orders: None) -> None:
    fact = next(fate for fate in run("context", ORDERS, "--why", "--json").json["facts"] if fate["reason"] == "shown")
    seq = fact["fact"]["source_seq"]
    message = run("context", ORDERS, "--why", "--seq", seq, "--json").json
    assert [each["seq"] for each in message["source"]] == [seq]
    assert fact in message["facts"]
    assert fact["line"] in message["lines"]
    named = run("context", ORDERS, "--why", "--fact", fact["fact"]["anchor"], fact["fact"]["key"], "--json").json
    assert fact in named["facts"]
    page = " ".join(run("context", ORDERS, "--why", "--seq", seq).out.split())
    assert f"{seq} remembered left the window; memory shows lines made from it" in page


def test_why_is_refused_for_what_is_not_there(run: Run, orders: None) -> None:
    refused = run("context", ORDERS, "--why", "--seq", 9999)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("error: seq: message 9999 is not in this session")
    assert run("context", ORDERS, "--why", "--fact", "a", "k").err.startswith("error: fact: no fact has")
    assert run("context", ORDERS, "--seq", 3).err == "error: --seq and --fact need --why\n"


def test_facts_that_are_not_there_yet_are_explained(run: Run, talk: None) -> None:
    assert lines_of(run("facts", "s1"))[0] == "no facts: none were found yet"
    assert run("facts", "s1", "--json").json == []


def test_summarize_prints_the_summary(run: Run, orders: None) -> None:
    value = run("summarize", ORDERS, "--json").json
    assert value["covered_seq"] > 500
    assert value["facts"]
    assert value["last_error"] is None
    assert lines_of(run("summarize", ORDERS))[0].startswith(f"messages 1 to {value['covered_seq']} are covered, ")


def test_summarize_needs_the_feature(run: Run, talk: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_SUMMARY__ENABLED", "false")
    refused = run("summarize", "s1")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("error: summary.enabled: is false")


def test_under_progressive_it_brings_up_the_tiers(run: Run, talk: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_HISTORY__STRATEGY", "progressive")
    monkeypatch.setenv("REACTOR_MEMORY_TIERS__RECENT_COUNT", "4")
    assert "no memory (nothing was summarised yet)" in " ".join(run("context", "s1").out.split())
    value = run("summarize", "s1", "--json").json
    assert (value["recent_n"], value["condensed_n"] + value["compressed_n"]) == (4, 36)
    assert lines_of(run("summarize", "s1")) == ["nothing was summarised: no messages beyond the recent ones"]
    assert "memory is up to date" in " ".join(run("context", "s1").out.split())
    assert run("summarize", "nowhere").code == 2
    assert run("summarize", "s1", "--rebuild").err.startswith("error: summary.enabled: is false")


def test_a_short_session_has_nothing_to_summarize(run: Run, talk: None) -> None:
    assert lines_of(run("summarize", "s2"))[0].startswith("nothing to summarize")


# -- PostgreSQL ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.postgres
def test_a_context_of_postgresql_is_the_one_of_sqlite(run: Run, orders: None, postgres_dsn: str) -> None:
    run("import", SAMPLE, "--store", postgres_dsn)
    assert run("summarize", ORDERS, "--store", postgres_dsn).code == 0
    contexts = [run("context", ORDERS, "--json", *store).json for store in ([], ["--store", postgres_dsn])]
    assert contexts[0]["messages"] == contexts[1]["messages"]
    assert contexts[0]["report"] == contexts[1]["report"]


def test_a_search_finds_messages_with_their_place(run: Run, orders: None) -> None:
    hits = run("search", ORDERS, "order 13087", "--limit", 3, "--json").json
    assert 1 <= len(hits) <= 3
    assert "13087" in hits[0]["text"]
    assert str(hits[0]["seq"]) in run("search", ORDERS, "order 13087").out
    assert run("search", ORDERS, "xylophone").out == "nothing found\n"
    assert run("search", "nobody", "order").code == 2
