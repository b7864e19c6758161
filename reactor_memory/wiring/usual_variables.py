"""What variables of other programs set: whom a key belongs to decides for whom it counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from reactor_memory.wiring.setting_values import canonical_name

_OPENAI_KEY = "OPENAI_API_KEY"


def layers_of(found: Mapping[str, str], keys: Mapping[str, str], given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What the variables `found` set, the weakest first. `keys` names the setting of each; `given` is set otherwise."""
    summary = _given_section(given, "summary")
    for name in reversed(list(found)):
        section, _, field = keys[name].partition(".")
        if keys[name] != "summary.api_key":
            yield {section: {field: found[name]}}
            continue
        asking = {
            "summary": summary,
            "chat": _chat_asks(summary, _given_section(given, "chat")),
            **_search_asks(_given_section(given, "search")),
        }
        yield {section: {field: found[name]} for section, asks in asking.items() if _is_key_of(name, asks)}


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
