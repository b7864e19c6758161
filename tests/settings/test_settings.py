"""Where settings come from, which win, and what is refused."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import yaml
from pydantic import SecretStr

from reactor_memory.core.validation import SETTABLE, MessageLimits
from reactor_memory.errors import ConfigurationError
from reactor_memory.settings.sections import ModelSettings, PriceSettings, SummarySettings
from reactor_memory.settings.service_settings import ServiceSettings
from reactor_memory.settings.setting_sources import ENVIRONMENT_PREFIX, USUAL_VARIABLES, known_keys
from reactor_memory.settings.setting_values import MASK, Section, masked_url, suggestion
from reactor_memory.settings.settings import Settings
from tests.scenes.tables import each_row

CONFIG = Path(__file__).resolve().parents[2] / "config"
SECRET = "hunter2-secret"


@pytest.fixture(autouse=True)
def empty_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in os.environ:
        if name.startswith(ENVIRONMENT_PREFIX) or name in USUAL_VARIABLES:
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def write_config(text: str, path: Path = Path("config/reactor-memory.yaml")) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def origin_of(settings: Settings, key: str) -> str:
    return next(each.origin for each in settings.origins() if each.key == key)


def sections() -> Iterator[tuple[str, type[Section]]]:
    for name, field in ServiceSettings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            yield name, field.annotation


def all_keys() -> set[str]:
    return {f"{name}.{key}" for name, section in sections() for key in section.model_fields} | {"clock", "redactor"}


# Precedence


def test_defaults_without_file_and_environment() -> None:
    settings = Settings()
    assert settings.store.url == "sqlite:///reactor-memory.db"
    assert settings.summary.enabled is True
    assert {each.origin for each in settings.origins()} == {"default"}


def test_memory_is_on_unless_the_strategy_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for strategy, enabled in (("auto", True), ("hierarchical", True), ("mine", True), ("take-last", False)):
        assert Settings(history={"strategy": strategy}).summary.enabled is enabled, strategy
    assert Settings(history={"strategy": "take_last"}, summary={"enabled": True}).summary.enabled is True
    write_config("reactor_memory: {history: {strategy: progressive}}")
    assert Settings().summary.enabled is False
    assert origin_of(Settings(), "summary.enabled") == "default"
    monkeypatch.setenv("REACTOR_MEMORY_SUMMARY__ENABLED", "true")
    assert Settings().summary.enabled is True


def test_each_source_wins_over_the_one_below(monkeypatch: pytest.MonkeyPatch) -> None:
    write_config("reactor_memory: {summary: {trigger_message_count: 30, segment_message_count: 7, mode: full}}")
    monkeypatch.setenv("REACTOR_MEMORY_SUMMARY__TRIGGER_MESSAGE_COUNT", "40")
    monkeypatch.setenv("REACTOR_MEMORY_SUMMARY__SEGMENT_MESSAGE_COUNT", "8")
    settings = Settings(summary={"trigger_message_count": 50})

    summary = settings.summary
    assert (summary.trigger_message_count, summary.segment_message_count, summary.mode) == (50, 8, "full")
    assert origin_of(settings, "summary.trigger_message_count") == "constructor"
    assert origin_of(settings, "summary.segment_message_count") == "environment"
    assert origin_of(settings, "summary.mode") == "file"
    assert origin_of(settings, "summary.recent_message_count") == "default"


def test_a_section_object_sets_only_what_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_SUMMARY__ENABLED", "true")
    settings = Settings(summary=SummarySettings(segment_message_count=5))
    assert settings.summary.enabled is True
    assert settings.summary.segment_message_count == 5


def test_a_section_may_be_one_json_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_SUMMARY", '{"enabled": true}')
    monkeypatch.setenv("REACTOR_MEMORY_SUMMARY__MODE", "full")
    assert (Settings().summary.enabled, Settings().summary.mode) == (True, "full")


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_SUMMARY__ENABLED", "")
    assert origin_of(Settings(), "summary.enabled") == "default"


@pytest.mark.parametrize(("name", "key"), USUAL_VARIABLES.items())
def test_usual_variables_of_other_programs_count(monkeypatch: pytest.MonkeyPatch, name: str, key: str) -> None:
    monkeypatch.setenv(name, SECRET)
    model = Settings().models.get(key.split(".")[1])
    value = model.api_key if model else Settings().value(key)
    assert (value.get_secret_value() if isinstance(value, SecretStr) else str(value)) == SECRET
    assert origin_of(Settings(), key) == "environment"


def key_in(settings: Settings, name: str) -> str | None:
    api_key = settings.model(name).api_key
    return api_key and api_key.get_secret_value()


def test_the_first_of_the_usual_variables_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", SECRET)
    monkeypatch.setenv("GOOGLE_API_KEY", "other")
    assert key_in(Settings(), "gemini") == SECRET


def test_our_own_variable_wins_over_the_usual_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "other")
    monkeypatch.setenv("REACTOR_MEMORY_MODELS__GEMINI__API_KEY", SECRET)
    assert key_in(Settings(), "gemini") == SECRET


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ({"provider": "gemini"}, "of Gemini"),
        ({"provider": "gemini", "base_url": "https://elsewhere"}, "of Gemini"),
        ({"provider": "openai"}, "of OpenAI"),
        ({"provider": "openai", "base_url": "https://elsewhere/v1"}, None),
        ({"provider": "openai", "base_url": "http://localhost:11434/v1"}, None),
        ({"provider": "openai", "base_url": "https://elsewhere/v1", "api_key": "of elsewhere"}, "of elsewhere"),
        ({"provider": "openai", "api_key": "of the constructor"}, "of the constructor"),
        ({"provider": "mine"}, None),
    ],
)
def test_a_usual_key_is_shown_to_its_own_provider_only(
    monkeypatch: pytest.MonkeyPatch, model: dict[str, str], key: str | None
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "of Gemini")
    monkeypatch.setenv("OPENAI_API_KEY", "of OpenAI")
    assert key_in(Settings(models={"of-mine": model}), "of_mine") == key
    name, entry = model["provider"], {each: value for each, value in model.items() if each != "provider"}
    assert key_in(Settings(models={name: entry}), name) == key
    assert key_in(Settings(models={name: ModelSettings(**entry)}), name) == key  # type: ignore[arg-type]


def test_the_address_of_a_model_may_be_given_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("REACTOR_MEMORY_MODELS__MY_OWN__PROVIDER", "openai")
    assert key_in(Settings(), "my_own") == SECRET
    write_config("reactor_memory: {models: {my-own: {base-url: 'https://elsewhere/v1'}}}")
    assert key_in(Settings(), "my_own") is None
    assert Settings().model("my_own").base_url == "https://elsewhere/v1"


@each_row(
    "url",
    [
        "http://localhost:11434/v1",
        "http://127.0.0.1:8000/v1",
        "http://[::1]:8000/v1",
        "http://ollama.localhost/v1",
        "https://10.0.0.1/v1",
    ],
)
def test_what_stays_on_this_machine_or_is_encrypted_is_asked(url: str) -> None:
    assert Settings(models={"openai": {"base_url": url}}).model("openai").base_url == url


def test_an_open_line_has_to_be_allowed() -> None:
    url = "http://ollama:11434/v1"
    assert Settings(models={"openai": {"base_url": url, "allow_http": True}}).model("openai").base_url == url


def test_the_limits_are_those_that_messages_are_checked_against() -> None:
    limits = msgspec.structs.asdict(MessageLimits())
    assert Settings().limits.model_dump() == {name: limits[name] for name in SETTABLE}


def test_settings_are_immutable() -> None:
    settings = Settings()
    with pytest.raises(ValueError, match="frozen"):
        settings.summary.enabled = True  # type: ignore[misc]
    with pytest.raises(ValueError, match="frozen"):
        settings.clock = "other"  # type: ignore[misc]


# The file


def test_kebab_case_is_read_as_underscores() -> None:
    write_config("reactor-memory: {summary: {trigger-message-count: 31}, history: {strategy: take-last}}")
    assert Settings().summary.trigger_message_count == 31
    assert Settings().history.strategy == "take_last"


def test_a_section_without_a_value_sets_nothing() -> None:
    write_config("reactor_memory:\n  summary:\n  # enabled: true\n")
    assert Settings().summary == SummarySettings()


def test_an_empty_file_sets_nothing() -> None:
    write_config("# nothing yet\n")
    assert {each.origin for each in Settings().origins()} == {"default"}


def test_the_named_file_replaces_the_one_in_the_working_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    write_config("reactor_memory: {summary: {mode: full}}")
    named = write_config("reactor_memory: {summary: {enabled: true}}", Path("elsewhere/named.yaml"))
    monkeypatch.setenv("REACTOR_MEMORY_CONFIG", str(named))
    assert (Settings().summary.enabled, Settings().summary.mode) == (True, "ledger")


@each_row(
    ("text", "key"),
    [
        ("summary: {enabled: true}", "reactor-memory.yaml"),
        ("- a\n- b", "reactor-memory.yaml"),
        ("reactor_memory: 5", "reactor-memory.yaml"),
        ("reactor_memory: {summary: [", "reactor-memory.yaml"),
        ("reactor_memory: {summary: 5}", "summary"),
        ("reactor_memory: {summary: {enabeld: true}}", "summary.enabeld"),
        ("reactor_memory: {sumary: {enabled: true}}", "sumary"),
    ],
)
def test_a_faulty_file_is_refused(text: str, key: str) -> None:
    write_config(text)
    with pytest.raises(ConfigurationError) as raised:
        Settings()
    assert raised.value.key.endswith(key)


def test_a_named_file_that_is_missing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_CONFIG", "no-such.yaml")
    with pytest.raises(ConfigurationError, match=r"REACTOR_MEMORY_CONFIG: cannot read no-such\.yaml"):
        Settings()


# What is refused


@each_row(
    ("values", "message"),
    [
        ({"sumary": {}}, "sumary: is no setting; did you mean summary?"),
        ({"summary": {"enabeld": True}}, "summary.enabeld: is no setting; did you mean summary.enabled?"),
        (
            {"context": {"trigger_message_count": 5}},
            "context.trigger_message_count: is no setting; did you mean summary.trigger",
        ),
        ({"summary": {"model": "m"}}, "summary.model: is no setting; did you mean models.NAME.model?"),
        ({"llm": {"model": "m"}}, "llm: is no setting; did you mean models.NAME.model?"),
        ({"summary": {"key": "k"}}, "summary.key: is no setting; did you mean models.NAME.api_key?"),
        ({"store": {"timeout": 5}}, "store.timeout: is no setting; did you mean store.timeout_seconds?"),
        ({"context": {"tokens": 5}}, "context.tokens: is no setting; did you mean context.max_tokens?"),
        ({"summary": {"max_tokens": 1}}, "summary.max_tokens: is no setting; did you mean"),
        ({"summary": {"recent_message_count": 20}}, "summary.recent_message_count: must be less than"),
        ({"summary": {"trigger_message_count": 10}}, "summary.recent_message_count: must be less than"),
        ({"summary": {"mode": "both"}}, "summary.mode: must be 'ledger' or 'full'"),
        ({"store": {"file_mode": 0o600}}, "store.file_mode: must be octal digits in quotes"),
        ({"store": {"file_mode": "0444"}}, "store.file_mode: must be octal digits in quotes"),
        ({"summary": {"memory_role": "assistant"}}, "summary.memory_role: must be 'system' or 'user'"),
        ({"summary": {"provider": " "}}, "summary.provider: must not be empty"),
        ({"models": {"m": {"base_url": "ftp://host"}}}, "models.m.base_url: must begin with http"),
        (
            {"models": {"m": {"base_url": "https://me:pw@host/v1"}}},
            "models.m.base_url: must be an address without",
        ),
        ({"models": {"m": {"base_url": "https://[::1/v1"}}}, "models.m.base_url: must have a host, in brackets"),
        ({"models": {"m": {"base_url": "https://host:65536/v1"}}}, "models.m.base_url: must have a host, in brackets"),
        ({"models": {"m": {"base_url": "https://:80/v1"}}}, "models.m.base_url: must have a host, in brackets"),
        (
            {"models": {"m": {"base_url": "https://host/v1?key=x"}}},
            "models.m.base_url: must be an address without",
        ),
        (
            {"models": {"m": {"base_url": "http://host/v1"}}},
            "models.m.base_url: must begin with https://, or name this machine",
        ),
        ({"models": {"m": {"base_url": "http://localhost.example/v1"}}}, "models.m.base_url: must begin with https://"),
        (
            {"models": {"m": {"base_url": "http://example.com\\.localhost/v1"}}},
            "models.m.base_url: must begin with https://",
        ),
        ({"models": {"m": {"base_url": "http://127.0.0.1.example/v1"}}}, "models.m.base_url: must begin with https://"),
        ({"models": {"m": {"base_url": "HTTP://10.0.0.1/v1"}}}, "models.m.base_url: must begin with https://"),
        ({"summary": {"max_tokens_per_day": -1}}, "summary.max_tokens_per_day: must be greater than or equal to 0"),
        ({"summary": {"lazy_timeout_seconds": -1}}, "summary.lazy_timeout_seconds: must be greater than or equal to 0"),
        ({"store": {"timeout_seconds": float("nan")}}, "store.timeout_seconds: must be a finite number"),
        ({"history": {"max_conversation_turns": 0}}, "history.max_conversation_turns: must be greater than 0"),
        ({"store": {"url": "history.db"}}, "store.url: must begin with a scheme"),
        (
            {"store": {"url": "memory://x"}},
            "store.url: has something behind memory://, which takes nothing: write memory",
        ),
        ({"context": {"reserved_output_tokens": 128_000}}, "context.reserved_output_tokens: must be less than"),
        ({"background": {"backoff_seconds": 301}}, "background.backoff_seconds: must not be more than"),
        ({"limits": {"max_session_bytes": "many"}}, "limits.max_session_bytes: must be a valid integer"),
    ],
)
def test_what_is_unknown_or_impossible_is_refused_by_key(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Settings(**values)
    assert str(raised.value).startswith(message)


@each_row(
    ("key", "meant"),
    [
        ("model", {"models.NAME.model"}),
        ("llm.model", {"models.NAME.model"}),
        ("llm_model", {"models.NAME.model"}),
        ("summary.llm_model", {"models.NAME.model"}),
        ("summary.llm", {"models.NAME.model"}),
        ("chat_llm", {"models.NAME.model"}),
        ("openai.model", {"models.NAME.model"}),
        ("api_key", {"models.NAME.api_key"}),
        ("search.dimensions", {"models.NAME.dimensions"}),
        ("summary.timeout_seconds", {"models.NAME.timeout_seconds"}),
        ("provider", {"summary.provider", "chat.provider"}),
        ("sumary.enabled", {"summary.enabled"}),
        ("store.polsize", {"store.pool_size"}),
        ("REACTOR_MEMORY_SUMMARY__MODEL", {"models.NAME.model"}),
    ],
)
def test_the_same_last_word_beats_similar_letters(key: str, meant: set[str]) -> None:
    given = suggestion(key, known_keys(Settings))
    assert meant <= {*re.findall(r"[a-zA-Z_]+(?:[.][a-zA-Z_]+)+", given)}, given


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("REACTOR_MEMORY_SUMARY__ENABLED", "did you mean REACTOR_MEMORY_SUMMARY__ENABLED?"),
        ("REACTOR_MEMORY_SUMMARY__ENABELD", "did you mean summary.enabled? (from the environment)"),
        ("REACTOR_MEMORY_SUMMARY_ENABLED", "did you mean REACTOR_MEMORY_SUMMARY__ENABLED?"),
        ("REACTOR_MEMORY_SUMMARY__MAX_FACT_TOKENS", "(from the environment)"),
        ("REACTOR_MEMORY_SUMMARY", "REACTOR_MEMORY_SUMMARY: a mapping must be written as JSON"),
        ("REACTOR_MEMORY_CONFG", "did you mean REACTOR_MEMORY_CONFIG?"),
    ],
)
def test_faulty_variables_are_refused_by_name(monkeypatch: pytest.MonkeyPatch, name: str, message: str) -> None:
    monkeypatch.setenv(name, SECRET)
    with pytest.raises(ConfigurationError) as raised:
        Settings()
    assert message in str(raised.value)
    assert SECRET not in str(raised.value)


def test_a_memory_and_the_service_share_file_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    write_config("reactor_memory: {http: {port: 9000}, summary: {mode: full}}")
    monkeypatch.setenv("REACTOR_MEMORY_AUTH__FAILURES_PER_MINUTE", "5")
    assert Settings().summary.mode == "full"
    service = ServiceSettings()
    assert (service.summary.mode, service.http.port, service.auth.failures_per_minute) == ("full", 9000, 5)
    with pytest.raises(ConfigurationError, match=r"^http: .* give it to ServiceSettings"):
        Settings(http={"port": 9000})


def test_a_section_on_its_own_refuses_in_the_same_words() -> None:
    with pytest.raises(ConfigurationError, match=r"^summary\.mode: must be"):
        SummarySettings(mode="both")  # type: ignore[arg-type]


# Secrets


def test_no_secret_is_shown_anywhere() -> None:
    settings = ServiceSettings(
        store={"url": f"postgresql://app:{SECRET}@host/db?sslpassword={SECRET}"},
        models={"mine": {"api_key": SECRET}},
        auth={
            "allow_shared_secrets": True,
            "issuers": [{"issuer": "i", "audience": "a", "algorithm": "HS256", "secret": SECRET * 4}],
        },
        streams={"redis_url": f"redis://:{SECRET}@host"},
        plugins={
            "options": {
                "sample": {"auth-token": SECRET, "deep": [{"key": SECRET}], "address": f"https://me:{SECRET}@h/"}
            }
        },
    )
    assert settings.value("plugins.options.sample.auth_token") == SECRET
    values = {each.key: each.value for each in settings.origins()}
    assert values["store.url"] == f"postgresql://app:{MASK}@host/db?sslpassword={MASK}"
    assert values["models.mine.api_key"] == MASK
    assert values["plugins.options.sample.auth_token"] == MASK
    assert SECRET not in str(values)
    assert SECRET not in repr(settings)
    assert SECRET not in str(settings)
    assert SECRET not in repr(settings.model_dump())
    assert SECRET not in settings.model_dump_json()
    assert SECRET not in repr(settings.store.model_dump())
    assert settings.model_dump()["store"]["url"] == f"postgresql://app:{MASK}@host/db?sslpassword={MASK}"


@pytest.mark.parametrize("field", ["url", "delete_grace_days"])
def test_refusals_do_not_repeat_values(field: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Settings(store={field: SECRET})
    assert SECRET not in str(raised.value)
    assert raised.value.__cause__ is None


@each_row(
    ("url", "shown"),
    [
        ("memory://", "memory://"),
        ("sqlite:////var/lib/memory.db", "sqlite:////var/lib/memory.db"),
        ("postgresql://host:5432/db", "postgresql://host:5432/db"),
        ("postgresql://app@host:5432/db", "postgresql://app@host:5432/db"),
        (f"postgresql://app:{SECRET}@host:5432/db", f"postgresql://app:{MASK}@host:5432/db"),
        (f"postgresql://app:a/{SECRET}@x@host/db", f"postgresql://app:{MASK}@host/db"),
        (
            f"postgresql://app:@/db?host=/run&PASSWORD={SECRET}",
            f"postgresql://app:{MASK}@/db?host=/run&PASSWORD={MASK}",
        ),
    ],
)
def test_masked_url(url: str, shown: str) -> None:
    assert masked_url(url) == shown


# The sample files


def test_the_sample_file_names_every_setting_and_equals_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = CONFIG / "reactor-memory.yaml"
    content = yaml.safe_load(sample.read_text())["reactor_memory"]
    written = {
        f"{section}.{key}" for section, values in content.items() if isinstance(values, dict) for key in values
    } | {key for key, value in content.items() if not isinstance(value, dict)}
    assert written == all_keys()

    defaults = Settings()
    monkeypatch.setenv("REACTOR_MEMORY_CONFIG", str(sample))
    assert Settings().model_dump() == defaults.model_dump()


def test_the_production_sample_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_CONFIG", str(CONFIG / "production.yaml"))
    settings = Settings()
    assert settings.store.url.startswith("postgresql://")
    assert (settings.summary.enabled, settings.summary.provider) == (True, "gemini")


def test_every_sample_is_tested() -> None:
    assert {path.name for path in CONFIG.iterdir()} == {"reactor-memory.yaml", "production.yaml"}


def test_an_address_of_memory_in_the_environment_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_STORE__URL", "memory:///agent.db")
    with pytest.raises(ConfigurationError, match=r"store\.url: has something behind memory://") as raised:
        Settings()
    assert "agent.db" not in str(raised.value)


# As a program sees it

PROGRAM = """
import json
from reactor_memory.settings.settings import Settings
print(json.dumps({key: [value, origin] for key, value, origin in Settings().origins()}))
"""


def test_toggles_by_environment_and_file_in_a_fresh_process() -> None:
    write_config("reactor_memory: {summary: {enabled: false, segment-message-count: 6}, plugins: {enabled: false}}")
    environment = {
        **os.environ,
        "REACTOR_MEMORY_SUMMARY__ENABLED": "true",
        "REACTOR_MEMORY_STORE__URL": f"postgresql://app:{SECRET}@host/db",
        "REACTOR_MEMORY_PLUGINS__DISABLED": "one,two-b",
        "REACTOR_MEMORY_PLUGINS__OPTIONS": '{"sample": {"size": 3}}',
        "GEMINI_API_KEY": SECRET,
        "PYTHONPATH": str(CONFIG.parent),
    }
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    shown = json.loads(done.stdout)
    assert shown["summary.enabled"] == ["true", "environment"]
    assert shown["summary.segment_message_count"] == ["6", "file"]
    assert shown["plugins.enabled"] == ["false", "file"]
    assert shown["plugins.disabled"] == ["one, two_b", "environment"]
    assert shown["plugins.options.sample.size"] == ["3", "environment"]
    assert shown["models.gemini.api_key"] == [MASK, "environment"]
    assert shown["store.url"] == [f"postgresql://app:{MASK}@host/db", "environment"]
    assert shown["clock"] == ["system", "default"]
    assert SECRET not in done.stdout + done.stderr


# Prices


def test_prices_come_by_model_from_every_source(monkeypatch: pytest.MonkeyPatch) -> None:
    write_config("reactor_memory: {prices: {models: {my-model: {cached_input: 1, input: 2, output: 3}}}}")
    monkeypatch.setenv("REACTOR_MEMORY_PRICES__MODELS", '{"other": {"cached_input": 0, "input": 5, "output": 6}}')
    prices = Settings().prices
    assert (prices.of("my-model").output, prices.of("other").input) == (3, 5)
    assert prices.of("unheard-of") == PriceSettings().default


@pytest.mark.parametrize(
    ("price", "problem"),
    [
        ({"cached_input": 0, "input": -1, "output": 1}, "input: must be greater than or equal to 0"),
        ({"cached_input": 0, "input": 1}, "output: Field required"),
        ({"cached_input": 0, "input": 1, "output": 1, "outpt": 1}, "outpt: is no setting"),
    ],
)
def test_a_price_that_is_wrong_is_named(price: dict[str, float], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^prices.models.m.{problem}"):
        Settings(prices={"models": {"m": price}})


# Tiers


@pytest.mark.parametrize("section", ["tiers", "summarization"])
def test_the_seeds_spelling_of_tiers(section: str) -> None:
    write_config(
        f"reactor-memory: {{{section}: {{recent-count: 5, condensed-count: 7, auto-threshold: 9, enabled: false}}}}"
    )
    tiers = Settings().tiers
    assert (tiers.recent_count, tiers.condensed_count, tiers.auto_threshold, tiers.enabled) == (5, 7, 9, False)
    assert Settings(**{section: {"recent_count": 6}}).tiers.recent_count == 6


def test_both_names_of_a_section_are_one_too_many() -> None:
    with pytest.raises(ConfigurationError, match=r"summarization: is another name of tiers"):
        Settings(tiers={"recent_count": 5}, summarization={"recent_count": 6})


def test_what_is_off_stays_off_whatever_else_is_given() -> None:
    tiers = Settings(tiers={"enabled": False, "recent_count": 0}).tiers
    assert (tiers.enabled, tiers.recent_count) == (False, 0)


@each_row(
    ("values", "key"),
    [
        ({"auto_threshold": 19}, "tiers.auto_threshold"),
        ({"recent_count": -1}, "tiers.recent_count"),
        ({"prompt": " \n"}, "tiers.prompt"),
        ({"retention": "forget"}, "tiers.retention"),
        ({"recent": 3}, "tiers.recent"),
    ],
)
def test_impossible_tiers_are_refused_by_name(values: dict[str, object], key: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Settings(tiers=values)
    assert caught.value.key == key


@each_row(
    ("text", "told"),
    [
        ("reactor_memory: &a {plugins: {options: {x: *a}}}", "holds an alias of what it stands in"),
        ("&a [*a]", "holds an alias of what it stands in"),
        ("reactor_memory: " + "{a: " * 60 + "}" * 60, "nested deeper than 50"),
        ("reactor_memory: " + "[" * 5000, "no valid YAML"),
        ("a: &a [" + "x, " * 99 + "]\nb: &b [" + "*a, " * 99 + "]\nc: [" + "*b, " * 99 + "]", "more than 10000 values"),
        ("reactor_memory: {store: {pool_size: " + "9" * 5000 + "}}", "no valid YAML"),
        ("reactor_memory: {store: {url: 2026-99-99}}", "no valid YAML"),
        ("#" * 2_000_000, "more than 1048576 bytes"),
    ],
)
def test_a_file_that_is_no_tree_is_refused(text: str, told: str) -> None:
    write_config(text)
    with pytest.raises(ConfigurationError, match=told):
        Settings()


def test_an_alias_repeats_a_value() -> None:
    write_config("url: &url sqlite:///other.db\nreactor_memory: {store: {url: *url}}")
    assert Settings().store.url == "sqlite:///other.db"
