"""Facts in the calls of tools and in their results. They are exact: a program read the arguments and made the result.

Nothing here knows any tool. Whether a call did something or only looked something up is told by how the people and
the model spoke around it and by the form of its result; what an id stands for, by the name beside it in a result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, cast

from reactor_memory.features.facts.summarizers.lexicon import AFFIRMATION, READ_VERBS
from reactor_memory.models import Message, ToolCall
from reactor_memory.models.ledger import Category, Fact
from reactor_memory.models.memory_tools import MEMORY_TOOLS
from reactor_memory.text.spans import arguments_of, decode, leaf_text, leaves
from reactor_memory.text.words import MONTHS

ACTION_SCORE = 0.75
ID_SUFFIX = ".id"
MAX_RESULT_FACTS = 24
MAX_ARGUMENT_FACTS = 60

_NAME_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ID_WORDS = frozenset({"id", "uuid", "guid"})
_NAMING = ("name", "title", "label", "display_name")
_ENVELOPES = frozenset({"data", "result", "request", "payload", "input", "changes", "updates", "patch", "fields"})
_ENDING_VERBS = frozenset(
    {"abort", "annul", "cancel", "delete", "discard", "refund", "remove", "revoke", "void", "withdraw"}
)
_ISO_DATE = re.compile(r"\d{4}-(\d\d)-(\d\d)$")
_NUMERIC = re.compile(r"\W*+\d[\d\s.,:/-]*+\w{0,3}+\W*+$")
_REFERENCE = re.compile(r"(?<![\w.:/-])(?=[\w-]*\d)[A-Za-z\d][\w-]{3,}(?![\w:/-]|\.\d)")
_FLAGS = frozenset({"true", "false", "yes", "no", "on", "off", "none"})
_FAILURES = frozenset({"error", "failed", "failure", "rejected", "denied", "declined", "not_found", "cancelled"})
_ACKNOWLEDGEMENTS = frozenset({"success", "ok", "acknowledged"})
_ERROR_TEXT = re.compile(r"\W*(?:error|exception|failed|failure|traceback)\b", re.IGNORECASE)


_SPEAKER = re.compile(r"(?:the )?(?:user|assistant|system|model)\b|(?:agreed|told)\b", re.IGNORECASE)


class Id(NamedTuple):
    """An id means something only together with the field that holds it: two fields may use the same numbers."""

    field: str
    value: str


class Exchange(NamedTuple):
    """A call, its result if it came, and what was said before it."""

    call: ToolCall
    seq: int
    proposal: str
    reply: str
    result_text: str | None = None
    result_seq: int = 0

    @property
    def arguments(self) -> object:
        return _opened(arguments_of(self.call.arguments))

    @property
    def result(self) -> object:
        return decode(self.result_text or "")


class Field(NamedTuple):
    """A value inside arguments or a result, under the name a reader would give it."""

    key: str
    text: str
    id: Id | None = None


def exchanges(messages: Sequence[Message]) -> list[Exchange]:
    """The calls of a run of messages in order, each with its result and the words before it. What an agent asks its own
    memory is none: it was said before.

    Some providers number the calls of each turn from 0 again, so an id is that of the newest call.
    """
    found: list[Exchange] = []
    newest: dict[str, int] = {}
    spoken = proposal = reply = ""
    for message in messages:
        if message.role == "user":
            proposal, reply = spoken, message.content
        elif message.role in ("assistant", "agent"):
            spoken = message.content or spoken
            for call in message.tool_calls:
                if call.name in MEMORY_TOOLS:
                    newest.pop(call.id, None)
                    continue
                newest[call.id] = len(found)
                found.append(Exchange(call, message.seq or 0, proposal, reply))
        elif message.role == "tool" and (message.tool_call_id or "") in newest:
            index = newest[message.tool_call_id or ""]
            found[index] = found[index]._replace(result_text=message.content, result_seq=message.seq or 0)
    return found


def action_score(exchange: Exchange) -> float:
    """How probably the call did something, rather than look something up: from below 0 to about 4.

    Counts: the share of the arguments that the model read out before or the user just asked for, the user's consent to
    it, new ids in the result, at most one record in it, more arguments; a tool name that begins with a verb of reading
    counts against, and what is asked of it is a question.
    """
    values = [leaf.text for leaf in leaves(exchange.arguments)]
    consent = bool(AFFIRMATION.match(exchange.reply))
    reads = _begins_with_reading(exchange.call.name)
    asked = exchange.proposal if reads else f"{exchange.proposal} {exchange.reply}".strip()
    score = _read_out_share(values, asked) * (1.0 + consent) + 0.3 * consent
    score += 0.5 * (record_count(exchange.result) <= 1) + 0.1 * min(len(values), 5)
    score += 1.0 * bool(_new_ids(exchange))
    return score - 1.0 * reads


def _begins_with_reading(tool: str) -> bool:
    return _verb(tool) in READ_VERBS


def _verb(tool: str) -> str:
    words = _NAME_WORDS.findall(tool)
    return words[0].lower() if words else ""


def _ending(exchange: Exchange, subject: Subject) -> Fact:
    """The fact that a thing was cancelled; without it, the other facts about the thing would seem valid."""
    return Fact(
        anchor=subject.anchor,
        key="ended",
        value=exchange.call.name,
        category="STATE",
        source_seq=exchange.seq,
        said_by="assistant",
        act="correction",
    )


def record_count(result: object) -> int:
    """How many records a result lists; a single object, or no JSON at all, is one."""
    if isinstance(result, list):
        return len(cast("list[object]", result))
    if isinstance(result, Mapping):
        values = list(cast("Mapping[str, object]", result).values())
        lists = [cast("list[object]", value) for value in values if isinstance(value, list)]
        if len(values) == len(lists) == 1:
            return len(lists[0])
    return 1


def is_failure(exchange: Exchange) -> bool:
    """Whether the result reports a failure, or is an empty list: nothing was found or done."""
    result = exchange.result
    if isinstance(result, list):
        return not result
    if not isinstance(result, Mapping):
        return bool(_ERROR_TEXT.match(exchange.result_text or ""))
    fields = {str(key).lower(): value for key, value in cast("Mapping[object, object]", result).items()}
    succeeded = str(fields.get("success", fields.get("ok", True))).lower()
    status = str(fields.get("status", "")).lower()
    is_undone = status == "cancelled" and _verb(exchange.call.name) in _ENDING_VERBS  # as was asked for
    refused = status in _FAILURES and not is_undone
    return bool(fields.get("error") or fields.get("errors")) or succeeded == "false" or refused


class Subject(NamedTuple):
    """What a call is about. `part` tells apart the things that were added to one anchor; it ends their keys."""

    anchor: str
    part: str = ""
    id: Id | None = None

    def key(self, field: Field) -> str:
        if not self.part:
            return field.key if self.id is None else _settled(field.key)
        stem = field.key.removesuffix(ID_SUFFIX)
        return f"{stem}.{self.part}{ID_SUFFIX if field.id else ''}"


class ToolReader:
    """Reads the exchanges of one segment: knows the names and the things that their results introduced."""

    def __init__(self, found: Sequence[Exchange]) -> None:
        self._names = _names(found)
        self._things: dict[Id, Subject] = {}

    def facts(self, exchange: Exchange) -> Iterator[Fact]:
        """The arguments, then what the result adds to them."""
        decided = action_score(exchange) >= ACTION_SCORE
        failed = is_failure(exchange)
        subject = self._subject(exchange, decided)
        stated: set[str] = set()
        for field in islice(_fields(exchange.arguments, self._names), MAX_ARGUMENT_FACTS):
            stated.add(field.text)
            if field.id and field.id == subject.id:
                continue
            yield Fact(
                anchor=subject.anchor,
                key=subject.key(field),
                value=field.text,
                category=_category(field.text),
                source_seq=exchange.seq,
                said_by="assistant",
                act="decision" if decided else "statement",
                failed=failed,
            )
            if field.id in self._names:
                yield self._name_fact(subject, field, failed=failed)
        if subject.id and not failed and _verb(exchange.call.name) in _ENDING_VERBS:
            yield _ending(exchange, subject)
        if not failed and record_count(exchange.result) <= 1:
            yield from self._result_facts(exchange, subject, stated)

    def _result_facts(self, exchange: Exchange, subject: Subject, stated: set[str]) -> Iterator[Fact]:
        for field in islice(_fields(_single(exchange.result), self._names), MAX_RESULT_FACTS):
            acknowledged = field.key.lower() in _ACKNOWLEDGEMENTS and field.text.lower() in _FLAGS
            if field.text not in stated and subject.anchor != _thing_name(field.id) and not acknowledged:
                yield Fact(
                    anchor=subject.anchor,
                    key=subject.key(field),
                    value=field.text,
                    category=_category(field.text),
                    source_seq=exchange.result_seq,
                    said_by="tool",
                )

    def _name_fact(self, subject: Subject, field: Field, *, failed: bool) -> Fact:
        """The name behind the id under ``<key>.id``, as the fact ``<key>``: it stands in another message."""
        name, seq = self._names[field.id or Id("", "")]
        key = subject.key(field).removesuffix(ID_SUFFIX)
        return Fact(
            anchor=subject.anchor,
            key=key,
            value=name,
            category="ENTITY",
            source_seq=seq,
            said_by="tool",
            failed=failed,
        )

    def _subject(self, exchange: Exchange, decided: bool) -> Subject:
        """The thing that the result names as given or as new; else the call itself."""
        top = _top_ids(exchange.result)
        given = [field.id for field in _fields(exchange.arguments, {}) if field.id]
        created = _new_ids(exchange) or (_ids_in_sentence(exchange) if decided else [])
        known = next((ident for ident in given if ident in top or ident in self._things), None)
        if created and (known is None or known in top):
            return self._created(created, known)
        if known is None and (decided or not _begins_with_reading(exchange.call.name)):
            known = next((ident for ident in given if ident not in self._names), None)
        if known is None:
            return Subject(f"{exchange.call.name} #{exchange.seq}")
        return self._things.get(known, Subject(_thing_name(known)))._replace(id=known)

    def _created(self, created: Sequence[Id], whole: Id | None) -> Subject:
        """New ids begin a thing, or are parts of one that was given with them."""
        if whole is None:
            subject = Subject(_thing_name(created[0]), id=created[0])
        else:
            subject = Subject(_thing_name(whole), part=created[0].value, id=whole)
        self._things.update((ident, subject) for ident in created)
        return subject


def _names(found: Sequence[Exchange]) -> dict[Id, tuple[str, int]]:
    """The name beside each id in any result, and the message that has it. A name that two ids share is left out."""
    names: dict[Id, tuple[str, int]] = {}
    bearers: dict[tuple[str, str], set[str]] = {}
    for exchange in found:
        for record in _records(exchange.result):
            for ident, name in _named_ids(record):
                names.setdefault(ident, (name, exchange.result_seq))
                bearers.setdefault((ident.field, name), set()).add(ident.value)
    return {ident: named for ident, named in names.items() if len(bearers[ident.field, named[0]]) == 1}


def _fields(value: object, names: Mapping[Id, tuple[str, int]], key: str = "", depth: int = 0) -> Iterator[Field]:
    """The scalars of a JSON value. Inside, ``{"attribute_id": "milk", "option": "oat"}`` is one field."""
    if isinstance(value, Mapping):
        record = cast("Mapping[str, object]", value)
        if depth and (pair := _pair(record, names)):
            yield pair
        elif depth < 8:
            for name, child in record.items():
                yield from _fields(child, names, f"{key}.{name}" if key else str(name), depth + 1)
    elif isinstance(value, (list, tuple)):
        items = cast("Sequence[object]", value)
        for index, child in enumerate(items):
            if depth < 8:
                yield from _fields(child, names, key if len(items) == 1 else f"{key}.{index}", depth + 1)
    elif text := leaf_text(value):
        last = key.rsplit(".", 1)[-1]
        stem = _id_stem(last)
        yield (
            Field(key or "text", text) if stem is None else Field(f"{stem or 'item'}{ID_SUFFIX}", text, Id(stem, text))
        )


def _pair(record: Mapping[str, object], names: Mapping[Id, tuple[str, int]]) -> Field | None:
    """A record of an id and one scalar beside it (its own name apart): the id is the key of the scalar."""
    ids = [(stem, leaf_text(value)) for key, value in record.items() if (stem := _id_stem(key)) is not None]
    rest = [
        (key, leaf_text(value))
        for key, value in record.items()
        if _id_stem(key) is None and not (ids and str(key).lower() in (f"{ids[0][0]}_name", *_NAMING))
    ]
    if len(ids) != 1 or len(rest) != 1 or not rest[0][1] or isinstance(record[rest[0][0]], (Mapping, list)):
        return None
    stem, value = ids[0]
    name = names.get(Id(stem, value), (value, 0))[0]
    return Field(name, rest[0][1])


def _id_stem(key: object) -> str | None:
    """``order_id`` and ``orderId`` give ``order``; None if the key names no id."""
    words = [word.lower() for word in _NAME_WORDS.findall(str(key))]
    return "_".join(words[:-1]) if words and words[-1] in _ID_WORDS else None


def _thing_name(ident: Id | None) -> str:
    """A name with its number. What a tool calls an id cannot pass for somebody who speaks."""
    if ident is None:
        return ""
    name = f"{ident.field or 'id'} {ident.value}"
    return f"id {name}" if _SPEAKER.match(name) else name


def _single(result: object) -> object:
    """The only record of a result that lists one, or puts it in an envelope (``{"ok": true, "data": {...}}``)."""
    if not isinstance(result, list):
        return _opened(result)
    records = cast("list[object]", result)
    return _opened(records[0]) if len(records) == 1 else records


def _opened(value: object) -> object:
    """A record whose fields stand directly in it.

    ``{"booking_id": 7, "changes": {"time": "8 pm"}}`` and ``{"booking_id": 7, "field": "time", "value": "8 pm"}`` say
    the same as ``{"booking_id": 7, "time": "8 pm"}``.
    """
    if not isinstance(value, Mapping):
        return value
    record = dict(cast("Mapping[str, object]", value))
    for key in [key for key in record if str(key).lower() in _ENVELOPES and isinstance(record[key], Mapping)]:
        inside = cast("Mapping[str, object]", record[key])
        if not inside.keys() & record.keys():
            del record[key]
            record.update(inside)
    if isinstance(record.get("field"), str) and "value" in record:
        record[str(record.pop("field"))] = record.pop("value")
    return record


def _settled(key: str) -> str:
    """The name of a field of a thing that is known: its ``new_time`` takes the place of its ``time``."""
    words = _NAME_WORDS.findall(key)
    if len(words) < 2 or words[0].lower() != "new":
        return key
    rest = key[key.index(words[0]) + len(words[0]) :].lstrip("_- ")
    return rest if "_" in key or "-" in key else rest[:1].lower() + rest[1:]


def _top_ids(result: object) -> list[Id]:
    record = _single(result)
    if not isinstance(record, Mapping):
        return []
    pairs = [
        (_id_stem(key), leaf_text(value))
        for key, value in cast("Mapping[str, object]", record).items()
        if not isinstance(value, (Mapping, list))
    ]
    return [Id(stem, text) for stem, text in pairs if stem is not None and text]


def _new_ids(exchange: Exchange) -> list[Id]:
    """Ids of a single record in the result that the arguments do not hold: the call created something."""
    known = {leaf.text for leaf in leaves(exchange.arguments)}
    return [ident for ident in _top_ids(exchange.result) if ident.value not in known]


def _ids_in_sentence(exchange: Exchange) -> list[Id]:
    """The reference in a result that is a sentence, if it holds one alone: of what the tool is called after."""
    if exchange.result is not None or is_failure(exchange):
        return []
    known = {leaf.text for leaf in leaves(exchange.arguments)}
    words = _REFERENCE.findall(exchange.result_text or "")
    told = [text for text in words if text not in known and not _ISO_DATE.match(text)]
    noun = "_".join(word.lower() for word in _NAME_WORDS.findall(exchange.call.name)[1:])
    return [Id(noun, told[0])] if len(told) == 1 and noun else []


def _records(value: object, depth: int = 0) -> Iterator[Mapping[str, object]]:
    if depth > 8:
        return
    if isinstance(value, Mapping):
        record = cast("Mapping[str, object]", value)
        yield record
        for child in record.values():
            yield from _records(child, depth + 1)
    elif isinstance(value, list):
        for child in cast("list[object]", value):
            yield from _records(child, depth + 1)


def _named_ids(record: Mapping[str, object]) -> Iterator[tuple[Id, str]]:
    """The ids of a record whose name stands beside them."""
    ids = [Id(stem, leaf_text(value)) for key, value in record.items() if (stem := _id_stem(key)) is not None]
    for ident in ids:
        keys = [f"{ident.field}_name", f"{ident.field}Name", *(_NAMING if len(ids) == 1 else ())]
        name = next((text for key in keys if (text := leaf_text(record.get(key)))), "")
        if name and ident.value:
            yield ident, name


def _read_out_share(values: Sequence[str], proposal: str) -> float:
    telling = [value for value in values if value.lower() not in _FLAGS]
    if not proposal or not telling:
        return 0.4 if telling else 0.0  # the proposal may stand in the segment before
    spoken = proposal.casefold()
    return sum(_is_read_out(value.casefold(), spoken) for value in telling) / len(telling)


def _is_read_out(value: str, spoken: str) -> bool:
    date = _ISO_DATE.match(value)
    if date is None or not 1 <= int(date.group(1)) <= 12:
        return value in spoken
    return MONTHS[int(date.group(1)) - 1][:3] in spoken and str(int(date.group(2))) in spoken


def _category(value: str) -> Category:
    if value.casefold() in _FLAGS:
        return "GENERAL"
    return "NUMERIC" if _NUMERIC.match(value) else "ENTITY"
