"""Every setting, and from where it is: constructor > environment > YAML file > defaults (`setting_sources`).

What is unknown or impossible is a `ConfigurationError` that names the key; no value is repeated in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self, cast

from pydantic import Field, PrivateAttr, ValidationError, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from reactor_memory.errors import ConfigurationError
from reactor_memory.settings.sections import (
    BackgroundSettings,
    ChatMemorySettings,
    ChatSettings,
    ContextSettings,
    HistorySettings,
    LimitSettings,
    ModelSettings,
    NotesSettings,
    PluginSettings,
    PriceSettings,
    QuotaSettings,
    RecallSettings,
    SearchSettings,
    StoreSettings,
    StreamSettings,
    SummarySettings,
    TelemetrySettings,
    TierSettings,
    TokenSettings,
    chat_memory_by_name,
)
from reactor_memory.settings.setting_sources import (
    ENVIRONMENT_PREFIX,
    defaults_beside,
    dotted,
    from_constructor,
    from_environment,
    from_file,
    from_usual_variables,
    known_keys,
    merged,
)
from reactor_memory.settings.setting_values import (
    OPTIONS,
    UNMASKED,
    PluginName,
    configuration_error,
    printed_value,
    suggestion,
)


class EffectiveSetting(NamedTuple):
    """A setting in force. Secrets in `value` are masked; `origin`: constructor, environment, file or default."""

    key: str
    value: str
    origin: str


class Settings(BaseSettings):
    """The settings of a memory. A section is given as its class or a mapping: ``Settings(summary={"enabled": True})``.

    No secret is in its repr, nor in what `model_dump` and `model_dump_json` give: there passwords in addresses, and
    options of plug-ins that are secrets by their names, are masked.

    What only the service reads (`ServiceSettings`) may stand in the same file and environment.

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
    models: dict[PluginName, ModelSettings] = Field(default_factory=dict[str, ModelSettings])
    tiers: TierSettings = TierSettings()
    chat_memory: ChatMemorySettings = ChatMemorySettings()
    context: ContextSettings = ContextSettings()
    notes: NotesSettings = NotesSettings()
    recall: RecallSettings = RecallSettings()
    tokens: TokenSettings = TokenSettings()
    limits: LimitSettings = LimitSettings()
    background: BackgroundSettings = BackgroundSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    prices: PriceSettings = PriceSettings()
    chat: ChatSettings = ChatSettings()
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
        kind = type(self)
        sources = from_file(kind), from_environment(kind), from_constructor(values, kind)
        file, environment, given = map(_with_names, sources)
        usual = from_usual_variables(merged([file, environment, given]))
        layers = {"file": file, "environment": merged([usual, environment]), "constructor": given}
        origins = {key: name for name, layer in layers.items() for key, _ in dotted(layer)}
        try:
            super().__init__(**merged([defaults_beside(merged(layers.values())), *layers.values()]))
        except ValidationError as error:
            raise _located(configuration_error(error, known_keys(kind)), origins) from None
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

    def model(self, name: str) -> ModelSettings:
        """How the model of this name is asked. A provider that `models` does not name is asked with the defaults."""
        entry = self.models.get(name, ModelSettings())
        return entry if entry.provider else entry.model_copy(update={"provider": name})

    def asking(self, name: str) -> Settings:
        """The same, where summaries ask the model of this name."""
        return self.model_copy(update={"summary": self.summary.model_copy(update={"provider": name})})

    def value(self, key: str) -> Any:
        """The value of a dotted key. A plug-in option that is not given is None; any other key must exist."""
        values = dict(dotted(self.model_dump(context=UNMASKED)))
        if key not in values and not key.startswith(OPTIONS):
            raise ConfigurationError(key, f"is no setting{suggestion(key, known_keys(type(self)))}")
        return values.get(key)

    def origins(self) -> tuple[EffectiveSetting, ...]:
        """Every setting in force, in the order of declaration."""
        return tuple(
            EffectiveSetting(key, printed_value(key, value), self._origins.get(key, "default"))
            for key, value in dotted(self.model_dump())
        )


def _with_names(layer: dict[str, Any]) -> dict[str, Any]:
    section = layer.get("chat_memory")
    if not isinstance(section, dict):
        return layer
    return {**layer, "chat_memory": chat_memory_by_name(cast("dict[str, Any]", section))}


def _located(error: ConfigurationError, origins: Mapping[str, str]) -> ConfigurationError:
    origin = origins.get(error.key)
    return ConfigurationError(error.key, f"{error.problem} (from the {origin})") if origin else error
