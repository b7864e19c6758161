"""Plug-ins: installed packages that add implementations of plug points.

A package announces an entry point of the group ``reactor_memory.plugins`` that refers to a `Plugin`::

    [project.entry-points."reactor_memory.plugins"]
    sample = "sample_plugin:plugin"

The entry point has the name of the plug-in: the name under which settings switch it off (``plugins.disabled``) and
give it options (``plugins.options.sample``). Nothing is imported before the settings allow it, and the factories of a
plug-in whose conditions are not met are never called.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from typing import Any, TypeAlias

from reactor_memory.errors import ConfigurationError, PluginError, ReactorMemoryError
from reactor_memory.wiring.setting_values import canonical_name
from reactor_memory.wiring.settings import Settings

GROUP = "reactor_memory.plugins"
PLUG_POINTS = (
    "database",
    "message_store",
    "summary_store",
    "summarizer",
    "chat_model",
    "chat_agent",
    "token_counter",
    "strategy",
    "recall_index",
    "embedder",
    "redactor",
    "memory_management",
    "stream_store",
    "clock",
)

WITHOUT_DATABASE = "is none: it keeps the log and summaries only, and what else there is refuses its work"
"""Why a store of a plug-in is not the database, which sharing, search, keys and all other features ask."""

Factory: TypeAlias = Callable[[Settings], Any]
"""Makes the implementation from the settings. It does no I/O."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plugin:
    """What a package adds, and when.

    `provides` maps plug point to name to factory. A factory may be given as ``"package.module:attribute"``, which is
    imported only when the settings select the name. The name of a message store is the scheme of its URL.

    The plug-in takes part when every package of `requires_packages` is installed (names of distributions) and every
    setting of `requires_settings` (by dotted key) has the wanted value, compared as text in lower case, as the
    environment gives it. When two plug-ins provide the same name the higher `order` wins; the same order twice is a
    `PluginError`. What the library brings along has order -1.

    `on_close` is called once, after everything that came from the plug-in was closed.
    """

    name: str
    provides: Mapping[str, Mapping[str, Factory | str]]
    order: int = 0
    requires_settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    requires_packages: tuple[str, ...] = ()
    on_close: Callable[[], Awaitable[None] | None] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """Whether a plug-in takes part, and why. `source` is the distribution that it comes from."""

    plugin: str
    source: str
    selected: bool
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Binding:
    """Whether the implementation that `plugin` provides under `name` is the one in force, and why."""

    plug_point: str
    name: str
    plugin: str
    selected: bool
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ConditionReport:
    """What is available and why: the answer of `evaluate`.

    `factories` maps plug point to name to factory. `closers` are the `on_close` of the plug-ins that take part, in
    the order of calling: the highest `order` first.
    """

    conditions: tuple[Condition, ...]
    bindings: tuple[Binding, ...]
    factories: Mapping[str, Mapping[str, Factory]]
    closers: tuple[Callable[[], Awaitable[None] | None], ...]

    def factory(self, plug_point: str, name: str, *, key: str) -> Factory:
        """The factory of `name`; `key` is the setting that asks for it, named in the `ConfigurationError`."""
        known = self.factories.get(plug_point, {})
        try:
            return known[canonical_name(name)]
        except KeyError:
            problem = f"no {plug_point} is called {name!r}; there are: {', '.join(sorted(known)) or 'none'}"
            raise ConfigurationError(key, problem + self._skipped() + _remedy(plug_point)) from None

    def _skipped(self) -> str:
        reasons = [f"plug-in {each.plugin}: {each.reason}" for each in self.conditions if not each.selected]
        return f" (left out: {'; '.join(reasons)})" if reasons else ""


def _remedy(plug_point: str) -> str:
    if plug_point not in ("database", "stream_store"):
        return ""
    from reactor_memory.text.documents import page

    return f"; {page('stores')} says how a plug-in adds one"


@dataclass(frozen=True, slots=True)
class _Candidate:
    plugin: Plugin
    source: str


def discover() -> tuple[EntryPoint, ...]:
    """The announced plug-ins, by name; none is imported. They are read again when other packages are on the path."""
    return _announced(tuple((folder, _packages(folder)) for folder in sys.path))


@lru_cache(maxsize=1)
def _announced(path: tuple[tuple[str, frozenset[str]], ...]) -> tuple[EntryPoint, ...]:
    """What the packages of this `path` announce: reading it takes longer than the rest of opening a memory."""
    return tuple(sorted(entry_points(group=GROUP), key=lambda entry_point: entry_point.name))


def _packages(folder: str) -> frozenset[str]:
    try:
        names = os.listdir(folder or ".")  # noqa: PTH208 (four times as fast as paths)
    except OSError:
        return frozenset()
    return frozenset(name for name in names if name.endswith((".dist-info", ".egg-info")))


def load(entry_point: EntryPoint) -> Plugin:
    """The plug-in behind an entry point. Whatever is wrong with it is a `PluginError`."""
    try:
        plugin = entry_point.load()
    except Exception as error:
        raise PluginError(_title(entry_point), f"cannot be imported: {type(error).__name__}: {error}") from error
    problem = _defect(plugin, entry_point.name)
    if problem:
        raise PluginError(_title(entry_point), problem)
    return plugin


def evaluate(candidates: Iterable[Plugin | EntryPoint], settings: Settings) -> ConditionReport:
    """Decide which plug-ins take part and who provides what.

    Entry points are loaded unless the settings switch them off; a `Plugin` counts as a part of the library.
    """
    conditions: list[Condition] = []
    chosen: list[_Candidate] = []
    for each in candidates:
        source = "reactor-memory" if isinstance(each, Plugin) else _source(each)
        plugin, obstacle = (each, None) if isinstance(each, Plugin) else _load_if_allowed(each, settings)
        obstacle = obstacle or (plugin and _unmet_condition(plugin, settings))
        conditions.append(
            Condition(plugin=each.name, source=source, selected=not obstacle, reason=obstacle or "conditions met")
        )
        if plugin and not obstacle:
            chosen.append(_Candidate(plugin, source))
    return _report(tuple(conditions), sorted(chosen, key=lambda candidate: candidate.plugin.order))


def _load_if_allowed(entry_point: EntryPoint, settings: Settings) -> tuple[Plugin | None, str | None]:
    if not settings.plugins.enabled:
        return None, "plugins.enabled is false"
    if canonical_name(entry_point.name) in settings.plugins.disabled:
        return None, "named in plugins.disabled"
    return load(entry_point), None


def _unmet_condition(plugin: Plugin, settings: Settings) -> str | None:
    for package in plugin.requires_packages:
        if not _is_installed(package):
            return f"needs the package {package}, which is not installed"
    for key, wanted in plugin.requires_settings.items():
        if _as_text(_setting(settings, key, plugin)) != _as_text(wanted):
            return f"needs {key}: {_as_text(wanted)}"
    return None


def _is_installed(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True


def _setting(settings: Settings, key: str, plugin: Plugin) -> Any:
    try:
        return settings.value(key)
    except ConfigurationError as error:
        raise PluginError(f"plug-in {plugin.name}", f"requires_settings: {error}") from error


def _as_text(value: Any) -> str:
    return str(value).lower()


def _report(conditions: tuple[Condition, ...], chosen: list[_Candidate]) -> ConditionReport:
    bindings: list[Binding] = []
    factories: dict[str, dict[str, Factory]] = {plug_point: {} for plug_point in PLUG_POINTS}
    winners = _winners(chosen)
    for candidate in chosen:
        for plug_point, name, factory in _provided(candidate.plugin):
            winner = winners[plug_point, name]
            selected = winner is candidate
            reason = f"from {candidate.source}" if selected else f"replaced by plug-in {winner.plugin.name}"
            bindings.append(
                Binding(
                    plug_point=plug_point, name=name, plugin=candidate.plugin.name, selected=selected, reason=reason
                )
            )
            if selected:
                factories[plug_point][name] = _guarded(factory, candidate, f"{plug_point} {name}")
    bindings += _without_database(bindings, factories["database"])
    closers = tuple(each.plugin.on_close for each in reversed(chosen) if each.plugin.on_close)
    return ConditionReport(conditions=conditions, bindings=tuple(bindings), factories=factories, closers=closers)


def _without_database(bindings: Sequence[Binding], databases: Collection[str]) -> list[Binding]:
    """What the stores lack that are no database."""
    return [
        replace(each, plug_point="database", selected=False, reason=WITHOUT_DATABASE)
        for each in bindings
        if each.plug_point == "message_store" and each.selected and each.name not in databases
    ]


def _winners(chosen: Iterable[_Candidate]) -> dict[tuple[str, str], _Candidate]:
    """Who provides each name: the last of `chosen`, which is sorted by order."""
    winners: dict[tuple[str, str], _Candidate] = {}
    for candidate in chosen:
        for plug_point, name, _ in _provided(candidate.plugin):
            before = winners.get((plug_point, name))
            if before and before.plugin.order == candidate.plugin.order:
                problem = f"provides the {plug_point} {name}, as does plug-in {before.plugin.name} of the same order"
                raise PluginError(f"plug-in {candidate.plugin.name}", problem)
            winners[plug_point, name] = candidate
    return winners


def _provided(plugin: Plugin) -> Iterator[tuple[str, str, Factory | str]]:
    for plug_point, factories in plugin.provides.items():
        for name, factory in factories.items():
            yield plug_point, canonical_name(name), factory


def _guarded(factory: Factory | str, candidate: _Candidate, what: str) -> Factory:
    """The factory, imported when it is called, with what goes wrong in it named after the plug-in."""

    def make(settings: Settings) -> Any:
        try:
            return (_imported(factory) if isinstance(factory, str) else factory)(settings)
        except ReactorMemoryError:
            raise
        except Exception as error:
            title = f"plug-in {candidate.plugin.name} ({candidate.source})"
            raise PluginError(title, f"cannot make the {what}: {type(error).__name__}: {error}") from error

    return make


def _imported(path: str) -> Factory:
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _defect(plugin: Any, name: str) -> str | None:
    """What is wrong with an object that an entry point refers to."""
    if not isinstance(plugin, Plugin):
        return f"must refer to a reactor_memory.wiring.plugins.Plugin, not to a {type(plugin).__name__}"
    if plugin.name != name:
        return f"refers to a plug-in that calls itself {plugin.name}: both names must be the same"
    unknown = [plug_point for plug_point in plugin.provides if plug_point not in PLUG_POINTS]
    if unknown:
        return f"provides {unknown[0]}, which is no plug point; there are: {', '.join(PLUG_POINTS)}"
    broken = [name for _, name, factory in _provided(plugin) if not callable(factory) and ":" not in str(factory)]
    return f"{broken[0]}: a factory is a callable or 'package.module:attribute'" if broken else None


def _title(entry_point: EntryPoint) -> str:
    return f"plug-in {entry_point.name} ({_source(entry_point)})"


def _source(entry_point: EntryPoint) -> str:
    return f"{entry_point.dist.name} {entry_point.dist.version}" if entry_point.dist else entry_point.value
