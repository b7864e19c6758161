"""What a model may do to the records of the reader, and what it may not."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from reactor_memory.errors import SummarizationError
from reactor_memory.features.facts.evidence import verify_facts
from reactor_memory.features.facts.summarizers.editing import EditingSummarizer
from reactor_memory.features.facts.summarizers.extractive import ExtractiveSummarizer
from reactor_memory.features.facts.summarizers.language_model import LanguageModelSummarizer
from reactor_memory.features.facts.summarizers.line_edits import LineEdits, numbers_in, parse_edits
from reactor_memory.features.facts.summarizers.numbered_lines import NumberedLine, asked_about, numbered_lines
from reactor_memory.features.facts.working_state import items_of
from reactor_memory.models import Message, ToolCall
from reactor_memory.models.ledger import KEPT_SALIENCE, Extraction, Fact, Known, Usage
from reactor_memory.providers.questions import Reply, Request
from reactor_memory.tokens.estimate import EstimateCounter

pytestmark = pytest.mark.anyio


class Scripted:
    """Answers each question with the next answer; the last one again and again."""

    def __init__(self, *answers: dict[str, Any] | str | SummarizationError) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []

    async def ask(self, request: Request) -> Reply:
        self.requests.append(request)
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        if isinstance(answer, SummarizationError):
            raise answer
        return Reply(answer if isinstance(answer, str) else json.dumps(answer), Usage(tokens_read=10, tokens_written=2))

    async def aclose(self) -> None: ...


def talk(*said: str | tuple[str, dict[str, Any], str]) -> list[Message]:
    """Statements ``user: ...`` or ``model: ...``, and calls with their results."""
    messages: list[Message] = []
    for number, each in enumerate(said):
        if isinstance(each, tuple):
            call = ToolCall(id=f"c{number}", name=each[0], arguments=each[1])
            messages += [Message.assistant("", tool_calls=(call,)), Message.tool(each[2], tool_call_id=f"c{number}")]
        else:
            role, _, text = each.partition(": ")
            messages.append(Message.user(text) if role == "user" else Message.assistant(text))
    return [Message(**_fields(message), seq=seq) for seq, message in enumerate(messages, 1)]


def _fields(message: Message) -> dict[str, Any]:
    names = ("role", "content", "tool_calls", "tool_call_id")
    return {name: getattr(message, name) for name in names}


WORK = talk(
    "user: Please fix the date parser in src/dates.py, it drops the time zone.",
    "model: Sure thing, happy to help with that!",
    ("run_tests", {"path": "tests/test_dates.py"}, "3 failed, 12 passed"),
    ("edit_file", {"path": "src/dates.py", "text": "tz = offset"}, "edited"),
    "user: Never touch src/legacy.py.",
    "model: Understood, src/legacy.py stays as it is.",
    ("run_tests", {"path": "tests/test_dates.py"}, "15 passed"),
    "user: I was born in Lyon in 1984.",
)


async def read(client: Scripted, messages: Sequence[Message] = WORK, **known: Any) -> Extraction:
    model = LanguageModelSummarizer(
        "m", client, counter=EstimateCounter(), max_narrative_tokens=200, max_input_tokens=8_000
    )
    return await EditingSummarizer(model, ExtractiveSummarizer()).summarize(messages, known=Known(**known))


async def lines_of(messages: Sequence[Message] = WORK) -> list[NumberedLine]:
    found = await ExtractiveSummarizer().summarize(messages)
    return numbered_lines(verify_facts(found.facts, messages))


def number_of(lines: Sequence[NumberedLine], part: str) -> str:
    return next(line.number for line in lines if part in line.text)


def values(found: Extraction) -> list[str]:
    return [fact.value for fact in found.facts]


async def test_model_is_asked_about_numbered_lines() -> None:
    client = Scripted({"drop": ""})
    await read(client)
    document = json.loads(client.requests[0].document)
    assert list(document) == ["lines"]
    assert document["lines"][0] == "1 user: Please fix the date parser in src/dates.py, it drops the time zone."
    assert "3 run_tests(path=tests/test_dates.py) → FAILED: 3 failed, 12 passed" in document["lines"]


async def test_instruction_is_the_same_for_every_session() -> None:
    one, other = Scripted({"drop": ""}), Scripted({"drop": ""})
    await read(one)
    await read(other, talk("user: Hello there, my name is Ann."))
    assert one.requests[0].instruction == other.requests[0].instruction


async def test_drop_counts_and_is_not_added_back() -> None:
    number = number_of(await lines_of(), "Sure thing")
    assert not any("Sure thing" in value for value in values(await read(Scripted({"drop": number}))))


@pytest.mark.parametrize("part", ["Never touch", "edit_file(", "run_tests("])
async def test_rulings_failures_and_deeds_cannot_be_dropped(part: str) -> None:
    lines = await lines_of()
    found = await read(Scripted({"drop": f"1-{lines[-1].number}"}))
    line = next(line for line in lines if part in line.text)
    assert set(line.facts) <= set(found.facts)


async def test_everything_kept_where_nothing_is_edited() -> None:
    lines = await lines_of()
    found = await read(Scripted({"drop": "", "keep": ""}))
    assert {fact for line in lines for fact in line.facts} <= set(found.facts)


async def test_kept_lines_weigh_more() -> None:
    number = number_of(await lines_of(), "Lyon")
    found = await read(Scripted({"keep": number}))
    assert [fact.value for fact in found.facts if fact.salience == KEPT_SALIENCE] == ["I was born in Lyon in 1984."]


async def test_user_replaces_own_statement_only_by_later_one() -> None:
    messages = talk(
        "user: The budget of the trip is 900 euros.",
        "model: The budget of the trip is 400 euros.",
        "user: The budget of the trip is 700 euros.",
    )
    for old, new, left in (("1", "2", True), ("1", "3", False), ("3", "1", True)):
        found = await read(Scripted({"replace": [{"old": old, "new": new}]}), messages)
        assert ("The budget of the trip is 900 euros." in values(found)) == left


async def test_added_words_stand_as_their_whole_sentence() -> None:
    filler = " ".join(f"Point {n} of the list is about topic {n}." for n in range(1, 45))
    messages = talk(f"user: {filler} I must not eat peanuts. {filler}")
    found = await read(Scripted({"add": ["eat peanuts", "eat pistachios"]}), messages)
    assert "I must not eat peanuts." in values(found)
    assert not any("pistachios" in value for value in values(found))


async def test_labels_are_words_of_the_log() -> None:
    messages = talk(
        "user: I take the blue kettle.", ("order_item", {"item_id": "K-77"}, '{"order_id": "O-5", "state": "placed"}')
    )
    named = await read(Scripted({"drop": "", "name": [{"line": "2", "label": "blue kettle"}]}), messages)
    assert [fact.value for fact in named.facts if fact.key == "reply.field.name"] == ["blue kettle"]
    invented = await read(Scripted({"drop": "", "name": [{"line": "2", "label": "red pan"}]}), messages)
    assert not any(fact.key == "reply.field.name" for fact in invented.facts)


@pytest.mark.parametrize("edits", [{"add": ["I paid 500 euros"]}, {"state": [{"kind": "done", "text": "paid 500"}]}])
async def test_no_edit_makes_an_action_or_amount(edits: dict[str, Any]) -> None:
    found = await read(Scripted(edits))
    assert not any("500" in fact.value for fact in found.facts if fact.verified)


async def test_answer_in_the_form_of_facts_is_read() -> None:
    given = {"anchor": "user", "key": "birthplace", "value": "Lyon", "category": "ENTITY", "source_seq": 11}
    found = await read(Scripted({"facts": [given], "narrative": "", "headline": ""}))
    assert ("birthplace", "Lyon") in [(fact.key, fact.value) for fact in found.facts]
    assert any("Never touch" in value for value in values(found))


async def test_failed_question_leaves_its_records_as_they_are() -> None:
    number = number_of(await lines_of(), "Sure thing")
    client = Scripted({"drop": number}, SummarizationError("timeout", "late"))
    model = LanguageModelSummarizer("m", client, counter=EstimateCounter(), max_narrative_tokens=50, max_input_tokens=1)
    many = [*WORK, *(m for n in range(40) for m in _later(n))]
    found = await EditingSummarizer(model, ExtractiveSummarizer()).summarize(many)
    assert len(client.requests) == 2
    assert not any("Sure thing" in value for value in values(found))
    assert any("number 39" in value for value in values(found))


def _later(number: int) -> list[Message]:
    return [Message(role="user", content=f"This is my remark number {number} on the garden.", seq=20 + number)]


async def test_no_answer_at_all_is_a_failure() -> None:
    with pytest.raises(SummarizationError):
        await read(Scripted(SummarizationError("timeout", "late")))


async def test_answer_in_another_language_is_asked_for_once_again() -> None:
    german = {"drop": "", "narrative": "Der Nutzer hat den Fehler gemeldet und wartet auf die Korrektur der Datei."}
    english = {"drop": "", "narrative": "The user reported the error and waits for the correction of the file."}
    client = Scripted(german, english)
    found = await read(client)
    assert len(client.requests) == 2
    assert found.narrative == english["narrative"]
    stubborn = Scripted(german)
    assert (await read(stubborn)).narrative == ""
    assert len(stubborn.requests) == 2


async def test_encoded_data_and_repeated_instructions_are_not_sent() -> None:
    lead = "Answer each question with one number and nothing else."
    messages = talk(*[f"user: {lead}"] * 5, ("shot", {"page": "home"}, json.dumps({"png": "iVBORw0K" * 40})))
    client = Scripted({"drop": ""})
    await read(client, messages)
    assert client.requests[0].document.count(lead) == 2
    assert "iVBORw0KiVBORw0K" not in client.requests[0].document


async def test_drop_holds_for_each_time_it_was_said() -> None:
    messages = talk(*["user: Sing something."] * 5, "user: I was born in Lyon.")
    assert values(await read(Scripted({"drop": "1 2"}), messages)) == ["I was born in Lyon."]
    assert "Sing something." in values(await read(Scripted({"drop": ""}), messages))


def test_numbers_of_lines_are_read_with_ranges() -> None:
    known = ["1", "2", "2.2", "3", "7"]
    assert numbers_in("1, 2.2-7 99 x", known) == ["1", "2.2", "3", "7"]
    assert numbers_in("[1,2]", known) == ["1", "2"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("3-9", ["7", "7.2"]),
        ("1-7", ["2", "7"]),
        ("7.2-99", ["7.2", "12"]),
        ("0 – 99", ["2", "7", "7.2", "12"]),
        ("9-3", []),
    ],
)
def test_range_holds_the_lines_between_its_ends(text: str, found: list[str]) -> None:
    assert numbers_in(text, ["2", "7", "7.2", "12"]) == found


@pytest.mark.parametrize(
    "text", ['{"drop": [1, 2]}', '```json\n{"drop": "1 2", "state": "none"}\n```', 'So: {"drop": "1 2", "add": [3]}']
)
def test_malformed_parts_leave_the_others_standing(text: str) -> None:
    edits = parse_edits(text)
    assert edits is not None
    assert numbers_in(edits.drop, ["1", "2"]) == ["1", "2"]


@pytest.mark.parametrize(
    "rest",
    [
        '"merge": [{"lines": "3 4", "text": "12, 3: a: ',
        '"add": ["some wor',
        '"narrative": "They, and',
        '"keep": "3',
        '"sta',
    ],
)
def test_fields_before_the_one_that_is_cut_off_count(rest: str) -> None:
    edits = parse_edits(f'{{"drop": "1 2", {rest}')
    assert edits is not None
    assert edits == LineEdits(drop="1 2")


def test_answer_of_facts_states_no_edits() -> None:
    assert parse_edits('{"facts": [], "narrative": ""}') is None


STATE = [
    {"kind": "goal", "text": "fix the date parser in src/dates.py", "lines": "1"},
    {"kind": "constraint", "text": "never touch src/legacy.py", "lines": "7"},
    {"kind": "done", "text": "edited src/dates.py", "lines": "5"},
    {"kind": "artefact", "text": "src/dates.py: edited, checked with tests/test_dates.py: 15 passed", "lines": "5 9"},
]


async def test_working_state_is_kept_and_cites_messages() -> None:
    found = await read(Scripted({"state": STATE}))
    items = items_of(found.facts)
    assert {item.kind for item in items} == {"goal", "constraint", "done", "artefact"}
    assert next(item for item in items if item.kind == "constraint").who == "user"
    assert all(item.first >= 1 and item.last <= 11 for item in items)


Wrong = Callable[[list[NumberedLine]], dict[str, Any]]


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ({"kind": "open", "text": "rerun the 99 tests", "lines": "3"}, "number"),
        ({"kind": "done", "text": "edited src/other.py", "lines": "5"}, "number"),
        ({"kind": "open", "text": "ask Bob about the time zone", "lines": "1"}, "name"),
        ({"kind": "open", "text": "Bob has to fix the date parser", "lines": "1"}, "name"),
        ({"kind": "constraint", "text": "touch src/legacy.py", "lines": "7"}, "relation"),
        ({"kind": "goal", "text": "edited src/dates.py", "lines": "5"}, "authority"),
    ],
)
async def test_derived_item_that_messages_do_not_bear_out(item: dict[str, Any], reason: str) -> None:
    found = await read(Scripted({"state": [item]}))
    (refused,) = [fact for fact in found.facts if fact.anchor == "working state"]
    assert not refused.verified
    assert refused.key.endswith(f".refused_{reason}")


async def test_unlisted_items_stay_and_ended_ones_need_a_reason() -> None:
    first = await read(Scripted({"state": STATE}))
    known = [fact for fact in first.facts if fact.anchor == "working state"]
    names = [item.name for item in items_of(known)]
    later = [Message(role="user", content="The parser is fine now, thanks.", seq=12)]
    edits = {"state": [{"name": names[0], "kind": "goal", "ended": "done", "lines": "12"}, {"name": names[1]}]}
    second = await read(Scripted(edits), later, state=tuple(known))
    changed = {fact.key: fact for fact in known}
    changed.update({fact.key: fact for fact in second.facts if fact.anchor == "working state"})
    assert [item.name for item in items_of(changed.values())] == names[1:]


async def test_known_state_is_given_to_the_model() -> None:
    first = await read(Scripted({"state": STATE}))
    known: tuple[Fact, ...] = tuple(fact for fact in first.facts if fact.anchor == "working state")
    client = Scripted({"drop": ""})
    await read(client, [Message(role="user", content="What is next?", seq=12)], state=known)
    document = json.loads(client.requests[0].document)
    assert [item.split()[1] for item in document["state"]] == ["goal:", "done:", "constraint:", "artefact:"]


def test_a_line_said_often_is_asked_about_twice() -> None:
    line = NumberedLine("1", "user: again", ())
    assert asked_about([line, line, line]) == [line, line]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Orsola is allergic to cat hair", ""),
        ("Juno is vegan now", ""),
        ("Juno is allergic to cat hair", "refused_name"),
        ("Orsola is vegan now", "refused_name"),
        ("Orsola and Juno are vegan now", "refused_name"),
    ],
)
async def test_speakers_are_named_for_what_they_said(text: str, reason: str) -> None:
    said = (("Orsola", "I'm allergic to cat hair."), ("Juno", "I'm vegan now."))
    messages = [Message(role="user", content=each, name=name, seq=seq) for seq, (name, each) in enumerate(said, 1)]
    found = await read(Scripted({"state": [{"kind": "note", "text": text, "lines": "1 2"}]}), messages)
    (item,) = [fact for fact in found.facts if fact.anchor == "working state"]
    assert item.key.partition(".")[2].partition(".")[2] == reason
