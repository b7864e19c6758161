"""What was done and looked up: each call of a tool by itself, with its arguments and what its result says. Pure.

Nothing here knows a tool. Whether a call failed is told by `outcomes`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from reactor_memory.features.facts.evidence import clean_key
from reactor_memory.features.facts.quoting.categories import category_of_call
from reactor_memory.features.facts.quoting.json_lines import told_part
from reactor_memory.features.facts.quoting.outcomes import has_failed
from reactor_memory.features.facts.quoting.record_keys import NO_ARGUMENT, REPLY, CallRole, anchor_of, key_and_value
from reactor_memory.features.facts.quoting.result_lines import line_worth
from reactor_memory.models import Message, ToolCall
from reactor_memory.models.ledger import Act, Fact
from reactor_memory.models.memory_tools import MEMORY_TOOLS
from reactor_memory.models.tool_roles import NO_ROLES, ToolRole, ToolRoles, folded_name, roles_in
from reactor_memory.models.turns import told_interrupted, with_interruptions
from reactor_memory.text.caches import memo
from reactor_memory.text.opened_results import OpenedResult, opened
from reactor_memory.text.spans import Leaf, arguments_of, leaves

MOST_ARGUMENTS = 24
LONGEST_ARGUMENT = 240
MOST_FIELDS = 16
"""A record of so many values is kept as it is; of a longer one, what is said or used later."""

MOST_LINES = 5
LONGEST_LINE = 200
SHORT_RESULT = 240
MOST_READ = 20_000
"""Characters of a result that are read, half of them from its end."""

SHORTEST_USED = 3

DONE_SALIENCE, LOOKED_UP_SALIENCE = 88, 40
"""All facts of a call have the same, so that a ledger that is full keeps or drops it as a whole."""

_READING = (
    "browse check compare count describe display fetch find get inspect list load lookup look open peek preview query"
    " read retrieve search select show view"
)
_ACTING = (
    "add apply approve assign book buy cancel change close confirm create delete edit finish install make merge modify"
    " move order pay place play post publish purchase put reject remove rename reply reserve return run save schedule"
    " send set start stop submit transfer update upload write"
)
READING, ACTING = frozenset(_READING.split()), frozenset(_ACTING.split())
"""Verbs with which names of tools begin: a first guess, where the results of a tool say nothing else."""

NOUNS = frozenset({"book", "order", "place", "play", "post", "run", "schedule", "transfer"})
LOOKING_UP = frozenset(
    {"balance", "details", "diff", "history", "info", "log", "lookup", "query", "search", "status", "version"}
)
"""Verbs that may be nouns, and what is looked up of them (``order_status``)."""

_NAME_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SUM, _NUMBER = re.compile(r"[\d\s.,()+*/%^-]{1,200}"), re.compile(r"-?[\d.,]{1,20}")
LONG_THOUGHT = 60
_CELL = re.compile(r"[;|\t]|\s{2,}")
_END_OF_LINE = re.compile(r"[\r\n]+")


class _Exchange(NamedTuple):
    """A call of a message, how many of its tool came before it in the message, and its result if there is one.
    `declared`: what somebody who knows the tool says that it does.
    """

    call: ToolCall
    seq: int
    place: int
    declared: ToolRole | None = None
    result: Message | None = None
    is_interrupted: bool = False
    told: OpenedResult = OpenedResult("")


def calls_made(messages: Sequence[Message], roles: ToolRoles = NO_ROLES) -> Iterator[Fact]:
    """The calls of messages in their order, each under an anchor of its own, whatever order the results came in.

    `roles`, by `folded_name`, are those of the settings; then count those that the messages tell. What a tool without
    one does is learned from what it gives back.
    """
    said_in = turns_to_name(messages)
    for exchange in _exchanges(messages, roles):
        if not _only_thinks(exchange):
            yield from _call(exchange, _later_words(messages, exchange), said_in.get(exchange.seq, 0))


def _exchanges(messages: Sequence[Message], roles: ToolRoles) -> list[_Exchange]:
    """Some providers number the calls of each turn from 0 again: a result belongs to the newest call of its id. What an
    agent asks its own memory, or notes there, is none: it was said before.
    """
    found: list[_Exchange] = []
    newest: dict[str, int] = {}
    for message in with_interruptions(messages, max((each.seq or 0 for each in messages), default=0)):
        places: dict[str, int] = {}
        declared = roles_in(message)
        for call in message.tool_calls:
            if call.name in MEMORY_TOOLS:
                newest.pop(call.id, None)
                continue
            places[call.name] = places.get(call.name, 0) + 1
            newest[call.id] = len(found)
            role = roles.get(folded_name(call.name)) or declared.get(call.name)
            found.append(_Exchange(call, message.seq or 0, places[call.name], role))
        if message.role == "tool" and (message.tool_call_id or "") in newest:
            index = newest[message.tool_call_id or ""]
            is_interrupted = told_interrupted(message)
            found[index] = found[index]._replace(
                result=None if is_interrupted else message,
                is_interrupted=is_interrupted,
                told=OpenedResult("") if is_interrupted else opened(message.content),
            )
    return found


def _only_thinks(exchange: _Exchange) -> bool:
    """A note of the model to itself, long prose in and nothing or the same out; or a sum, numbers in and one out."""
    if exchange.declared is not None:
        return exchange.declared == "think"
    said = " ".join(leaf.text for leaf in leaves(arguments_of(exchange.call.arguments)))
    if exchange.result is None or not isinstance(exchange.told.value, str):
        return False
    told = exchange.told.value.strip()
    is_sum = _SUM.fullmatch(said) is not None and _NUMBER.fullmatch(told) is not None
    return is_sum or (len(said) > LONG_THOUGHT and (not told or told in said))


def turns_to_name(messages: Sequence[Message]) -> Mapping[int, int]:
    """Of messages, turn by turn, the user message that they follow, where it is not the one that stands before them in
    the log, or where that is not known.
    """
    users = sorted(message.seq or 0 for message in messages if message.role == "user")
    places = {seq: place for place, seq in enumerate(sorted(message.seq or 0 for message in messages))}
    found: dict[int, int] = {}
    turn = 0
    for message in messages:
        seq = message.seq or 0
        if message.role == "user":
            turn = seq
        elif turn:
            is_next = users[bisect_left(users, seq) - 1] == turn and places[seq] - places[turn] == seq - turn
            found |= {} if is_next else {seq: turn}
    return found


def _call(exchange: _Exchange, later: str, turn: int) -> Iterator[Fact]:
    name = " ".join(exchange.call.name.replace("#", " ").split()) or "a tool"
    anchor, role = anchor_of(name, exchange.seq, exchange.place), _role(exchange)
    given = list(leaves(arguments_of(exchange.call.arguments)))[:MOST_ARGUMENTS]
    values = frozenset(leaf.text for leaf in given)
    failed = has_failed(exchange.result, exchange.told, tool=exchange.call.name, given=values, is_lookup=role == "read")
    act: Act = "interrupted" if exchange.is_interrupted else "statement"
    category = category_of_call(role)
    salience = DONE_SALIENCE if role == "act" else LOOKED_UP_SALIENCE
    kind = f"{role}.{REPLY}{turn}" if turn else role
    for leaf in given or [Leaf(NO_ARGUMENT, exchange.call.name)]:
        key, value = key_and_value(f"call.{kind}.{clean_key(leaf.path or 'text')}", leaf.text, LONGEST_ARGUMENT)
        yield Fact(
            anchor=anchor,
            key=key,
            value=value,
            category=category,
            source_seq=exchange.seq,
            said_by="assistant",
            salience=salience,
            act=act,
            failed=failed or exchange.is_interrupted,
        )
    if exchange.result is not None:
        for key, value in _reply(exchange.told.value, {leaf.text.casefold() for leaf in given}, role, later):
            yield Fact(
                anchor=anchor,
                key=key,
                value=value,
                category=category,
                source_seq=exchange.result.seq or 0,
                said_by="tool",
                salience=salience,
                failed=failed,
            )


def _role(exchange: _Exchange) -> CallRole:
    """Whether the call did something. What it gave back tells, with the verb of its name as a first guess: a list, or
    much more than it was asked, is what somebody looked up; an id that nobody knew is something new.
    """
    if exchange.declared in ("act", "read"):
        return exchange.declared
    verb = _verb(exchange.call.name)
    reads = verb in READING
    if exchange.result is None or verb in ACTING:
        return "read" if reads else "act"
    given = {leaf.text for leaf in leaves(arguments_of(exchange.call.arguments))}
    result = exchange.told.value
    if _count(result) > 1:
        return "read"
    if reads or not isinstance(result, Mapping):
        length = sum(map(len, given))
        return "read" if reads or len(exchange.result.content) > max(400, 4 * length) else "act"
    found = list(leaves(cast("Mapping[str, object]", result)))
    same = sum(leaf.text in given for leaf in found)
    if len(found) == 1 and not same and _NUMBER.fullmatch(found[0].text) and not found[0].path.endswith("id"):
        return "read"
    return "read" if len(given) == 1 and len(found) > 4 and same == 1 else "act"


@memo(maxsize=1024)
def _verb(name: str) -> str:
    """The first word of a tool's name that tells what it does. Of a word that may be a noun a word of looking things
    up says that it is one (``order_status``).
    """
    words = [word.lower() for word in _NAME_WORDS.findall(name)]
    verb = next((word for word in words if word in READING or word in ACTING), "")
    return "read" if verb in ("", *NOUNS) and not LOOKING_UP.isdisjoint(words[1:]) else verb


def _count(result: object) -> int:
    if isinstance(result, list):
        return len(cast("list[object]", result))
    if isinstance(result, Mapping):
        lists = [
            cast("list[object]", each)
            for each in cast("Mapping[str, object]", result).values()
            if isinstance(each, list)
        ]
        return max(map(len, lists), default=1) if len(lists) == len(cast("Mapping[str, object]", result)) else 1
    return 1


def _reply(told: object, given: set[str], role: CallRole, later: str) -> Iterator[tuple[str, str]]:
    """What is kept of a result, each with its key."""
    if not isinstance(told, str):
        new = [leaf for leaf in _first_leaves(told) if leaf.text.casefold() not in given]
        if len(new) > MOST_FIELDS or (role == "read" and _count(told) > 1):
            new = [leaf for leaf in new if _is_used(leaf.text, later)]
        for leaf in new[:MOST_FIELDS]:
            yield key_and_value(f"reply.field.{clean_key(leaf.path or 'text')}", leaf.text, LONGEST_ARGUMENT)
    else:
        for number, line in enumerate(_lines(told, later), start=1):
            yield key_and_value(f"reply.line.{number}", line, LONGEST_LINE)


def _first_leaves(told: object) -> Iterator[Leaf]:
    """The leaves that begin in the first characters of a result, as many as are read of a text."""
    left = MOST_READ
    for leaf in leaves(told):
        if left <= 0:
            return
        left -= len(leaf.path) + len(leaf.text)
        yield leaf


def _lines(content: str, later: str) -> Iterator[str]:
    """The lines of a text that say how it went: errors, sums, the last one, and those of which later messages speak."""
    half = MOST_READ // 2
    read = content if len(content) <= MOST_READ else f"{content[:half]}\n{content[-half:]}"
    told = ((told_part(line, LONGEST_LINE), line) for line in _END_OF_LINE.split(read) if any(map(str.isalnum, line)))
    raw = {" ".join(part.split()): line for part, line in told}
    lines = list(raw)
    if sum(map(len, lines)) > SHORT_RESULT or len(lines) > MOST_LINES:
        worth = {
            line: line_worth(line, place, len(lines)) + _told_later(raw[line], later)
            for place, line in enumerate(lines)
        }
        best = sorted((line for line in worth if worth[line]), key=lambda line: -worth[line])[:MOST_LINES]
        lines = [line for line in dict.fromkeys(lines) if line in best]
    yield from lines


def _told_later(line: str, later: str) -> float:
    """What a line is worth for what later messages say of it: a word with a digit, or a cell of a row."""
    words = (word for word in line.split() if any(map(str.isdigit, word)))
    cells = _CELL.split(line.strip()) if _CELL.search(line.strip()) else ()
    return 2.0 * any(_is_used(each, later) for each in (*words, *cells))


def _later_words(messages: Sequence[Message], exchange: _Exchange) -> str:
    """What is said or given to tools behind the result, in one text."""
    after = exchange.result.seq if exchange.result else None
    place = next((place for place, message in enumerate(messages) if message.seq == after), -1) if after else -1
    said = [message for message in messages[place + 1 :] if message.role != "tool"]
    return " ".join(
        part for message in said for part in (message.content, *(str(call.arguments) for call in message.tool_calls))
    ).casefold()


def _is_used(value: str, later: str) -> bool:
    folded = value.casefold().strip(" .,;:()")
    return len(folded) >= SHORTEST_USED and folded in later
