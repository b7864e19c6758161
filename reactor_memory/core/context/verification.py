"""An independent check of a context against its report.

It shares no code with what makes contexts: whoever distrusts one of the two can ask the other.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec

from reactor_memory.core.context.context import Context
from reactor_memory.core.context.report import ContextReport, ReportEntry
from reactor_memory.models import Message

_REASONING = ("reasoning", "thinking", "redacted_thinking")
_ROLES = ("user", "assistant", "system", "tool", "agent", "summary")


def verify(
    context: Context,
    *,
    count: Callable[[Message], int],
    verbatim: Mapping[str, Sequence[str]] | None = None,
    log: Sequence[Message] = (),
) -> list[str]:
    """What is wrong with `context`, in plain words; an empty list when nothing is.

    `count` gives the tokens of a message without overhead: the function that made the context, or a more exact one.
    `verbatim`, if given, has the SHA-256 of the texts that must stand in the context as they are, by their part, or be
    dropped by the report. Without it, those that the report names. `log`, if given, has the messages of the session:
    what a model gave with its reasoning stands in the context whole or not at all. No problem quotes a message.
    """
    if len(context.report.parts) != len(context.messages):
        return ["parts: do not name a part for each message"]
    checks = (
        _check_tokens(context, count),
        _check_order(context),
        _check_roles(context),
        _check_pairs(context.messages),
        _check_reasoning(context),
        _check_steps(context, log),
        _check_account(context),
        _check_sources(context),
        _check_clamped(context),
        _check_ranges(context),
        _check_breakpoints(context),
        _check_verbatim(context, verbatim),
        _check_digest(context),
    )
    return [problem for check in checks for problem in check]


def _check_tokens(context: Context, count: Callable[[Message], int]) -> Iterator[str]:
    report = context.report
    found: Counter[str] = Counter()
    for part, message in zip(report.parts, context.messages, strict=True):
        found[part] += count(message) + report.overhead
    for part in found.keys() | report.tokens.keys():
        stated = report.tokens.get(part, 0)
        if found[part] != stated:
            yield f"tokens: {part} has {found[part]}, the report says {stated}"
    if report.total_tokens != sum(report.tokens.values()):
        yield f"tokens: the total of {report.total_tokens} is not the sum of the parts"
    if max(found.total(), report.total_tokens) > report.budget:
        yield f"tokens: {max(found.total(), report.total_tokens)} are over the budget of {report.budget}"


def _check_order(context: Context) -> Iterator[str]:
    report = context.report
    ranks = [_rank(report, part) for part in report.parts]
    inside = {frame.part for frame in report.frames if frame.place == "turn"}
    parts = [part for part in report.parts if part not in inside]
    runs = [part for index, part in enumerate(parts) if index == 0 or parts[index - 1] != part]
    if ranks != sorted(ranks) or len(runs) != len(set(runs)):
        yield "order: the parts are not in the order of a context"
    logged = _logged(report)
    for part in logged:
        if not _is_oldest_first(context, part):
            yield f"order: {part} is not oldest first"
    shown = Counter(seq for part in logged for seq in _seqs(context, part))
    if shown and max(shown.values()) > 1:
        yield "order: a message is shown twice"
    window, current = _seqs(context, "window"), _seqs(context, "current")
    if window and current and max(window) >= min(current):
        yield "order: the current turn is older than the window"


def _is_oldest_first(context: Context, part: str) -> bool:
    """Turns by where they begin, and each by itself: those that ran at once stand one after the other. So does what is
    left of several before the first user message.
    """
    pairs = zip(context.report.parts, context.messages, strict=True)
    turns: list[list[int]] = [[]]
    heads: list[int] = []
    for message in [message for name, message in pairs if name == part]:
        if message.role == "user":
            turns.append([])
            heads.append(message.seq or 0)
        elif not heads and _is_said(message):
            turns.append([])
        turns[-1] += [] if message.seq is None else [message.seq]
    return all(run == sorted(run) for run in (heads, *turns))


def _rank(report: ContextReport, part: str) -> int:
    """Where a part stands: what was given first, blocks, what stands verbatim, window, what came back, current turn."""
    places = {frame.part: frame.place for frame in report.frames}
    if part in places:
        return {"first": 1, "memory": 2, "last": 6, "turn": 7}[places[part]]
    if part in report.verbatim:
        return 3
    return {"system": 0, "window": _WINDOW, "current": 7}.get(part, 5)


_WINDOW = 4


def _logged(report: ContextReport) -> list[str]:
    """The parts that show messages of the log as they were said, each once."""
    blocks = {frame.part for frame in report.frames}
    return [part for part in report.offered if part not in blocks and part not in report.verbatim and part != "system"]


def _headers(report: ContextReport) -> dict[str, str]:
    return {frame.part: frame.header for frame in report.frames}


def _seqs(context: Context, part: str) -> list[int]:
    pairs = zip(context.report.parts, context.messages, strict=True)
    return [message.seq for name, message in pairs if name == part and message.seq is not None]


def _check_roles(context: Context) -> Iterator[str]:
    block_roles: set[str] = set()
    headers = _headers(context.report)
    own_role = {frame.part for frame in context.report.frames if frame.role is not None}
    for part, message in zip(context.report.parts, context.messages, strict=True):
        if message.role not in _ROLES:
            yield f"roles: {part} has a message of an unknown role"
        if part in headers:
            if part not in own_role:
                block_roles.add(message.role)
            elif message.role not in ("system", "user", "assistant"):
                yield f"roles: {part} is of a role for which no memory is"
            if message.content.partition("\n")[0] != headers[part]:
                yield f"roles: {part} does not begin with its header"
        if part == "system" and message.role not in ("system", "summary"):
            yield "roles: system has a message of another role"
    if not (block_roles <= {"system"} or block_roles <= {"user"}):
        yield "roles: the memory blocks are not of one role, system or user"
    if any(context.report.parts.count(part) > 1 for part in headers):
        yield "roles: a memory block stands twice"


def _check_pairs(messages: Sequence[Message]) -> Iterator[str]:
    waiting: dict[str, tuple[int, bool]] = {}
    just_made = _just_made(messages)
    for index, message in enumerate(messages):
        if message.role == "user":
            yield from _unanswered(waiting)
            waiting = {}
        elif message.role == "tool" and message.tool_call_id is not None:
            call = waiting.get(message.tool_call_id or "")
            if call is None:
                yield f"pairs: message {index} is a result without a call"
            else:
                waiting[message.tool_call_id or ""] = call[0], True
        else:
            ids = {call.id for call in message.tool_calls}
            yield from _unanswered({key: v for key, v in waiting.items() if key in ids and v[0] < just_made})
            waiting.update(dict.fromkeys(ids, (index, False)))
    yield from _unanswered({key: value for key, value in waiting.items() if value[0] < just_made})


def _just_made(messages: Sequence[Message]) -> int:
    """Where the last message begins, or the step of a model that it belongs to: its calls may still be open."""
    for index in range(len(messages) - 1, -1, -1):
        if not _is_said(messages[index]):
            break
        if _thinks(messages[index]) and not (index and _only_thinks(messages[index - 1])):
            return index
    return len(messages) - 1


def _unanswered(waiting: dict[str, tuple[int, bool]]) -> Iterator[str]:
    for index in sorted({index for index, answered in waiting.values() if not answered}):
        yield f"pairs: message {index} has a call without a result"


def _check_reasoning(context: Context) -> Iterator[str]:
    """Reasoning on its own stands directly before what it led to, unless the current turn has come no further."""
    for index, (message, after) in enumerate(pairwise(context.messages)):
        if _only_thinks(message) and not (_is_said(after) and _is_next(message, after)):
            yield f"reasoning: message {index} is not followed by what it led to"
    if context.messages and _only_thinks(context.messages[-1]) and context.report.parts[-1] != "current":
        yield f"reasoning: message {len(context.messages) - 1} is not followed by what it led to"


def _check_steps(context: Context, log: Sequence[Message]) -> Iterator[str]:
    shown = {seq for part in _logged(context.report) for seq in _seqs(context, part)}
    for step in _steps(log):
        if 0 < sum(seq in shown for seq in step) < len(step):
            yield f"reasoning: of messages {step[0]} to {step[-1]}, which came with one reasoning, only some are shown"


def _steps(log: Sequence[Message]) -> Iterator[list[int]]:
    """The positions of what models gave with each reasoning."""
    step: list[int] = []
    before: Message | None = None
    for message in log:
        begins = _thinks(message) and not (before and _only_thinks(before) and _is_next(before, message))
        if begins or not (before and _is_said(message) and _is_next(before, message)):
            yield step
            step = []
        if begins or step:
            step.append(message.seq or 0)
        before = message
    yield step


def _is_said(message: Message) -> bool:
    return message.role in ("assistant", "agent")


def _is_next(message: Message, after: Message) -> bool:
    return message.seq is None or after.seq is None or after.seq - message.seq == 1


def _thinks(message: Message) -> bool:
    return _is_said(message) and any(part.get("thought") or part.get("type") in _REASONING for part in message.parts)


def _only_thinks(message: Message) -> bool:
    others = [part for part in message.parts if not part.get("thought") and part.get("type") not in _REASONING]
    return _thinks(message) and not (message.content or message.tool_calls or others)


def _check_account(context: Context) -> Iterator[str]:
    report = context.report
    named: Counter[str] = Counter()
    shown: Counter[str] = Counter()
    for entry in report.kept + report.clamped:
        shown[entry.part] += entry.count
    for entry in report.kept + report.clamped + report.dropped:
        named[entry.part] += entry.count
    for part in named.keys() | report.offered.keys():
        if named[part] != report.offered.get(part, 0):
            yield f"account: {part} was offered {report.offered.get(part, 0)}, the entries name {named[part]}"
    messages, blocks = Counter(report.parts), _headers(report)
    for part in messages.keys() | shown.keys():
        if (_lines(context, part) if part in blocks else messages[part]) != shown[part]:
            yield f"account: {part} does not show what the entries name"
    yield from _misnamed(context)


def _check_sources(context: Context) -> Iterator[str]:
    report = context.report
    if report.seqs != tuple(message.seq for message in context.messages):
        yield "sources: the report does not name the position of each message"
    for part in (*_headers(report), *report.verbatim):
        if len(report.sources.get(part, ())) != report.offered.get(part, 0):
            yield f"sources: {part} does not name the messages of each line"


def _lines(context: Context, part: str) -> int:
    """Lines of a memory block below its header and its notice."""
    pairs = zip(context.report.parts, context.messages, strict=True)
    return sum(message.content.count("\n") - 1 for name, message in pairs if name == part)


def _misnamed(context: Context) -> Iterator[str]:
    report = context.report
    for part in (*report.verbatim, *_logged(report)):
        seqs = _seqs(context, part)
        kept = [entry for entry in report.kept + report.clamped if entry.part == part and entry.by == "seq"]
        gone = [entry for entry in report.dropped if entry.part == part and entry.by == "seq"]
        if not all(_names(kept, seq) for seq in seqs):
            yield f"account: a message of {part} is in no entry"
        if part not in report.verbatim and any(_names(gone, seq) for seq in seqs):
            yield f"account: a message of {part} is shown and called dropped"


def _names(entries: Sequence[ReportEntry], seq: int) -> bool:
    return any(entry.first <= seq <= entry.last for entry in entries)


def _check_clamped(context: Context) -> Iterator[str]:
    marked = sum(map(_is_marked, context.report.parts, context.messages))
    if sum(entry.count for entry in context.report.clamped) > marked:
        yield "clamped: a message that was cut has no mark"


def _is_marked(part: str, message: Message) -> bool:
    """Whether a message says that a part of it was cut: of its text, or of the arguments of its calls."""
    if part == "current" and ("[… " in message.content and " tokens cut …]" in message.content):
        return True
    if part == "current" and message.content.startswith("[cleared: "):
        return True
    texts = (message.content, *(str(call.arguments) for call in message.tool_calls))
    marks = (("[… ", " characters left out"), ("[cut: ", " characters"))
    return any(first in text and last in text for text in texts for first, last in marks)


def _check_ranges(context: Context) -> Iterator[str]:
    report = context.report
    window = [message for part, message in zip(report.parts, context.messages, strict=True) if part == "window"]
    if report.window_start_seq != (window[0].seq if window else None):
        yield "ranges: the window does not start where the report says"
    if any(later[0] <= earlier[1] for earlier, later in pairwise(report.unread)):
        yield "ranges: unread is not in order"
    if any(first <= seq <= last for first, last in report.unread for seq in _seqs(context, "window")):
        yield "ranges: a message of the window is called unread"
    for entry in report.dropped:
        if entry.part == "window" and entry.by == "seq" and entry.reason == "over_budget":
            first = max(entry.first, report.covered_seq + 1)
            if first <= entry.last and not any(a <= first and entry.last <= b for a, b in report.unread):
                yield "ranges: messages left the window unread and the report does not say so"


def _check_breakpoints(context: Context) -> Iterator[str]:
    ranks = [_rank(context.report, part) for part in context.report.parts]
    memory = sum(rank < _WINDOW for rank in ranks)
    window = sum(rank <= _WINDOW for rank in ranks)
    if context.report.cache_breakpoints != tuple(sorted({memory, window} - {0})):
        yield "breakpoints: do not stand after the memory and after the window"


def _check_verbatim(context: Context, expected: Mapping[str, Sequence[str]] | None) -> Iterator[str]:
    report = context.report
    if expected is not None and {part: list(hashes) for part, hashes in expected.items() if hashes} != {
        part: list(hashes) for part, hashes in report.verbatim.items()
    }:
        yield "verbatim: the report does not name what stands as it is"
    for part, named in report.verbatim.items():
        if len(named) != report.offered.get(part, 0):
            yield f"verbatim: the report does not name each of {part} that was offered"
        shown = [
            hashlib.sha256(message.content.encode()).hexdigest()
            for name, message in zip(report.parts, context.messages, strict=True)
            if name == part
        ]
        if shown != list(named[len(named) - len(shown) :]):
            yield f"verbatim: one of {part} is not, byte for byte, what was kept"


def _check_digest(context: Context) -> Iterator[str]:
    seen = [
        [getattr(message, field) for field in ("role", "content", "parts", "tool_calls", "tool_call_id", "name")]
        for message in context.messages
    ]
    try:
        data = msgspec.msgpack.encode(seen, order="deterministic")
    except OverflowError:
        data = msgspec.json.encode(seen, order="deterministic")
    if hashlib.sha256(data).hexdigest() != context.report.digest:
        yield "digest: the messages are not the ones that the report was made for"
