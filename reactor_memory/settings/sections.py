"""The sections of settings that the library reads."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, cast
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.functional_validators import ModelWrapValidatorHandler  # where each version has it

from reactor_memory.models.tool_roles import ToolRole
from reactor_memory.settings.setting_values import (
    FileMode,
    PluginName,
    PluginNames,
    PluginOptions,
    Prompt,
    Section,
    StoreUrl,
    WebUrl,
)
from reactor_memory.text.addresses import is_loopback

CONVERSATION_SUMMARY = "conversation_summary"


class StoreSettings(Section):
    """Where the log and everything derived from it is kept."""

    prefix = "store"

    url: StoreUrl = Field(default="sqlite:///reactor-memory.db", repr=False)
    delete_grace_days: NonNegativeInt = 0
    auto_migrate: bool = False
    pool_size: PositiveInt = 8
    timeout_seconds: PositiveFloat = 10
    file_mode: FileMode = "0600"
    inline_loads: Literal["auto", "always", "never"] = "auto"
    hot_bytes: NonNegativeInt = 0
    keep_settings: bool = True

    @property
    def is_grace_set(self) -> bool:
        """Whether anybody decided how long what is deleted stays, be it 0 days."""
        return "delete_grace_days" in self.model_fields_set


class HistorySettings(Section):
    """How a history is chosen."""

    prefix = "history"

    strategy: PluginName = "auto"
    max_conversation_turns: PositiveInt = 10


class SummarySettings(Section):
    """Facts and narratives of what left the window, and the model that extracts them."""

    prefix = "summary"

    enabled: bool = True
    trigger_message_count: PositiveInt = 20
    recent_message_count: PositiveInt = 10
    mode: Literal["ledger", "full"] = "ledger"
    segment_message_count: PositiveInt = 10
    question_message_count: NonNegativeInt = 60
    provider: PluginName = "extractive"
    max_tokens_per_session: NonNegativeInt = 0
    max_tokens_per_day: NonNegativeInt = 0
    max_narrative_tokens: NonNegativeInt = 500
    max_fact_tokens: NonNegativeInt = 8000
    memory_role: Literal["system", "user"] = "system"
    lazy_timeout_seconds: NonNegativeFloat = 3
    tool_roles: dict[str, ToolRole] = Field(default_factory=dict[str, ToolRole])

    @model_validator(mode="after")
    def _recent_below_trigger(self) -> Self:
        if self.recent_message_count >= self.trigger_message_count:
            raise self._refuse("recent_message_count", "must be less than summary.trigger_message_count")
        return self


class TierSettings(Section):
    """Progressive summarisation, for the strategy ``progressive``."""

    prefix = "tiers"

    enabled: bool = True
    recent_count: NonNegativeInt = 20
    condensed_count: NonNegativeInt = 50
    auto_summarize: bool = True
    auto_threshold: PositiveInt = 100
    prompt: Prompt | None = None
    retention: Literal["keep", "archive", "delete"] = "archive"

    @model_validator(mode="after")
    def _threshold_beyond_recent(self) -> Self:
        if self.auto_threshold < self.recent_count:
            raise self._refuse(
                "auto_threshold", "must not be less than tiers.recent_count: nothing would be old enough"
            )
        return self


class ChatMemorySettings(Section):
    """The chat memory service, and what it does after messages were added.

    Its settings have more than one name, and may stand below `strategy`, which then names the strategy by its `type`:
    ``{"strategy": {"type": "summarize", "summarizeEveryN": 20}}``.
    """

    prefix = "chat_memory"

    strategy: PluginName = "noop"
    summarize_every_n: PositiveInt = 20
    summarizer: PluginName = CONVERSATION_SUMMARY
    retention: Literal["keep", "archive", "delete"] = "keep"
    on_hook_error: Literal["log", "raise"] = "log"

    @property
    def shares_summarizer(self) -> bool:
        """Whether its summarizer is the one that the section `summary` sets up."""
        return self.summarizer == CONVERSATION_SUMMARY

    @model_validator(mode="before")
    @classmethod
    def _one_name_each(cls, values: Any) -> Any:
        return chat_memory_by_name(cast("dict[str, Any]", values)) if isinstance(values, dict) else values


def chat_memory_by_name(given: dict[str, Any]) -> dict[str, Any]:
    """The settings of the chat memory by their names, so that a stronger source wins over any other name."""
    if not given:
        return given
    from reactor_memory.settings.chat_memory_names import by_name

    return by_name(given)


class ContextSettings(Section):
    """The size of a context, in tokens."""

    prefix = "context"

    max_tokens: PositiveInt = 128_000
    reserved_output_tokens: NonNegativeInt = 4096
    window_growth: Literal["auto", "messages", "tokens"] = "auto"
    max_window_tokens: PositiveInt = 16_000
    record: Literal["off", "turns", "all"] = "off"
    max_pins: NonNegativeInt = 20
    max_pin_tokens: NonNegativeInt = 2000

    @model_validator(mode="after")
    def _output_below_maximum(self) -> Self:
        if self.reserved_output_tokens >= self.max_tokens:
            raise self._refuse("reserved_output_tokens", "must be less than context.max_tokens")
        return self


class RecallSettings(Section):
    """What comes back of what the context does not show."""

    prefix = "recall"

    default: Literal["off", "question", "always"] = "question"
    index: PluginName = "store"


class NotesSettings(Section):
    """Long-term notes of an agent about a user. `enabled` puts them into every context."""

    prefix = "notes"

    enabled: bool = False
    allow_destructive: bool = True


class TokenSettings(Section):
    """How tokens are counted."""

    prefix = "tokens"

    counter: PluginName = "tiktoken"
    encoding: Annotated[str, Field(min_length=1)] = "o200k_base"
    overhead_per_message: NonNegativeInt = 4


class LimitSettings(Section):
    """The largest message, batch and session of a file that are accepted."""

    prefix = "limits"

    max_content_bytes: PositiveInt = 4 * 1024 * 1024
    max_batch_messages: PositiveInt = 1000
    max_session_bytes: PositiveInt = 32 * 1024 * 1024


class BackgroundSettings(Section):
    """The work behind a save. `enabled` false leaves it to other processes (``reactor-memory worker``)."""

    prefix = "background"

    enabled: bool = True
    max_concurrent_sessions: PositiveInt = 4
    lease_seconds: PositiveFloat = 120
    max_attempts: PositiveInt = 5
    backoff_seconds: PositiveFloat = 1
    max_backoff_seconds: PositiveFloat = 300
    close_grace_seconds: NonNegativeFloat = 5
    poll_seconds: PositiveFloat = 1

    @property
    def lease_microseconds(self) -> int:
        return int(self.lease_seconds * 1e6)

    @model_validator(mode="after")
    def _backoff_grows(self) -> Self:
        if self.backoff_seconds > self.max_backoff_seconds:
            raise self._refuse("backoff_seconds", "must not be more than background.max_backoff_seconds")
        return self


class TelemetrySettings(Section):
    """Spans and metrics for the OpenTelemetry providers of the process (extra ``otel``)."""

    prefix = "telemetry"

    enabled: bool = False


class Price(BaseModel):
    """What a million tokens cost, in any currency. `cached_input` is input that a prompt cache has."""

    model_config = Section.model_config

    cached_input: NonNegativeFloat
    input: NonNegativeFloat
    output: NonNegativeFloat


class PriceSettings(Section):
    """The price table of ``reactor-memory eval``: by name of model; of others, and contexts, `default`."""

    prefix = "prices"

    default: Price = Price(cached_input=0.03, input=0.3, output=2.5)
    models: dict[str, Price] = Field(default_factory=dict[str, Price])

    def of(self, model: str) -> Price:
        return self.models.get(model, self.default)


class ModelSettings(Section):
    """A provider that summaries, the chat, search or the chat memory ask: under its name, or one of your own."""

    prefix = "models.NAME"

    provider: PluginName | None = None
    model: Annotated[str, Field(min_length=1)] | None = None
    embedding_model: Annotated[str, Field(min_length=1)] | None = None
    dimensions: PositiveInt = 768
    api_key: SecretStr | None = None
    allow_http: bool = False
    base_url: WebUrl | None = None
    timeout_seconds: PositiveFloat | None = None
    response_format: Literal["auto", "json_schema", "json_object", "text"] = "auto"
    service_tier: Annotated[str, Field(pattern=r"^[a-z_]{1,32}$")] | None = None
    max_input_tokens: PositiveInt = 32_000
    max_output_tokens: PositiveInt = 8192

    @model_validator(mode="wrap")
    @classmethod
    def _name_the_key(cls, values: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        return handler(values)  # the settings know its name

    @field_validator("base_url")
    @classmethod
    def _private_on_the_way(cls, url: str | None, given: ValidationInfo) -> str | None:
        """Conversations must not travel in the clear."""
        if urlsplit(url or "").scheme == "http" and not (given.data.get("allow_http") or is_loopback(url or "")):
            raise ValueError(
                "must begin with https://, or name this machine: http:// sends conversations and the key in the clear. "
                "In a network that you trust, set allow_http: true beside it"
            )
        return url


class ChatSettings(Section):
    """The model that answers in ``reactor-memory chat``."""

    prefix = "chat"

    provider: PluginName = "auto"
    system: str = ""


class SearchSettings(Section):
    """Search over many conversations. Without an `embedder` it goes by words alone."""

    prefix = "search"

    enabled: bool = False
    embedder: PluginName = "none"
    min_similarity: Annotated[float, Field(ge=-1, le=1)] = 0.3


class QuotaSettings(Section):
    """What one user may have in the service. 0: as much as they like."""

    prefix = "quotas"

    max_conversations: NonNegativeInt = 0
    max_forks: NonNegativeInt = 0
    max_members: NonNegativeInt = 0
    max_stored_bytes: NonNegativeInt = 0
    max_summary_tokens_per_day: NonNegativeInt = 0


class StreamSettings(Section):
    """Responses that are being written: where their pieces are kept, for how long, and how readers follow them."""

    prefix = "streams"

    backend: PluginName = "database"
    redis_url: SecretStr | None = None
    keep_seconds: PositiveFloat = 3600
    max_bytes: PositiveInt = 4 * 1024 * 1024


class PluginSettings(Section):
    """Installed plug-ins: whether to load any, which ones not, and their own options by plug-in name."""

    prefix = "plugins"

    enabled: bool = True
    disabled: PluginNames = ()
    options: PluginOptions = Field(default_factory=dict, repr=False)
