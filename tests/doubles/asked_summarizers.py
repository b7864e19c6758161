"""Summarizers that ask a local server, as the settings make them, without the offline reader beside them."""

from __future__ import annotations

from typing import Any

from reactor_memory.features.facts.summarizers.language_model import LanguageModelSummarizer
from reactor_memory.providers.gemini_client import GeminiClient
from reactor_memory.providers.openai_client import OpenAIClient
from reactor_memory.tokens.estimate import EstimateCounter

_ASKING: dict[str, Any] = {"base_url": None, "timeout_seconds": 60.0, "max_output_tokens": 8192}


def gemini_summarizer(model: str, key: str, **options: Any) -> LanguageModelSummarizer:
    own = _taken_from(options)
    return LanguageModelSummarizer(f"gemini:{model}", GeminiClient(model, key, **_ASKING | options), **own)


def openai_summarizer(model: str, key: str | None, **options: Any) -> LanguageModelSummarizer:
    own = _taken_from(options)
    asking: dict[str, Any] = {**_ASKING, "response_format": "auto", **options}
    client = OpenAIClient(model, key, **asking)
    return LanguageModelSummarizer(f"openai:{model}", client, **own)


def _taken_from(options: dict[str, Any]) -> dict[str, Any]:
    usual: dict[str, Any] = {"counter": EstimateCounter(), "max_narrative_tokens": 500, "max_input_tokens": 32_000}
    return usual | {name: options.pop(name) for name in usual if name in options}
