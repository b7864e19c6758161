"""No regular expression of the package takes more than linear time: texts of strangers meet nearly all of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from tests.house.near_matches import NASTY
from tests.house.patterns import Use, constants, made, slow_texts, texts_for, uses
from tests.scenes.tables import each_row

_LONG_LITERAL = re.escape("1 a-" * 10 + "2")
BUILT: dict[tuple[str, str], Sequence[tuple[str, str]]] = {
    ("reactor_memory.evaluation.attribution", "_is_sentence"): [("search", f"(?i){_LONG_LITERAL}")],
    ("reactor_memory.evaluation.probes", "_occurrences"): [("search", rf"(?<!\w){_LONG_LITERAL}(?!\w)")],
    ("reactor_memory.features.facts.evidence", "_compiled"): [("match", r"(?<!\w)(?<!\d[-.,:/])"), ("match", "")],
    ("reactor_memory.features.facts.evidence", "_matches"): [("search", r"\s+".join("1a1a2")), ("search", "a")],
    ("reactor_memory.features.facts.quoting.could_not", "_phrases"): [
        ("match", r"[^\n]{0,40}?(?:无法|(?<!\w)kon(?:\s\w{1,30}){0,3}?\sniet(?!\w))|[^\n]{0,80}\w(?:emedi)\s*\Z")
    ],
    ("reactor_memory.features.facts.quoting.language_packs", "_bordered"): [
        ("search", rf"(?<!\w){_LONG_LITERAL}(?!\w)")
    ],
    ("reactor_memory.features.facts.quoting.outcomes", "_begins_elsewhere"): [
        ("match", r"[^\n]{0,30}?(?:失败|(?<!\w)(?:\w{4,40})??(?:fehler|nicht gefunden)(?!\w))")
    ],
    ("reactor_memory.features.facts.verification.claim_words", "_anywhere"): [("search", "不|没有|只有")],
    ("reactor_memory.features.facts.verification.claim_words", "_compiled"): [("fullmatch", f".*{_LONG_LITERAL}")],
    ("reactor_memory.features.facts.verification.derived_proof", "_stands"): [
        ("search", rf"(?<!\w){_LONG_LITERAL}(?!\w)")
    ],
    ("reactor_memory.text.analyzer", "_between_function_words"): [("search", "という|から|だ|と")],
    ("reactor_memory.text.languages", ""): [],  # constants in a table
}
"""What is built at run time out of what is looked for, by the functions that build it, with what it looks like."""


def slow_ones(most: int) -> list[str]:
    built = [
        Use(f"{where[0]}.{where[1]}", re.compile(text), method)
        for where, texts in BUILT.items()
        for method, text in texts
    ]
    return [str(slow) for use in (*uses(), *built) if (slow := next(slow_texts(use, texts_for(use, most=most)), None))]


def test_no_pattern_takes_more_than_linear_time() -> None:
    assert slow_ones(most=12) == []


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_no_pattern_takes_more_than_linear_time_with_any_text() -> None:
    assert slow_ones(most=300) == []


def test_every_pattern_that_is_built_at_run_time_is_known() -> None:
    assert {(each.module, each.function) for each in made() if each.pattern is None} == set(BUILT)


def test_patterns_are_found_wherever_they_are_made() -> None:
    found = {use.where: use for use in uses()}
    assert len(found) > 130
    assert sum(1 for _, name, _ in constants() if name == "_KINDS") > 3  # in tables
    assert found["reactor_memory.evaluation.generator.script.sentence"].method == "search"  # in a function
    assert "reactor_memory.core.log.paging." in found  # in a schema
    kinds = {use.method for use in uses()}
    assert kinds == {"match", "fullmatch", "search"}


@each_row("pattern, method", [(r"\s+$", "search"), (r"(?:a+)+b", "match")])
def test_a_slow_pattern_is_found(pattern: str, method: str) -> None:
    use = Use("here", re.compile(pattern), method)
    assert next(slow_texts(use, texts_for(use, most=60)), None)


@pytest.mark.slow
@each_row(
    "pattern, method",
    [
        (r"\s+$", "search"),
        (r"(\w+)=", "search"),
        (r"(?=[\w.,-]*\d)\w", "search"),
        (r" - at `(.*?)`$", "search"),
        (r"[?&][^=&]*key[^=&]*=", "search"),
        (r"[^=]*\(([^()]*;[^()]*)\):", "fullmatch"),
        (r"\s*([^=]{1,60}?)\s*=\s*(.+)", "fullmatch"),
        (r"(?:a+)+b", "match"),
        (r"(?:\d+|\w)*x", "match"),
        (r"\d[\d.,]* ?(?:dollars?|euros?)", "search"),
        (r"<!--.*-->", "search"),
        (r"(?P<mark>['\"])[^\n]*(?P=mark) end", "search"),
    ],
)
def test_slow_patterns_are_found(pattern: str, method: str) -> None:
    use = Use("here", re.compile(pattern), method)
    assert next(slow_texts(use, texts_for(use, most=300)), None)


@each_row(
    "pattern, method",
    [(r"(?<!\w)(\w++)=", "search"), (r"\w{1,60}=", "search"), (r"\s+$", "match"), (r"(?:ab|cd)+", "search")],
)
def test_linear_patterns_pass(pattern: str, method: str) -> None:
    use = Use("here", re.compile(pattern), method)
    texts = texts_for(use, most=40)
    assert any(text.unit in NASTY for text in texts)
    assert list(slow_texts(use, texts)) == []
