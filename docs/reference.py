"""The reference pages of the site, made from the code: the command line, HTTP, Python and the settings."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import click

import reactor_memory
from reactor_memory import errors, memory
from reactor_memory.cli import commands
from reactor_memory.server.problems import KINDS

ROOT = Path(__file__).parents[1]
Json: TypeAlias = Mapping[str, Any]

BEYOND_EXPORTS = ("core.turn.Turn", "sync.SyncMemory", "errors")
"""What is met in use, or imported from its module. All errors are in theirs."""


def pages() -> dict[str, str]:
    """The text of each page, by the name of its file."""
    return {
        "commands.md": commands_page(),
        "http.md": http_page(json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))),
        "python.md": python_page(),
        "settings.md": settings_page(),
    }


def settings_page() -> str:
    settings = (ROOT / "config" / "reactor-memory.yaml").read_text(encoding="utf-8")
    return f"# Settings\n\nEvery setting with its default.\n\n```yaml\n{settings}```\n"


def python_page() -> str:
    exported = [name for name in reactor_memory.__all__ if not hasattr(errors, name)]
    paths = [*(f"reactor_memory.{name}" for name in (*exported, *BEYOND_EXPORTS)), *features_of_memory()]
    begin = "# Python\n\nWhat `reactor_memory` exports, and the features of a `Memory`, from their docstrings."
    return "\n\n".join([begin, *(f"::: {path}" for path in paths)]) + "\n"


def features_of_memory() -> Iterator[str]:
    """The classes that the properties of a `Memory` give."""
    tree = ast.parse(Path(memory.__file__).read_text(encoding="utf-8"))
    for block in tree.body:
        if isinstance(block, ast.If):
            yield from (
                f"{each.module}.{each.names[0].name}" for each in block.body if isinstance(each, ast.ImportFrom)
            )


# The command line


def commands_page() -> str:
    helps = (f"## {path}\n\n```text\n{text}\n```" for path, text in helps_of(commands, "reactor-memory"))
    text = "# Command line\n\n" + "\n\n".join(helps) + "\n"
    return text.replace(f"{ROOT}/docs/", "docs/")  # helps name a page where it lies on this machine


def helps_of(command: click.Command, path: str, parent: click.Context | None = None) -> Iterator[tuple[str, str]]:
    """The help of a command and of all below it, as the terminal shows them, with how each is called."""
    context = click.Context(command, parent, info_name=path.rpartition(" ")[2], max_content_width=100)
    yield path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from helps_of(below, f"{path} {name}", context)


# HTTP


def http_page(described: Json) -> str:
    parts = [f"# HTTP\n\n{described['info']['description']}\n\nHow it is used: [the HTTP service](http-service.md)."]
    for tag in described["tags"]:
        parts.append(f"## {tag['name'].capitalize()}\n\n{tag['description']}")
        parts += [
            operation_text(described, method, path, operation)
            for path, operations in described["paths"].items()
            for method, operation in operations.items()
            if tag["name"] in operation["tags"]
        ]
    parts.append("## Objects")
    schemas = described["components"]["schemas"]
    parts += [schema_text(name, schemas[name]) for name in sorted(schemas)]
    parts.append(
        "## Errors\n\n" + table(("status", "code", "title"), ((k.status, f"`{k.code}`", k.title) for k in KINDS))
    )
    return "\n\n".join(parts) + "\n"


def operation_text(described: Json, method: str, path: str, operation: Json) -> str:
    lines = [f"### {operation['summary']}", f"`{method.upper()} {path}`", operation.get("description", "")]
    inputs = [*parameters_of(described, operation), *body_of(operation)]
    lines.append(table(("input", "in", "type", ""), inputs) if inputs else "")
    answers = (
        f"{status} {answer_of(answer)}".strip() for status, answer in operation["responses"].items() if status < "3"
    )
    lines.append(f"Answers {', '.join(answers)}.")
    return "\n\n".join(filter(None, lines))


def parameters_of(described: Json, operation: Json) -> Iterator[tuple[str, ...]]:
    for given in operation.get("parameters", ()):
        each = described["components"]["parameters"][name_of(given)] if "$ref" in given else given
        note = "required" if each.get("required") and each["in"] != "path" else ""
        yield f"`{each['name']}`", each["in"], type_of(each["schema"]), sentence(each.get("description"), note)


def body_of(operation: Json) -> Iterator[tuple[str, ...]]:
    for content in operation.get("requestBody", {}).get("content", {}).values():
        yield "", "body", type_of(content["schema"]), ""


def answer_of(answer: Json) -> str:
    return " or ".join(type_of(content["schema"]) for content in answer.get("content", {}).values())


def schema_text(name: str, schema: Json) -> str:
    required = set(schema.get("required", ()))
    rows = [
        (f"`{field}`", type_of(each), sentence(each.get("description"), "required" if field in required else ""))
        for field, each in schema.get("properties", {}).items()
    ]
    described = schema.get("description", "")
    shown = table(("field", "type", ""), rows) if rows else type_of(schema)
    return "\n\n".join(filter(None, [f"### {name}", described, shown]))


def type_of(schema: Json) -> str:
    """A type as people write it, with its bounds."""
    if "$ref" in schema:
        return f"[{name_of(schema)}](#{name_of(schema).lower()})"
    for several in ("oneOf", "anyOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(map(type_of, schema[several])))
    if "enum" in schema:
        kind = " or ".join(f"`{value}`" for value in schema["enum"])
    elif schema.get("type") == "array":
        kind = f"list of {type_of(schema.get('items', {}))}"
    else:
        kind = str(schema.get("type", "any"))
    return ", ".join([kind, *bounds_of(schema)])


def bounds_of(schema: Json) -> Iterator[str]:
    for word, least, most in (("", "minimum", "maximum"), (" characters", "minLength", "maxLength")):
        if least in schema and most in schema:
            yield f"{schema[least]:g} to {schema[most]:g}{word}"
        elif most in schema:
            yield f"at most {schema[most]:g}{word}"
        elif least in schema:
            yield f"at least {schema[least]:g}{word}"
    if "default" in schema:
        yield f"default `{json.dumps(schema['default'])}`"


def name_of(reference: Json) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def sentence(described: str | None, note: str) -> str:
    return "; ".join(filter(None, [note, " ".join((described or "").split())]))


def table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)
