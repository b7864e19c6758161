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
from difflib import get_close_matches
from enum import Enum
from functools import lru_cache, reduce
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from time import time_ns
from typing import Any, TypeAlias, get_args

from pydantic import BaseModel, ValidationError

from reactor_memory.errors import ConfigurationError, PluginError, ReactorMemoryError
from reactor_memory.models.tool_roles import ToolRole, ToolRoles
from reactor_memory.settings.setting_values import canonical_name
from reactor_memory.settings.settings import Settings

GROUP = "reactor_memory.plugins"
LIBRARY = "reactor-memory"
PLUG_POINTS = (
    "database",
    "record_store",
    "message_store",
    "summary_store",
    "summarizer",
    "chat_model",
    "chat_agent",
    "token_counter",
    "strategy",
    "source",
    "recall_index",
    "embedder",
    "redactor",
    "memory_management",
    "stream_store",
    "clock",
)

SOURCE = "source"
"""The plug point of which no setting selects one: what all plug-ins provide stands in contexts."""

STORES_WITHOUT_DATABASE = ("message_store", "record_store")

WITHOUT_DATABASE = "is none: it keeps the log and summaries only, and what else there is refuses its work"
"""Why a store of a plug-in is not the database, which sharing, search, keys and all other features ask."""

Factory: TypeAlias = Callable[..., Any]
"""Makes the implementation from the settings, and the `options` of a plug-in that declares some. It does no I/O."""


Maker: TypeAlias = Callable[[Settings], Any]
"""Makes an implementation that takes part."""


class Given(Enum):
    """What a setting may have to be instead of equal to a value."""

    SET = "set"
    MISSING = "not set"


@dataclass(frozen=True, kw_only=True, slots=True)
class Plugin:
    """What a package adds, and when.

    `provides` maps plug point to name to factory. A factory may be given as ``"package.module:attribute"``, which is
    imported only when the settings select the name. The name of a message store is the scheme of its URL.

    Of the plug point ``source`` all that is provided is in force.

    `wraps` maps plug point to a factory that is given the part that would be in force otherwise, whatever its name, as
    `inner`: it returns what takes its place.

    The plug-in takes part when every package of `requires_packages` is installed (names of distributions) and none of
    `missing_packages`, every setting of `requires_settings` (by dotted key) has the wanted value, compared as text in
    lower case, as the environment gives it, or is `Given.SET` or `Given.MISSING`; and when of the plug-ins before it,
    or the library, somebody provides each of `requires_parts` and nobody any of `on_missing` (``"summarizer.loud"``).

    Plug-ins stand in the order of their `order`, behind those that they name in `after`, ahead of those in `before`.
    When two provide the same name the later one wins, and wraps what the earlier ones wrapped; the same order twice,
    and neither names the other, is a `PluginError`. What the library brings along has order -1.

    `options` is a pydantic model of what stands under ``plugins.options.NAME``: it is checked, misspelt names are
    refused with the one that was meant, and each factory is given it as `options`.

    `commands` are those of ``reactor-memory plugin NAME``, of click; `routes` are controllers of litestar, which the
    service serves below ``/v1/plugins/NAME`` behind its guards. Each may be given as text, as a factory may.

    `tool_roles` says what its tools do, by their names: ``act``, ``read`` or ``think`` (`models.tool_roles`).

    `on_close` is called once, after everything that came from the plug-in was closed.
    """

    name: str
    provides: Mapping[str, Mapping[str, Factory | str]] = field(default_factory=dict[str, Mapping[str, Any]])
    wraps: Mapping[str, Factory | str] = field(default_factory=dict[str, Any])
    order: int = 0
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    options: type[BaseModel] | None = None
    commands: Mapping[str, Any] = field(default_factory=dict[str, Any])
    routes: Sequence[Any] = ()
    tool_roles: ToolRoles = field(default_factory=dict[str, ToolRole])
    requires_settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    requires_packages: tuple[str, ...] = ()
    missing_packages: tuple[str, ...] = ()
    requires_parts: tuple[str, ...] = ()
    on_missing: tuple[str, ...] = ()
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

    `factories` maps plug point to name to factory, `wrapping` to what goes around it, innermost first. `closers` are
    the `on_close` of the plug-ins that take part, in the order of calling: the highest `order` first. `taking_part` are
    these plug-ins, in order, each with what it is called in errors.
    """

    conditions: tuple[Condition, ...]
    bindings: tuple[Binding, ...]
    factories: Mapping[str, Mapping[str, Maker]]
    closers: tuple[Callable[[], Awaitable[None] | None], ...]
    taking_part: tuple[tuple[Plugin, str], ...] = ()
    wrapping: Mapping[str, Sequence[Callable[[Settings, Any], Any]]] = field(default_factory=dict[str, Any])

    def factory(self, plug_point: str, name: str, *, key: str) -> Maker:
        """The factory of `name`; `key` is the setting that asks for it, named in the `ConfigurationError`."""
        known = self.factories.get(plug_point, {})
        try:
            innermost = known[canonical_name(name)]
        except KeyError:
            problem = f"no {plug_point} is called {name!r}; there are: {', '.join(sorted(known)) or 'none'}"
            raise ConfigurationError(key, problem + self._skipped() + _remedy(plug_point)) from None
        wrapping = self.wrapping.get(plug_point, ())
        if not wrapping:
            return innermost
        return lambda settings: reduce(lambda part, wrap: wrap(settings, part), wrapping, innermost(settings))

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
    place: int
    """Of its condition."""

    @property
    def title(self) -> str:
        return f"plug-in {self.plugin.name} ({self.source})"


def discover() -> tuple[EntryPoint, ...]:
    """The announced plug-ins, by name; none is imported. They are read again when other packages are on the path."""
    return _announced(tuple((folder, _packages(folder)) for folder in sys.path))


@lru_cache(maxsize=1)
def _announced(path: tuple[tuple[str, frozenset[str]], ...]) -> tuple[EntryPoint, ...]:
    """What the packages of this `path` announce: reading it takes longer than the rest of opening a memory."""
    return tuple(sorted(entry_points(group=GROUP), key=lambda entry_point: entry_point.name))


def _packages(folder: str) -> frozenset[str]:
    """What is installed in the folder. It is listed again when it has changed, or changed a moment ago: within a tick
    of the clock of its file system, the next change would not show.
    """
    try:
        found = os.stat(folder or ".")  # noqa: PTH116 (four times as fast as paths)
        state = found.st_dev, found.st_ino, found.st_mtime_ns
        if _listed.get(folder, (None,))[0] != state:
            names = os.listdir(folder or ".")  # noqa: PTH208
            packages = frozenset(name for name in names if name.endswith((".dist-info", ".egg-info")))
            if time_ns() - found.st_mtime_ns < _SETTLED_NANOSECONDS:
                return packages
            _listed[folder] = state, packages
    except OSError:
        return frozenset()
    return _listed[folder][1]


_SETTLED_NANOSECONDS = 2_000_000_000
_listed: dict[str, tuple[tuple[int, int, int], frozenset[str]]] = {}


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
    met: list[_Candidate] = []
    for each in candidates:
        source = LIBRARY if isinstance(each, Plugin) else _source(each)
        plugin, obstacle = (each, None) if isinstance(each, Plugin) else _load_if_allowed(each, settings)
        obstacle = obstacle or (plugin and _unmet_condition(plugin, settings))
        reason = obstacle or "conditions met"
        conditions.append(Condition(plugin=each.name, source=source, selected=not obstacle, reason=reason))
        if plugin and not obstacle:
            met.append(_Candidate(plugin, source, len(conditions) - 1))
    chosen: list[_Candidate] = []
    for each in _in_order(met):
        obstacle = _unmet_by_parts(each.plugin, chosen)
        if obstacle is None:
            _options_of(each.plugin, settings)
            chosen.append(each)
        else:
            conditions[each.place] = replace(conditions[each.place], selected=False, reason=obstacle)
    return _report(tuple(conditions), chosen)


def _in_order(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """By their `order`, each behind those that it stands behind by name."""
    waiting = sorted(candidates, key=lambda each: each.plugin.order)
    ordered: list[_Candidate] = []
    while waiting:
        first = next((each for each in waiting if not any(_is_ahead(other, each) for other in waiting)), None)
        if first is None:
            names = ", ".join(sorted(each.plugin.name for each in waiting))
            raise PluginError("plug-ins", f"stand behind each other, by before and after: {names}")
        ordered.append(first)
        waiting.remove(first)
    return ordered


def _is_ahead(one: _Candidate, other: _Candidate) -> bool:
    return one.plugin.name in other.plugin.after or other.plugin.name in one.plugin.before


def _unmet_by_parts(plugin: Plugin, before: Sequence[_Candidate]) -> str | None:
    parts = {f"{point}.{name}" for each in before for point, name, _ in _provided(each.plugin)}
    for part in map(_canonical_part, plugin.requires_parts):
        if part not in parts:
            return f"needs the part {part}, which nobody before it provides"
    for part in map(_canonical_part, plugin.on_missing):
        if part in parts:
            return f"wants the part {part} to be missing, and it is there"
    return None


def _canonical_part(part: str) -> str:
    plug_point, _, name = part.partition(".")
    return f"{plug_point}.{canonical_name(name)}"


def _options_of(plugin: Plugin, settings: Settings) -> BaseModel | None:
    """The options as the plug-in declares them. Raises `ConfigurationError` for what they may not be."""
    if plugin.options is None:
        return None
    key = f"plugins.options.{plugin.name}"
    names = plugin.options.model_fields
    said = settings.plugins.options.get(canonical_name(plugin.name), {})
    given = {each.replace("-", "_"): value for each, value in said.items()}
    for each in given:
        if each not in names:
            near = get_close_matches(each, names, n=1, cutoff=0.5)
            meant = f"; did you mean {near[0]}?" if near else f"; there are: {', '.join(names) or 'none'}"
            raise ConfigurationError(f"{key}.{each}", f"is no option of this plug-in{meant}")
    try:
        return plugin.options.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join([key, *map(str, first["loc"])])
        raise ConfigurationError(where, first["msg"]) from None


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
    for package in plugin.missing_packages:
        if _is_installed(package):
            return f"wants the package {package} to be missing, and it is installed"
    for key, wanted in plugin.requires_settings.items():
        found = _setting(settings, key, plugin)
        if isinstance(wanted, Given):
            if _is_set(found) != (wanted is Given.SET):
                return f"needs {key} to be {wanted.value}"
        elif _as_text(found) != _as_text(wanted):
            return f"needs {key}: {_as_text(wanted)}"
    return None


def _is_set(value: Any) -> bool:
    return value is not None and value != "" and value != () and value != {}


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
    factories: dict[str, dict[str, Maker]] = {plug_point: {} for plug_point in PLUG_POINTS}
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
                factories[plug_point][name] = _guarded(factory, candidate, plug_point, name)
    bindings += _without_database(bindings, factories["database"])
    closers = tuple(each.plugin.on_close for each in reversed(chosen) if each.plugin.on_close)
    wrapping: dict[str, list[Callable[[Settings, Any], Any]]] = {}
    for candidate in chosen:
        for plug_point, factory in candidate.plugin.wraps.items():
            wrapping.setdefault(plug_point, []).append(_wrapping(factory, candidate, plug_point))
    return ConditionReport(
        conditions=conditions,
        bindings=tuple(bindings),
        factories=factories,
        closers=closers,
        wrapping=wrapping,
        taking_part=tuple((each.plugin, each.title) for each in chosen),
    )


def _without_database(bindings: Sequence[Binding], databases: Collection[str]) -> list[Binding]:
    """What the stores lack that are no database."""
    return [
        replace(each, plug_point="database", selected=False, reason=WITHOUT_DATABASE)
        for each in bindings
        if each.plug_point in STORES_WITHOUT_DATABASE and each.selected and each.name not in databases
    ]


def _winners(chosen: Iterable[_Candidate]) -> dict[tuple[str, str], _Candidate]:
    """Who provides each name: the last of `chosen`, which is sorted by order."""
    winners: dict[tuple[str, str], _Candidate] = {}
    for candidate in chosen:
        for plug_point, name, _ in _provided(candidate.plugin):
            before = winners.get((plug_point, name))
            if before and _are_alike(before.plugin, candidate.plugin):
                problem = f"provides the {plug_point} {name}, as does plug-in {before.plugin.name} of the same order"
                raise PluginError(f"plug-in {candidate.plugin.name}", problem)
            winners[plug_point, name] = candidate
    return winners


def _are_alike(one: Plugin, other: Plugin) -> bool:
    """Whether nothing says which of the two wins."""
    named = {*one.before, *one.after} & {other.name} or {*other.before, *other.after} & {one.name}
    return one.order == other.order and not named


def _provided(plugin: Plugin) -> Iterator[tuple[str, str, Factory | str]]:
    for plug_point, factories in plugin.provides.items():
        for name, factory in factories.items():
            yield plug_point, canonical_name(name), factory


def _guarded(factory: Factory | str, candidate: _Candidate, plug_point: str, name: str) -> Maker:
    """The factory, imported when it is called, with what is wrong with it or with its part named after the plug-in."""
    return lambda settings: _made(factory, candidate, plug_point, name, settings)


def _wrapping(factory: Factory | str, candidate: _Candidate, plug_point: str) -> Callable[[Settings, Any], Any]:
    return lambda settings, inner: _made(factory, candidate, plug_point, "that wraps", settings, inner=inner)


def _made(
    factory: Factory | str, candidate: _Candidate, plug_point: str, name: str, settings: Settings, **more: Any
) -> Any:
    options = _options_of(candidate.plugin, settings)
    more |= {} if options is None else {"options": options}
    try:
        part = imported(factory)(settings, **more)
        defect = "" if candidate.source == LIBRARY else _defect_of(part, plug_point)
    except ReactorMemoryError:
        raise
    except Exception as error:
        problem = f"cannot make the {plug_point} {name}: {type(error).__name__}: {error}"
        raise PluginError(candidate.title, problem) from error
    if defect:
        raise PluginError(candidate.title, f"its {plug_point} {name} does not fit: {defect}")
    return part


def _defect_of(part: Any, plug_point: str) -> str:
    if part is None and plug_point == "embedder":  # there is none
        return ""
    from reactor_memory.wiring.part_shapes import defect_of

    return defect_of(part, plug_point)


def imported(given: Any) -> Any:
    """What a plug-in names: itself, or what stands at ``package.module:attribute``."""
    if not isinstance(given, str):
        return given
    module, _, attribute = given.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _defect(plugin: Any, name: str) -> str | None:
    """What is wrong with an object that an entry point refers to."""
    if not isinstance(plugin, Plugin):
        return f"must refer to a reactor_memory.wiring.plugins.Plugin, not to a {type(plugin).__name__}"
    if plugin.name != name:
        return f"refers to a plug-in that calls itself {plugin.name}: both names must be the same"
    unknown = [plug_point for plug_point in (*plugin.provides, *plugin.wraps) if plug_point not in PLUG_POINTS]
    if unknown:
        verb = "provides" if unknown[0] in plugin.provides else "wraps"
        return f"{verb} {unknown[0]}, which is no plug point; there are: {', '.join(PLUG_POINTS)}"
    if SOURCE in plugin.wraps:
        return "wraps source, of which all are in force together"
    if wrong := [name for name, role in plugin.tool_roles.items() if role not in get_args(ToolRole)]:
        return f"tool_roles.{wrong[0]} must be one of {', '.join(get_args(ToolRole))}"
    given = [*[each[1:] for each in _provided(plugin)], *plugin.wraps.items(), *plugin.commands.items()]
    given += [("routes", each) for each in plugin.routes]
    broken = [name for name, factory in given if not callable(factory) and ":" not in str(factory)]
    return f"{broken[0]}: a factory is a callable or 'package.module:attribute'" if broken else None


def _title(entry_point: EntryPoint) -> str:
    return f"plug-in {entry_point.name} ({_source(entry_point)})"


def _source(entry_point: EntryPoint) -> str:
    return f"{entry_point.dist.name} {entry_point.dist.version}" if entry_point.dist else entry_point.value
