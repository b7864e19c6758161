"""`eval`: how much a memory keeps at which price, measured on sessions with probes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reactor_memory.cli.invocation import Invocation, named_or_temporary_store, with_store_options
from reactor_memory.cli.options import list_option
from reactor_memory.cli.output import STDOUT, Output, file_option, force_option
from reactor_memory.evaluation.requirements import Requirement
from reactor_memory.evaluation.sessions import VARIANTS
from reactor_memory.evaluation.strategies import QUICK_STRATEGIES, STRATEGIES
from reactor_memory.text.documents import page

if TYPE_CHECKING:
    from reactor_memory.evaluation.session_files import Format, Read

QUESTIONS = ("message", "query", "off")
FORMATS: tuple[Format, ...] = ("auto", "jsonl", "locomo", "longmemeval")
GENERATED = 8
"""How many sessions are made if nobody says."""


def _requirements(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> tuple[Requirement, ...]:
    try:
        return tuple(map(Requirement.parse, texts))
    except ValueError as error:
        raise click.BadParameter(str(error), context, option) from None


@click.command("eval", epilog=f"What each number means: {page('evaluation')}")
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--format", "file_format", type=click.Choice(FORMATS), default="auto", help="What the files are.")
@click.option(
    "--generate",
    type=click.IntRange(min=1),
    is_flag=False,
    flag_value=GENERATED,
    metavar="[N]",
    help=f"Make N sessions (default: {GENERATED}) instead of reading files.",
)
@click.option("--seed", type=int, metavar="N", help="For --generate: another number (default: 0), other sessions.")
@file_option(
    "--out", "out", may_print=True, text="For --generate: only write the sessions, as JSONL; `-`: to the terminal."
)
@list_option("--budgets", click.IntRange(min=1), ("1000", "2000", "4000", "8000"), "Tokens of a context.")
@list_option(
    "--strategies", click.Choice(list(STRATEGIES)), QUICK_STRATEGIES, "What to compare; `full` only if it is named."
)
@list_option("--variants", click.Choice(list(VARIANTS)), VARIANTS, "Sessions as they are, or without tools.")
@list_option("--questions", click.Choice(QUESTIONS), QUESTIONS, "How each detail is asked for.")
@click.option("--sessions", type=click.IntRange(min=1), metavar="N", help="Only the first N sessions of each file.")
@click.option("--determinism", is_flag=True, help="Replay everything twice, once with delays, and compare.")
@click.option(
    "--require",
    "requirements",
    multiple=True,
    callback=_requirements,
    metavar="BOUND",
    help="What every row must keep, such as survival@1000>=0.9 or violations<=0. Can be repeated.",
)
@file_option("--html", "page", text="Write the results as a page with curves.")
@file_option("--json", "results", may_print=True, text="Write the results as JSON; `-`: print them, and no table.")
@file_option("--contexts", "contexts", text="Write every context in which a detail was looked for, as JSONL.")
@force_option()
@with_store_options
async def eval_(
    invocation: Invocation,
    files: tuple[Path, ...],
    file_format: Format,
    generate: int | None,
    seed: int | None,
    out: Output | None,
    budgets: tuple[int, ...],
    strategies: tuple[str, ...],
    variants: tuple[str, ...],
    questions: tuple[Any, ...],
    sessions: int | None,
    determinism: bool,
    requirements: tuple[Requirement, ...],
    page: Output | None,
    results: Output | None,
    contexts: Output | None,
) -> int:
    """Measure what contexts keep of long sessions, by replaying them turn by turn.

    FILE is JSONL as for `reactor-memory import`, with probes, or a file of the benchmarks LoCoMo or LongMemEval. Each
    session is saved as an agent would, with a context loaded before every turn; at its end the probes are looked for.
    The database is a temporary one unless --store names another, in which nothing stays.

    Exit code 1 if a context broke a rule, the contexts of a second replay were others, or a bound was not kept.
    """
    from reactor_memory.cli.eval_page import evaluation_page
    from reactor_memory.cli.eval_run import Plan, evaluate
    from reactor_memory.cli.eval_view import evaluation_view, results_json, shortcomings
    from reactor_memory.cli.terminal import console, print_view
    from reactor_memory.evaluation.session_files import generated, write_generated

    _check_source(files, generate, seed, out)
    if generate and out:
        out.writelines(write_generated(generate, seed or 0))
        return 0
    file, read = generated(generate, seed or 0) if generate else (None, _reader(invocation, file_format))
    plan = Plan(
        files=files if file is None else (file,),
        read=read,
        strategies=strategies,
        variants=variants,
        budgets=budgets,
        questions=questions,
        sessions=sessions,
        determinism=determinism,
    )
    with named_or_temporary_store(invocation) as with_store:
        found = await evaluate(with_store, plan, contexts)
    if results is None or results.name != STDOUT:
        print_view(evaluation_view(found))
    if results is not None:
        results.write(results_json(found))
    if page is not None:
        page.write(evaluation_page(found).encode())
    wrong = tuple(shortcomings(found, requirements))
    for line in wrong:
        console(stderr=True).print(line, style="red", soft_wrap=True)
    return 1 if wrong or any(result.violations for result in found) else 0


def _reader(invocation: Invocation, file_format: Format) -> Read:
    from reactor_memory.evaluation.session_files import reader

    return reader(file_format, max_bytes=invocation.settings().limits.max_session_bytes)


def _check_source(files: tuple[Path, ...], generate: int | None, seed: int | None, out: Output | None) -> None:
    """Sessions come from files or from templates, and only those from templates have a seed and are written."""
    if bool(files) == bool(generate):
        raise click.UsageError("give either files or --generate")
    if out and not generate:
        raise click.BadOptionUsage("out", "--out goes with --generate")
    if seed is not None and not generate:
        raise click.BadOptionUsage("seed", "--seed goes with --generate")
