"""The settings of the chat memory, under all their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reactor_memory import ConfigurationError, Settings
from reactor_memory.settings.sections import ChatMemorySettings
from tests.scenes.tables import each_row


@pytest.fixture(autouse=True)
def nothing_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "given",
    [
        {"strategy": "summarize", "summarize_every_n": 7, "summarizer": "x", "retention": "delete"},
        {"strategy": {"type": "summarize", "summarizeEveryN": 7, "skillId": "x", "deleteSummarizedMessages": True}},
        {
            "strategy": {
                "type": "summarize",
                "summarizeEveryNMessages": 7,
                "summarizationSkillId": "x",
                "deleteSummarizedMessages": "true",
            }
        },
        {"type": "summarize", "summarize_every_n_messages": "7", "skill_id": "x", "retention": "delete"},
    ],
)
def test_both_spellings_of_the_keys(given: dict[str, Any]) -> None:
    chosen = Settings(summary={"enabled": False}, chat_memory=given).chat_memory
    assert (chosen.strategy, chosen.summarize_every_n, chosen.summarizer) == ("summarize", 7, "x")
    assert chosen.retention == "delete"
    assert ChatMemorySettings(**given) == chosen


@pytest.mark.parametrize(("name", "expected"), [("none", "noop"), ("noop", "noop"), ("my-own", "my_own")])
def test_names_of_strategies(name: str, expected: str) -> None:
    assert Settings(chat_memory={"strategy": name}).chat_memory.strategy == expected
    assert Settings(chat_memory={"strategy": {"type": name}}).chat_memory.strategy == expected


def test_originals_stay_by_the_name_of_the_seed() -> None:
    assert Settings(chat_memory={"deleteSummarizedMessages": False}).chat_memory.retention == "keep"


def test_a_stronger_source_wins_over_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config" / "reactor-memory.yaml"
    file.parent.mkdir()
    file.write_text(
        "reactor_memory:\n  summary: {enabled: false}\n"
        "  chat-memory:\n    strategy:\n      type: summarize\n      summarizeEveryN: 5\n"
        "    deleteSummarizedMessages: true\n"
    )
    assert Settings().chat_memory == ChatMemorySettings(strategy="summarize", summarize_every_n=5, retention="delete")
    monkeypatch.setenv("REACTOR_MEMORY_CHAT_MEMORY__SUMMARIZE_EVERY_N", "6")
    monkeypatch.setenv("REACTOR_MEMORY_CHAT_MEMORY__RETENTION", "archive")
    chosen = Settings(chat_memory={"strategy": "none"}).chat_memory
    assert chosen == ChatMemorySettings(strategy="noop", summarize_every_n=6, retention="archive")


def test_a_setting_under_two_names(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"chat_memory\.summarizeEveryN: is another name of summarize_every_n"):
        Settings(chat_memory={"summarize_every_n": 5, "summarizeEveryN": 6})


@each_row(
    ("given", "key"),
    [
        ({"summarize_every": 5}, "chat_memory.summarize_every"),
        ({"strategy": {"kind": "summarize"}}, "chat_memory.kind"),
        ({"summarizeEveryN": 0}, "chat_memory.summarize_every_n"),
        ({"deleteSummarizedMessages": "perhaps"}, "chat_memory.deleteSummarizedMessages"),
        ({"on_hook_error": "ignore"}, "chat_memory.on_hook_error"),
        ({"strategy": 5}, "chat_memory.strategy"),
        ({"retention": "forget"}, "chat_memory.retention"),
    ],
)
def test_what_is_unknown_or_impossible_is_named(given: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Settings(chat_memory=given)
    assert raised.value.key == key


@pytest.mark.parametrize("name", ["retention", "deleteSummarizedMessages"])
def test_nothing_is_deleted_while_hierarchical_memory_needs_it(name: str) -> None:
    value = "delete" if name == "retention" else True
    with pytest.raises(ConfigurationError) as raised:
        Settings(chat_memory={name: value})
    assert raised.value.key == "chat_memory.retention"
    assert Settings(chat_memory={"retention": "archive"}).chat_memory.retention == "archive"
