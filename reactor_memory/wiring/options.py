"""What parts take out of the settings."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal

import msgspec

from reactor_memory.core.batches import BatchMaker
from reactor_memory.core.context.draft import ContextLimits
from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.core.manager import ManagerOptions
from reactor_memory.core.planning import LoadingOptions
from reactor_memory.settings.setting_values import canonical_name
from reactor_memory.settings.settings import Settings
from reactor_memory.wiring.selection import context_limits, message_limits

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock
    from reactor_memory.wiring.plugins import ConditionReport


def loading_options(settings: Settings) -> LoadingOptions:
    limits = context_limits(settings)
    return LoadingOptions(
        limits=limits,
        window_growth=window_growth(settings),
        lazy_timeout_seconds=settings.summary.lazy_timeout_seconds,
        settings_fingerprint=settings_fingerprint(settings),
    )


def window_growth(settings: Settings) -> Literal["auto", "messages", "tokens"]:
    """Where memory is off and nobody named another number of turns, the budget decides how much is shown."""
    history, growth = settings.history, settings.context.window_growth
    is_off = canonical_name(history.strategy) == "auto" and not settings.summary.enabled
    is_counted = history.max_conversation_turns != type(history).model_fields["max_conversation_turns"].default
    return "tokens" if growth == "auto" and is_off and not is_counted else growth


LAYOUT_FORM = 3
"""How layouts are stored. One of another form is not read, and made again."""


def fingerprint_of(limits: ContextLimits, settings: Settings) -> str:
    """Names everything that decides what a layout looks like: a layout made under other settings is not used."""
    window, tokens = settings.context.window_growth, settings.tokens
    deciding = (LAYOUT_FORM, settings.history.strategy, limits, window, tokens.encoding, tokens.counter)
    return hashlib.blake2b(msgspec.json.encode(deciding), digest_size=8).hexdigest()


def settings_fingerprint(settings: Settings) -> str:
    return fingerprint_of(context_limits(settings), settings)


def manager_options(settings: Settings) -> ManagerOptions:
    return ManagerOptions(
        timeout_seconds=settings.store.timeout_seconds,
        limits=message_limits(settings),
        delete_grace_days=settings.store.delete_grace_days,
    )


def batches_of(counter: MessageCounter, clock: Clock, conditions: ConditionReport, settings: Settings) -> BatchMaker:
    return BatchMaker(
        counter=counter,
        clock=clock,
        limits=message_limits(settings),
        work_every=settings.summary.segment_message_count,
        tool_roles={name: role for plugin, _ in conditions.taking_part for name, role in plugin.tool_roles.items()},
    )


def purges(settings: Settings) -> bool:
    """Whether what is deleted goes at once."""
    return not settings.store.delete_grace_days


def is_on(switch: str) -> bool:
    return switch == "on"


def is_given(value: object) -> bool:
    return value is not None
