"""What of a model's answer the messages bear out. Pure.

A statement counts unless its sentence says something else. Then the sentence itself is told, as a quotation of its
speaker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, cached_property
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from reactor_memory.features.facts.evidence import evidence_text, find_span, verify_facts
from reactor_memory.features.facts.quoting.language_packs import takes_back
from reactor_memory.features.facts.quoting.outcomes import is_failed
from reactor_memory.features.facts.quoting.record_keys import is_quoting
from reactor_memory.features.facts.quoting.statements_said import statements_said
from reactor_memory.features.facts.verification.claim_words import Mark, judged_languages, language_for, read, words_of
from reactor_memory.features.facts.verification.statement_verdicts import (
    COVERED,
    Statement,
    Verdict,
    covers,
    judge,
    judge_leaf,
)
from reactor_memory.models import Message, ToolCall
from reactor_memory.models.ledger import Fact
from reactor_memory.text.opened_results import opened
from reactor_memory.text.spans import Leaf, arguments_of, leaves

Found = TypeVar("Found")

MOST_NAMED = 4_000
"""Characters before a message in which a thing may have been named."""

SAME_SHARE = 0.5
"""Sentences that share so many of their words are about the same."""

SHORT_SENTENCE = 6
"""A sentence of so few words with a negation or a limit may be about the one before it."""

_SENTENCE = re.compile(r"(?:[^.!?…。！？।؟۔\n]|[.](?=\S))+(?:[.!?…。！？।؟۔]+[\"'”’»)」』]*|\n|$)")
_LEADS_IN = re.compile(r"[:：]\s*$")
_QUESTION = re.compile(r"[?？؟;՞][\"'”’»)\]」』*_\s]*$")
_QUOTES = '"“”„«»「」『』'


class Judged(NamedTuple):
    """A fact, `verified` if it counts, and what was found of it."""

    fact: Fact
    verdict: Verdict


def proven(facts: Iterable[Fact], messages: Sequence[Message], known: str = "") -> tuple[Fact, ...]:
    """The facts, those that their messages speak against as not verified, and behind them the quotations of what these
    cite. `facts` are as `evidence.verify_facts` gives them; `known` are words that stand in memory already. Quotations
    of a reader stay as they are.
    """
    found = judged(facts, messages, known)
    cited: dict[int, list[tuple[int, int]]] = {}
    for fact, verdict in found:
        if not verdict.is_covered and verdict.reason != "authority" and fact.span != (0, 0):
            cited.setdefault(fact.source_seq, []).append(fact.span)
    given = {(fact.anchor, fact.key) for fact, _ in found}
    quoted = (
        quotation
        for message in messages
        for quotation in _quotations(message, cited.get(message.seq or 0, ()))
        if (quotation.anchor, quotation.key) not in given
    )
    return (*(fact for fact, _ in found), *quoted)


def judged(facts: Iterable[Fact], messages: Sequence[Message], known: str = "") -> list[Judged]:
    """Each fact with what its message says of it. What was not found there does not count."""
    log = _Log(messages, known)
    return [_judged(fact, log) for fact in facts]


def _judged(fact: Fact, log: _Log) -> Judged:
    if fact.salience or not fact.verified:
        return Judged(fact, COVERED if fact.verified else Verdict(is_covered=False, reason="missing"))
    message = log.messages[fact.source_seq]
    if is_quoting(fact):
        verdict = Verdict(is_covered=False, reason="stance")
    elif fact.span[0] >= len(message.content) or (message.role == "tool" and log.leaves(fact.source_seq)):
        fact, verdict = replace(fact, failed=log.is_failed(fact.source_seq)), _of_leaves(fact, message, log)
    elif message.role == "tool":
        fact, verdict = replace(fact, failed=log.is_failed(fact.source_seq)), _of_talk(fact, message, log)
    elif fact.failed:
        verdict = Verdict(is_covered=False, reason="failed")
    else:
        verdict = _of_talk(fact, message, log)
    if fact.act == "correction" and fact.said_by in ("assistant", "agent") and not log.is_accepted(fact.source_seq):
        fact = replace(fact, act="statement")
    return Judged(replace(fact, verified=verdict.is_covered), verdict)


def _of_leaves(fact: Fact, message: Message, log: _Log) -> Verdict:
    """By the first leaf that leaves the value standing, else by the last one that has it."""
    verdict = COVERED
    for leaf in log.leaves(fact.source_seq):
        span = find_span(leaf.text, fact.value)
        if span is not None:
            named = log.called(fact.source_seq)
            anchor = fact.anchor.removesuffix(f" #{fact.source_seq}")
            named = f"{named} {log.named(fact.source_seq)}"
            statement = Statement(anchor, fact.key, *span, named=named, seq=fact.source_seq)
            verdict = judge_leaf(statement, leaf.path, leaf.text)
            if verdict.is_covered:
                break
    return verdict


def _of_talk(fact: Fact, message: Message, log: _Log) -> Verdict:
    start, stop = fact.span
    stances = {_stance(each) for each in log.statements(fact.source_seq) if _overlaps(each.span, fact.span)}
    if message.role != "tool" and (not stances or stances & {"asked", "pasted"}):
        return Verdict(is_covered=False, reason="stance")
    sentence = cited_sentence(message.content, start, stop)
    if not sentence.is_own or _is_in_quotes(message.content[sentence.start : start]):
        return Verdict(is_covered=False, reason="stance")
    shift = len(sentence.lead) - sentence.start
    statement = Statement(
        anchor=fact.anchor,
        key=fact.key,
        start=start + shift,
        stop=stop + shift,
        speakers=log.names_of(message),
        others=log.speakers - log.names_of(message),
        role=log.alias_of(message),
        named=log.named(fact.source_seq),
        seq=fact.source_seq,
    )
    text = sentence.lead + message.content[sentence.start : sentence.stop]
    language = language_for(text, message.content, log.beginning)
    if message.role in ("assistant", "agent") and language and log.is_told_otherwise(fact, text, language):
        return Verdict(is_covered=False, reason="authority")
    if message.role == "tool" and language and _gives_orders(message.content, language):
        return Verdict(is_covered=False, reason="stance")
    return judge(statement, text, language)


def _gives_orders(content: str, language: str) -> bool:
    """Whether the text of a tool speaks of instructions, or tells what others say."""
    return any(mark.kind == "limit" and mark.term == "reported" for mark in read(content, language))


class CitedSentence(NamedTuple):
    """The sentences from `start` to `stop` of a message, and the line that leads in to them. `is_own`: they are no
    question, and what follows does not take them back.
    """

    start: int
    stop: int
    lead: str
    is_own: bool


def cited_sentence(content: str, start: int, stop: int) -> CitedSentence:
    """The sentences in which the characters from `start` to `stop` stand."""
    pieces = [(match.start(), match.end()) for match in _SENTENCE.finditer(content)]
    cited = [piece for piece in pieces if piece[0] < stop and start < piece[1]] or [(0, len(content))]
    begin, end = cited[0][0], cited[-1][1]
    after = next((content[a:b] for a, b in pieces if a >= end), "")
    is_own = not _QUESTION.search(content[begin:end]) and not _undoes(after)
    return CitedSentence(begin, end, _lead(content[:begin]), is_own)


def _undoes(sentence: str) -> bool:
    words = sentence.split()
    if not words or (len(words) > SHORT_SENTENCE) or len(sentence) > 10 * SHORT_SENTENCE:
        return False
    language = language_for(sentence)
    marks = read(sentence, language) if language else ()
    return takes_back(sentence.strip()) or any(mark.kind in ("negation", "limit") for mark in marks)


def _lead(before: str) -> str:
    """The line that ends with a colon in the same paragraph, if there is one."""
    paragraph = before.rpartition("\n\n")[2]
    lines = [line for line in paragraph.splitlines() if _LEADS_IN.search(line)]
    return f"{lines[-1].strip()} " if lines else ""


def _is_in_quotes(before: str) -> bool:
    return sum(before.count(mark) for mark in _QUOTES) % 2 == 1


def _stance(fact: Fact) -> str:
    return fact.key.split(".")[1]


def _quotations(message: Message, spans: Sequence[tuple[int, int]]) -> Iterator[Fact]:
    """As they are stored: a long one is cut, and its span is that of what is left of it."""
    if spans:
        cited = [each for each in statements_said([message]) if any(_overlaps(each.span, span) for span in spans)]
        yield from (each for each in verify_facts(cited, [message]) if each.verified)


def _overlaps(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _kept(find: Callable[[int], Found]) -> Callable[[int], Found]:
    """`find`, asked once for each message."""
    known: dict[int, Found] = {}

    def found(seq: int) -> Found:
        if seq not in known:
            known[seq] = find(seq)
        return known[seq]

    return found


class _Log:
    """The messages, and what is asked of them more than once."""

    def __init__(self, messages: Sequence[Message], known: str) -> None:
        self._run, self._known = messages, known
        self.messages = {message.seq or 0: message for message in messages}
        self.statements = _kept(self._statements)
        self.leaves = _kept(self._leaves)
        self.named = _kept(self._named)

    def _statements(self, seq: int) -> tuple[Fact, ...]:
        return tuple(statements_said([self.messages[seq]]))

    def _leaves(self, seq: int) -> tuple[Leaf, ...]:
        message = self.messages[seq]
        values = [arguments_of(call.arguments) for call in message.tool_calls]
        if message.role == "tool":
            values.append(opened(message.content).value)
        return tuple(leaf for value in values if value != message.content for leaf in leaves(value))

    def called(self, seq: int) -> str:
        """Under which names the calls of a message, or the call that it answers, may stand."""
        message = self.messages[seq]
        calls = [*message.tool_calls, *(self._calls.get(message.tool_call_id or "", ()))]
        given = (f"{call.name.replace('_', ' ')} {leaf.text}" for call in calls for leaf in leaves(call.arguments))
        names = (call.name.replace("_", " ") for call in calls)
        return " ".join((*names, *given, evidence_text(message)))

    def is_failed(self, seq: int) -> bool:
        """Whether the result says so: that of the message, or of a call of it."""
        message = self.messages[seq]
        if message.role == "tool":
            return self._says_failed(message)
        ids = {call.id for call in message.tool_calls}
        return any(self._says_failed(each) for each in self._run if each.role == "tool" and each.tool_call_id in ids)

    def _says_failed(self, result: Message) -> bool:
        tool = next((call.name for call in self._calls.get(result.tool_call_id or "", ())), "")
        return is_failed(result, tool=tool)

    def is_accepted(self, seq: int) -> bool:
        """Whether the next words of a user agree with what the model said in a message, and say nothing else."""
        after = next((each for each in self._run if (each.seq or 0) > seq and each.role == "user"), None)
        if after is None or len(after.content) > 10 * SHORT_SENTENCE:
            return False
        language = language_for(after.content)
        marks = read(after.content, language) if language else ()
        return bool(marks) and all(mark.kind == "plain" for mark in marks) and _agrees(after.content)

    def is_told_otherwise(self, fact: Fact, text: str, language: str) -> bool:
        """Whether a user last spoke of the same with another name or number than the value, and was not content with
        what the model made of it.
        """
        said, seq = read(text, language), fact.source_seq
        names = [word.casefold() for word in fact.anchor.split() if word[0].isupper()]
        told = self._told_by_users(seq, names)
        about = [each for each in told if is_about_the_same(said, read(each, language))]
        value = {mark.term for mark in read(fact.value, language)}
        is_other = bool(about) and contradicts(said, read(about[-1], language), value)
        return is_other and not self.is_accepted(seq)

    def _told_by_users(self, seq: int, names: Sequence[str]) -> Iterator[str]:
        """What users say of themselves before `seq` in messages that have all of `names`."""
        for message in self._run:
            has_names = all(name in message.content.casefold() for name in names)
            if message.role == "user" and (message.seq or 0) < seq and has_names:
                yield from (fact.value for fact in self.statements(message.seq or 0) if _stance(fact) == "own")

    def _named(self, seq: int) -> str:
        said = " ".join(evidence_text(message) for message in self._run if (message.seq or 0) <= seq)[-MOST_NAMED:]
        return f"{self._known} {said}"

    def names_of(self, message: Message) -> frozenset[str]:
        return frozenset(" ".join(name.casefold().split()) for name in (message.name, message.author_id) if name)

    def alias_of(self, message: Message) -> str:
        """``user`` where only one user speaks, ``assistant`` for a model, ``tool``."""
        if message.role == "tool":
            return "tool"
        if message.role == "user":
            return "user" if len(self._users - {""}) < 2 else ""
        return "assistant" if message.role in ("assistant", "agent") else ""

    @cached_property
    def speakers(self) -> frozenset[str]:
        return frozenset[str]().union(*map(self.names_of, self._run))

    @cached_property
    def _users(self) -> frozenset[str]:
        return frozenset(message.name or message.author_id or "" for message in self._run if message.role == "user")

    @cached_property
    def _calls(self) -> Mapping[str, Sequence[ToolCall]]:
        return {call.id: (call,) for message in self._run for call in message.tool_calls}

    @cached_property
    def beginning(self) -> str:
        return " ".join(message.content for message in self._run if message.role == "user")[:MOST_NAMED]


def _agrees(text: str) -> bool:
    return bool(_accepting() & {word.strip(".,!。！،।") for word in text.casefold().split()}) or any(
        text.strip().startswith(word) for word in _accepting() if not word.isascii()
    )


def is_about_the_same(one: Sequence[Mark], other: Sequence[Mark]) -> bool:
    """Whether two sentences share half of the words in which they name no number."""
    words = [{mark.term for mark in marks if mark.kind == "content"} for marks in (one, other)]
    shared = words[0] & words[1]
    return bool(shared) and len(shared) >= SAME_SHARE * min(map(len, words))


def contradicts(one: Sequence[Mark], other: Sequence[Mark], value: Set[str]) -> bool:
    """Whether two sentences about the same have different numbers or names in one place, which `value` has of `one`, or
    only one of them denies.
    """
    if len({any(mark.kind == "negation" for mark in marks) for marks in (one, other)}) > 1:
        return True
    said, told = _places(one), _places(other)
    return any(
        mark.term in value and told.get(place, mark).term != mark.term and mark.term not in {m.term for m in other}
        for place, mark in said.items()
    )


def _places(marks: Sequence[Mark]) -> dict[tuple[str, str, bool], Mark]:
    """The numbers and names by the words beside them."""
    terms = ["", *(mark.term for mark in marks), ""]
    return {
        (terms[place], terms[place + 2], mark.is_name): mark
        for place, mark in enumerate(marks)
        if mark.kind == "number" or mark.is_name
    }


@cache
def _accepting() -> frozenset[str]:
    return frozenset(word for language in judged_languages() for word in words_of(language, "accepts"))


def left_out(found: Iterable[Fact], told: Iterable[Fact]) -> Iterator[Fact]:
    """The quotations among `found` that no record of `told` covers, and all that is none. A record is what the facts of
    one anchor that count say of one message.
    """
    records: dict[tuple[int, str], list[Fact]] = {}
    for fact in told:
        if fact.verified:
            records.setdefault((fact.source_seq, fact.anchor), []).append(fact)
    said: dict[int, list[str]] = {}
    for (seq, anchor), facts in records.items():
        values = ", ".join(f"{fact.key.replace('_', ' ').replace('.', ' ')} {fact.value}" for fact in facts)
        said.setdefault(seq, []).append(f"{anchor} {values}")
    yield from (fact for fact in found if not covers(said.get(fact.source_seq, ()), fact.value))
