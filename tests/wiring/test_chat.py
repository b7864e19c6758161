"""Which model a chat asks, where, and with which key."""

from __future__ import annotations

from typing import Any

import pytest

from reactor_memory import ConfigurationError, Settings
from reactor_memory.features.chat.echo import EchoModel
from reactor_memory.features.chat.gemini import GeminiChatModel
from reactor_memory.features.chat.openai import OpenAIChatModel
from reactor_memory.wiring.chat import chat_endpoint
from reactor_memory.wiring.container import Container
from tests.scenes.tables import each_row

KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY")
OURS = {"provider": "openai", "base_url": "https://ours/v1", "api_key": "of ours", "llm_model": "our-model"}


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
        ({"summary": {"api_key": "k"}}, EchoModel, "offline echo"),
        ({"summary": {"provider": "gemini"}}, EchoModel, "offline echo"),
        ({"summary": {"provider": "gemini", "api_key": "k"}}, GeminiChatModel, "gemini-3.5-flash-lite"),
        ({"summary": {"provider": "gemini", "api_key": "k"}, "chat": {"provider": "echo"}}, EchoModel, "offline echo"),
        ({"summary": {"provider": "gemini", "api_key": "k", "llm_model": "m"}}, GeminiChatModel, "m"),
        ({"chat": {"provider": "gemini", "api_key": "k"}}, GeminiChatModel, "gemini-3.5-flash-lite"),
        ({"chat": {"provider": "gemini", "api_key": "k", "model": "m"}}, GeminiChatModel, "m"),
        ({"summary": OURS}, OpenAIChatModel, "our-model"),
        ({"summary": {"provider": "openai", "llm_model": "m"}}, EchoModel, "offline echo"),
        ({"summary": OURS, "chat": {"provider": "gemini", "api_key": "k"}}, GeminiChatModel, "gemini-3.5-flash-lite"),
        ({"summary": OURS, "chat": {"model": "a-larger-one"}}, OpenAIChatModel, "a-larger-one"),
    ],
)
def test_who_answers(sections: dict[str, Any], kind: type[object], name: str) -> None:
    model = model_of(**sections)
    assert type(model) is kind
    assert getattr(model, "name", None) == name


@pytest.mark.parametrize(
    ("chat", "key", "address"),
    [
        ({}, "of ours", "https://ours/v1"),
        ({"provider": "openai"}, "of ours", "https://ours/v1"),
        ({"provider": "openai", "api_key": "of the chat"}, "of the chat", "https://ours/v1"),
        ({"provider": "openai", "base_url": "https://elsewhere/v1"}, None, "https://elsewhere/v1"),
    ],
)
def test_the_key_of_the_summaries_goes_to_their_address_only(
    chat: dict[str, str], key: str | None, address: str
) -> None:
    asked = chat_endpoint(Settings(summary=OURS, chat=chat), "openai")
    assert (asked.api_key, asked.base_url) == (key, address)


def test_another_provider_gets_nothing_of_the_summaries() -> None:
    assert chat_endpoint(Settings(summary=OURS), "gemini") == (None, None, None)


@pytest.mark.parametrize(
    ("sections", "problem"),
    [
        ({"chat": {"provider": "gemini"}}, r"chat\.api_key: is not set"),
        ({"chat": {"provider": "openai", "api_key": "k"}}, r"chat\.model: must name a model of the server"),
        ({"chat": {"provider": "openai", "model": "m"}}, r"chat\.api_key: is not set"),
        ({"summary": OURS, "chat": {"provider": "gemini"}}, r"chat\.api_key: is not set"),
    ],
)
def test_what_is_missing_is_named(sections: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        model_of(**sections)
