"""The summarizer that asks a model behind any endpoint with OpenAI's chat completions: OpenAI, Ollama, vLLM, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactor_memory.features.facts.summarizers.language_model import LanguageModelSummarizer
from reactor_memory.providers.openai_client import OpenAIClient
from reactor_memory.providers.openai_dialect import ResponseFormat

if TYPE_CHECKING:
    from reactor_memory.core.ports import TokenCounter


class OpenAISummarizer(LanguageModelSummarizer):
    """Extracts with `model` at `base_url` (None: OpenAI itself, which needs a key).

    `timeout_seconds` bounds each question, `max_output_tokens` each answer (thoughts included).
    """

    def __init__(
        self,
        model: str,
        api_key: str | None = None,
        *,
        counter: TokenCounter,
        base_url: str | None = None,
        response_format: ResponseFormat = "auto",
        timeout_seconds: float = 60.0,
        max_narrative_tokens: int = 500,
        max_input_tokens: int = 32_000,
        max_output_tokens: int = 8192,
        service_tier: str | None = None,
    ) -> None:
        client = OpenAIClient(
            model,
            api_key,
            base_url=base_url,
            response_format=response_format,
            timeout_seconds=timeout_seconds,
            max_output_tokens=max_output_tokens,
            service_tier=service_tier,
        )
        super().__init__(
            f"openai:{model}",
            client,
            counter=counter,
            max_narrative_tokens=max_narrative_tokens,
            max_input_tokens=max_input_tokens,
        )
