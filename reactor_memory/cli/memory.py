"""`context`, `search`, `facts` and `summarize`."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from reactor_memory.cli.budgets import DEFAULT_BUDGET, budget_of
from reactor_memory.cli.invocation import Invocation, with_common_options
from reactor_memory.cli.session_names import SessionCommand
from reactor_memory.errors import ConfigurationError, SummarizationError

if TYPE_CHECKING:
    from reactor_memory.memory import Memory
    from reactor_memory.settings.settings import Settings


@click.command(cls=SessionCommand)
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    metavar="TOKENS",
    help=f"How large the context may be; else as in the last load of the session, or {DEFAULT_BUDGET}.",
)
@click.option("--query", metavar="TEXT", help="Bring back facts and older turns that answer TEXT; '': nothing.")
@click.option("--message", "text", metavar="TEXT", help="The user message to come; it is not saved.")
@click.option("--agent", "agent_name", metavar="NAME", help="Whose notes about the user to show (notes.enabled).")
@click.option("--why", is_flag=True, help="Say of every message, fact and line what became of it, and why.")
@click.option("--seq", type=click.IntRange(min=1), metavar="SEQ", help="With --why: of this message only.")
@click.option(
    "--fact", type=(str, str), metavar="ANCHOR KEY", help="With --why: of this fact, as `facts --json` names it."
)
@click.option(
    "--turn", "turn", type=click.IntRange(min=1), metavar="SEQ", help="The context that message SEQ was answered with."
)
@with_common_options
async def context(
    invocation: Invocation,
    budget: int | None,
    query: str | None,
    text: str | None,
    agent_name: str | None,
    why: bool,
    seq: int | None,
    fact: tuple[str, str] | None,
    turn: int | None,
) -> None:
    """Print what the model would see next, and why.

    The settings of the agent that saved last count, where neither the environment nor a file says otherwise; a
    difference is shown.

    First the messages as they would be sent, then what each part costs and what was dropped for which reason. Facts
    and narrative appear unless summary.enabled is false.

    With --why, instead: for every message of the session whether it is shown and why, for every fact that was ever
    found the line that shows it or the reason that none does, and every line that competed for memory. With --seq the
    message itself and what was made of it. Nothing is stored.

    With --turn, instead: what the model saw when it answered message SEQ, byte for byte where context.record kept it,
    else the nearest context of this budget that can be made now, and what is not as it was.
    """
    from reactor_memory.models import Message

    if turn is not None and (why or text is not None or query is not None):
        raise click.UsageError("--turn shows a turn of the past: leave out --why, --message and --query")
    if not why and (seq is not None or fact is not None):
        raise click.UsageError("--seq and --fact need --why")
    message = None if text is None else Message.user(text)
    load: dict[str, Any] = {"agent_name": agent_name, "message": message, "budget": budget, "query": query}
    if turn is not None:
        await _replay(invocation, turn, budget)
    elif why:
        await _explain(invocation, seq, fact, load)
    else:
        await _print_context(invocation, load)


async def _replay(invocation: Invocation, seq: int, given: int | None) -> None:
    from reactor_memory.cli.context_view import replay_value, replay_view

    async with invocation.memory_of_agent() as memory:
        budget, _ = await budget_of(memory, invocation.session_id, given, default=DEFAULT_BUDGET)
        replay = await memory.replay(invocation.session_id, seq=seq, user_id=invocation.user_id, budget=budget)
    invocation.show(replay_value(replay), lambda: replay_view(replay))


async def _print_context(invocation: Invocation, load: dict[str, Any]) -> None:
    from reactor_memory.cli.context_view import context_value, context_view
    from reactor_memory.cli.tables import NOTHING_YET, with_differences

    async with invocation.memory_of_agent() as memory:
        missing = await _why_no_memory(invocation, memory, NOTHING_YET)
        budget = await budget_of(memory, invocation.session_id, load["budget"], default=DEFAULT_BUDGET)
        load["budget"] = budget.tokens
        loaded = await memory.preview(invocation.session_id, user_id=invocation.user_id, **load)
        if (
            not loaded.messages
            and (await memory.get_session(invocation.session_id, user_id=invocation.user_id)).last_seq
        ):
            raise click.UsageError(
                f"{loaded.report.budget} tokens hold nothing of this session: give a larger --budget"
            )
    different = invocation.differences
    value = context_value(loaded) | {"budget_from": budget.origin, "settings_unlike_the_agent": different}
    invocation.show(value, lambda: with_differences(context_view(loaded, missing, budget.told()), different))


async def _why_no_memory(invocation: Invocation, memory: Memory, otherwise: str) -> str:
    from reactor_memory.cli.tables import no_memory
    from reactor_memory.features.tiers.wiring import is_progressive

    found = await memory.get_session(invocation.session_id, user_id=invocation.user_id)
    settings = memory.container.settings()
    if is_progressive(settings):
        return otherwise
    summary = settings.summary
    return no_memory(found.last_seq, is_on=summary.enabled, trigger=summary.trigger_message_count, otherwise=otherwise)


async def _explain(invocation: Invocation, seq: int | None, fact: tuple[str, str] | None, load: dict[str, Any]) -> None:
    from reactor_memory.cli.explanation_view import explanation_value, explanation_view
    from reactor_memory.models import Message

    source: tuple[Message, ...] = ()
    async with invocation.memory_of_agent() as memory:
        load["budget"], _ = await budget_of(memory, invocation.session_id, load["budget"], default=DEFAULT_BUDGET)
        found = await memory.explain(invocation.session_id, seq=seq, fact=fact, user_id=invocation.user_id, **load)
        if seq is not None:
            source = await memory.read_messages(
                invocation.session_id, user_id=invocation.user_id, after=seq - 1, until=seq
            )
    invocation.show(explanation_value(found, source), lambda: explanation_view(found, source))


@click.command(cls=SessionCommand)
@click.argument("query")
@click.option("--limit", type=click.IntRange(min=1), default=10, show_default=True, help="How many hits.")
@with_common_options
async def search(invocation: Invocation, query: str, limit: int) -> None:
    """Find passages of a session by their words, the best first."""
    from reactor_memory.cli import tables

    async with invocation.memory() as memory:
        hits = await memory.recall(invocation.session_id, query, user_id=invocation.user_id, limit=limit)
    invocation.show(hits, lambda: tables.search_hits(hits))


@click.command(cls=SessionCommand)
@click.option("--as-of", "as_of_seq", type=click.IntRange(min=1), metavar="SEQ", help="As they stood at message SEQ.")
@click.option("--all", "everything", is_flag=True, help="Also facts that later ones replaced.")
@with_common_options
async def facts(invocation: Invocation, as_of_seq: int | None, everything: bool) -> None:
    """Print the facts that were found in a session, each with the message that states it and its words.

    Values that do not stand in their message are marked as not verified; memory never shows them.
    """
    from reactor_memory.cli import tables

    async with invocation.memory_of_agent() as memory:
        found = await memory.facts.trace(
            invocation.session_id, user_id=invocation.user_id, as_of_seq=as_of_seq, everything=everything
        )
        missing = await _why_no_memory(invocation, memory, tables.NO_FACTS_YET)
    different = invocation.differences
    view = partial(tables.facts, found, missing)
    invocation.show([tables.fact_value(each) for each in found], lambda: tables.with_differences(view(), different))


@click.command(cls=SessionCommand)
@click.option("--rebuild", is_flag=True, help="Extract everything anew: after a change of the summarizer.")
@with_common_options
async def summarize(invocation: Invocation, rebuild: bool) -> int:
    """Do the background work of a session now, and print the summary.

    Also work that was given up after failures. Exit code 1 if some of it failed again.

    With history.strategy progressive and without summary.enabled: condense and compress older messages now.
    """
    from reactor_memory.cli import tables
    from reactor_memory.cli.tables import SummaryView
    from reactor_memory.core.log import health
    from reactor_memory.features.tiers.wiring import is_progressive

    settings = invocation.settings(background={"enabled": True})
    if is_progressive(settings) and not settings.summary.enabled and not rebuild:
        return await _bring_up_tiers(invocation, settings)
    if not settings.summary.enabled:
        raise ConfigurationError("summary.enabled", "is false, so nothing is summarized: set it to true")
    async with invocation.memory(settings) as memory:
        if rebuild:
            await memory.facts.rebuild(invocation.session_id, user_id=invocation.user_id)
        if memory.container.in_database() == "on":
            await memory.container.database().write(health.make_again_what_is_damaged, invocation.session_id)
        with suppress(SummarizationError):  # what failed is told by the state
            await memory.summarize(invocation.session_id, user_id=invocation.user_id)
        await memory.drain()
        summary = await memory.get_summary(invocation.session_id, user_id=invocation.user_id)
        state = await memory.work_state(invocation.session_id, user_id=invocation.user_id)
    view = SummaryView.of(summary, state)
    invocation.show(view, lambda: tables.summary(view))
    return 1 if view.last_error else 0


async def _bring_up_tiers(invocation: Invocation, settings: Settings) -> int:
    from reactor_memory.cli import tables

    async with invocation.memory(settings) as memory:
        await memory.get_session(invocation.session_id, user_id=invocation.user_id)
        report = await memory.container.tiers().summarize(invocation.session_id, user_id=invocation.user_id)
    invocation.show(report, lambda: tables.tiers(report))
    return 0
