"""The reference of the site, made from the code, leaves nothing out."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import reactor_memory
from reactor_memory.cli import commands
from reactor_memory.memory import Memory

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    make: Callable[[], dict[str, str]] = runpy.run_path(str(ROOT / "docs" / "reference.py"))["pages"]
    return make()


def test_every_command_has_its_section_with_all_its_options(pages: dict[str, str]) -> None:
    sections = dict(part.split("\n", 1) for part in pages["commands.md"].split("\n## ")[1:])
    for path, command in _all_commands(commands, "reactor-memory"):
        shown = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
        assert [name for option in shown for name in option.opts if name not in sections[path]] == []


def _all_commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from _all_commands(command, f"{path} {name}")


def test_every_operation_of_the_service_is_described_with_its_parameters(pages: dict[str, str]) -> None:
    described = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
    sections = pages["http.md"].split("\n### ")
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            (section,) = [each for each in sections if f"`{method.upper()} {path}`\n" in each]
            given = [each["name"] for each in operation.get("parameters", ()) if "name" in each]
            assert [name for name in given if f"`{name}`" not in section] == []


def test_every_object_of_the_service_is_described_with_its_fields(pages: dict[str, str]) -> None:
    described = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
    sections = dict(part.split("\n", 1) for part in pages["http.md"].split("\n### ")[1:])
    for name, schema in described["components"]["schemas"].items():
        assert [field for field in schema.get("properties", ()) if f"| `{field}` |" not in sections[name]] == []


def test_every_export_and_every_feature_is_described(pages: dict[str, str]) -> None:
    listed = pages["python.md"].split()
    missing = [name for name in reactor_memory.__all__ if f"reactor_memory.{name}" not in listed]
    assert [name for name in missing if not hasattr(reactor_memory.errors, name)] == []
    features = [value.fget for value in vars(Memory).values() if isinstance(value, property)]
    given = [feature.__annotations__["return"] for feature in features if feature is not None]
    assert [name for name in given if not any(path.endswith(f".{name}") for path in listed)] == []


def test_every_setting_is_listed(pages: dict[str, str]) -> None:
    documented = (ROOT / "config" / "reactor-memory.yaml").read_text(encoding="utf-8")  # which names every setting
    assert documented in pages["settings.md"]

    def sections(model: Any) -> Iterator[str]:
        for name, field in model.model_fields.items():
            yield name
            if hasattr(field.annotation, "model_fields"):
                yield from sections(field.annotation)

    assert [name for name in sections(reactor_memory.Settings) if f"{name}:" not in pages["settings.md"]] == []
