"""A statement counts unless the sentence that it cites says something else."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.facts.verification.claim_words import judged_languages, language_for
from reactor_memory.features.facts.verification.statement_verdicts import (
    COVERED,
    NARROWING,
    Statement,
    Verdict,
    covers,
    judge,
    judge_leaf,
)
from tests.scenes.tables import each_row

PACKS = tomllib.loads(
    files("reactor_memory.features.facts.verification").joinpath("claim_words.toml").read_text("utf-8")
)
SPACED = sorted(judged_languages() - {"zh", "ja"})
TURNING = [
    (language, word.rpartition("=")[2].replace("_", " "))
    for language in sorted(judged_languages())
    for section in ("negations", "limits")
    for word in PACKS[language][section].split()
    if "*" not in word and (section == "negations" or word.partition("=")[0] in NARROWING)
]


def verdict(anchor: str, key: str, value: str, cited: str, **fields: object) -> Verdict:
    start = cited.index(value)
    return judge(Statement(anchor, key, start, start + len(value), **fields), cited, "en")  # type: ignore[arg-type]


@each_row(
    ("claim", "cited", "reason"),
    [
        (("user", "allergic_to", "latex"), "I am allergic to latex", ""),
        (("user", "allergic_to", "latex"), "I am not allergic to latex", "negation"),
        (("user", "not_allergic_to", "latex"), "I am not allergic to latex", ""),
        (("user", "not_allergic_to", "latex"), "I am allergic to latex", "negation"),
        (("user", "statement", "not allergic to latex"), "I am not allergic to latex", ""),
        (("user", "allergic_to", "latex"), "I can't say I'm allergic to latex", "negation"),
        (("plan", "day", "Friday"), "The plan is for Friday unless it rains", "limit"),
        (("plan", "day", "Friday"), "Only the plan is for Friday", "limit"),
        (("plan", "day", "Friday"), "If it rains, the plan is for Friday", "limit"),
        (("user", "city", "Oslo"), "No, I live in Oslo", ""),
        (("user", "city", "Oslo"), "I live in Oslo, not in Rome", ""),
        (("user", "food", "pears"), "I never eat apples, pears or plums", "negation"),
        (("user", "food", "pork"), "I do not, under any circumstances, eat pork", "negation"),
        (("tests", "cause", "the pool"), "It does not work because we close the pool", ""),
        (("plan", "day", "Friday"), "The plan used to be Friday", "limit"),
        (("plan", "price", "25 euros"), "The plan costs at least 25 euros", "limit"),
        (("plan", "price", "25"), "The plan costs 25 euros", ""),
        (("plan", "length", "25"), "The plan costs 25 euros", "number"),
        (("plan", "length", "25"), "The plan costs $25", "number"),
        (("plan", "change", "5"), "The plan moves by -5", "number"),
        (("plan", "weight", "5"), "The plan weighs 5kg", "number"),
        (("plan", "price", "25 euros"), "The plan costs 25 euros for 4", ""),
        (("plan 9", "day", "Friday"), "The plan is for Friday", "number"),
        (("trip", "to", "Bergen"), "We go from Bergen", "relation"),
        (("trip", "to", "Bergen"), "We go to Bergen", ""),
        (("trip", "destination", "Bergen"), "We go from Bergen", "relation"),
        (("trip", "city", "Bergen"), "We go from Bergen", ""),
        (("plan", "after", "7 pm"), "The plan ends before 7 pm", "relation"),
        (("Ann", "owes", "Ben"), "Ann owes Ben five euros", ""),
        (("Ben", "owes", "Ann"), "Ann owes Ben five euros", "order"),
        (("Ben", "amount", "five euros"), "Ann owes Ben five euros", ""),
        (("Berta", "name", "Anna"), "The name is Anna", "name"),
        (("Berta", "city", "rome"), "anna lives in rome", "name"),
        (("user", "city", "Rome"), "Marit lives in Rome", "person"),
        (("user", "allergic_to", "nuts"), "My sister is allergic to nuts", "person"),
        (("user", "allergic_to", "nuts"), "The new tenant is allergic to nuts", "person"),
        (("assistant", "allergic_to", "nuts"), "I am allergic to nuts", "person"),
        (("user", "allergic_to", "nuts"), "You are allergic to nuts", "person"),
        (("user", "hates", "nuts"), "I eat nuts", "negation"),
        (("user", "profession", "nuts"), "I eat nuts", ""),
        (("user", "city", "Oslo"), "I live in Oslo", ""),
    ],
)
def test_what_stands_against_a_statement(claim: tuple[str, str, str], cited: str, reason: str) -> None:
    found = verdict(*claim, cited)
    assert (found.is_covered, found.reason) == (not reason, reason)


def test_a_thing_named_before_may_get_a_value() -> None:
    assert verdict("Nord", "party_size", "6", "make it 6").reason == "name"
    assert verdict("booking 7", "party_size", "6", "make it 6").reason == "number"
    assert verdict("booking 7", "party_size", "6", "make it 6", seq=7) == COVERED
    assert verdict("Nord", "party_size", "6", "make it 6", named="A table at Nord, please") == COVERED
    assert verdict("Ann", "city", "rome", "Ben has a house in rome", named="Ann is here").reason == "person"


def test_the_speaker_may_be_called_by_name() -> None:
    assert verdict("Ann", "allergic_to", "nuts", "I am allergic to nuts").reason == "name"
    assert verdict("Ann", "allergic_to", "nuts", "I am allergic to nuts", speakers=frozenset({"ann"})) == COVERED


@given(st.sampled_from(TURNING), st.booleans())
def test_whatever_turns_or_narrows_has_to_be_covered(turning: tuple[str, str], is_before: bool) -> None:
    language, word = turning
    gap = "" if language in ("zh", "ja") else " "
    cited = f"{word}{gap}42" if is_before else f"42{gap}{word}"
    start = cited.index("42")
    assert not judge(Statement("user", "value", start, start + 2), cited, language).is_covered


@given(
    st.text(max_size=60), st.integers(0, 60), st.integers(0, 60), st.sampled_from([None, *sorted(judged_languages())])
)
def test_every_text_gets_a_verdict(cited: str, start: int, stop: int, language: str | None) -> None:
    start, stop = sorted((min(start, len(cited)), min(stop, len(cited))))
    found = judge(Statement("user", "value", start, stop), cited, language)
    assert found.is_covered == (found.reason == "")


@given(
    st.sampled_from(["am", "was", "may be", "only", "never", "if asked"]), st.sampled_from(["latex", "5 kg", "Oslo"])
)
def test_a_whole_sentence_covers_itself(word: str, value: str) -> None:
    cited = f"I {word} with {value}"
    assert judge(Statement("user", "statement", 0, len(cited)), cited, "en") == COVERED


@each_row(
    ("claim", "path", "text", "reason"),
    [
        (("order", "status", "shipped"), "order.status", "shipped", ""),
        (("order", "refundable", "true"), "not_refundable", "true", "negation"),
        (("trip", "destination", "Oslo"), "from", "Oslo", "relation"),
        (("trip", "origin", "Oslo"), "from", "Oslo", ""),
        (("order", "status", "shipped"), "note", "not shipped", "negation"),
        (("Marit", "status", "shipped"), "status", "shipped", "name"),
        (("order", "owner", "Ann"), "status", "Ann", ""),
    ],
)
def test_data_of_tools_counts_as_it_is_labelled(claim: tuple[str, str, str], path: str, text: str, reason: str) -> None:
    anchor, key, value = claim
    start = text.index(value)
    assert judge_leaf(Statement(anchor, key, start, start + len(value)), path, text).reason == reason


@each_row(
    ("record", "quotation", "is_covered"),
    [
        ("user allergic to latex", "I am allergic to latex.", True),
        ("user allergic to latex", "I am not allergic to latex.", False),
        ("trip from Oslo, to Bergen", "We go from Oslo to Bergen.", False),
        ("trip go from Oslo, to Bergen", "We go from Oslo to Bergen.", True),
        ("booking party size 4", "We are 4, and the room costs 90 euros.", False),
        ("plan day Friday", "The plan is for Friday unless it rains.", False),
        ("用户 花生过敏", "我对花生过敏。", True),
        ("用户 过敏", "我对花生不过敏。", False),
        ("", "Thanks!", False),
    ],
)
def test_a_quotation_leaves_for_what_says_it_all(record: str, quotation: str, is_covered: bool) -> None:
    assert covers([record], quotation) == is_covered


def test_two_records_do_not_cover_what_none_does() -> None:
    assert not covers(["Ann owes", "Ben five euros"], "Ann owes Ben five euros.")


def test_a_language_without_words_is_not_judged() -> None:
    cited = "Minä asun kaupungissa Oslo ja olen täällä"
    assert judge(Statement("user", "city", 22, 26), cited).reason == "language"


def test_short_words_are_judged_by_their_script() -> None:
    assert language_for("no") == "(latin)"
    assert language_for("Ninguém", "Não sou alérgico ao látex, obrigado") == "pt"
    assert language_for("ฉันแพ้ถั่ว") is None


@pytest.mark.parametrize("language", sorted(judged_languages()))
def test_each_language_has_every_kind_of_word(language: str) -> None:
    assert set(PACKS[language]) == set(PACKS["en"])
    assert all(values.strip() for values in PACKS[language].values())
