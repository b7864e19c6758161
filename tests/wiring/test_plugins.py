"""Discovery, conditions and order of plug-ins. The distributions are real ones, on the path of the test."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from reactor_memory import open_memory
from reactor_memory.errors import ConfigurationError, PluginError
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring import plugins
from reactor_memory.wiring.plugins import GROUP, Plugin, discover, evaluate, load
from tests.scenes.tables import each_row


def make_one(settings: Settings) -> str:
    return f"one of {settings.plugins.options.get('first', {})}"


def make_two(settings: Settings) -> str:
    return "two"


def fail(settings: Settings) -> str:
    raise ZeroDivisionError("inside the plug-in")


def refuse(settings: Settings) -> str:
    raise ConfigurationError("plugins.options.first.size", "is too small")


def plugin(name: str = "first", **fields: Any) -> Plugin:
    return Plugin(name=name, **{"provides": {"summarizer": {"one": make_one}}, **fields})


class Distributions:
    """Writes installed packages into a folder of the path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, name: str, code: str, *, module: str | None = None) -> EntryPoint:
        module = module or f"{name.replace('-', '_')}_module"
        info = self._folder / f"dist_{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: dist-{name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {module}:plugin\n")
        (self._folder / f"{module}.py").write_text(f"from reactor_memory.wiring.plugins import Plugin\n{code}\n")
        return next(each for each in discover() if each.value == f"{module}:plugin")

    def remove(self, name: str) -> None:
        shutil.rmtree(self._folder / f"dist_{name.replace('-', '_')}_module-1.0.dist-info")


@pytest.fixture
def distributions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Distributions:
    monkeypatch.syspath_prepend(tmp_path)
    return Distributions(tmp_path)


def reason(candidates: list[Plugin | EntryPoint], settings: Settings) -> tuple[bool, str]:
    condition = evaluate(candidates, settings).conditions[-1]
    return condition.selected, condition.reason


# Discovery


def test_an_installed_package_is_discovered_and_takes_part(distributions: Distributions) -> None:
    entry_point = distributions.add(
        "third-a", "plugin = Plugin(name='third-a', provides={'redactor': {'loud-one': lambda settings: str.upper}})"
    )
    report = evaluate([entry_point], Settings())
    assert report.conditions[0].source == "dist-third-a 1.0"
    assert report.bindings[0].reason == "from dist-third-a 1.0"
    assert report.factory("redactor", "loud_one", key="redactor")(Settings())("loud") == "LOUD"


def test_discovery_imports_nothing(distributions: Distributions) -> None:
    entry_point = distributions.add("explosive", "raise SystemError('imported')")
    assert entry_point in discover()


def test_a_package_that_is_removed_is_not_announced_any_more(distributions: Distributions) -> None:
    entry_point = distributions.add("short-lived", "plugin = None")
    distributions.remove("short-lived")
    assert entry_point not in discover()


def test_packages_are_read_once_whatever_else_changes_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []

    def counted(*, group: str) -> EntryPoints:
        reads.append(group)
        return entry_points(group=group)

    monkeypatch.setattr(plugins, "entry_points", counted)
    monkeypatch.setattr(sys, "path", [*sys.path, "a folder that is not there", str(tmp_path)])
    before = discover()
    (tmp_path / "agent.db").touch()
    assert discover() == before
    assert reads == [GROUP]


def test_a_folder_is_listed_again_only_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, distributions: Distributions
) -> None:
    listed: list[str] = []

    def listing(folder: str) -> list[str]:
        listed.append(folder)
        return listdir(folder)

    listdir = os.listdir
    monkeypatch.setattr(plugins.os, "listdir", listing)
    os.utime(tmp_path, (1, 1))
    before, often = discover(), len(listed)
    assert discover() == before
    assert str(tmp_path) not in listed[often:]
    distributions.add("late", "")
    assert "late" in {each.name for each in discover()}


def test_a_folder_that_changed_just_now_is_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "time_ns", lambda: 1_000_000_000)
    os.utime(tmp_path, ns=(0, 0))
    assert not plugins._packages(str(tmp_path))
    (tmp_path / "late.dist-info").mkdir()
    os.utime(tmp_path, ns=(0, 0))  # a clock with a tick of seconds
    assert plugins._packages(str(tmp_path)) == {"late.dist-info"}


@pytest.mark.parametrize(
    ("switch", "why"),
    [
        ({"enabled": False}, "plugins.enabled is false"),
        ({"disabled": ("explo-sive",)}, "named in plugins.disabled"),
        ({"disabled": ("explo_sive",)}, "named in plugins.disabled"),
    ],
)
def test_what_is_switched_off_is_not_imported(distributions: Distributions, switch: dict[str, Any], why: str) -> None:
    entry_point = distributions.add("explo-sive", "raise SystemError('imported')")
    assert reason([entry_point], Settings(plugins=switch)) == (False, why)


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import no_such_package", "cannot be imported: ModuleNotFoundError"),
        ("plug = 1", "cannot be imported: AttributeError"),
        ("plugin = 5", "not to a int"),
        ("plugin = Plugin(name='other', provides={})", "calls itself other"),
        ("plugin = Plugin(name='broken', provides={'stores': {}})", "provides stores, which is no plug point"),
        ("plugin = Plugin(name='broken', provides={'clock': {'x': 'module'}})", "x: a factory is"),
        ("plugin = Plugin(name='broken', provides={'clock': {'x': None}})", "x: a factory is"),
        ("plugin = Plugin(name='broken', tool_roles={'x': 'write'})", "tool_roles.x must be one of act, read, think"),
    ],
)
def test_a_broken_plug_in_is_named(distributions: Distributions, code: str, problem: str) -> None:
    entry_point = distributions.add("broken", code, module=f"broken_{crc32(code.encode())}")
    with pytest.raises(PluginError) as raised:
        load(entry_point)
    assert str(raised.value).startswith("plug-in broken (dist-broken 1.0): ")
    assert problem in str(raised.value)


# Conditions


def test_without_conditions_a_plug_in_takes_part() -> None:
    assert reason([plugin()], Settings()) == (True, "conditions met")


def test_a_missing_package_leaves_the_plug_in_out() -> None:
    needy = plugin(requires_packages=("msgspec", "no-such-package"))
    assert reason([needy], Settings()) == (False, "needs the package no-such-package, which is not installed")


@each_row(
    ("options", "selected"),
    [({}, False), ({"on": False}, False), ({"on": True}, True), ({"on": "True"}, True), ({"on": "true"}, True)],
)
def test_an_option_of_the_plug_in_decides(options: dict[str, Any], selected: bool) -> None:
    optional = plugin(requires_settings={"plugins.options.first.on": True})
    assert reason([optional], Settings(plugins={"options": {"first": options}}))[0] is selected


def test_any_setting_may_be_a_condition() -> None:
    ledger_only = plugin(requires_settings={"summary.mode": "ledger", "summary.enabled": True})
    assert reason([ledger_only], Settings(summary={"enabled": True})) == (True, "conditions met")
    assert reason([ledger_only], Settings(summary={"enabled": False})) == (False, "needs summary.enabled: true")


def test_condition_on_setting_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(PluginError, match=r"plug-in first: requires_settings: summary\.enabeld: is no setting"):
        evaluate([plugin(requires_settings={"summary.enabeld": True})], Settings())


def test_what_is_left_out_provides_nothing_and_closes_nothing() -> None:
    report = evaluate([plugin(requires_packages=("no-such-package",), on_close=lambda: None)], Settings())
    assert report.bindings == ()
    assert report.closers == ()
    with pytest.raises(ConfigurationError, match="plug-in first: needs the package no-such-package") as raised:
        report.factory("summarizer", "one", key="summary.provider")
    assert raised.value.key == "summary.provider"


# Order


@pytest.mark.parametrize("swap", [False, True])
def test_the_higher_order_wins(swap: bool) -> None:
    low = plugin("low")
    high = plugin("high", order=5, provides={"summarizer": {"one": make_two}})
    report = evaluate([high, low] if swap else [low, high], Settings())
    assert report.factories["summarizer"]["one"](Settings()) == "two"
    assert [(each.plugin, each.selected, each.reason) for each in report.bindings] == [
        ("low", False, "replaced by plug-in high"),
        ("high", True, "from reactor-memory"),
    ]


def test_the_same_order_for_the_same_name_is_an_error() -> None:
    with pytest.raises(PluginError, match="provides the summarizer one, as does plug-in first of the same order"):
        evaluate([plugin("first"), plugin("second")], Settings())


def test_closing_goes_from_the_highest_order_down() -> None:
    closed: list[str] = []
    plugins = [
        plugin(
            name, order=order, provides={"summarizer": {name: make_one}}, on_close=lambda name=name: closed.append(name)
        )
        for name, order in (("middle", 1), ("last", 0), ("first", 2))
    ]
    for close in evaluate(plugins, Settings()).closers:
        close()
    assert closed == ["first", "middle", "last"]


# Factories


def test_a_factory_gets_the_settings() -> None:
    settings = Settings(plugins={"options": {"first": {"size": 3}}})
    assert evaluate([plugin()], settings).factories["summarizer"]["one"](settings) == "one of {'size': 3}"


def test_factory_given_as_text_is_imported_when_it_is_called() -> None:
    report = evaluate([plugin(provides={"clock": {"one": "no_such_module:make"}})], Settings())
    with pytest.raises(
        PluginError, match=r"plug-in first \(reactor-memory\): cannot make the clock one: ModuleNotFound"
    ):
        report.factory("clock", "one", key="clock")(Settings())


def test_fault_inside_a_factory_is_named_after_the_plug_in() -> None:
    report = evaluate([plugin(provides={"summarizer": {"one": fail, "two": refuse}})], Settings())
    with pytest.raises(PluginError, match="cannot make the summarizer one: ZeroDivisionError"):
        report.factories["summarizer"]["one"](Settings())
    with pytest.raises(ConfigurationError, match=r"^plugins\.options\.first\.size: is too small$"):
        report.factories["summarizer"]["two"](Settings())


def test_an_unknown_name_lists_the_known_ones() -> None:
    report = evaluate([plugin()], Settings())
    with pytest.raises(ConfigurationError, match=r"^summary\.provider: no summarizer is called 'on'; there are: one$"):
        report.factory("summarizer", "on", key="summary.provider")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("sections", "key"),
    [
        ({"store": {"url": "mongodb://host/name"}}, "store.url"),
        ({"store": {"url": "memory://"}, "streams": {"backend": "infinispan"}}, "streams.backend"),
    ],
)
async def test_error_for_store_that_there_is_not_names_the_page(sections: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"{key}.*docs/stores\.md says how a plug-in adds one"):
        async with open_memory(Settings(**sections)):
            pass
    assert (Path(__file__).parents[2] / "docs" / "stores.md").is_file()
