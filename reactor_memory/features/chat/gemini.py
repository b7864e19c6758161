"""The chat model that asks Gemini."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from reactor_memory.errors import ConfigurationError
from reactor_memory.features.chat.streaming import in_time, or_chat_model_error
from reactor_memory.forms.requests import to_gemini
from reactor_memory.models import Message
from reactor_memory.providers.failures import refusal, truncation
from reactor_memory.providers.gemini_client import GeminiConnection, failure_of, one_answer, open_connection
from reactor_memory.providers.gemini_failures import finish_failure
from reactor_memory.providers.on_demand import OnDemand

if TYPE_CHECKING:
    from google.genai.types import GenerateContentConfig, GenerateContentResponse


class GeminiChatModel:
    """Asks `model` at `base_url` (None: Google). `timeout_seconds` bounds the wait for each piece of an answer."""

    def __init__(
        self, model: str, api_key: str | None, *, base_url: str | None = None, timeout_seconds: float = 60.0
    ) -> None:
        key = (api_key or "").strip()
        if not key:
            raise ConfigurationError("api_key", "is not set: set it, GEMINI_API_KEY or GOOGLE_API_KEY")
        self.name = model
        self.notice = f"What you say is sent to {base_url or 'Google'}, with what the context shows of this session."
        self._timeout_seconds = timeout_seconds
        self._connection = OnDemand(lambda: open_connection(key, base_url, timeout_seconds=None))

    def stream(self, messages: Sequence[Message], *, system: str | None = None) -> AsyncGenerator[str]:
        return or_chat_model_error(self._pieces(messages, system), failure_of)

    async def aclose(self) -> None:
        await self._connection.aclose()

    async def _pieces(self, messages: Sequence[Message], system: str | None) -> AsyncGenerator[str]:
        connection = await self._connection.get()
        async with aclosing(in_time(self._responses(connection, messages, system), self._timeout_seconds)) as responses:
            async for response in responses:
                yield _text(response)
                if _is_last(response):
                    return
        raise truncation()

    async def _responses(
        self, connection: GeminiConnection, messages: Sequence[Message], system: str | None
    ) -> AsyncGenerator[GenerateContentResponse]:
        asked = to_gemini(messages, system=system)
        responses = await connection.client.aio.models.generate_content_stream(  # pyright: ignore[reportUnknownMemberType]
            model=self.name, contents=asked["contents"], config=_config(asked.get("system_instruction"))
        )
        async for response in responses:
            yield response


def _config(system_instruction: object) -> GenerateContentConfig:
    from google.genai import types

    return types.GenerateContentConfig.model_validate(
        {
            "system_instruction": system_instruction,
            "automatic_function_calling": {"disable": True},
            **one_answer(),
        }
    )


def _is_last(response: GenerateContentResponse) -> bool:
    return any(candidate.finish_reason for candidate in response.candidates or ())


def _text(response: GenerateContentResponse) -> str:
    """The text of a piece without thoughts. Raises `SummarizationError` if it says that the answer was cut off."""
    if response.prompt_feedback is not None and response.prompt_feedback.block_reason is not None:
        raise refusal()
    if not response.candidates:
        return ""
    candidate = response.candidates[0]
    failure = finish_failure(candidate.finish_reason.value) if candidate.finish_reason else None
    if failure is not None:
        raise failure
    parts = candidate.content.parts if candidate.content else None
    return "".join(part.text for part in parts or () if part.text and not part.thought)
