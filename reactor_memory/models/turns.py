"""Where a list of messages may be cut: turns, pairs, units and orphans; and which messages no context shows.

A turn is a user message and everything up to the next one. A pair is an assistant message with its tool calls and
all results, wherever they follow within the turn. A result answers the nearest earlier call of the turn that carries
its id: providers reuse ids. Reasoning makes one unit of what the model gave with it (`models.reasoned_runs`) and of all
pairs in it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from reactor_memory.models import (
    Message,
    frames,
    holds_reasoning,
    is_bare_reasoning,
    is_models,
    is_posted_summary,
    is_uncalled,
    reasoned_runs,
)

OrphanReason: TypeAlias = Literal["orphan_result", "open_call", "open_reasoning", "posted_summary"]


class Pair(NamedTuple):
    """The position of a message with tool calls, those of its results, and whether every call has one."""

    call: int
    results: tuple[int, ...]
    complete: bool


def is_traffic(message: Message) -> bool:
    """Whether the message is part of tool traffic: it calls a tool or carries the result of a call."""
    if message.role == "tool":
        return not is_uncalled(message)
    return bool(message.tool_calls) and message.role != "user"


_ROLE, _CALLS = attrgetter("role"), attrgetter("tool_calls")


def has_traffic(messages: Sequence[Message]) -> bool:
    """Whether any of the messages may be part of tool traffic."""
    return any(map(_CALLS, messages)) or "tool" in map(_ROLE, messages)


def last_turn_start(messages: Sequence[Message], start: int = 0, end: int | None = None) -> int:
    """The position of the newest user message in `[start, end)`, or `start` if there is none."""
    for index in range(len(messages) if end is None else end, start, -1):
        if messages[index - 1].role == "user":
            return index - 1
    return start


def find_pairs(messages: Sequence[Message], start: int = 0, end: int | None = None) -> list[Pair]:
    """All pairs in `[start, end)`, by the position of their call, incomplete ones included."""
    open_calls: dict[str | None, int] = {}
    results: dict[int, list[int]] = {}
    for index in range(start, len(messages) if end is None else end):
        message = messages[index]
        if message.role == "user":
            open_calls.clear()
        elif message.role == "tool":
            if (call := open_calls.get(message.tool_call_id)) is not None:
                results[call].append(index)
        elif message.tool_calls:
            results[index] = []
            open_calls.update((call.id, index) for call in message.tool_calls)
    return [Pair(call, tuple(found), _answered(messages, call, found)) for call, found in results.items()]


def _answered(messages: Sequence[Message], call: int, results: list[int]) -> bool:
    answered = {messages[index].tool_call_id for index in results}
    return all(tool_call.id in answered for tool_call in messages[call].tool_calls)


def names_no_call(message: Message) -> bool:
    """Whether this is a result of which the provider gave no id of a call: it goes by the name, or by the order."""
    if message.role != "tool" or message.given is None:
        return False
    return message.tool_call_id is None or not frames.names_call(message.given.frame)


def attached(messages: Sequence[Message], before: Sequence[Message] = ()) -> list[Message]:
    """The messages, their results that name no call with the id of the first call of their name, or of the first call
    at all, that waits for one. `before`: the messages that they follow.
    """
    found = [*before]
    for message in messages:
        if names_no_call(message):
            call_id = _waiting_call(found, message.tool_call_id or message.name)
            message = message if call_id is None else replace(message, tool_call_id=call_id)
        found.append(message)
    return found[len(before) :]


def _waiting_call(before: Sequence[Message], name: str | None) -> str | None:
    waiting: list[tuple[str, str]] = []
    answered: list[str | None] = []
    for message in reversed(before):
        if message.role == "tool":
            answered.append(message.tool_call_id)
        elif not is_models(message):
            break
        elif message.tool_calls:
            calls = [(call.id, call.name) for call in message.tool_calls]
            for answer in answered[::-1]:
                if found := next((call for call in calls if call[0] == answer), None):
                    calls.remove(found)
                    answered.remove(answer)
            if not calls:
                break
            waiting = [*calls, *waiting]
    if any(call_id == name for call_id, _ in waiting):
        return name
    fits = (call_id for call_id, called in waiting if name is None or name == called or name.startswith(f"{called}-"))
    return next(fits, None)


def find_orphans(
    messages: Sequence[Message], start: int = 0, end: int | None = None, *, open_tail: bool = False
) -> dict[int, OrphanReason]:
    """The messages in `[start, end)` that no provider accepts, by position, and posted summaries: what these say is
    memory, and an agent wrote it, so it must not stand among the messages.

    Results without a call; messages whose calls lack a result, with the results that they do have. Such a message is
    dropped whole, text included: without its calls the text announces an action that the context no longer shows,
    and a call with a made-up result would state what never happened. So is a whole run with reasoning of which a call
    is open, or that says nothing yet. With `open_tail` the very last message, or the run with reasoning that it ends,
    may have calls without any result: they were just made.
    """
    end = len(messages) if end is None else end
    if open_tail and start < end and messages[end - 1].role != "tool":
        end = _tail_start(messages, start, end)
    if _is_answered_in_order(messages, start, end):  # as nearly everything is
        return {}
    traffic: list[int] = []
    orphans: dict[int, OrphanReason] = {}
    for index in range(end - 1, start - 1, -1):
        message = messages[index]
        if message.role == "user":
            if traffic:
                orphans |= orphans_among(messages, traffic, end)
                traffic.clear()
        elif message.role in ("tool", "summary") or message.tool_calls or message.parts:
            traffic.append(index)
    orphans |= orphans_among(messages, traffic, end)
    return dict(sorted(orphans.items()))


def _is_answered_in_order(messages: Sequence[Message], start: int, end: int) -> bool:
    """Whether each call has one result in its turn, and nothing else decides which messages a provider takes."""
    waiting: set[str | None] = set()
    for index in range(start, end):
        message = messages[index]
        role = message.role
        if role == "user":
            if waiting:
                return False
        elif role == "tool":
            if message.tool_call_id not in waiting:
                return False
            waiting.remove(message.tool_call_id)
        elif message.parts or role == "summary":
            return False
        else:
            for call in message.tool_calls:
                if call.id in waiting:
                    return False
                waiting.add(call.id)
    return not waiting


def without_orphans(messages: Sequence[Message], orphans: Container[int], start: int = 0) -> Sequence[Message]:
    """The messages whose positions are none of `orphans`; the first of them is at position `start`."""
    return [message for index, message in enumerate(messages, start) if index not in orphans] if orphans else messages


def _tail_start(messages: Sequence[Message], start: int, end: int) -> int:
    """Where the last message begins, or the run with reasoning that it ends."""
    first = end - 1
    while first > start and is_models(messages[first]) and is_models(messages[first - 1]):
        first -= 1
    last = end - 1
    return next((run.start for run in reasoned_runs(messages, range(first, end), end) if last in run), last)


def orphans_among(messages: Sequence[Message], traffic: Sequence[int], end: int) -> dict[int, OrphanReason]:
    """`find_orphans` for one turn that ends before `end`, given the positions of its tool traffic, of summaries and of
    messages with parts, newest first.

    Read backwards, a call finds its results among those that no later call took.
    """
    waiting: dict[str | None, list[int]] = {}
    answers: dict[int, list[int]] = {}
    orphans: dict[int, OrphanReason] = {}
    for index in traffic:
        message = messages[index]
        if message.role == "tool":
            if not is_uncalled(message):
                waiting.setdefault(message.tool_call_id, []).append(index)
            continue
        if is_posted_summary(message):
            orphans[index] = "posted_summary"
            continue
        if not message.tool_calls:
            continue
        taken = {call.id: waiting.get(call.id, ()) for call in message.tool_calls}
        for key in taken:
            waiting.pop(key, None)
        answers[index] = [result for results in taken.values() for result in results]
        if not all(taken.values()):
            orphans[index] = "open_call"
            orphans.update(dict.fromkeys(answers[index], "orphan_result"))
    orphans.update((result, "orphan_result") for results in waiting.values() for result in results)
    for run in reasoned_runs(messages, reversed(traffic), end):
        if is_bare_reasoning(messages[run[-1]]) or any(index in orphans for index in run):
            orphans = _lost_with(run, answers) | orphans
    return orphans


def _lost_with(run: range, answers: Mapping[int, Sequence[int]]) -> dict[int, OrphanReason]:
    lost: dict[int, OrphanReason] = dict.fromkeys(run, "open_reasoning")
    lost.update((result, "orphan_result") for index in run for result in answers.get(index, ()))
    return lost


def is_answered(turn: Sequence[Message]) -> bool:
    """Whether a turn ends as turns do: with what the model says, without a call."""
    last = turn[-1]
    return is_models(last) and not last.tool_calls and not is_bare_reasoning(last)


INTERRUPTED = "[no result: the run was interrupted before the tool answered]"


def told_interrupted(result: Message) -> bool:
    """Whether this stands for a result that nobody knows."""
    return result.content == INTERRUPTED and result.outcome == "failed"


def interrupted_results(turn: Sequence[Message]) -> list[Message]:
    """Results that say so, for the calls with which a turn breaks off."""
    run = turn[_last_exchange(turn) :]
    told = {message.tool_call_id for message in run if message.role == "tool"}
    left = {call.id: call.name for message in run for call in message.tool_calls if call.id not in told}
    return [
        Message(role="tool", content=INTERRUPTED, tool_call_id=call_id, name=name or None, metadata={"is_error": True})
        for call_id, name in left.items()
    ]


def _last_exchange(turn: Sequence[Message]) -> int:
    """Where the calls begin with which the turn ends, results that follow them aside."""
    start = len(turn)
    while start and turn[start - 1].role == "tool":
        start -= 1
    while start and turn[start - 1].tool_calls and is_models(turn[start - 1]):
        start -= 1
    return start


def with_interruptions(messages: Sequence[Message], last_seq: int) -> Sequence[Message]:
    """The messages of a log that ends with `last_seq`, with a result for each call with which a turn broke off.

    Where a message is missing that may have been the result, a call stays without: it was withdrawn or erased.
    """
    if not has_traffic(messages):
        return messages
    there: set[int] | None = None
    last = len(messages)
    ends = [at for at in range(1, last) if messages[at].role == "user" and is_traffic(messages[at - 1])]
    if last and is_traffic(messages[-1]):
        ends.append(last)
    shown = list(messages)
    for end in reversed(ends):
        start = _last_exchange(messages[:end])
        if start == end:
            continue
        begins, after = messages[start].seq or 0, messages[end].seq or 0 if end < last else last_seq + 1
        there = {message.seq or 0 for message in messages} if there is None else there
        # of a turn that ran beside others, the result may stand behind all of them
        if _is_gap_free(there, begins, after if after > begins else last_seq + 1):
            shown[end:end] = interrupted_results(messages[start:end])
    return shown if len(shown) > last else messages


def _is_gap_free(there: set[int], begins: int, end: int) -> bool:
    return there.issuperset(range(begins, end))


def begin_in_order(messages: Sequence[Message]) -> bool:
    """Whether a turn begins among the messages, and none before the one before it had its answer."""
    begins, last = False, "assistant"
    for message in messages:
        role = message.role
        if role == "user":
            if last in ("user", "tool", "calls"):
                return False
            begins = True
        last = "calls" if message.tool_calls else role
    return begins


def in_turns(messages: Sequence[Message], steps: Mapping[int, int]) -> Sequence[Message]:
    """The messages, oldest first, with those of each turn together, the turns by where they begin. `steps`: of
    messages, where their turn begins. A user may speak within one, too.

    What is left of turns that began before the first message stands in front. Results whose calls were before it, too,
    come first of all: no call of another turn is theirs, though it has the same id.
    """
    turns: dict[int, list[Message]] = {0: []}
    for message, begins in zip(messages, begun_by(messages, steps), strict=True):
        turns.setdefault(begins, []).append(message)
    first = messages[0].seq or 0 if messages else 0
    uncalled = _uncalled([turns[begins] for begins in sorted(turns) if begins < first])
    order = [message for begins in sorted(turns) for message in turns[begins]]
    return [*uncalled, *(each for each in order if each not in uncalled)] if uncalled else order


def begun_by(messages: Sequence[Message], steps: Mapping[int, int]) -> list[int]:
    """Of each message where its turn begins; 0 if that is not known. A user message that is no step begins one, and
    what is no step belongs to the turn of the message before.
    """
    begun: list[int] = []
    for place, message in enumerate(messages):
        known = steps.get(message.seq or 0)
        if known is None:
            known = (message.seq or -place - 1) if message.role == "user" else begun[-1] if begun else 0
        begun.append(known)
    return begun


def _uncalled(begun_before: Sequence[Sequence[Message]]) -> list[Message]:
    """The results of turns without a call in them, nor in the first, of which it is not known what it is of."""
    uncalled: list[Message] = []
    for turn in begun_before[1:]:
        called = {call.id for message in (*begun_before[0], *turn) for call in message.tool_calls}
        uncalled += [each for each in turn if each.role == "tool" and each.tool_call_id not in called]
    return uncalled


def uncalled_first(read: Sequence[Message], shown: Sequence[Message]) -> Sequence[Message]:
    """What is shown of the messages that were read, the results first whose calls are not: where turns run at once, a
    window may have begun while a call before it waited, and calls of another turn have the same ids.
    """
    there = {id(message) for message in shown}
    pairs = (pair for pair in find_pairs(read) if id(read[pair.call]) not in there)
    lost = {id(read[result]) for pair in pairs for result in pair.results} & there
    return sorted(shown, key=lambda message: id(message) not in lost) if lost else shown


def parted(runs: Iterable[Sequence[Message]]) -> set[int]:
    """The places in the log at which a window may not begin, since it would have only a part of one of these runs."""
    spans = [[message.seq or 0 for message in run] for run in runs]
    return {seq for span in spans for seq in range(min(span) + 1, max(span) + 1)}


def in_exchanges(messages: Sequence[Message]) -> list[Message]:
    """The messages with the results of each call directly behind it, where providers want them.

    A framework may have calls that were made at once in several messages, with all the results after them.
    """
    results = {pair.call: pair.results for pair in find_pairs(messages)}
    moved = {index for found in results.values() for index in found}
    order = [each for index in range(len(messages)) if index not in moved for each in (index, *results.get(index, ()))]
    return [messages[index] for index in order]


def units(messages: Sequence[Message]) -> list[range]:
    """The smallest runs of messages that can leave without splitting a pair or what came with reasoning, oldest first.

    Those that overlap, and whatever stands between a call and its last result, are one run.
    """
    everything = range(len(messages))
    reach = {pair.call: pair.results[-1] for pair in find_pairs(messages) if pair.results}
    for run in reasoned_runs(messages, everything, len(messages)):
        reach |= {index: max(reach.get(index, 0), run[-1]) for index in run}
    runs: list[range] = []
    start, last = 0, -1
    for index in everything:
        last = max(last, index, reach.get(index, index))
        if index == last:
            runs.append(range(start, index + 1))
            start = index + 1
    return runs


def first_certain(messages: Sequence[Message]) -> int:
    """Where messages that were read out of a log can begin: what the model says first may need reasoning that was not
    read. 0 where everything is said by models.
    """
    if not messages or messages[0].seq == 1:
        return 0
    return next((index for index, message in enumerate(messages) if _begins_unit(messages, index, message)), 0)


def _begins_unit(messages: Sequence[Message], index: int, message: Message) -> bool:
    if not is_models(message):
        return True
    return index > 0 and holds_reasoning(message) and not is_bare_reasoning(messages[index - 1])
