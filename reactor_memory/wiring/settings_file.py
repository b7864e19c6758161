"""Settings in a YAML file. Imported when there is one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from reactor_memory.errors import ConfigurationError

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The one in C reads a file of settings in a tenth of the time; PyYAML may be built without it."""


def sections_in(path: Path, root_key: str) -> dict[str, Any]:
    """The sections below `root_key`, with underscores for the hyphens of their keys."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), _LOADER)  # noqa: S506 (both are safe)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(str(path), f"is no valid YAML{_place_of(error)}") from None
    return _sections_of(document, path, root_key)


def _place_of(error: Exception) -> str:
    """The line of what a parser could not read, and what it is."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return ""
    return f", line {error.problem_mark.line + 1}: {error.problem}"


def _sections_of(document: Any, path: Path, root_key: str) -> dict[str, Any]:
    """The part of a document that is ours. A section without a value, all commented out, sets nothing."""
    if document is None:
        return {}
    root = _with_underscores(document) if isinstance(document, dict) else {}
    sections = root.get(root_key, ...)
    if sections is ... or not isinstance(sections, dict | None):
        raise ConfigurationError(str(path), f"needs the key {root_key} with the settings below it")
    return {
        name: _with_underscores(section) if isinstance(section, dict) else section
        for name, section in _with_underscores(sections or {}).items()
        if section is not None
    }


def _with_underscores(mapping: Any) -> dict[str, Any]:
    return {str(key).replace("-", "_"): value for key, value in mapping.items()}
