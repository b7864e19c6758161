"""Where settings come from: each source is a nested mapping of what it sets, and nothing else.

The only module that reads the environment, and with `settings_file` the one that reads files.

* Environment: ``REACTOR_MEMORY_`` and the key, levels joined by two underscores: ``REACTOR_MEMORY_SUMMARY__ENABLED``.
  An empty variable counts as not set; names are separated by commas, a mapping is written as JSON.
  Some variables of other programs count too (`USUAL_VARIABLES`).
* File: the one that ``REACTOR_MEMORY_CONFIG`` names, else ``config/reactor-memory.yaml`` in the working folder if it
  is there; settings stand under the key ``reactor_memory``; hyphens in keys are read as underscores.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsError

from reactor_memory.errors import ConfigurationError
from reactor_memory.settings.setting_values import Section, canonical_name, keys_of_sections, suggestion

WITHOUT_FACTS = ("take_last", "progressive")
"""Strategies that show no facts: with them, ``summary.enabled`` is false unless it is set."""

SECTION_ALIASES = {"summarization": "tiers"}
"""Other names of sections, in files and in the constructor."""

OF_THE_SERVICE = ("auth", "http", "chat_server")
"""Sections that `ServiceSettings` have, too."""

ENVIRONMENT_PREFIX = "REACTOR_MEMORY_"
CONFIG_VARIABLE = "REACTOR_MEMORY_CONFIG"
DEFAULT_FILE = Path("config/reactor-memory.yaml")
ROOT_KEY = "reactor_memory"

USUAL_VARIABLES = {
    "GEMINI_API_KEY": "models.gemini.api_key",
    "GOOGLE_API_KEY": "models.gemini.api_key",
    "OPENAI_API_KEY": "models.openai.api_key",
}
"""Variables of other programs that set something here too, the first one before the next; ours win over them.

A key counts for every entry of `models` that asks its provider; that of OpenAI only at OpenAI's own address.
"""


def from_constructor(values: Mapping[str, Any], settings_type: type[BaseSettings]) -> dict[str, Any]:
    for name in OF_THE_SERVICE:
        if name in values and name not in settings_type.model_fields:
            raise ConfigurationError(name, "is read by the service alone: give it to ServiceSettings")
    given = {key: _set_fields(value) if isinstance(value, Section) else value for key, value in values.items()}
    return _with_own_names(given)


def _set_fields(section: Section) -> dict[str, Any]:
    return {key: getattr(section, key) for key in section.model_fields_set}


def _named_models(models: Any) -> Any:
    """The entries of `models` by the names that are compared."""
    if not isinstance(models, dict):
        return models
    entries = cast("dict[str, Any]", models).items()
    return {canonical_name(str(name)): _fields_of(entry) for name, entry in entries}


def _fields_of(entry: Any) -> Any:
    if isinstance(entry, Section):
        return _set_fields(entry)
    if not isinstance(entry, dict):
        return entry
    return {str(key).replace("-", "_"): value for key, value in cast("dict[str, Any]", entry).items()}


def defaults_beside(given: Mapping[str, Any]) -> dict[str, Any]:
    """A strategy that shows no facts needs no work on them, unless the settings ask for it."""
    history: Any = given.get("history")
    strategy = cast("Mapping[str, Any]", history).get("strategy") if isinstance(history, Mapping) else None
    shows_none = isinstance(strategy, str) and canonical_name(strategy) in WITHOUT_FACTS
    return {"summary": {"enabled": False}} if shows_none else {}


def from_environment(settings_type: type[BaseSettings]) -> dict[str, Any]:
    names = [name for name in map(str.upper, os.environ) if name.startswith(ENVIRONMENT_PREFIX)]
    if not names:
        return {}  # looking every setting up takes longer than opening a database
    _check_variables(names, settings_type)
    try:
        return _with_own_names(EnvSettingsSource(settings_type)())
    except SettingsError as error:
        section = re.search(r'field "(\w+)"', str(error))
        name = ENVIRONMENT_PREFIX + (section[1].upper() if section else "")
        raise ConfigurationError(name, "a mapping must be written as JSON") from None


def from_usual_variables(given: Mapping[str, Any]) -> dict[str, Any]:
    """What the variables of other programs set. `given` is everything else."""
    found = {key: value for name, key in reversed(USUAL_VARIABLES.items()) if (value := os.environ.get(name))}
    if not found:
        return {}
    models: Any = given.get("models")
    named = cast("dict[str, Any]", models) if isinstance(models, dict) else {}
    return {"models": _keys_of_models(found, {"gemini": {}, "openai": {}, **named})}


def _keys_of_models(keys: Mapping[str, str], models: Mapping[str, Any]) -> dict[str, Any]:
    """The key of its provider for each model that may be shown it."""
    fields = {name: cast("dict[str, Any]", entry) for name, entry in models.items() if isinstance(entry, dict)}
    providers = {name: canonical_name(str(entry.get("provider") or name)) for name, entry in fields.items()}
    return {
        name: {"api_key": key}
        for name, provider in providers.items()
        if (key := keys.get(f"models.{provider}.api_key"))
        and not (provider == "openai" and fields[name].get("base_url"))
    }


def _check_variables(names: Iterable[str], settings_type: type[BaseSettings]) -> None:
    """Refuse variables of ours that name no section; what stands below a section is checked with its values."""
    sections = [ENVIRONMENT_PREFIX + name.upper() for name in (*settings_type.model_fields, *OF_THE_SERVICE)]
    for name in names:
        if name != CONFIG_VARIABLE and name.split("__")[0] not in sections:
            known = [ENVIRONMENT_PREFIX + key.upper().replace(".", "__") for key in known_keys(settings_type)]
            raise ConfigurationError(name, f"is no setting{suggestion(name, [*known, CONFIG_VARIABLE])}")


def from_file(settings_type: type[BaseSettings]) -> dict[str, Any]:
    named = os.environ.get(CONFIG_VARIABLE)
    path = Path(named) if named else DEFAULT_FILE
    if not named and not _is_there(path):
        return {}
    from reactor_memory.settings.settings_file import sections_in  # with it comes YAML, which takes 28 ms

    try:
        sections = _with_own_names(sections_in(path, ROOT_KEY))
        others = {name for name in OF_THE_SERVICE if name not in settings_type.model_fields}
        return {name: section for name, section in sections.items() if name not in others}
    except OSError as error:
        field = CONFIG_VARIABLE if named else str(path)
        raise ConfigurationError(field, f"cannot read {path}: {error.strerror}") from None


def _is_there(path: Path) -> bool:
    """By opening it: asking for its state is a blocking call, which may be forbidden where settings are made."""
    try:
        path.open("rb").close()
    except OSError as error:
        return error.errno not in (errno.ENOENT, errno.ENOTDIR)
    return True


def _with_own_names(sections: dict[str, Any]) -> dict[str, Any]:
    """The sections under their own names instead of their aliases."""
    for alias, name in SECTION_ALIASES.items():
        if alias in sections and name in sections:
            raise ConfigurationError(alias, f"is another name of {name}: give one of the two")
    named = {SECTION_ALIASES.get(name, name): section for name, section in sections.items()}
    return named | {"models": _named_models(named["models"])} if "models" in named else named


def merged(layers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The layers on top of each other, the last one strongest; mappings are merged at every level."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            merged[key] = _merged_value(merged.get(key), value)
    return merged


def _merged_value(below: Any, above: Any) -> Any:
    if isinstance(below, dict) and isinstance(above, dict):
        return merged([cast("dict[str, Any]", below), cast("dict[str, Any]", above)])
    return above


def dotted(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        name = f"{prefix}{key}".replace("-", "_")
        if isinstance(value, dict) and value:
            yield from dotted(cast("dict[str, Any]", value), f"{name}.")
        else:
            yield name, value


def known_keys(settings_type: type[BaseSettings]) -> list[str]:
    return [*settings_type.model_fields, *keys_of_sections()]
