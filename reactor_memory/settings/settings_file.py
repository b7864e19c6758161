"""Settings in a YAML file. Imported when there is one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from reactor_memory.errors import ConfigurationError
from reactor_memory.text.bounded_files import UnreadableError, read_at_most

MOST_BYTES = 1024 * 1024
MOST_NODES = 10_000
MOST_DEPTH = 50

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The one in C reads a file of settings in a tenth of the time; PyYAML may be built without it."""


def sections_in(path: Path, root_key: str) -> dict[str, Any]:
    """The sections below `root_key`, with underscores for the hyphens of their keys."""
    try:
        document = _loaded(read_at_most(path, MOST_BYTES).decode())
    except UnreadableError as error:
        raise ConfigurationError(str(path), str(error)) from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise ConfigurationError(str(path), f"is no valid YAML{_place_of(error)}") from None
    return _sections_of(document, path, root_key)


def _loaded(text: str) -> Any:
    """The values of a document. Raises `UnreadableError` for one that is no tree of a sensible size."""
    loader = _LOADER(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return None
        for number, _ in enumerate(_nodes(root, MOST_DEPTH)):
            if number > MOST_NODES:
                raise UnreadableError(f"holds more than {MOST_NODES} values")
        return loader.construct_document(root)
    finally:
        loader.dispose()


def _nodes(node: yaml.Node, depth: int) -> Iterator[yaml.Node]:
    """A node and those below it, each as often as an alias repeats it."""
    if not depth:
        raise UnreadableError(f"is nested deeper than {MOST_DEPTH}, or holds an alias of what it stands in")
    yield node
    if isinstance(node, yaml.CollectionNode):
        inner = chain.from_iterable(node.value) if isinstance(node, yaml.MappingNode) else node.value
        for each in inner:
            yield from _nodes(each, depth - 1)


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
