"""The examples with a provider each, run as they stand against local servers that speak their wire formats."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from tests.doubles import fake_gemini, fake_openai
from tests.doubles.fake_gemini import FakeGemini
from tests.doubles.fake_openai import FakeOpenAI
from tests.doubles.fake_provider import Answer, FakeProvider, replies

pytestmark = pytest.mark.anyio

CHECKOUT = Path(__file__).parents[2]
EXAMPLES = CHECKOUT / "examples" / "providers"
SAID = ["My order number is A-1042.", *(f"Tell me about the number {number}." for number in range(8)), "What was it?"]


class FakeAnthropic(FakeProvider[dict[str, Any]]):
    """The Messages API."""

    def question(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> dict[str, Any]:
        return {"path": path, "headers": headers, **body}

    def usually(self, question: dict[str, Any]) -> Answer:
        content = [{"type": "text", "text": "It was A-1042, I was told."}]
        usage = {"input_tokens": 100, "output_tokens": 20}
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "fake"}
        return replies({**head, "content": content, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage})


class AnsweringOpenAI(FakeOpenAI):
    def usually(self, question: fake_openai.Question) -> Answer:
        return fake_openai.says("It was A-1042, I was told.")


class AnsweringGemini(FakeGemini):
    def usually(self, question: fake_gemini.Question) -> Answer:
        return fake_gemini.says("It was A-1042, I was told.")


PROVIDERS: Mapping[str, tuple[type[FakeProvider[Any]], Mapping[str, str], str]] = {
    "openai_chat": (AnsweringOpenAI, {"OPENAI_BASE_URL": "{url}/v1", "OPENAI_API_KEY": "k"}, "messages"),
    "anthropic_chat": (FakeAnthropic, {"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "k"}, "messages"),
    "gemini_chat": (AnsweringGemini, {"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "k"}, "contents"),
    "ollama_chat": (AnsweringOpenAI, {"OLLAMA_HOST": "{url}"}, "messages"),
}


def test_every_example_is_run() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(PROVIDERS)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROVIDERS)
async def test_the_example_remembers_what_was_said(name: str, tmp_path: Path) -> None:
    """One of them in another process, which takes as long again."""
    kind, environment, key = PROVIDERS[name]
    async with kind.running() as provider:
        variables = {variable: value.format(url=provider.url) for variable, value in environment.items()}
        for said in (SAID[:-1], SAID[-1:]) if name == "openai_chat" else (SAID,):
            command = [sys.executable, str(EXAMPLES / f"{name}.py"), *said]
            known = {**os.environ, **variables, "PYTHONPATH": str(CHECKOUT), "NO_PROXY": "127.0.0.1"}
            done = await anyio.run_process(command, cwd=tmp_path, env=known, check=False)
            assert done.returncode == 0, done.stderr.decode()
            assert done.stdout.decode().splitlines() == ["It was A-1042, I was told."] * len(said)
        last = provider.questions[-1]
        body = last if isinstance(last, dict) else last.body
        asked = msgspec.json.encode(body[key]).decode()
        assert "My order number is A-1042." in asked
        assert asked.count("What was it?") == 1
        assert len(provider.questions) == len(SAID)
