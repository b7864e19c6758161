"""What `doctor` finds out."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter

from reactor_memory.cli.invocation import Invocation
from reactor_memory.cli.tried_parts import told, tried_parts
from reactor_memory.core.log import background_work
from reactor_memory.database.absent import NEEDS_DATABASE
from reactor_memory.database.sqlite import check_place
from reactor_memory.models import Value
from reactor_memory.models.leases import WorkState
from reactor_memory.models.requests import SUMMARIZE
from reactor_memory.settings.setting_values import canonical_name
from reactor_memory.settings.settings import EffectiveSetting, Settings
from reactor_memory.version import __version__
from reactor_memory.wiring.container import Container
from reactor_memory.wiring.opening import open_container
from reactor_memory.wiring.own_parts import sqlite_file
from reactor_memory.wiring.plugins import SOURCE, Binding, Condition, ConditionReport
from reactor_memory.wiring.selection import provider_of, scheme_of, selected
from reactor_memory.wiring.stores import conditions_of

SELECTED_BY = {
    "database": "store.url",
    "record_store": "store.url",
    "message_store": "store.url",
    "summary_store": "store.url",
    "summarizer": "summary.provider",
    "chat_model": "chat.provider",
    "chat_agent": "chat_server.agent",
    "token_counter": "tokens.counter",
    "strategy": "history.strategy",
    "recall_index": "recall.index",
    "redactor": "redactor",
    "memory_management": "chat_memory.strategy",
    "embedder": "search.embedder",
    "stream_store": "streams.backend",
    "clock": "clock",
}
"""The setting that selects an implementation, by plug point."""


ASKED = ("summarizer", "chat_model", "embedder")
"""Plug points whose setting may name a model of `models`."""

OWN_NAMES = {"recall_index": "store", "stream_store": "database"}
"""What a setting says where no implementation is plugged in, but the library's own is used."""

MADE_ALONE = (
    "summarizer",
    "strategy",
    "recall_index",
    "redactor",
    "memory_management",
    "embedder",
    "stream_store",
    "clock",
)
"""Plug points whose parts are made without a database; `token_counter` and `chat_model` are tried, too."""


WITHOUT_DATABASE = ("refused", f"{', '.join(NEEDS_DATABASE)}: they need sqlite:// or postgresql://")
"""What a store of a plug-in cannot do."""


class Implementation(Value, frozen=True, kw_only=True):
    """An implementation of a plug point. `in_force`: it is the one that is used; `reason` says why, or why not."""

    plug_point: str
    name: str
    plugin: str
    in_force: bool
    reason: str


class Examination(Value, frozen=True, kw_only=True):
    """Everything that `doctor` prints. `database` are pairs of label and text, `chat` is who answers there."""

    version: str
    python: str
    problems: tuple[str, ...]
    database: tuple[tuple[str, str], ...]
    tokenizer: str
    chat: str
    plugins: tuple[Condition, ...]
    implementations: tuple[Implementation, ...]
    work: tuple[WorkState, ...]
    settings: tuple[dict[str, str], ...]


class _Database(Value, frozen=True, kw_only=True):
    details: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = ()
    work: tuple[WorkState, ...] = ()


async def examine(invocation: Invocation, *, deep: bool = False) -> Examination:
    """Look at everything, also when something is broken. Only settings that cannot be read at all raise. `deep`: try
    each part once, also one that costs.
    """
    settings = invocation.settings()
    conditions, plugin_problems = _conditions(settings)
    tokenizer, tokenizer_problems = _tokenizer(settings)
    chat, chat_problems = _chat(settings)
    database = await _database(invocation, settings)
    others = _others(conditions, settings)
    tried = await tried_parts(settings) if deep else ()
    parked = [
        f"background work of session {work.session_id!r} was given up: {work.last_error}"
        for work in database.work
        if work.parked
    ]
    return Examination(
        version=__version__,
        python=platform.python_version(),
        problems=tuple(
            dict.fromkeys(
                (
                    *(*plugin_problems, *tokenizer_problems, *chat_problems, *database.problems, *others, *parked),
                    *(each.problem for each in tried if each.problem),
                )
            )
        ),
        database=(*database.details, *((f"tried: {each.plug_point}", each.result) for each in tried if each.result)),
        tokenizer=tokenizer,
        chat=chat,
        plugins=conditions.conditions,
        implementations=tuple(_implementations(conditions, settings)),
        work=database.work,
        settings=tuple(setting._asdict() for setting in settings.origins()),
    )


def _conditions(settings: Settings) -> tuple[ConditionReport, tuple[str, ...]]:
    """What takes part; without any plug-in, and why, where one of them is broken."""
    try:
        return conditions_of(settings), ()
    except Exception as error:  # a plug-in is anybody's code
        alone = settings.plugins.model_copy(update={"enabled": False})
        return conditions_of(settings.model_copy(update={"plugins": alone})), (told(error),)


async def _database(invocation: Invocation, settings: Settings) -> _Database:
    try:
        file = sqlite_file(settings)
        if file is not None and not file.exists():
            async with open_container(replace(invocation, store="memory://").settings()):
                pass  # all parts but the database can be made
            check_place(file)
            return _Database(details=(("file", f"{file} does not exist yet; opening it makes it"),))
        async with open_container(settings) as container:
            return await _opened_database(container)
    except Exception as error:  # of a part that is anybody's code
        return _Database(problems=(told(error),))


async def _opened_database(container: Container) -> _Database:
    health = await container.message_store().check()
    if container.in_database() == "off":
        return _Database(details=(*health.details, WITHOUT_DATABASE), problems=health.problems)
    work = await container.database().read(background_work.list_work, SUMMARIZE)
    details = (
        (*health.details, *await _summarizer(container)) if container.settings().summary.enabled else health.details
    )
    return _Database(details=details, problems=health.problems, work=work)


async def _summarizer(container: Container) -> tuple[tuple[str, str], ...]:
    """Who reads, and what that has cost on this day."""
    today = await container.spending_caps().spent_today()
    cap = container.settings().summary.max_tokens_per_day
    spent = f"{today:,} tokens" + (f" of {cap:,}" if cap else "")
    reached = ": the cap is reached, extractive reads on until midnight UTC" if cap and today >= cap else ""
    return ("summarizer", container.summarizer().name), ("spent today", spent + reached)


def _tokenizer(settings: Settings) -> tuple[str, tuple[str, ...]]:
    """Its name, and what is wrong with it."""
    try:
        counter = Container(settings=settings).token_counter()
        counter.count("one two three")
        name = counter.name
    except Exception as error:  # as above
        return "", (told(error),)
    return name, ()


def _chat(settings: Settings) -> tuple[str, tuple[str, ...]]:
    """Who answers in a chat, and why nobody does. Nobody is asked."""
    try:
        return Container(settings=settings).chat_model().name, ()
    except Exception as error:  # as above
        return "", (told(error),)


def _others(conditions: ConditionReport, settings: Settings) -> Iterator[str]:
    """What is wrong with parts that the settings select, also where they are switched off today."""
    for plug_point in MADE_ALONE:
        key = SELECTED_BY[plug_point]
        name = provider_of(settings, key) if plug_point in ASKED else attrgetter(key)(settings)
        if name != OWN_NAMES.get(plug_point):
            try:
                selected(conditions, plug_point, name, key, settings)
            except Exception as error:  # as above
                yield told(error)


def _implementations(conditions: ConditionReport, settings: Settings) -> Iterator[Implementation]:
    origins = {setting.key: setting for setting in settings.origins()}
    for binding in conditions.bindings:
        if binding.plug_point == SOURCE:
            yield _implementation(binding, in_force=binding.selected, reason=binding.reason)
            continue
        by = origins[SELECTED_BY[binding.plug_point]]
        wanted = provider_of(settings, by.key) if binding.plug_point in ASKED else _wanted(by)
        is_wanted = wanted == binding.name
        choice = f"{by.key} ({by.origin}) names {'it' if is_wanted else 'another'}"
        reason = choice if binding.selected else binding.reason
        yield _implementation(binding, in_force=binding.selected and is_wanted, reason=reason)


def _implementation(binding: Binding, *, in_force: bool, reason: str) -> Implementation:
    return Implementation(
        plug_point=binding.plug_point, name=binding.name, plugin=binding.plugin, in_force=in_force, reason=reason
    )


def _wanted(setting: EffectiveSetting) -> str:
    return scheme_of(setting.value) if setting.key == "store.url" else canonical_name(setting.value)
