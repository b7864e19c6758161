"""Every setting: its default, its limits, where it comes from.

The only module that reads the environment or files. Precedence: constructor > environment > YAML file > defaults.

* Environment: ``REACTOR_MEMORY_`` and the key, levels joined by two underscores: ``REACTOR_MEMORY_SUMMARY__ENABLED``.
  An empty variable counts as not set; names are separated by commas, a mapping is written as JSON.
  Some variables of other programs count too (`USUAL_VARIABLES`).
* File: the one that ``REACTOR_MEMORY_CONFIG`` names, else ``config/reactor-memory.yaml`` in the working folder if it
  is there; settings stand under the key ``reactor_memory``; hyphens in keys are read as underscores.

What is unknown or impossible is a `ConfigurationError` that names the key; no value is repeated in it.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, cast
from urllib.parse import urlsplit

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    NonNegativeFloat,
    NonNegativeInt,
    PlainSerializer,
    PositiveFloat,
    PositiveInt,
    PrivateAttr,
    SecretStr,
    SerializationInfo,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from reactor_memory.errors import ConfigurationError
from reactor_memory.providers.addresses import is_loopback

CONDENSED_PROMPT = """\
Summarize the conversation below.
Keep what was talked about, what was decided or concluded and why, what is still open, and every name, number and date
that a later turn may need. Write few sentences, each with something in it.
"""
COMPRESSED_PROMPT = """\
Summarize the conversation below as long-term memory, as briefly as you can.
Keep only the main topics, the facts and decisions that must not be forgotten, and what is needed to understand them.
"""

WITHOUT_FACTS = ("take_last", "progressive")
"""Strategies that show no facts: with them, ``summary.enabled`` is false unless it is set."""

CONVERSATION_SUMMARY = "conversation_summary"
"""The name, among summarizers of the chat memory, of the one that the section `summary` sets up."""

SECTION_ALIASES = {"summarization": "tiers"}
"""Other names of sections, in files and in the constructor."""

ENVIRONMENT_PREFIX = "REACTOR_MEMORY_"
CONFIG_VARIABLE = "REACTOR_MEMORY_CONFIG"
DEFAULT_FILE = Path("config/reactor-memory.yaml")
ROOT_KEY = "reactor_memory"
USUAL_VARIABLES = {
    "GEMINI_API_KEY": "summary.api_key",
    "GOOGLE_API_KEY": "summary.api_key",
    "OPENAI_API_KEY": "summary.api_key",
    "TIKTOKEN_CACHE_DIR": "tokens.cache_dir",
}
"""Variables of other programs that set something here too, the first one before the next; ours win over them.

Keys count for ``chat.api_key`` and ``search.api_key``, too. The key of OpenAI counts only where it
belongs: with the provider ``openai`` and its own address. With that provider no other key counts.
"""
_OPENAI_KEY = "OPENAI_API_KEY"

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The one in C reads a file of settings in a tenth of the time; PyYAML may be built without it."""

SHORTEST_SECRET = 32
"""Bytes of a secret that signs tokens: it must not be found by trying."""

MASK = "********"
_UNMASKED = object()
"""The context in which this module dumps settings as they are. Everybody else gets them without secrets."""
_OPTIONS = "plugins.options."

_SECRET_NAME = re.compile(r"password|secret|token|key", re.IGNORECASE)
_USERINFO = re.compile(r"(://[^/?#:@]*:).*@")
_QUERY_VALUE = re.compile(r"([?&][^=&]*(?:password|secret|token|key)[^=&]*=)[^&#]*", re.IGNORECASE)
_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_WEB_URL = re.compile(r"https?://[^/\s]", re.IGNORECASE)
_FILE_MODE = re.compile(r"0?6[0246]{2}")
_ORIGIN = re.compile(r"https?://[a-z0-9.:\[\]-]+")
_MORE_THAN_ADDRESS = re.compile(r"[?#]|://[^/]*@")


def canonical_name(text: str) -> str:
    """The name of an implementation or a plug-in as it is compared: a hyphen is an underscore."""
    return text.strip().replace("-", "_")


def _plugin_name(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return canonical_name(text)


def _store_url(text: str) -> str:
    if not _URL.match(text):
        raise ValueError("must begin with a scheme, such as sqlite:///file.db, memory:// or postgresql://host/name")
    if text.startswith("memory://") and text != "memory://":
        raise ValueError("has something behind memory://, which takes nothing: write memory://")
    return text


def _dumped_url(url: str, info: SerializationInfo) -> str:
    return url if info.context is _UNMASKED else masked_url(url)


def _dumped_options(options: Any, info: SerializationInfo) -> Any:
    return options if info.context is _UNMASKED else _masked_options(options)


def _masked_options(options: Any, name: str = "") -> Any:
    """Options of plug-ins without what is a secret by its name, and without the passwords of addresses."""
    if _SECRET_NAME.search(name) and options is not None:
        return MASK
    if isinstance(options, dict):
        return {key: _masked_options(each, str(key)) for key, each in cast("dict[Any, Any]", options).items()}
    if isinstance(options, list | tuple):
        return [_masked_options(each) for each in cast("Sequence[Any]", options)]
    return masked_url(options) if isinstance(options, str) else options


def _web_url(text: str) -> str:
    if not _WEB_URL.match(text):
        raise ValueError("must begin with http:// or https:// and a host")
    if _MORE_THAN_ADDRESS.search(text):
        raise ValueError("must be an address without user, password, query or fragment: a key belongs in api_key")
    if not _has_host_and_port(text):
        raise ValueError("must have a host, in brackets if it is one of IPv6, and no port or one up to 65535")
    return text


def _file_mode(value: Any) -> Any:
    if not isinstance(value, str) or not _FILE_MODE.fullmatch(value):
        raise ValueError('must be octal digits in quotes, such as "0600": the owner reads and writes, nobody executes')
    return value


def _origin(text: str) -> str:
    """An origin as browsers send it, so that comparing texts is enough."""
    origin = _web_url(text.strip())
    if not _ORIGIN.fullmatch(origin):
        raise ValueError("must be an origin as browsers send it, such as https://app.example: in lower case, no path")
    return origin


def _has_host_and_port(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _names(value: Any) -> Any:
    return [part for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _prompt(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


_BOOL = TypeAdapter(bool)
Share = Annotated[float, Field(ge=0, le=1)]
PluginName = Annotated[str, AfterValidator(_plugin_name)]
StoreUrl = Annotated[str, AfterValidator(_store_url), PlainSerializer(_dumped_url)]
PluginOptions = Annotated[dict[PluginName, dict[str, Any]], PlainSerializer(_dumped_options)]
PluginNames = Annotated[tuple[PluginName, ...], NoDecode, BeforeValidator(_names)]
FileMode = Annotated[str, BeforeValidator(_file_mode)]
WebUrl = Annotated[str, AfterValidator(_web_url)]
Prompt = Annotated[str, AfterValidator(_prompt)]
Port = Annotated[int, Field(ge=0, le=65535)]
Origins = Annotated[tuple[Annotated[str, AfterValidator(_origin)], ...], NoDecode, BeforeValidator(_names)]


class Section(BaseModel):
    """A group of settings. `prefix` is its part of the key."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True, validate_default=True
    )
    prefix: ClassVar[str] = ""

    @model_validator(mode="wrap")
    @classmethod
    def _name_the_key(cls, values: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(values)
        except ValidationError as error:
            raise _configuration_error(error, cls.prefix) from None

    def _refuse(self, key: str, problem: str) -> ConfigurationError:
        return ConfigurationError(f"{self.prefix}.{key}", problem)

    def _check_private(self, base_url: str | None, allow_http: bool) -> None:
        """Raises `ConfigurationError` for an address to which conversations would travel in the clear."""
        url = base_url or "https://"
        if urlsplit(url).scheme == "http" and not (allow_http or is_loopback(url)):
            problem = "must begin with https://, or name this machine: http:// sends conversations and the key in the"
            raise self._refuse(
                "base_url", f"{problem} clear. In a network that you trust, set {self.prefix}.allow_http: true"
            )


class StoreSettings(Section):
    """Where the log and everything derived from it is kept."""

    prefix = "store"

    url: StoreUrl = Field(default="sqlite:///reactor-memory.db", repr=False)
    delete_grace_days: NonNegativeInt = 0
    max_fork_depth: PositiveInt = 200
    auto_migrate: bool = False
    pool_size: PositiveInt = 8
    timeout_seconds: PositiveFloat = 10
    statement_cache_size: NonNegativeInt = 100
    file_mode: FileMode = "0600"
    inline_loads: Literal["auto", "always", "never"] = "auto"
    keep_settings: bool = True


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
    provider: PluginName = "extractive"
    llm_model: Annotated[str, Field(min_length=1)] = "gemini-3.5-flash-lite"
    api_key: SecretStr | None = None
    base_url: WebUrl | None = None
    allow_http: bool = False
    response_format: Literal["auto", "json_schema", "json_object", "text"] = "auto"
    timeout_seconds: PositiveFloat = 60
    max_input_tokens: PositiveInt = 32_000
    max_output_tokens: PositiveInt = 8192
    max_tokens_per_session: NonNegativeInt = 0
    max_tokens_per_day: NonNegativeInt = 0
    max_narrative_tokens: NonNegativeInt = 500
    max_fact_tokens: NonNegativeInt = 8000
    max_memory_share: Share = 0.97
    memory_role: Literal["system", "user"] = "system"
    lazy_timeout_seconds: NonNegativeFloat = 3
    breaker_failures: PositiveInt = 5
    breaker_open_seconds: PositiveFloat = 30

    @model_validator(mode="after")
    def _recent_below_trigger(self) -> Self:
        if self.recent_message_count >= self.trigger_message_count:
            raise self._refuse("recent_message_count", "must be less than summary.trigger_message_count")
        return self

    @model_validator(mode="after")
    def _private_on_the_way(self) -> Self:
        self._check_private(self.base_url, self.allow_http)
        return self


class TierSettings(Section):
    """Progressive summarisation, for the strategy ``progressive``."""

    prefix = "tiers"

    enabled: bool = True
    recent_count: NonNegativeInt = 20
    condensed_count: NonNegativeInt = 50
    auto_summarize: bool = True
    auto_threshold: PositiveInt = 100
    condensed_prompt: Prompt = CONDENSED_PROMPT
    compressed_prompt: Prompt = COMPRESSED_PROMPT
    condensed_max_tokens: Annotated[int, Field(ge=50)] = 1000
    compressed_max_tokens: Annotated[int, Field(ge=50)] = 500
    chunk_tokens: PositiveInt = 8000
    retention: Literal["keep", "archive", "delete"] = "archive"
    condensed_role: Literal["system", "user", "assistant"] = "assistant"
    compressed_role: Literal["system", "user", "assistant"] = "system"

    @model_validator(mode="after")
    def _threshold_beyond_recent(self) -> Self:
        if self.auto_threshold < self.recent_count:
            raise self._refuse(
                "auto_threshold", "must not be less than tiers.recent_count: nothing would be old enough"
            )
        return self

    @model_validator(mode="after")
    def _chunks_shrink(self) -> Self:
        least = 2 * (max(self.condensed_max_tokens, self.compressed_max_tokens) + 20)
        if self.chunk_tokens < least:
            raise self._refuse("chunk_tokens", f"must be at least {least}: twice the tokens of a text, and 40 more")
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

    @model_validator(mode="before")
    @classmethod
    def _one_name_each(cls, values: Any) -> Any:
        return _chat_memory_values(cast("dict[str, Any]", values)) if isinstance(values, dict) else values


_CHAT_MEMORY_NAMES = {
    "type": "strategy",
    "summarizeeveryn": "summarize_every_n",
    "summarizeeverynmessages": "summarize_every_n",
    "skillid": "summarizer",
    "summarizationskillid": "summarizer",
    "onhookerror": "on_hook_error",
    "deletesummarizedmessages": "retention",
}
"""Other names of settings of the chat memory, without underscores and in lower case."""


def _chat_memory_values(given: Mapping[str, Any]) -> dict[str, Any]:
    """`given` by the names of the settings. `ConfigurationError` for a setting that has a value under two names."""
    values: dict[str, Any] = {}
    for key, value in _below_strategy(given):
        squeezed = key.replace("_", "").lower()
        name = _CHAT_MEMORY_NAMES.get(squeezed, key)
        if name in values:
            raise ConfigurationError(f"chat_memory.{key}", f"is another name of {name}: give one of the two")
        values[name] = _retention(key, value) if squeezed == "deletesummarizedmessages" else value
    if values.get("strategy") == "none":
        values["strategy"] = "noop"
    return values


def _with_chat_memory_names(layer: dict[str, Any]) -> dict[str, Any]:
    """A source with the settings of the chat memory by their names, so that a stronger source wins over any name."""
    section = layer.get("chat_memory")
    if not isinstance(section, dict):
        return layer
    return {**layer, "chat_memory": _chat_memory_values(cast("dict[str, Any]", section))}


def _below_strategy(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in given.items():
        if key == "strategy" and isinstance(value, dict):
            yield from cast("dict[str, Any]", value).items()
        else:
            yield key, value


def _retention(key: str, is_deleting: Any) -> str:
    try:
        return "delete" if _BOOL.validate_python(is_deleting) else "keep"
    except ValidationError:
        raise ConfigurationError(f"chat_memory.{key}", "must be true or false") from None


class ContextSettings(Section):
    """The size of a context, in tokens."""

    prefix = "context"

    max_tokens: PositiveInt = 128_000
    reserved_output_tokens: NonNegativeInt = 4096
    window_growth: Literal["auto", "messages", "tokens"] = "auto"
    window_min_share: Share = 0.35
    max_window_tokens: PositiveInt = 16_000
    recall_index: PluginName = "store"
    recall_share: Share = 0.9
    record: Literal["off", "turns", "all"] = "off"
    max_pins: NonNegativeInt = 20
    max_pin_tokens: NonNegativeInt = 2000

    @model_validator(mode="after")
    def _output_below_maximum(self) -> Self:
        if self.reserved_output_tokens >= self.max_tokens:
            raise self._refuse("reserved_output_tokens", "must be less than context.max_tokens")
        return self


class NotesSettings(Section):
    """Long-term notes of an agent about a user. `enabled` puts them into every context."""

    prefix = "notes"

    enabled: bool = False
    max_chars: PositiveInt = 4000
    allow_destructive: bool = True


class TokenSettings(Section):
    """How tokens are counted."""

    prefix = "tokens"

    counter: PluginName = "tiktoken"
    encoding: Annotated[str, Field(min_length=1)] = "o200k_base"
    cache_dir: Path | None = None
    overhead_per_message: NonNegativeInt = 4
    media_part_tokens: NonNegativeInt = 1024


class LimitSettings(Section):
    """The largest message, batch and session of a file that are accepted."""

    prefix = "limits"

    max_content_bytes: PositiveInt = 4 * 1024 * 1024
    max_batch_messages: PositiveInt = 1000
    max_metadata_bytes: PositiveInt = 16 * 1024
    max_parts_bytes: PositiveInt = 16 * 1024 * 1024
    max_tool_calls: PositiveInt = 128
    max_id_length: PositiveInt = 255
    max_metadata_depth: PositiveInt = 8
    max_json_depth: PositiveInt = 64
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
    """The price table of ``reactor-memory eval``: by name of model, and for every other model `default`."""

    prefix = "prices"

    context_model: str = ""
    default: Price = Price(cached_input=0.03, input=0.3, output=2.5)
    models: dict[str, Price] = Field(default_factory=dict[str, Price])

    def of(self, model: str) -> Price:
        return self.models.get(model, self.default)


class ChatSettings(Section):
    """The model that answers in ``reactor-memory chat``. What is None is taken from `summary` if that asks the same
    provider.
    """

    prefix = "chat"

    provider: PluginName = "auto"
    model: Annotated[str, Field(min_length=1)] | None = None
    system: str = ""
    api_key: SecretStr | None = None
    base_url: WebUrl | None = None
    allow_http: bool = False
    timeout_seconds: PositiveFloat = 60

    @model_validator(mode="after")
    def _private_on_the_way(self) -> Self:
        self._check_private(self.base_url, self.allow_http)
        return self


class IssuerSettings(BaseModel):
    """Whose tokens tell who a user is: signed with one algorithm, by keys from one place.

    `token_types` are the values of the header ``typ`` that count; an empty one stands for a token without it.
    """

    model_config = Section.model_config

    issuer: Annotated[str, Field(min_length=1)]
    audience: Annotated[str, Field(min_length=1)]
    algorithm: Literal["RS256", "ES256", "HS256"] = "RS256"
    jwks_file: Path | None = None
    jwks_url: WebUrl | None = None
    secret: SecretStr | None = None
    token_types: tuple[str, ...] = ("JWT", "at+jwt")
    user_claim: Annotated[str, Field(min_length=1)] = "sub"
    user_prefix: Annotated[str, Field(max_length=100)] = ""
    leeway_seconds: Annotated[int, Field(ge=0, le=300)] = 30

    @model_validator(mode="after")
    def _keys_from_one_place(self) -> Self:
        given = {name for name in ("jwks_file", "jwks_url", "secret") if getattr(self, name) is not None}
        wanted = [{"secret"}] if self.algorithm == "HS256" else [{"jwks_file"}, {"jwks_url"}]
        if given not in wanted:
            takes = "secret" if self.algorithm == "HS256" else "either jwks_file or jwks_url"
            raise ValueError(f"{self.algorithm} needs {takes}, and nothing else")
        return self

    @model_validator(mode="after")
    def _keys_unaltered_on_the_way(self) -> Self:
        url = self.jwks_url or "https://"
        if urlsplit(url).scheme != "https" and not is_loopback(url):
            raise ValueError(
                "jwks_url must begin with https://, or name this machine: others could answer with their keys"
            )
        return self

    @model_validator(mode="after")
    def _secret_long_enough(self) -> Self:
        if self.secret is not None and len(self.secret.get_secret_value().encode()) < SHORTEST_SECRET:
            raise ValueError(f"secret must have at least {SHORTEST_SECRET} bytes")
        return self

    def read_jwks(self) -> bytes:
        """What `jwks_file` holds."""
        try:
            return Path(self.jwks_file or "").read_bytes()
        except OSError as error:
            raise ConfigurationError("auth.issuers", f"cannot read {self.jwks_file}: {error.strerror}") from None


class AuthSettings(Section):
    """Who may call the service, and how often."""

    prefix = "auth"

    issuers: tuple[IssuerSettings, ...] = ()
    allow_shared_secrets: bool = False
    max_token_bytes: PositiveInt = 8192
    jwks_refresh_seconds: PositiveFloat = 600
    jwks_stale_seconds: PositiveFloat = 86400
    jwks_pause_seconds: PositiveFloat = 30
    jwks_timeout_seconds: PositiveFloat = 5
    user_requests_per_minute: NonNegativeInt = 1200
    agent_requests_per_minute: NonNegativeInt = 60000
    failures_per_minute: NonNegativeInt = 60
    burst_seconds: PositiveFloat = 15

    @model_validator(mode="after")
    def _issuers_apart(self) -> Self:
        for field in ("issuer", "user_prefix"):
            values = [getattr(issuer, field) for issuer in self.issuers]
            if len(set(values)) < len(values):
                raise self._refuse("issuers", f"each needs a {field} of its own, or their users would be mixed up")
        return self

    @model_validator(mode="after")
    def _secrets_on_purpose(self) -> Self:
        if not self.allow_shared_secrets and any(issuer.secret for issuer in self.issuers):
            problem = "HS256 lets everybody who checks tokens make them, too: use RS256 or ES256, or `serve --dev` for"
            raise self._refuse("issuers", f"{problem} development, or set auth.allow_shared_secrets: true")
        return self


class HttpSettings(Section):
    """What ``reactor-memory serve`` accepts. `token_secret` signs page tokens, alike in all processes."""

    prefix = "http"

    max_body_bytes: PositiveInt = 1024 * 1024
    max_message_bytes: PositiveInt = 256 * 1024
    max_batch_messages: PositiveInt = 100
    max_metadata_bytes: PositiveInt = 16 * 1024
    max_metadata_depth: PositiveInt = 8
    max_metadata_keys: PositiveInt = 50
    openapi: bool = True
    token_secret: SecretStr | None = None

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    port: Port = 8080
    cors_origins: Origins = ()
    head_timeout_seconds: PositiveFloat = 10
    body_timeout_seconds: PositiveFloat = 30
    idle_timeout_seconds: PositiveFloat = 75
    ready_timeout_seconds: PositiveFloat = 2
    drain_delay_seconds: NonNegativeFloat = 0
    shutdown_grace_seconds: PositiveFloat = 20
    metrics_host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    metrics_port: Port | None = None


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
    expires_seconds: PositiveFloat = 120
    keep_seconds: PositiveFloat = 3600
    max_bytes: PositiveInt = 4 * 1024 * 1024
    max_pieces: PositiveInt = 100_000
    poll_min_seconds: PositiveFloat = 0.05
    poll_max_seconds: PositiveFloat = 1
    recheck_seconds: PositiveFloat = 30
    heartbeat_seconds: PositiveFloat = 15
    max_open_per_caller: PositiveInt = 50

    @model_validator(mode="after")
    def _polls_less_and_less(self) -> Self:
        if self.poll_min_seconds > self.poll_max_seconds:
            raise self._refuse("poll_min_seconds", "must not be more than streams.poll_max_seconds")
        return self


class SearchSettings(Section):
    """Search over many conversations. Without an `embedder` it goes by words alone."""

    prefix = "search"

    enabled: bool = False
    embedder: PluginName = "none"
    model: Annotated[str, Field(min_length=1)] | None = None
    dimensions: PositiveInt = 768
    api_key: SecretStr | None = None
    base_url: WebUrl | None = None
    allow_http: bool = False
    timeout_seconds: PositiveFloat = 10
    batch_messages: Annotated[int, Field(ge=1, le=100)] = 50
    max_concurrent_conversations: PositiveInt = 2
    sweep_seconds: PositiveFloat = 30
    min_similarity: Annotated[float, Field(ge=-1, le=1)] = 0.3

    @model_validator(mode="after")
    def _private_on_the_way(self) -> Self:
        self._check_private(self.base_url, self.allow_http)
        return self


class PluginSettings(Section):
    """Installed plug-ins: whether to load any, which ones not, and their own options by plug-in name."""

    prefix = "plugins"

    enabled: bool = True
    disabled: PluginNames = ()
    options: PluginOptions = Field(default_factory=dict, repr=False)


class EffectiveSetting(NamedTuple):
    """A setting in force. Secrets in `value` are masked; `origin`: constructor, environment, file or default."""

    key: str
    value: str
    origin: str


class Settings(BaseSettings):
    """All settings. A section is given as its class or as a mapping: ``Settings(summary={"enabled": True})``.

    No secret is in its repr, nor in what `model_dump` and `model_dump_json` give: there passwords in addresses, and
    options of plug-ins that are secrets by their names, are masked.

    Raises `ConfigurationError` for a key that is unknown and for a value that is impossible.
    """

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX,
        env_nested_delimiter="__",
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
    )

    store: StoreSettings = StoreSettings()
    history: HistorySettings = HistorySettings()
    summary: SummarySettings = SummarySettings()
    tiers: TierSettings = TierSettings()
    chat_memory: ChatMemorySettings = ChatMemorySettings()
    context: ContextSettings = ContextSettings()
    notes: NotesSettings = NotesSettings()
    tokens: TokenSettings = TokenSettings()
    limits: LimitSettings = LimitSettings()
    background: BackgroundSettings = BackgroundSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    prices: PriceSettings = PriceSettings()
    chat: ChatSettings = ChatSettings()
    auth: AuthSettings = AuthSettings()
    http: HttpSettings = HttpSettings()
    quotas: QuotaSettings = QuotaSettings()
    streams: StreamSettings = StreamSettings()
    search: SearchSettings = SearchSettings()
    plugins: PluginSettings = PluginSettings()
    redactor: PluginName = "none"
    clock: PluginName = "system"

    _origins: dict[str, str] = PrivateAttr(default_factory=dict[str, str])

    @model_validator(mode="after")
    def _originals_for_summaries(self) -> Self:
        if self.chat_memory.retention == "delete" and self.summary.enabled:
            problem = "delete would destroy what facts are drawn from: archive them, or set summary.enabled: false"
            raise ConfigurationError("chat_memory.retention", problem)
        return self

    def __init__(self, **values: Any) -> None:
        sources = _file(), _environment(type(self)), _constructor(values)
        file, environment, given = map(_with_chat_memory_names, sources)
        usual = _merged(_usual_variables(_merged([file, environment, given])))
        layers = {"file": file, "environment": _merged([usual, environment]), "constructor": given}
        origins = {key: name for name, layer in layers.items() for key, _ in _dotted(layer)}
        try:
            super().__init__(**_merged([_defaults_beside(_merged(layers.values())), *layers.values()]))
        except ValidationError as error:
            raise _located(_configuration_error(error), origins) from None
        except ConfigurationError as error:
            raise _located(error, origins) from None
        self._origins.update(origins)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what the constructor hands up: it has merged the sources, so that it knows each value's origin."""
        return (init_settings,)

    def value(self, key: str) -> Any:
        """The value of a dotted key. A plug-in option that is not given is None; any other key must exist."""
        values = dict(_dotted(self.model_dump(context=_UNMASKED)))
        if key not in values and not key.startswith(_OPTIONS):
            raise ConfigurationError(key, f"is no setting{_suggestion(key, _known_keys())}")
        return values.get(key)

    def origins(self) -> tuple[EffectiveSetting, ...]:
        """Every setting in force, in the order of declaration."""
        return tuple(
            EffectiveSetting(key, _shown(key, value), self._origins.get(key, "default"))
            for key, value in _dotted(self.model_dump())
        )


def masked_url(url: str) -> str:
    """The URL with its passwords masked: the one before the host, and what looks like one in the query."""
    return _QUERY_VALUE.sub(rf"\g<1>{MASK}", _USERINFO.sub(rf"\g<1>{MASK}@", url))


def _shown(key: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, SecretStr) or (key.startswith(_OPTIONS) and _SECRET_NAME.search(key)):
        return MASK
    if isinstance(value, tuple):
        return ", ".join(map(str, cast("tuple[Any, ...]", value)))
    return str(value).lower() if isinstance(value, bool) else masked_url(str(value))


# Sources: each is a nested mapping of what it sets, and nothing else.


def _constructor(values: Mapping[str, Any]) -> dict[str, Any]:
    given = {key: _set_fields(value) if isinstance(value, Section) else value for key, value in values.items()}
    return _with_own_names(given)


def _set_fields(section: Section) -> dict[str, Any]:
    return {key: getattr(section, key) for key in section.model_fields_set}


def _defaults_beside(given: Mapping[str, Any]) -> dict[str, Any]:
    """A strategy that shows no facts needs no work on them, unless the settings ask for it."""
    history: Any = given.get("history")
    strategy = cast("Mapping[str, Any]", history).get("strategy") if isinstance(history, Mapping) else None
    shows_none = isinstance(strategy, str) and canonical_name(strategy) in WITHOUT_FACTS
    return {"summary": {"enabled": False}} if shows_none else {}


def _environment(settings_type: type[Settings]) -> dict[str, Any]:
    names = [name for name in map(str.upper, os.environ) if name.startswith(ENVIRONMENT_PREFIX)]
    if not names:
        return {}  # looking every setting up takes longer than opening a database
    _check_variables(names)
    try:
        return EnvSettingsSource(settings_type)()
    except SettingsError as error:
        section = re.search(r'field "(\w+)"', str(error))
        name = ENVIRONMENT_PREFIX + (section[1].upper() if section else "")
        raise ConfigurationError(name, "a mapping must be written as JSON") from None


def _usual_variables(given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What the variables of other programs set, the weakest first. `given` is everything else."""
    summary = _given_section(given, "summary")
    for name, key in reversed(USUAL_VARIABLES.items()):
        section, _, field = key.partition(".")
        value = os.environ.get(name)
        if value and key != "summary.api_key":
            yield {section: {field: value}}
        elif value:
            asking = {
                "summary": summary,
                "chat": _chat_asks(summary, _given_section(given, "chat")),
                **_search_asks(_given_section(given, "search")),
            }
            yield {section: {field: value} for section, asks in asking.items() if _is_key_of(name, asks)}


def _given_section(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    section = given.get(name)
    values = cast("dict[str, Any]", section) if isinstance(section, dict) else {}
    return {key: value for key, value in values.items() if value is not None}


def _chat_asks(summary: Mapping[str, Any], chat: Mapping[str, Any]) -> Mapping[str, Any]:
    """Whom the chat asks, and where: it asks what `summary` asks, unless it names another provider or address."""
    provider = canonical_name(str(chat.get("provider", "auto")))
    if provider in ("auto", canonical_name(str(summary.get("provider")))):
        return {**summary, **chat, "provider": summary.get("provider")}
    return chat


def _search_asks(search: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Whom search asks for meanings, if it asks a provider."""
    provider = canonical_name(str(search.get("embedder")))
    return {"search": {**search, "provider": provider}} if provider in ("gemini", "openai") else {}


def _is_key_of(name: str, asks: Mapping[str, Any]) -> bool:
    """Whether the key in the variable `name` may be shown to the provider that the settings select."""
    asks_openai = canonical_name(str(asks.get("provider"))) == "openai"
    return (name == _OPENAI_KEY) == asks_openai and (name != _OPENAI_KEY or not asks.get("base_url"))


def _check_variables(names: Iterable[str]) -> None:
    """Refuse variables of ours that name no section; what stands below a section is checked with its values."""
    sections = [ENVIRONMENT_PREFIX + name.upper() for name in Settings.model_fields]
    for name in names:
        if name != CONFIG_VARIABLE and name.split("__")[0] not in sections:
            known = [ENVIRONMENT_PREFIX + key.upper().replace(".", "__") for key in _known_keys()]
            raise ConfigurationError(name, f"is no setting{_suggestion(name, [*known, CONFIG_VARIABLE])}")


def _file() -> dict[str, Any]:
    named = os.environ.get(CONFIG_VARIABLE)
    path = Path(named) if named else DEFAULT_FILE
    if not named and not path.is_file():
        return {}
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), _LOADER)  # noqa: S506 (both are safe)
        return _settings_in(document, path)
    except OSError as error:
        raise ConfigurationError(CONFIG_VARIABLE, f"cannot read {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise ConfigurationError(str(path), "is no valid YAML") from None


def _settings_in(document: Any, path: Path) -> dict[str, Any]:
    """The part of a YAML document that is ours. A section without a value, all commented out, sets nothing."""
    if document is None:
        return {}
    root = _with_underscores(document) if isinstance(document, dict) else {}
    sections = root.get(ROOT_KEY, ...)
    if sections is ... or not isinstance(sections, dict | None):
        raise ConfigurationError(str(path), f"needs the key {ROOT_KEY} with the settings below it")
    found = {
        name: _with_underscores(section) if isinstance(section, dict) else section
        for name, section in _with_underscores(sections or {}).items()
        if section is not None
    }
    return _with_own_names(found)


def _with_own_names(sections: dict[str, Any]) -> dict[str, Any]:
    """The sections under their own names instead of their aliases."""
    for alias, name in SECTION_ALIASES.items():
        if alias in sections and name in sections:
            raise ConfigurationError(alias, f"is another name of {name}: give one of the two")
    return {SECTION_ALIASES.get(name, name): section for name, section in sections.items()}


def _with_underscores(mapping: Any) -> dict[str, Any]:
    return {str(key).replace("-", "_"): value for key, value in mapping.items()}


def _merged(layers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The layers on top of each other, the last one strongest; mappings are merged at every level."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            merged[key] = _merged_value(merged.get(key), value)
    return merged


def _merged_value(below: Any, above: Any) -> Any:
    if isinstance(below, dict) and isinstance(above, dict):
        return _merged([cast("dict[str, Any]", below), cast("dict[str, Any]", above)])
    return above


def _dotted(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        name = f"{prefix}{key}".replace("-", "_")
        if isinstance(value, dict) and value:
            yield from _dotted(cast("dict[str, Any]", value), f"{name}.")
        else:
            yield name, value


# Errors


def _configuration_error(error: ValidationError, prefix: str = "") -> ConfigurationError:
    """The first problem that pydantic found, in our words."""
    problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
    key = ".".join(str(part) for part in (prefix, *problem["loc"]) if part != "")
    if problem["type"] == "extra_forbidden":
        return ConfigurationError(key, f"is no setting{_suggestion(key, _known_keys())}")
    text = problem["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    return ConfigurationError(key, text)


def _located(error: ConfigurationError, origins: Mapping[str, str]) -> ConfigurationError:
    origin = origins.get(error.key)
    return ConfigurationError(error.key, f"{error.problem} (from the {origin})") if origin else error


def _suggestion(key: str, known: Iterable[str]) -> str:
    nearest = difflib.get_close_matches(key, list(known), n=1)
    return f"; did you mean {nearest[0]}?" if nearest else ""


def _known_keys() -> list[str]:
    sections = {name: field.annotation for name, field in Settings.model_fields.items()}
    nested = [
        f"{name}.{key}"
        for name, section in sections.items()
        if isinstance(section, type) and issubclass(section, Section)
        for key in section.model_fields
    ]
    return [*sections, *nested]
