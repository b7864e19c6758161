"""Sessions, messages and facts as a person reads them. Pure: values in, something for a console out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from reactor_memory.evaluation.transcripts import to_record
from reactor_memory.features.chat.columns import count
from reactor_memory.features.erasure.models import ErasedMessages, ErasedUser
from reactor_memory.features.facts.tracing import TracedFact
from reactor_memory.features.retention.operations import IdleGroup
from reactor_memory.models import JsonObject, Message, Pin, SearchHit, Session, ToolCall, Value
from reactor_memory.models.leases import WorkState
from reactor_memory.models.ledger import Fact, Summary
from reactor_memory.models.requests import DeletedSessions
from reactor_memory.models.session_pages import SessionPage
from reactor_memory.text.borders import cut
from reactor_memory.text.moments import moment_of
from reactor_memory.text.printable import printable

if TYPE_CHECKING:
    from reactor_memory.core.log.placement import Placed
    from reactor_memory.features.tiers.progressive_tiers import TierReport
    from reactor_memory.features.transfer.copy import Copied
    from reactor_memory.imports.importer import Imported
    from reactor_memory.settings.agent_settings import SettingDifference

ROLE_STYLES = {"user": "green", "assistant": "cyan", "agent": "cyan", "tool": "magenta"}
MOST_SOURCES = 3
"""So many messages behind a line of memory are named each."""

LAST_ACTIVITY = "last activity"
LONGEST_WHOLE_ID = len("00000000-0000-4000-8000-000000000000~")
"""A generated id, and the mark that a fork has behind it."""

MEMORY_STYLE = "yellow"
EXCERPT_CHARACTERS = 200


class SummaryView(Value, frozen=True, kw_only=True):
    """The summary of a session and how its background work ended."""

    covered_seq: int = 0
    facts: tuple[Fact, ...] = ()
    narrative: str = ""
    truncated: bool = False
    attempts: int = 0
    last_error: str | None = None

    @classmethod
    def of(cls, summary: Summary | None, state: WorkState | None) -> SummaryView:
        found = summary or Summary()
        return cls(
            covered_seq=found.covered_seq,
            facts=found.facts(),
            narrative=found.narrative,
            truncated=found.truncated,
            attempts=state.attempts if state else 0,
            last_error=state.last_error if state else None,
        )


def message_values(messages: Iterable[Message]) -> list[JsonObject]:
    """Messages for programs: the records of the file format, with their position."""
    return [{"seq": message.seq, **msgspec.to_builtins(to_record(message))} for message in messages]


def spans(seqs: Sequence[int]) -> str:
    """``3 to 7, 9``; empty without any."""
    found: list[list[int]] = []
    for seq in seqs:
        if found and seq == found[-1][1] + 1:
            found[-1][1] = seq
        else:
            found.append([seq, seq])
    return ", ".join(f"{first}" if first == last else f"{first} to {last}" for first, last in found)


MOST_LEFT_OUT = 20
NOTHING_YET = "nothing was summarised yet"
NO_FACTS_YET = "none were found yet"


def moment(microseconds: int) -> str:
    """A time of the log, in UTC, to the minute."""
    at = moment_of(microseconds)
    return f"{microseconds} us" if at is None else f"{at:%Y-%m-%d %H:%M}"


def heading(title: str) -> Rule:
    """A line across the page that begins with a title."""
    return Rule(Text(title, style="bold"), style="dim", align="left")


def table(*columns: str, right: Iterable[str] = ()) -> Table:
    """An empty table in the style of all of them; the columns named in `right` hold numbers. Numbers and times stay on
    one line.
    """
    made = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    for column in columns:
        number = column in right
        justify = "right" if number else "left"
        made.add_column(column, justify=justify, overflow="fold", no_wrap=number or column == LAST_ACTIVITY)
    return made


def keep_ids_whole(made: Table, ids: Iterable[str]) -> None:
    """Let the first column be as wide as its ids of sessions, so that they can be copied; of a fork as the root."""
    made.columns[0].width = max(len("session"), *(min(cell_len(printable(each)), LONGEST_WHOLE_ID) for each in ids))


def imported(files: Sequence[Imported], remark: str) -> RenderableType:
    """`remark`: what else is to be said, if anything."""
    made = table("file", "sessions", "messages", "stored now", right=("sessions", "messages", "stored now"))
    for each in files:
        made.add_row(printable(each.file), f"{each.sessions:,}", f"{each.messages:,}", f"{each.stored:,}")
    left_out = [line for each in files for line in each.left_out]
    shown = [f"  {printable(line)}" for line in left_out[:MOST_LEFT_OUT]]
    more = len(left_out) - len(shown)
    notes = [f"\nleft out, as they cannot be read: {count(len(left_out), 'row')}", *shown] if left_out else []
    notes += [f"  and {more:,} more (--json lists all)"] if more else []
    return Group(made, *notes, *([f"\n{remark}"] if remark else []))


def copied(found: Copied) -> RenderableType:
    columns = ("sessions", "messages", "copied now", "notes copied now")
    made = table(*columns, right=columns)
    made.add_row(f"{found.sessions:,}", f"{found.messages:,}", f"{found.copied:,}", f"{found.notes_copied:,}")
    return made


def sessions(page: SessionPage) -> RenderableType:
    made = table("session", "owner", "messages", LAST_ACTIVITY, "begins", right=("messages",))
    for each in page.sessions:
        text = f"damaged: {each.title or each.preview}" if each.is_damaged else each.title or each.preview
        begins = Text(printable(text), no_wrap=True, overflow="ellipsis")
        owner = Text(printable(each.owner_id or "-"), no_wrap=True, overflow="ellipsis")
        made.add_row(printable(each.session_id), owner, f"{each.last_seq:,}", moment(each.updated_at), begins)
    if not page.sessions:
        return "no sessions"
    keep_ids_whole(made, (each.session_id for each in page.sessions))
    return Group(made, f"\nmore with: --cursor {page.next_cursor}") if page.next_cursor else made


def session(found: Session, messages: Sequence[Message]) -> RenderableType:
    owner = "no owner" if found.owner_id is None else f"owner {printable(found.owner_id)}"
    title = Text.assemble((printable(found.session_id), "bold"), f" · {count(found.last_seq, 'message')} · {owner}")
    if found.forked_from_id:
        title.append(f" · forked from {printable(found.forked_from_id)} at {found.forked_at_seq}")
    left_out = found.last_seq - len(messages)
    hint = [f"… {count(left_out, 'older message')} (--all shows them)"] if messages and left_out > 0 else []
    return Group(title, *hint, *(message_view(message) for message in messages))


def message_view(message: Message, *, memory: bool = False) -> RenderableType:
    """A message: who, then the text and the tool traffic, indented."""
    style = MEMORY_STYLE if memory else ROLE_STYLES.get(message.role, "")
    who = Text(f"{message.seq:>6}  " if message.seq else " " * 8)
    who.append(message.role, style=f"bold {style}")
    if message.name:
        who.append(f" {printable(message.name)}", style=style)
    if message.tool_call_id:
        who.append(f" answers {printable(message.tool_call_id)}", style="dim")
    body = [Text(printable(message.content))] if message.content else []
    body += [_call(call) for call in message.tool_calls]
    body += [Text(f"[{printable(str(part.get('type', 'part')))}]", style="dim") for part in message.parts]
    return Group(who, *(Padding(line, (0, 0, 0, 8), expand=False) for line in body))


def block_view(message: Message, sources: Sequence[Sequence[int]]) -> RenderableType:
    """A memory block: before each line the messages that it was made from, if they are known."""
    who = Text(" " * 8).append(message.role, style=f"bold {MEMORY_STYLE}")
    rows = Table(box=None, show_header=False, padding=(0, 1, 0, 0), pad_edge=False)
    rows.add_column(justify="right", style="dim", min_width=7, no_wrap=True)
    rows.add_column(overflow="fold")
    header, notice, *lines = message.content.split("\n")
    made_from = sources or [()] * len(lines)
    for line, seqs in zip([header, notice, *lines], [(), (), *made_from], strict=True):
        rows.add_row(_numbers(seqs), Text(printable(line)))
    return Group(who, rows)


def _numbers(seqs: Sequence[int]) -> str:
    """All of a few, the first and the last of more."""
    few = len(seqs) <= MOST_SOURCES
    return " ".join(map(str, seqs)) if few else f"{seqs[0]} … {seqs[-1]}"


def fact_value(traced: TracedFact) -> JsonObject:
    """A fact for programs, with the words of its message and the fact that holds in its place."""
    return {
        **msgspec.to_builtins(traced.fact),
        "quote": traced.quote,
        "successor": traced.successor,
        "retracted": traced.retracted,
        "muted": traced.muted,
    }


def search_hits(found: Sequence[SearchHit]) -> RenderableType:
    if not found:
        return "nothing found"
    made = table("score", "passage", right=("score",))
    for hit in found:
        made.add_row(f"{hit.score:.1f}", printable(_excerpt(hit.text)))
    return made


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= EXCERPT_CHARACTERS else f"{cut(line, EXCERPT_CHARACTERS)} …"


def no_memory(messages: int, *, is_on: bool, trigger: int, otherwise: str) -> str:
    """Why a session of so many messages has no memory."""
    if not is_on:
        return "summary.enabled is false"
    if messages <= trigger:
        return f"{messages:,} of {count(trigger, 'message')}, memory begins above that"
    return otherwise


LEAST_KEY, LEAST_VALUE = 9, 16
"""How wide the columns of a fact are at least: words that are broken are not read."""


def facts(found: Sequence[TracedFact], missing: str = NO_FACTS_YET) -> RenderableType:
    """`missing`: why there are no facts, if there are none."""
    if not found:
        return f"no facts: {missing}"
    made = table("message", "about", "what", "value", "kind", "said by", "as it was said", right=("message",))
    _, _, what, value, kind, _, _ = made.columns
    what.min_width, value.min_width = LEAST_KEY, LEAST_VALUE
    kind.no_wrap = True
    for traced in found:
        fact = traced.fact
        marks = "".join([fact.mark, " (not verified)" * (not fact.verified)])
        marks += " (corrected by a person)" * fact.amended + " (retracted by a person)" * traced.retracted
        marks += " (muted)" * traced.muted
        if traced.successor and traced.successor.amended:
            marks += " (replaced by a person)"
        elif traced.successor:
            marks += f" (replaced by message {traced.successor.source_seq})"
        texts = (fact.anchor, fact.key, fact.value + marks)
        quote = Text(printable(traced.quote), no_wrap=True, overflow="ellipsis")
        made.add_row(str(fact.source_seq), *map(printable, texts), fact.category.lower(), fact.said_by, quote)
    return made


def with_differences(view: RenderableType, different: Sequence[SettingDifference]) -> RenderableType:
    """The `view`, and below it what counts otherwise than for the agent that saved last."""
    if not different:
        return view
    return Group(view, Text(), heading("settings unlike the agent's"), *map(Text, map(difference, different)))


def difference(each: SettingDifference) -> str:
    return printable(f"{each.key}: {each.here} here ({each.origin}), {each.agent} for the agent")


def pins(found: Sequence[Pin]) -> RenderableType:
    if not found:
        return "nothing is pinned"
    made = table("message", "what", "tokens", "text", right=("message", "tokens"))
    for pin in found:
        what = pin.role if pin.fact is None else f"fact {pin.fact[0]} {pin.fact[1]}"
        made.add_row(str(pin.seq), printable(what), f"{pin.token_count:,}", printable(pin.text))
    return made


def summary(view: SummaryView) -> RenderableType:
    if not view.covered_seq and not view.last_error:
        return "nothing to summarize: the session is not longer than summary.trigger_message_count"
    lines = [f"messages 1 to {view.covered_seq:,} are covered, {count(len(view.facts), 'fact')} in memory"]
    if view.truncated:
        lines.append("more facts are in the ledger than the memory has room for: reactor-memory facts")
    if view.last_error:
        lines.append(f"the work failed ({view.last_error}), {count(view.attempts, 'time')} in a row")
    return Group(*lines, Text(printable(view.narrative)))


def tiers(report: TierReport) -> RenderableType:
    if report.skipped_reason:
        return f"nothing was summarised: {report.skipped_reason}"
    kinds = (
        f"{report.compressed_n:,} compressed, {report.condensed_n:,} condensed, {report.recent_n:,} left as they are"
    )
    return f"messages and summaries {report.before:,} → {report.after:,}: {kinds}"


def migrated(schema: str, recounted: int, placed: Sequence[Placed] | None = None) -> RenderableType:
    """`placed`: what was distributed, None unless that was asked for."""
    told = f"schema {schema} is up to date" + (f", {count(recounted, 'message')} counted again" if recounted else "")
    if placed is None:
        return told
    by_keys = [f"{each.table} by {each.key}" if each.key else f"{each.table} copied to every node" for each in placed]
    return "\n".join([told, *by_keys] if placed else [told, "all tables were distributed before"])


def deletion_values(gone: DeletedSessions) -> dict[str, object]:
    return {"deleted": gone.session_ids, "is_scrubbed": gone.is_scrubbed, "left": gone.left}


def deleted(gone: DeletedSessions, *, otherwise: str = "was deleted before") -> RenderableType:
    lines = [f"deleted {printable(each)}" for each in gone.session_ids] or [otherwise]
    return "\n".join([*lines, *_left_of(gone)])


def erased(done: ErasedMessages | ErasedUser) -> RenderableType:
    if isinstance(done, ErasedUser):
        line = f"sessions destroyed: {done.session_count}, rows of notes and active sessions: {done.row_count}"
    else:
        shown = ", ".join(map(printable, done.session_ids))
        line = f"messages destroyed: {done.message_count}, in the contexts of: {shown}"
    return "\n".join([line, *_left_of(done)])


def _left_of(done: ErasedMessages | ErasedUser | DeletedSessions) -> list[str]:
    """What is not gone yet, in one line."""
    left = ", ".join(done.left)
    return [f"not gone yet: {left} (in use or out of reach; background work goes on, doctor tells)"] if left else []


def exit_code_of(done: ErasedMessages | ErasedUser | DeletedSessions) -> int:
    """3 if bytes are left of what was destroyed."""
    return 0 if done.is_scrubbed else 3


def idle_groups(found: Sequence[IdleGroup]) -> RenderableType:
    if not found:
        return "nothing is that old"
    made = table("session", "with forks", "messages", LAST_ACTIVITY, right=("with forks", "messages"))
    for group in found:
        numbers = (f"{group.session_count:,}", f"{group.message_count:,}")
        made.add_row(printable(group.session_id), *numbers, moment(group.updated_at))
    keep_ids_whole(made, (group.session_id for group in found))
    return Group(made, Text("a dry run: nothing was deleted; add --yes to delete them", style="dim"))


def _call(call: ToolCall) -> Text:
    text = Text("calls ", style="dim")
    text.append(printable(call.name), style="bold")
    text.append(printable(f" {call.arguments_text}"))
    return text.append(printable(f"  {call.id}"), style="dim")
