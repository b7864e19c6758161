"""`demo`: the newcomer's minute."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from reactor_memory.cli import demo_run
from reactor_memory.core.context.context import Context
from tests.acceptance.conftest import CHECKOUT, Run, Start, small_talk, write_sessions

SAMPLE = CHECKOUT / "reactor_memory" / "data" / "orders.jsonl.gz"
ORDERS = "tm4-00-000"


def sample_lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(SAMPLE.read_bytes()).splitlines()]


def words(message: dict[str, Any]) -> set[str]:
    return set(re.findall(r"\w+", json.dumps(message).casefold()))


@pytest.fixture(scope="module")
def kept() -> dict[str, str]:
    """What a demonstration printed, which is the same each time."""
    return {}


@pytest.fixture
def value(run: Run, kept: dict[str, str]) -> dict[str, Any]:
    if "value" not in kept:
        kept["value"] = run("demo", "--json").out
    return json.loads(kept["value"])


@pytest.fixture
def page(run: Run, folder: Path, kept: dict[str, str]) -> str:
    if "page" not in kept:
        shown = run("demo")
        assert (shown.code, shown.err) == (0, "")
        assert list(folder.iterdir()) == [], "it leaves nothing behind"
        kept["page"] = shown.out
    return kept["page"]


def test_the_sample_is_small_and_comes_with_its_licence() -> None:
    assert SAMPLE.stat().st_size < 100_000
    assert len(sample_lines()) == 3
    assert "CC BY 4.0" in (SAMPLE.parent / "ATTRIBUTION.md").read_text(encoding="utf-8")


def test_context_keeps_budget_and_far_more_details_than_take_last(value: dict[str, Any]) -> None:
    report = value["context"]["report"]
    assert report["total_tokens"] <= report["budget"] == 2000
    assert report["freshness"] == "fresh"
    ours = sum(detail["shown_as"] is not None for detail in value["details"])
    theirs = sum(detail["in_take_last"] for detail in value["details"])
    assert len(value["details"]) == 35
    assert ours >= 30
    assert theirs <= 10
    assert value["rescued"] == sum(d["shown_as"] is not None and not d["in_take_last"] for d in value["details"])
    assert value["refuted"] == 0


def test_take_last_gets_as_much_as_the_budget_holds(value: dict[str, Any]) -> None:
    report = value["take_last"]["report"]
    assert report["strategy"] == "take_last"
    assert set(report["parts"]) == {"window"}
    assert 1800 <= report["total_tokens"] <= 2000
    assert value["take_last"]["messages"][-1]["seq"] == 536


def test_what_is_called_rescued_is_absent_from_take_last(value: dict[str, Any]) -> None:
    said = [words(message) for message in value["take_last"]["messages"]]
    rescued = [d for d in value["details"] if d["shown_as"] is not None and not d["in_take_last"]]
    assert rescued
    for detail in rescued:
        asked = set(re.findall(r"\d{5}", detail["question"])) | set(detail["answer"].casefold().split())
        assert not any(asked <= message for message in said)


def test_what_holds_detail_stands_in_the_context_with_the_answer(value: dict[str, Any]) -> None:
    sent = "\n".join(message["content"] for message in value["context"]["messages"])
    lines = [detail for detail in value["details"] if detail["shown_as"] in sent.split("\n")]
    assert len(lines) > 25
    for detail in lines:
        assert detail["answer"].strip().casefold() in detail["shown_as"].casefold()


def test_the_page_fits_and_shows_the_context_and_the_verdict(page: str) -> None:
    assert max(map(len, page.splitlines())) <= 100
    assert "\x1b" not in page
    for text in ("Conversation Facts:", "next to take-last", "rescued: ", "verified: none of the ", "reactor-memory"):
        assert text in page


def test_the_exact_context_is_on_the_page(page: str, value: dict[str, Any]) -> None:
    squeezed = "".join(page.split())
    for message in value["context"]["messages"]:
        for line in message["content"].split("\n"):
            assert "".join(line.split()) in squeezed


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_every_fact_on_the_screen_is_followed_to_its_message(run: Run, step: int) -> None:
    """By the numbers before the line, in the very database of the demonstration. Few of the lines, or each;
    headings are made from no message.
    """

    @cache
    def answer_for(seq: int) -> dict[str, Any]:
        return run("context", ORDERS, "--store", "demo.db", "--why", "--seq", seq, "--json").json

    page = run("demo", "--store", "demo.db").out
    context = run("context", ORDERS, "--store", "demo.db", "--json").json["messages"]
    lines = context[0]["content"].split("\n")[2:]
    assert len(lines) > 30
    told = [(number, line) for number, line in enumerate(lines, start=1) if not line.endswith(":")]
    for number, line in told[::step]:
        seqs = sources_on(page, line)[lines[: number - 1].count(line)]
        assert seqs, line
        answers = [answer_for(seq) for seq in seqs]
        for seq, answer in zip(seqs, answers, strict=True):
            assert [message["seq"] for message in answer["source"]] == [seq]
            # the same words may have been said again since, where the window shows them
            assert {fate["outcome"] for fate in answer["messages"]} <= {"remembered", "kept"}
            assert (line, "facts", number) in [(each["text"], each["part"], each["number"]) for each in answer["lines"]]
        shown = [fate for answer in answers for fate in answer["facts"] if fate["reason"] == "shown"]
        said = [fate for fate in shown if fate["line"]["text"] == line]
        # of a call at the border the result may stand in the window, and its facts with it
        assert said or "verbatim" in {fate["reason"] for answer in answers for fate in answer["facts"]}
        for fate in said:
            (source,) = answers[seqs.index(fate["fact"]["source_seq"])]["source"]
            assert fate["fact"]["value"].casefold() in fate["quote"].casefold()
            assert fate["fact"]["value"].casefold() in json.dumps(source, ensure_ascii=False).casefold()


def sources_on(page: str, line: str) -> list[list[int]]:
    """The numbers before a line of memory wherever it stands on the page; one that is too long for the page stands on
    several.
    """
    (width,) = {each.find("Conversation Facts:") for each in page.splitlines() if "Conversation Facts:" in each}
    rows: list[tuple[str, str]] = [("", "")]
    for each in page.splitlines():
        numbers, text = each[:width].strip(), "".join(each[width:].split())
        rows = [*rows, (numbers, text)] if numbers else [*rows[:-1], (rows[-1][0], rows[-1][1] + text)]
    found = [(numbers, text) for numbers, text in rows if re.fullmatch(r"[\d …]+", numbers)]
    squeezed = "".join(line.split())
    return [
        [int(seq) for seq in numbers.split() if seq.isdigit()]
        for numbers, text in found
        if text == squeezed or is_before(text, squeezed)
    ]


def is_before(text: str, line: str) -> bool:
    """Headings, and what stands behind the last line of memory, have no numbers of their own."""
    rest = text.removeprefix(line)
    return text != rest and rest.endswith((":", "narrative"))


@pytest.mark.slow
def test_commands_that_follow_a_fact_work_as_they_are_printed(run: Run, page: str, value: dict[str, Any]) -> None:
    assert value["follow"] == [line.strip() for line in page.splitlines()[-2:]]
    again, asked = value["follow"]
    assert run(*shlex.split(again)[1:]).code == 0
    shown = run(*shlex.split(asked)[1:])
    assert (shown.code, shown.err) == (0, "")
    assert value["context"]["messages"][0]["content"].split("\n")[3][:20] in shown.out


@pytest.mark.slow
def test_the_commands_name_what_the_demonstration_was_made_with(run: Run) -> None:
    options = ("--budget", 1000, "--user", "ann", "--session", "tm4-00-002")
    follow = run("demo", SAMPLE, *options, "--json").json["follow"]
    assert follow[0] == (f"reactor-memory demo {SAMPLE} --session tm4-00-002 --budget 1000 --user ann --store demo.db")
    assert follow[1].startswith(
        "reactor-memory context tm4-00-002 --budget 1000 --user ann --store demo.db --why --seq "
    )
    kept = run("demo", "--store", "my demo.db", "--json").json["follow"]
    assert len(kept) == 1
    assert "--store 'sqlite:///my%20demo.db'" in kept[0] or "--store sqlite:///my%20demo.db" in kept[0]


def test_detail_that_is_called_rescued_by_mistake_is_found_out(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = demo_run.context_units

    def blind(context: Context) -> tuple[str, ...]:
        return () if context.report.strategy == "take_last" else real(context)

    monkeypatch.setattr(demo_run, "context_units", blind)
    shown = run("demo")
    assert shown.code == 1
    assert re.fullmatch(r"error: \d+ details called rescued are in take-last's context\n", shown.err)
    assert "not true: " in shown.out
    assert "verified" not in shown.out


@pytest.mark.slow
def test_a_named_store_is_kept_and_may_be_used_again(run: Run) -> None:
    first = run("demo", "--store", "demo.db", "--json").json
    again = run("demo", "--store", "demo.db", "--json").json
    assert again["messages"] == first["messages"] == 536
    assert again["context"]["messages"] == first["context"]["messages"]
    kept = run("context", "tm4-00-000", "--store", "demo.db", "--json").json
    assert kept["messages"] == first["context"]["messages"]


@pytest.mark.slow
def test_any_session_of_a_file_is_taken(run: Run, folder: Path) -> None:
    shown = run("demo", SAMPLE, "--session", "tm4-00-002", "--budget", 1000, "--json").json
    assert shown["session_id"] == "tm4-00-002"
    assert shown["context"]["report"]["total_tokens"] <= 1000
    refused = run("demo", SAMPLE, "--session", "nobody")
    assert (refused.code, refused.err) == (2, f"error: {SAMPLE}: holds no session 'nobody'\n")


def test_a_session_without_probes_is_shown_too(run: Run, folder: Path) -> None:
    file = write_sessions(folder / "f.jsonl", {"s1": small_talk(60)})
    shown = run("demo", file)
    assert (shown.code, shown.err) == (0, "")
    assert "the session has no probes" in shown.out


def test_a_broken_session_is_refused_before_anything_is_stored(run: Run, folder: Path) -> None:
    file = folder / "f.jsonl"
    file.write_text('{"id": "s1", "messages": [{"role": "user", "content": "\\u0000"}]}\n')
    refused = run("demo", file, "--store", "demo.db")
    assert refused.code == 2
    assert refused.err.startswith(f"error: {file}:1: messages[0].content: contains a NUL")
    assert not (folder / "demo.db").exists()


@pytest.mark.slow
def test_settings_of_the_environment_do_not_spoil_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_HISTORY__STRATEGY", "take_last")
    monkeypatch.setenv("REACTOR_MEMORY_SUMMARY__PROVIDER", "gemini")
    monkeypatch.setenv("REACTOR_MEMORY_BACKGROUND__ENABLED", "false")
    assert run("demo", "--json").json["rescued"] > 20


@pytest.mark.slow
def test_it_runs_as_a_process_of_its_own(start: Start) -> None:
    process = start("demo")
    out, err = process.communicate(timeout=200)
    assert (process.returncode, err) == (0, "")
    assert "verified: none of the " in out
