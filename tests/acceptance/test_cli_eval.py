"""`eval`: replaying sessions and scoring what is left of them."""

from __future__ import annotations

import gzip
import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from reactor_memory.cli import eval_run
from reactor_memory.evaluation.requirements import MEASURES
from reactor_memory.features.facts.summarizers.extractive import ExtractiveSummarizer
from reactor_memory.models.ledger import Extraction
from tests.acceptance.conftest import CHECKOUT, Run, small_talk, write_sessions

SAMPLE = CHECKOUT / "reactor_memory" / "data" / "orders.jsonl.gz"
LENGTH = 60
KEYS = {
    *("file", "strategy", "budget", "variant", "questions", "survival", "probes", "read_amplification"),
    *("attributable", "legible", "fill", "told", "junk"),
    *("corrected", "stale", "evidence_recall", "any_gold", "all_gold", "by_kind"),
    *("prefix_reuse", "violations", "cost", "p50_us", "p99_us", "digest"),
}
FURTHER_KEYS = {
    *("prefix_reuse_weighted", "problems", "behind", "deterministic", "traffic", "summary_cost", "summary_usage"),
}
QUICK = ("--sessions", 1, "--budgets", "600", "--variants", "tools", "--questions", "off")


@pytest.fixture
def file(folder: Path) -> Path:
    """The beginning of the packaged sessions, with the details that it settles."""
    sessions = [json.loads(line) for line in gzip.decompress(SAMPLE.read_bytes()).splitlines()]
    for session in sessions:
        session["messages"] = session["messages"][:LENGTH]
        session["probes"] = [probe for probe in session["probes"] if max(probe["evidence"]) < LENGTH]
    path = folder / "cut.jsonl"
    path.write_text("\n".join(map(json.dumps, sessions)))
    return path


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.mark.slow
def test_the_results_are_in_the_table_and_in_the_file(run: Run, folder: Path, file: Path) -> None:
    shown = run("eval", file, "--budgets", "600,1200", "--sessions", 1, "--json", "out.json")
    assert (shown.code, shown.err) == (0, "")
    results = json.loads((folder / "out.json").read_bytes())["results"]
    assert len(results) == 2 * 3 * (2 + 2 + 2 + 1)
    assert shown.out.count("hierarchical") == 12 + 12 + 6  # what the lines are like, and kinds of details
    assert max(map(len, shown.out.splitlines())) <= 100
    for result in results:
        assert set(result) == KEYS | FURTHER_KEYS
        assert result["violations"] == result["behind"] == 0
        assert len(result["digest"]) == 64
        assert result["cost"] > result["summary_cost"] >= 0
        assert result["deterministic"] is None
        assert (result["budget"] is None) == (result["strategy"] == "full-context")
        if result["variant"] == "tools":
            assert f"{result['survival']:.3f}" in shown.out


@pytest.mark.slow
def test_the_results_alone_go_to_a_program(run: Run, file: Path) -> None:
    shown = run("eval", file, "--budgets", "600", "--sessions", 1, "--variants", "tools", "--json", "-")
    assert len(shown.json["results"]) == 3 * 4


@pytest.mark.slow
def test_memory_keeps_what_take_last_loses(run: Run, folder: Path, file: Path) -> None:
    run("eval", file, "--budgets", "600", "--variants", "tools", "--questions", "off", "--json", "out.json")
    survival = {
        result["strategy"]: result["survival"] for result in json.loads((folder / "out.json").read_bytes())["results"]
    }
    assert survival["full-context"] == 1
    assert max(survival["take-last"], survival["rolling"]) < 0.5 < 0.9 <= survival["hierarchical"]


@pytest.mark.slow
def test_every_final_context_is_written_for_another_scorer(run: Run, folder: Path, file: Path) -> None:
    run(
        "eval", file, "--budgets", "600", "--strategies", "hierarchical", "--variants", "tools", "--contexts", "c.jsonl"
    )
    contexts = lines_of(folder / "c.jsonl")
    probes = sum(len(session["probes"]) for session in lines_of(file))
    asked = [context for context in contexts if context["questions"] != "off"]
    assert [context["questions"] for context in contexts].count("off") == len(lines_of(file))
    assert len(asked) == 2 * probes > 0
    assert len({context["questions"] for context in asked}) == 2
    for context in asked:
        assert context["messages"][-1]["part"] == "current"
        assert context["messages"][-1]["content"] == context["probe"]["question"]


@pytest.mark.slow
def test_the_same_input_gives_the_same_digests(run: Run, folder: Path, file: Path) -> None:
    digests: list[list[str]] = []
    for name in ("a.json", "b.json"):
        run("eval", file, "--sessions", 1, "--budgets", "600", "--variants", "tools", "--json", name)
        results = json.loads((folder / name).read_bytes())["results"]
        digests.append([result["digest"] for result in results])
    assert digests[0] == digests[1]


def test_a_named_store_is_left_as_it_was(run: Run, folder: Path, file: Path) -> None:
    run("import", file, "--store", "log.db")
    before = run("sessions", "--store", "log.db", "--json").json
    options = ("--sessions", 1, "--budgets", "600", "--strategies", "hierarchical", "--questions", "off")
    assert run("eval", file, *options, "--store", "log.db").code == 0
    assert run("sessions", "--store", "log.db", "--json").json == before


def test_without_a_store_nothing_is_left_behind(run: Run, folder: Path, file: Path) -> None:
    run("eval", file, "--sessions", 1, "--budgets", "600", "--strategies", "take-last", "--variants", "tools")
    assert list(folder.iterdir()) == [file]


def test_a_session_without_probes_has_no_survival(run: Run, folder: Path) -> None:
    path = write_sessions(folder / "f.jsonl", {"s1": small_talk(30)})
    shown = run("eval", path, "--budgets", "200", "--variants", "tools", "--questions", "off", "--json", "out.json")
    assert shown.code == 0
    results = json.loads((folder / "out.json").read_bytes())["results"]
    assert {result["survival"] for result in results} == {None}
    assert " - " in shown.out


@pytest.mark.slow
def test_a_second_replay_with_delays_is_the_same(run: Run, file: Path) -> None:
    shown = run("eval", file, *QUICK, "--strategies", "rolling,full,hierarchical", "--determinism", "--json", "-")
    assert shown.code == 0
    assert [result["deterministic"] for result in shown.json["results"]] == [True] * 3


def test_a_second_replay_that_differs_ends_with_code_1(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = itertools.count()

    async def summarize(self: object, messages: object, *, known: object = None) -> Extraction:
        return Extraction(narrative=f"the {next(numbers)}. time")

    monkeypatch.setattr(ExtractiveSummarizer, "summarize", summarize)
    monkeypatch.setattr("reactor_memory.features.facts.extractor.verify_narrative", lambda text, messages: text)
    shown = run("eval", file, *QUICK, "--strategies", "take-last,hierarchical", "--determinism", "--json", "-")
    assert shown.code == 1
    assert [result["deterministic"] for result in json.loads(shown.out)["results"]] == [True, False]
    assert shown.err == f"not deterministic: {file} · tools · questions off · hierarchical · 600 tokens\n"


def test_a_bound_that_is_not_kept_ends_with_code_1(run: Run, file: Path) -> None:
    bounds = ("--require", "violations<=0", "--require", "survival@600>=0.9")
    assert run("eval", file, *QUICK, "--strategies", "hierarchical", *bounds).code == 0
    shown = run("eval", file, *QUICK, "--strategies", "hierarchical,take-last", *bounds)
    assert shown.code == 1
    expected = f"required: survival@600 >= 0.9; {file} · tools · questions off · take-last · 600 tokens has 0."
    assert shown.err.startswith(expected)
    assert shown.err.count("\n") == 1


def test_the_page_shows_every_row(run: Run, folder: Path, file: Path) -> None:
    assert run("eval", file, *QUICK, "--html", "out.html").code == 0
    page = (folder / "out.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    for strategy in ("take-last", "rolling", "hierarchical", "full-context"):
        assert f'<th scope="row" class="word">{strategy}</th>' in page


def test_a_file_whose_name_no_encoding_can_write_is_measured(run: Run, folder: Path) -> None:
    path = write_sessions(folder / os.fsdecode(b"a\xff<b>.jsonl"), {"s1": small_talk(4)})
    shown = run("eval", path, *QUICK, "--json", "-", "--html", "out.html", "--contexts", "out.jsonl")
    names = {result["file"] for result in shown.json["results"]}
    assert names == {str(folder / "a?<b>.jsonl")} == {line["file"] for line in lines_of(folder / "out.jsonl")}
    assert "a?&lt;b&gt;.jsonl" in (folder / "out.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("store", ["memory://", "sqlite:///log.db"])
def test_every_store_gives_the_same_contexts(run: Run, file: Path, store: str) -> None:
    options = (*QUICK, "--strategies", "hierarchical", "--json", "-")
    assert (
        run("eval", file, *options, "--store", store).json["results"][0]["digest"]
        == run("eval", file, *options).json["results"][0]["digest"]
    )


def test_a_broken_rule_is_named_and_ends_with_code_1(
    run: Run, folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reactor_memory.evaluation.tally.verify", lambda context, count, log: ["a rule was broken"])
    shown = run("eval", file, "--sessions", 1, "--budgets", "600", "--strategies", "take-last", "--variants", "tools")
    assert shown.code == 1
    assert shown.out.count("broken: a rule was broken") == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ["--strategies", "take-last,mine"],
            "'mine' is not one of 'take-last', 'rolling', 'full', 'hierarchical', 'full-context'.",
        ),
        (
            ["--require", "survival>0.9"],
            f"write MEASURE>=NUMBER or MEASURE@BUDGET<=NUMBER; measures: {', '.join(MEASURES)}",
        ),
        (["--html", "nowhere/out.html"], "there is no folder nowhere"),
        (["--variants", "html"], "'html' is not one of 'tools', 'text-only'."),
        (["--questions", "maybe"], "'maybe' is not one of 'message', 'query', 'off'."),
        (["--budgets", "1000,many"], "'many' is not a valid integer range."),
        (["--budgets", "0"], "0 is not in the range x>=1."),
        (["--json", "nowhere/out.json"], "there is no folder nowhere"),
        (["--contexts", "nowhere/out.jsonl"], "there is no folder nowhere"),
        (["--html", "cut.jsonl"], "cut.jsonl exists; --force replaces it"),
        (["--json", "cut.jsonl"], "cut.jsonl exists; --force replaces it"),
        (["--html", "-"], "name a file: the terminal shows the results"),
        (["--contexts", "-"], "name a file: the terminal shows the results"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_replayed(
    run: Run, file: Path, arguments: list[str], problem: str
) -> None:
    refused = run("eval", file, *arguments)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err == f"error: Invalid value for '{arguments[0]}': {problem}\n"


def test_a_broken_file_is_refused_before_anything_is_replayed(
    run: Run, folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(eval_run, "replay_sessions")
    (folder / "bad.jsonl").write_text('{"id": "s1", "messages": [{"role": "user", "content": 1}]}\n')
    refused = run("eval", file, "bad.jsonl")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("error: bad.jsonl:1: messages[0].content: ")
    (folder / "probe.jsonl").write_text('{"id": "s1", "messages": [{"role": "user", "content": "a"}], "probes": [1]}\n')
    assert run("eval", "probe.jsonl").err.startswith("error: probe.jsonl:1: ")
    (folder / "empty.jsonl").write_text("\n")
    assert run("eval", "empty.jsonl").err == "error: empty.jsonl: holds no session\n"
    (folder / "array.json").write_text("[{}]")
    assert run("eval", "array.json").err.startswith("error: array.json: is an array, but of neither LoCoMo")


@pytest.mark.slow
def test_generated_sessions_are_measured_by_kind(run: Run, folder: Path) -> None:
    options = ("--budgets", "1000", "--strategies", "hierarchical,full-context", "--questions", "off")
    shown = run("eval", "--generate", 1, "--seed", 3, *options, "--json", "out.json")
    assert (shown.code, shown.err) == (0, "")
    assert "generated-seed-3 · text-only · questions off" in shown.out
    assert max(map(len, shown.out.splitlines())) <= 100
    results = json.loads((folder / "out.json").read_bytes())["results"]
    for result in results:
        assert {"planted", "corrected", "negation", "rule"} <= set(result["by_kind"])
        assert sum(scores["probes"] for scores in result["by_kind"].values()) == result["probes"]
        assert result["corrected"] >= result["stale"] == sum(each["stale"] for each in result["by_kind"].values())
        if result["strategy"] == "full-context":
            assert (result["survival"], result["stale"]) == (1, 0)


@pytest.mark.slow
def test_no_value_from_before_its_correction_passes_for_current(run: Run) -> None:
    """Without questions, which bring back dated messages as they were, some from before a correction."""
    options = ("--budgets", "2000", "--strategies", "hierarchical", "--questions", "off")
    told = run("eval", "--generate", 1, "--seed", 404, *options, "--variants", "tools", "--require", "stale<=0")
    assert told.code == 0, told.err
    # Where all that is known is talk, the agent's own words of before a change may stand in 2,000 tokens without it.
    told = run("eval", "--generate", 1, "--seed", 404, *options, "--variants", "text-only", "--require", "stale<=4")
    assert told.code == 0, told.err


@pytest.mark.slow
def test_generated_sessions_are_only_written_with_out(run: Run, folder: Path) -> None:
    assert run("eval", "--generate", 2, "--out", "made.jsonl") == (0, "", "")
    first, second = lines_of(folder / "made.jsonl")
    assert (first["id"], second["id"]) == ("generated-0-000", "generated-0-001")
    assert {"stale", "kind"} <= {key for probe in first["probes"] for key in probe}
    assert len(run("eval", "--generate", "--out", "-").out.splitlines()) == 8
    assert run("import", "made.jsonl", "--store", "log.db").code == 0


def test_files_of_a_benchmark_are_measured_by_their_evidence(run: Run, folder: Path) -> None:
    turns = [
        {"role": role, "content": f"{role} says {number}"} for number in range(30) for role in ("user", "assistant")
    ]
    turns[4] |= {"content": "My violin is called Bert.", "has_answer": True}
    turns[58] |= {"content": "Bert has new strings.", "has_answer": True}
    entry = {
        "question_id": "q1",
        "question_type": "multi-session",
        "question": "What is my violin called?",
        "answer": "Bert",
        "haystack_dates": ["2023/05/20 (Sat) 02:21"],
        "haystack_sessions": [turns],
    }
    (folder / "s.json").write_text(json.dumps([entry]))
    options = ("--budgets", "100", "--strategies", "take-last,full-context", "--variants", "tools")
    shown = run("eval", "s.json", "--format", "longmemeval", *options, "--json", "out.json")
    assert shown.code == 0
    assert "multi-session" in shown.out
    results = json.loads((folder / "out.json").read_bytes())["results"]
    recall = {(result["strategy"], result["questions"]): result["evidence_recall"] for result in results}
    assert recall["take-last", "off"] == 0.5
    assert recall["full-context", "off"] == 1


@pytest.mark.parametrize(("embedder", "found"), [("wordllama", 1.0), ("none", 0.0)])
@pytest.mark.slow
def test_the_embedder_of_the_settings_takes_part(
    run: Run, folder: Path, embedder: str, found: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_SEARCH__EMBEDDER", embedder)
    said = ["We adopted a puppy from the shelter", "How lovely!"] + [f"my order number is A-{n:04}" for n in range(80)]
    session = {
        "id": "s",
        "messages": [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(said)],
        "probes": [{"question": "which dog lives at home", "anchor": [], "value": ["a puppy"], "evidence": [0]}],
    }
    (folder / "s.jsonl").write_text(json.dumps(session))
    options = ("--budgets", "300", "--strategies", "hierarchical", "--variants", "tools", "--questions", "query")
    [result] = run("eval", "s.jsonl", *options, "--json", "-").json["results"]
    assert result["any_gold"] == result["all_gold"] == found


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "give either files or --generate"),
        (["cut.jsonl", "--generate", "2"], "give either files or --generate"),
        (["cut.jsonl", "--out", "made.jsonl"], "--out goes with --generate"),
        (["cut.jsonl", "--seed", "3"], "--seed goes with --generate"),
    ],
)
def test_sessions_come_from_one_place(run: Run, file: Path, arguments: list[str], problem: str) -> None:
    refused = run("eval", *arguments)
    assert (refused.code, refused.out) == (2, "")
    assert problem in refused.err
