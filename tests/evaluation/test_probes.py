"""When a detail counts as kept."""

from __future__ import annotations

from msgspec.structs import replace

from reactor_memory.cli.demo_run import refuted
from reactor_memory.evaluation.attribution import is_attributable
from reactor_memory.evaluation.probes import (
    Probe,
    evidence_share,
    find,
    shows_stale,
)
from reactor_memory.evaluation.units import context_units, message_unit, message_units, request_units, units_of
from reactor_memory.models import Message, ToolCall
from tests.evaluation.contexts import context_of
from tests.scenes.tables import each_row

LATTE = Probe(question="Which drink was order 13087?", anchor=("13087", "#13087"), value=("Latte", "caffè latte"))


@each_row(
    "unit",
    [
        "order 13087: Latte; quantity=1",
        "ORDER 13087 IS A LATTE",
        "a caffè \n latte for #13087!",
        '{"order_id":"13087","name":"Latte"}',
        "Latte13 Latte (13087)",
    ],
)
def test_a_unit_with_one_form_of_each_holds_the_detail(unit: str) -> None:
    assert find(LATTE, ["something else", unit]) == 1


@each_row(
    "unit",
    [
        "",
        "order 13087",
        "a Latte",
        "order 113087: Latte",
        "order 130870: Latte",
        "order 13087: Lattes",
        "order 13087: latte_macchiato",
        "order 130 87: Latte",
    ],
)
def test_other_units_do_not(unit: str) -> None:
    assert find(LATTE, [unit]) is None


def test_anchor_and_value_in_different_units_are_not_the_detail() -> None:
    assert find(LATTE, ["order 13087", "Latte"]) is None


CASES = [
    # (anchor, value, unit, whether the unit holds the detail)
    ("booking", "2", "booking on 2019-03-12", False),
    ("booking", "2", "booking for 2 on 2019-03-12", True),
    ("booking", "2", "booking for 2, please", True),
    ("booking", "2", "booking_2 for 2nd", False),
    ("booking", "12", "booking on 2019-03-12", True),
    ("booking", "5.20", "booking: $5.20.", True),
    ("booking", "5.20", "booking: 15.20", False),
    ("STRASSE", "Müller", "in der straße wohnt MÜLLER", True),
    ("Café", "İstanbul", "CAFÉ İSTANBUL", True),
    ("東京", "寿司", "東京 で 寿司", True),
    ("東京", "寿", "東京 で 寿司", True),
    ("我的狗", "旺财", "我的狗叫旺财，三岁", True),
    ("会议", "三月五日", "会议改到三月五日下午", True),
    ("会議", "15時", "会議は15時からです", True),
    ("会議", "5時", "会議は15時からです", False),
    ("กุญแจ", "ลิ้นชัก", "กุญแจอยู่ในลิ้นชักครับ", True),
    ("열쇠", "서랍", "열쇠는 서랍에 있어요", True),
    ("चाबी", "रसोई", "चाबी रसोई में है", True),
    ("चाब", "रसोई", "चाबी रसोई में है", False),
    ("new york", "two  seats", "NEW\n\tYork: two\u00a0seats", True),
    ("new york", "two seats", "newyork: two seats", False),
    ("a+b", "(x)", "about a+b: (x)", True),
    ("a+b", ".*", "about a+b: anything", False),
]


@each_row(("anchor", "value", "unit", "is_held"), CASES)
def test_forms_that_are_easily_taken_for_each_other(anchor: str, value: str, unit: str, is_held: bool) -> None:
    probe = Probe(question="?", anchor=(anchor,), value=(value,))
    assert (find(probe, [unit]) is not None) is is_held


def test_four_hundred_characters_are_a_unit_and_more_are_not() -> None:
    line = "order 13087: Latte".ljust(400, ".")
    assert len(line) == 400
    for part in ("facts", "narrative"):
        assert find(LATTE, context_units(context_of((part, Message.system(line))))) == 0
        assert find(LATTE, context_units(context_of((part, Message.system(line + "."))))) is None


def test_lines_of_block_are_not_read_together_and_messages_neither() -> None:
    block = context_of(("narrative", Message.system("Summary:\norder 13087\nLatte")))
    turn = context_of(("window", Message.user("order 13087")), ("window", Message.assistant("a Latte")))
    assert find(LATTE, context_units(block)) is None
    assert find(LATTE, context_units(turn)) is None


def test_each_passage_that_came_back_is_a_unit_however_long() -> None:
    long = f"[#3] order 13087: {'x ' * 400}a Latte"
    assert find(LATTE, context_units(context_of(("recalled", Message.system(f"Recalled:\n{long}"))))) == 1
    apart = "[#3] order 13087\n[#9] a Latte"
    assert find(LATTE, context_units(context_of(("recalled", Message.system(apart))))) is None


def test_a_passage_says_in_words_what_it_is_about() -> None:
    shown = context_of(("recalled", Message.system("[#3] order 13087; 2; 3; Latte; Mocha")))
    assert is_attributable(LATTE, units_of(shown))


def test_names_and_the_text_of_calls_are_searched_as_json() -> None:
    text = ToolCall(id="c1", name="order_13087", arguments='{"drink": "Latte"}')
    assert find(LATTE, [message_unit(Message.assistant(tool_calls=[text]))]) is None
    named = ToolCall(id="c1", name="order", arguments={"id": 13087, "of": [{"drink": "Caffè Latte"}]})
    assert find(LATTE, [message_unit(Message.assistant("done", tool_calls=[named]))]) == 0


def test_an_empty_form_is_found_nowhere() -> None:
    assert find(Probe(question="?", anchor=("",), value=("",)), ["", "text"]) is None


def test_forms_with_signs_at_their_ends_are_found() -> None:
    price = Probe(question="?", anchor=("mocha",), value=("$5.20",))
    assert find(price, ["a mocha is $5.20."]) == 0
    assert find(price, ["a mocha is $5.201"]) is None


def test_memory_block_lines_are_units_and_so_are_whole_messages() -> None:
    block = Message.system("Conversation Facts:\norder 13087: Mocha\norder 2: Latte")
    context = context_of(("facts", block), ("window", Message.user("order 13087\nis a Latte")))
    assert find(LATTE, context_units(context)) == 3


def test_a_very_long_line_of_memory_is_no_unit() -> None:
    padded = "order 13087: Latte " + "x" * 400
    assert find(LATTE, context_units(context_of(("facts", Message.system(padded))))) is None
    assert find(LATTE, context_units(context_of(("window", Message.user(padded))))) == 0


def test_the_message_to_come_is_no_unit() -> None:
    question = Message.user("was order 13087 a Latte?")
    assert find(LATTE, context_units(context_of(("window", Message.user("hi")), ("current", question)))) is None


def test_the_calls_of_a_message_belong_to_its_unit() -> None:
    call = ToolCall(id="c1", name="add", arguments={"drink": "Latte", "order": "13087"})
    assert find(LATTE, [message_unit(Message.assistant(tool_calls=[call]))]) == 0


ADD = ToolCall(id="c1", name="add", arguments={"order": "13087"})
OTHER = ToolCall(id="c2", name="add", arguments={"order": "2"})


@each_row(
    ("said", "at"),
    [
        ([Message.assistant(tool_calls=[ADD]), Message.tool("Latte", tool_call_id="c1")], 1),
        ([Message.assistant(tool_calls=[ADD]), Message.tool("", tool_call_id="c1"), Message.assistant("Latte")], None),
        ([Message.assistant(tool_calls=[OTHER, ADD]), Message.tool("Latte", tool_call_id="c2")], None),
        (
            [
                Message.assistant(tool_calls=[OTHER, ADD]),
                Message.tool("Mocha", tool_call_id="c2"),
                Message.tool("Latte", tool_call_id="c1"),
            ],
            2,
        ),
        ([Message.assistant(tool_calls=[ADD]), Message.user("x"), Message.tool("Latte", tool_call_id="c1")], None),
        (
            [
                *(Message.assistant(tool_calls=[ADD]), Message.tool("", tool_call_id="c1"), Message.user("x")),
                *(Message.assistant(tool_calls=[replace(OTHER, id="c1")]), Message.tool("Latte", tool_call_id="c1")),
            ],
            None,
        ),
    ],
)
def test_a_result_is_read_with_its_own_call(said: list[Message], at: int | None) -> None:
    assert find(LATTE, context_units(context_of(*(("window", message) for message in said)))) == at
    assert find(LATTE, message_units(said)) == at


def test_who_speaks_belongs_to_what_is_said() -> None:
    probe = Probe(question="?", anchor=("Mira",), value=("Thursday",))
    assert find(probe, [message_unit(Message.user("on Thursday", name="Mira"))]) == 0
    assert find(probe, [message_unit(Message.tool("on Thursday", tool_call_id="1", name="Mira"))]) is None


def test_arguments_are_spaced_as_models_write_them() -> None:
    probe = Probe(question="?", anchor=("PU-4131",), value=('"boxes": 2',))
    for arguments in ({"id": "PU-4131", "boxes": 2}, '{"id": "PU-4131", "boxes": 2}'):
        assert (
            find(
                probe, [message_unit(Message.assistant(tool_calls=[ToolCall(id="1", name="add", arguments=arguments)]))]
            )
            == 0
        )


def test_a_result_in_a_request_is_read_with_its_call() -> None:
    call = {"id": "c1", "function": {"name": "add", "arguments": '{"order": "13087"}'}}
    answer = {"role": "tool", "tool_call_id": "c1", "content": "Latte"}
    assert find(LATTE, request_units([{"tool_calls": [call]}, answer])) == 1
    assert find(LATTE, request_units([{"tool_calls": [call]}, answer | {"tool_call_id": "c2"}])) is None


def test_a_request_to_a_provider_is_searched_as_a_whole() -> None:
    call = {"id": "c1", "function": {"name": "add", "arguments": '{"drink": "Latte", "order": "13087"}'}}
    assert find(LATTE, request_units([{"role": "user", "content": "hi"}, {"tool_calls": [call]}])) == 1
    assert find(LATTE, request_units([{"content": [{"type": "text", "text": "13087"}, {"text": "Latte"}]}])) == 0


def test_a_detail_that_take_last_shows_refutes_its_rescue() -> None:
    shows = context_of(("window", Message.user("order 13087 is a Latte")))
    lacks = context_of(("window", Message.user("order 13087 is a Mocha")))
    assert refuted([LATTE], shows) == (LATTE,)
    assert refuted([LATTE], lacks) == ()


MOVED = Probe(
    question="When is the table?", anchor=("table 4", "Ada"), value=("20:00", "8 pm"), stale=("19:00", "7 pm")
)


@each_row(
    "units",
    [
        ["table 4: 19:00"],
        ["Ada comes at 7 PM"],
        ["table 4: 20:00", "table 4: 19:00"],
        ["table 4: 20:00; 19:00"],
        ["table 4: 19:00", "table 5: 20:00"],
        ["table 4: 19:00", "table 4 (failed): 21:00"],
        ["table 4 is not large, it is at 7 pm"],
    ],
)
def test_the_value_from_before_the_correction_is_stale(units: list[str]) -> None:
    assert shows_stale(MOVED, units)


@each_row(
    "units",
    [
        [],
        ["table 5: 19:00"],
        ["table 4", "19:00"],
        ["table 4: 19:005"],
        ["table 4: 20:00"],
        ["table 4: 19:00", "Ada comes at 8 pm"],
        ["table 4: 19:00; 20:00"],
        ["table 4 (failed): 19:00"],
        ["table 4 (superseded): 19:00"],
        ["Ada comes at 8 pm, not at 7 pm."],
        ["Ada comes at 8 pm instead of 7 pm."],
        ["Ada; 8 pm instead; 7 pm"],
        ["Ada is in town, but no longer at 7 pm"],
    ],
)
def test_what_is_corrected_marked_or_taken_back_is_not_stale(units: list[str]) -> None:
    assert not shows_stale(MOVED, units)


def test_what_was_never_corrected_is_never_stale() -> None:
    assert not shows_stale(LATTE, ["order 13087: Latte"])


def test_without_an_anchor_the_value_alone_is_looked_for() -> None:
    answer = Probe(question="Where does she live?", anchor=(), value=("in Oslo",))
    assert find(answer, ["nothing", "She lives in Oslo."]) == 1
    assert find(answer, ["She lives in Bergen."]) is None


def test_evidence_counts_when_it_is_shown_word_for_word() -> None:
    said, other = Message.user("order 13087 is a Latte"), Message.assistant("noted")
    block = Message.system("Conversation Facts:\norder 13087 is a Latte")
    shown = context_of(("facts", block), ("window", said), ("current", other))
    assert evidence_share([said, other], shown) == 0.5
    assert evidence_share([Message.assistant("order 13087 is a Latte")], shown) == 0
    assert evidence_share([], shown) is None
