"""What `doctor` found, as a person reads it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.text import Text

from reactor_memory.cli.doctor import Examination
from reactor_memory.cli.tables import count, heading, keep_ids_whole, moment, table
from reactor_memory.text.printable import printable


def examination_view(found: Examination, *, everything: bool = False) -> RenderableType:
    """The verdict, then what it rests on; `everything`: the settings, and the parts that are not used, too."""
    return Group(
        *_verdict(found.problems),
        Text(),
        f"reactor-memory {found.version} on Python {found.python}",
        *_section("database", _database(found)),
        *_section("parts in force", _parts(found, everything=everything)),
        *_section("plug-ins", _plugins(found)),
        *(_section("background work that fails", _work(found)) if found.work else ()),
        *(_section("settings", _settings(found)) if everything else ()),
    )


def _section(title: str, body: RenderableType) -> tuple[RenderableType, ...]:
    return Text(), heading(title), body


def _database(found: Examination) -> RenderableType:
    made = table("", "")
    made.show_header = False
    for label, text in (*found.database, ("tokenizer", found.tokenizer or "none"), ("chat", found.chat or "nobody")):
        made.add_row(printable(label), printable(text))
    return made


def _parts(found: Examination, *, everything: bool) -> RenderableType:
    made = table("part", "implementation", "from", "why")
    listed = [each for each in found.implementations if everything or each.in_force]
    for each in sorted(listed, key=lambda each: (each.plug_point, not each.in_force)):
        style = "bold" if each.in_force else "dim"
        mark = "" if each.in_force else " (not used)"
        made.add_row(each.plug_point, f"{each.name}{mark}", each.plugin, each.reason, style=style)
    return made


def _plugins(found: Examination) -> RenderableType:
    made = table("plug-in", "from", "takes part", "why")
    for each in found.plugins:
        made.add_row(printable(each.plugin), printable(each.source), "yes" if each.selected else "no", each.reason)
    return made


def _work(found: Examination) -> RenderableType:
    made = table("session", "state", "failures", "last error", right=("failures",))
    for each in found.work:
        state = "given up" if each.parked else f"again {moment(each.due_at)}" if each.due_at else "waits"
        made.add_row(printable(each.session_id), state, str(each.attempts), printable(each.last_error or ""))
    keep_ids_whole(made, (each.session_id for each in found.work))
    return made


def _settings(found: Examination) -> RenderableType:
    made = table("setting", "value", "origin")
    for setting in found.settings:
        style = "" if setting["origin"] == "default" else "bold"
        made.add_row(setting["key"], printable(setting["value"]), setting["origin"], style=style)
    return made


def _verdict(problems: Iterable[str]) -> Iterable[RenderableType]:
    lines = [Text(f"problem: {printable(problem)}", style="bold red") for problem in problems]
    return [*lines, count(len(lines), "problem")] if lines else [Text("healthy", style="green")]
