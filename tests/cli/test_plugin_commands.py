"""Commands of plug-ins: under a prefix, with the options of ours, and in the way of nothing when they are broken."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import Any

import click
import pytest

from reactor_memory.cli import main
from reactor_memory.extend import InvalidInputError, Invocation, Plugin, with_common_options
from tests.scenes.tables import each_row

Ran = Callable[..., tuple[int, str, str]]


@click.command()
@click.argument("name")
@with_common_options
async def greet(invocation: Invocation, name: str) -> None:
    """Greet somebody."""
    async with invocation.memory(creates=True) as memory:
        kept = await memory.list_sessions(user_id=invocation.user_id)
        invocation.show({"hello": name, "kept": len(kept.sessions)}, lambda: f"Hello, {name}.")


@click.command()
def fail() -> None:
    """Fail."""
    raise ZeroDivisionError("s3cret")


@click.command()
def refuse() -> None:
    """Refuse."""
    raise InvalidInputError("name", "is too long")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ran:
    announced = {
        "polite": Plugin(name="polite", commands={"greet": greet, "fail": fail, "refuse": f"{__name__}:refuse"}),
        "broken": Plugin(name="broken", commands={"away": "no_such_module:away", "none": f"{__name__}:Ran"}),
        "silent": Plugin(name="silent"),
        "absent": Plugin(name="absent", commands={"greet": greet}, requires_packages=("no-such-package",)),
    }
    for name, each in announced.items():
        monkeypatch.setattr(sys.modules[__name__], f"plugin_{name}", each, raising=False)
    found = [EntryPoint(name, f"{__name__}:plugin_{name}", "reactor_memory.plugins") for name in announced]
    found.append(EntryPoint("odd", "no_such_module:plugin", "reactor_memory.plugins"))
    monkeypatch.setattr("reactor_memory.cli.plugin_commands.discover", lambda: tuple(found))
    monkeypatch.setenv("REACTOR_MEMORY_STORE__URL", "memory://")

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return run


def test_a_command_is_called_below_its_plug_in(run: Ran) -> None:
    assert run("plugin", "polite", "greet", "Ann") == (0, "Hello, Ann.\n", "")
    code, out, _ = run("plugin", "polite", "greet", "Ann", "--json", "--user", "ann")
    assert (code, '"kept": 0' in out) == (0, True)


@each_row(
    "arguments, code, told",
    [
        (("fail",), 2, "polite (tests.cli.test_plugin_commands:plugin_polite): its command fail fails with a ZeroDiv"),
        (("refuse",), 2, "name: is too long"),
        (("greet",), 2, "Missing argument 'NAME'"),
        (("grete",), 2, "No such command 'grete'"),
    ],
)
def test_what_goes_wrong_is_one_line(run: Ran, arguments: tuple[str, ...], code: int, told: str) -> None:
    ended, out, err = run("plugin", "polite", *arguments)
    assert (ended, out, err.count("\n")) == (code, "", 1)
    assert told in err
    assert "s3cret" not in err


@each_row(
    "arguments, told",
    [
        (("broken", "away"), "its command away cannot be imported: ModuleNotFoundError"),
        (("broken", "none"), "its command none is no click.Command"),
        (("odd", "greet"), "plug-in odd (no_such_module:plugin): cannot be imported: ModuleNotFoundError"),
        (("absent", "greet"), "No such command 'absent'"),
        (("silent", "greet"), "No such command 'silent'"),
    ],
)
def test_a_broken_plug_in_is_named(run: Ran, arguments: tuple[str, ...], told: str) -> None:
    code, _, err = run("plugin", *arguments)
    assert (code, told in err) == (2, True), err


@each_row(
    "arguments, shown",
    [
        (("--help",), ["doctor", "plugin"]),
        (("plugin", "--help"), ["polite", "broken", "Left out", "odd"]),
        (("plugin", "polite", "--help"), ["greet", "Greet somebody.", "refuse"]),
        (("plugin", "broken", "--help"), ["away", "(plug-in broken", "cannot be imported", "none"]),
        (("plugin", "polite", "greet", "--help"), ["Greet somebody.", "--store", "--user"]),
    ],
)
def test_help_is_never_in_the_way(run: Ran, arguments: tuple[str, ...], shown: list[str]) -> None:
    code, out, _ = run(*arguments)
    assert code == 0
    assert [each for each in shown if each not in out] == []


def test_help_of_everything_asks_no_plug_in(run: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Any:
        raise AssertionError

    monkeypatch.setattr("reactor_memory.cli.plugin_commands.discover", fail)
    assert run("--help")[0] == 0


def test_plug_ins_that_contradict_each_other_are_told(run: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[__name__]
    for name, other in (("polite", "silent"), ("silent", "polite")):
        monkeypatch.setattr(module, f"plugin_{name}", Plugin(name=name, after=(other,), commands={"greet": greet}))
    code, out, _ = run("plugin", "--help")
    assert (code, "stand behind each other" in " ".join(out.split())) == (0, True)
