"""Which model a chat asks, where, and with which key."""

from __future__ import annotations

from typing import Any

import pytest

from reactor_memory import ConfigurationError, Settings
from reactor_memory.features.chat.echo import EchoModel
from reactor_memory.features.chat.gemini import GeminiChatModel
from reactor_memory.features.chat.openai import OpenAIChatModel
from reactor_memory.wiring.container import Container
from tests.scenes.tables import each_row

KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY")
SERVER = {"provider": "openai", "base_url": "https://ours/v1", "api_key": "of ours"}
OURS = {"ours": {**SERVER, "model": "our-model"}, "larger": {**SERVER, "model": "a-larger-one"}}
GEMINI = {"provider": "gemini"}
KEYED = {"gemini": {"api_key": "k"}}
FLASH = "gemini-3.5-flash-lite"


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


def model_of(**sections: Any) -> object:
    return Container(settings=Settings(**sections)).chat_model()


@each_row(
    ("sections", "kind", "name"),
    [
        ({}, EchoModel, "offline echo"),
        ({"models": {"gemini": {"api_key": "k"}}}, EchoModel, "offline echo"),
        ({"summary": {"provider": "gemini"}}, EchoModel, "offline echo"),
        ({"summary": GEMINI, "models": KEYED}, GeminiChatModel, "gemini-3.5-flash-lite"),
        ({"summary": GEMINI, "models": KEYED, "chat": {"provider": "echo"}}, EchoModel, "offline echo"),
        ({"summary": GEMINI, "models": {"gemini": {"api_key": "k", "model": "m"}}}, GeminiChatModel, "m"),
        ({"chat": GEMINI, "models": KEYED}, GeminiChatModel, "gemini-3.5-flash-lite"),
        ({"chat": GEMINI, "models": {"gemini": {"api_key": "k", "model": "m"}}}, GeminiChatModel, "m"),
        ({"summary": {"provider": "ours"}, "models": OURS}, OpenAIChatModel, "our-model"),
        ({"summary": {"provider": "openai"}, "models": {"openai": {"model": "m"}}}, EchoModel, "offline echo"),
        ({"summary": {"provider": "ours"}, "models": {**OURS, **KEYED}, "chat": GEMINI}, GeminiChatModel, FLASH),
        ({"models": OURS, "chat": {"provider": "larger"}}, OpenAIChatModel, "a-larger-one"),
    ],
)
def test_who_answers(sections: dict[str, Any], kind: type[object], name: str) -> None:
    model = model_of(**sections)
    assert type(model) is kind
    assert getattr(model, "name", None) == name


@pytest.mark.parametrize(
    ("sections", "problem"),
    [
        ({"chat": GEMINI}, r"models\.gemini\.api_key: is not set"),
        ({"chat": {"provider": "openai"}}, r"models\.openai\.model: must name a model of the server"),
        (
            {"chat": {"provider": "openai"}, "models": {"openai": {"model": "m"}}},
            r"models\.openai\.api_key: is not",
        ),
        ({"summary": {"provider": "ours"}, "models": OURS, "chat": GEMINI}, r"models\.gemini\.api_key: is not set"),
        ({"chat": {"provider": "mine"}, "models": {"mine": {"provider": "openai"}}}, r"models\.mine\.model: must"),
    ],
)
def test_what_is_missing_is_named(sections: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        model_of(**sections)
