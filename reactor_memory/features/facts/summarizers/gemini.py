"""The summarizer that asks a Gemini model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactor_memory.features.facts.summarizers.language_model import LanguageModelSummarizer
from reactor_memory.providers.gemini_client import GeminiClient

if TYPE_CHECKING:
    from reactor_memory.core.ports import TokenCounter


class GeminiSummarizer(LanguageModelSummarizer):
    """Extracts with `model`. `timeout_seconds` bounds each question, `max_output_tokens` each answer (thoughts
    included).
    """

    def __init__(
        self,
        model: str,
        api_key: str,
        *,
        counter: TokenCounter,
        base_url: str | None = None,
        timeout_seconds: float = 60.0,
        max_narrative_tokens: int = 500,
        max_input_tokens: int = 32_000,
        max_output_tokens: int = 8192,
        service_tier: str | None = None,
    ) -> None:
        client = GeminiClient(
            model,
            api_key,
            base_url=base_url,
            timeout_seconds=timeout_seconds,
            max_output_tokens=max_output_tokens,
            service_tier=service_tier,
        )
        super().__init__(
            f"gemini:{model}",
            client,
            counter=counter,
            max_narrative_tokens=max_narrative_tokens,
            max_input_tokens=max_input_tokens,
        )
