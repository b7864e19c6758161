"""One line a call, with what its own result says; never a failure told as done."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactor_memory.features.facts.quoting.calls_made import calls_made
from reactor_memory.features.facts.quoting.continued_block import chosen_block
from reactor_memory.features.facts.quoting.outcomes import is_failed
from reactor_memory.features.facts.quoting.quotation_lines import quotation_lines
from reactor_memory.models import Message
from tests.features.facts.quoting.reading import calls, lines, numbered, one, read, result, says, user

FAILED = (
    {"error": {"code": "LIMIT", "message": "daily limit"}},
    {"status": "declined", "reason": "card"},
    {"success": False},
    {"ok": "false", "hint": "try later"},
    {"status_code": 503},
    {"isError": True, "text": "x"},
    "Error: no seat left",
    "Traceback (most recent call last):\n  File x\nValueError: bad amount",
    "转账失败：余额不足",
    "エラー: 満席です",
    "Ошибка: счёт закрыт",
    "HTTP 403 Forbidden",
)


@pytest.mark.parametrize("told", FAILED)
def test_a_failure_is_marked(told: object) -> None:
    line = one(calls(("c1", "transfer", {"account": "DE-5512"})), result(told), about="DE-5512")
    assert line.startswith("transfer (failed): ")


@pytest.mark.parametrize(
    "told", [{"status": "ok", "ref": "A-1"}, "Your cabin is booked.", {"errors": []}, {"error": None}]
)
def test_a_success_is_not_marked(told: object) -> None:
    line = one(calls(("c1", "transfer", {"account": "DE-5512"})), result(told), about="DE-5512")
    assert "(failed)" not in line


@pytest.mark.parametrize(
    "told",
    [
        "Payment declined by the bank.",
        "vault locked",
        "Keine Zimmer mehr frei.",
        "No quedan entradas.",
        "予約できません",
    ],
)
def test_what_a_result_says_in_prose_is_quoted_not_judged(told: str) -> None:
    assert one(calls(("c1", "pay", {"bill": "B-77"})), result(told), about="B-77").endswith(f'-> "{told}"')


def test_the_flag_of_the_protocol_outranks_the_text() -> None:
    told = result("fine", is_error=True)
    assert is_failed(told)
    assert one(calls(("c1", "pay", {"bill": "B-77"})), told, about="B-77").startswith("pay (failed): ")


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1), (0, 2, 1)])
def test_parallel_calls_stay_apart_in_any_order_of_results(order: tuple[int, ...]) -> None:
    towns = ("Split", "Hvar", "Vis")
    made = calls(*((f"c{n}", "book_ferry", {"to": town, "seats": n + 2}) for n, town in enumerate(towns)))
    back = [result({"ref": f"FE-{n}{n}{n}"}, f"c{n}") for n in order]
    told = lines(user("Book three ferries."), made, *back)
    for n, town in enumerate(towns):
        (line,) = [line for line in told if town in line]
        assert f"FE-{n}{n}{n}" in line
        assert not any(other in line for other in towns if other != town)


def test_an_empty_result_tells_what_the_model_said_of_it() -> None:
    told = one(calls(("c1", "pay", {"bill": "B-77"})), result(""), says("I could not do it."), about="B-77")
    assert told == 'pay: B-77 -> the assistant: "I could not do it."'


def test_a_note_of_the_model_to_itself_is_no_deed() -> None:
    note = "The customer wants a window seat, so first I look up the flight and then the seats that are left."
    assert lines(calls(("c1", "think", {"thought": note})), result("")) == []
    assert lines(calls(("c1", "sum", {"expression": "12*3.5+4"})), result("46.0")) == []
    assert lines(calls(("c1", "count_orders", {"status": "open"})), result("42")) == ['count_orders: open -> "42"']


def test_equal_calls_count_and_a_changed_outcome_stays() -> None:
    again = [m for n in range(3) for m in (calls((f"c{n}", "run", {"tests": "all"})), result("ok", f"c{n}"))]
    assert lines(*again) == ['run: tests=all -> "ok" (3 times)']
    other = [calls(("d", "run", {"tests": "all"})), result("1 failed in shop/cart.py", "d")]
    assert len(lines(*again, *other)) == 2


def test_what_a_thing_was_before_stands_beside_what_it_became() -> None:
    told = lines(
        calls(("a", "get_order", {"order_id": "R-9"})),
        result({"order_id": "R-9", "seat": "12A", "meal": "none"}, "a"),
        calls(("b", "change_seat", {"order_id": "R-9", "seat": "3C"})),
        result({"order_id": "R-9", "seat": "3C", "meal": "none"}, "b"),
    )
    (line,) = [line for line in told if line.startswith("change_seat")]
    assert "12A → 3C" in line
    assert "meal" not in line


def test_later_calls_about_a_new_thing_stand_with_it() -> None:
    told = lines(
        calls(("a", "book_hut", {"hut": "Alm", "beds": 4})),
        result({"booking_id": "H-881"}, "a"),
        calls(("b", "cancel_hut", {"booking_id": "H-881"})),
        result({"status": "ok"}, "b"),
    )
    assert len(told) == 1
    assert told[0].endswith("booking_id=H-881 then cancel_hut") or told[0].endswith("H-881 then cancel_hut")


def test_an_id_bears_the_name_of_its_reading() -> None:
    told = one(
        calls(("a", "find_drink", {"query": "misty"})),
        result({"items": [{"item_id": "4411", "name": "Cloud and Mist"}]}, "a"),
        calls(("b", "add_item", {"item_id": "4411"})),
        result({"order_id": "O-5"}, "b"),
        about="add_item",
    )
    assert "4411 (Cloud and Mist)" in told


def test_runs_of_a_tool_are_a_table() -> None:
    made: list[Message] = []
    for n, town in enumerate(("Oslo", "Bern", "Riga")):
        made += [calls((f"c{n}", "book_room", {"town": town, "nights": n + 1})), result({"ref": f"X-{n}8"}, f"c{n}")]
    told = lines(*made)
    assert told == ["+ Oslo; nights=1 -> X-08", "+ Bern; nights=2 -> X-18", "+ Riga; nights=3 -> X-28"]


def test_a_table_says_once_what_its_rows_share() -> None:
    made: list[Message] = []
    for n, drink in enumerate(("Mocha", "Latte", "Chai", "Cortado")):
        given: dict[str, object] = {
            "item": drink,
            "quantity": 1,
            "extras": [{"kind": "milk", "option": "oat"}] * (n == 2),
        }
        made += [calls((f"a{n}", "add_item", given)), result({"order_id": f"1308{n}"}, f"a{n}")]
        made += [calls((f"b{n}", "finish", {"order_id": f"1308{n}"})), result({"success": True}, f"b{n}")]
    told = [each.line.text for each in quotation_lines(read(made), len)]
    assert told == [
        "add_item (item; quantity=1 -> order then finish):",
        "+ Mocha -> 13080",
        "+ Latte -> 13081",
        "+ Chai; milk=oat -> 13082",
        "+ Cortado -> 13083",
    ]


def test_a_row_says_where_it_differs_from_its_table() -> None:
    made: list[Message] = []
    for n in range(12):
        given: dict[str, object] = {"town": f"Town {n}", "beds": 3 if n == 5 else 2}
        made += [calls((f"c{n}", "book_hut", given)), result({"ref": f"X-{n}8"}, f"c{n}")]
    told = lines(*made)
    assert told[5] == "+ Town 5; beds=3 -> X-58"
    assert told[4] == "+ Town 4 -> X-48"


def test_a_thing_that_lacks_the_common_ending_is_no_row() -> None:
    made: list[Message] = []
    for n, drink in enumerate(("Mocha", "Latte", "Chai", "Cortado")):
        made += [calls((f"a{n}", "add_item", {"item": drink})), result({"order_id": f"1308{n}"}, f"a{n}")]
        if drink != "Chai":
            made += [calls((f"b{n}", "finish", {"order_id": f"1308{n}"})), result({"success": True}, f"b{n}")]
    assert "add_item: Chai -> order=13082" in lines(*made)


def test_a_call_made_again_with_another_time_is_one_line() -> None:
    told = lines(
        calls(("a", "book_visit", {"studio": "Boyer", "time": "14:00"})),
        result([], "a"),
        calls(("b", "book_visit", {"studio": "Boyer", "time": "14:30"})),
        result({"address": "9 Elm Road"}, "b"),
    )
    assert told[0].startswith("book_visit: studio=Boyer; 14:00 then 14:30")
    assert "book_visit: Boyer; 14:00 ->" not in "\n".join(told)


@pytest.mark.parametrize("other", [{"bill": "B-72", "amount": 50}, {"bill": "B-71", "amount": 80}])
def test_two_deeds_that_made_something_stay_two(other: dict[str, object]) -> None:
    told = lines(
        calls(("a", "pay", {"bill": "B-71", "amount": 50})),
        result({"payment_id": "P-1001"}, "a"),
        calls(("b", "pay", other)),
        result({"payment_id": "P-1002"}, "b"),
    )
    assert sum("P-1001" in line for line in told) == sum("P-1002" in line for line in told) == 1
    assert not any("P-1001" in line and "P-1002" in line for line in told)


def test_the_rest_of_a_result_goes_on_behind_its_line() -> None:
    book = calls(("c", "book_hut", {"hut": "Alm", "beds": 4}))
    reply = result({"booking_id": "H-881", "warden": "Ilse", "price": 96, "altitude": 1840}, "c")
    told = quotation_lines(read([book, reply]), len)
    first, more = [each.line for each in told if each.line.source_seqs]
    assert first.text.endswith("H-881")
    assert more.text.startswith(" (")
    assert first.value > more.value
    assert [line.text for line in chosen_block([first, more], 9_999).lines] == [first.text + more.text]


@pytest.mark.parametrize("told", ["TimeoutError: no answer", "ValueError: bad date", "ReadTimeoutException"])
def test_the_name_of_an_error_says_that_a_call_failed(told: str) -> None:
    assert is_failed(result(told))


def test_the_protocol_outranks_what_a_text_begins_with() -> None:
    assert is_failed(result("All went well.", is_error=True))
    assert not is_failed(result("Error: none found in 40 files", is_error=False))
    assert is_failed(result("Error: none found in 40 files"))


@pytest.mark.parametrize("verb", ["reserve", "Book", "cancel"])
def test_a_deed_with_many_results_is_a_deed(verb: str) -> None:
    made = [calls(("c", f"{verb}_flight", {"to": "Oslo", "day": "2019-03-04"})), result([{"n": 1}, {"n": 2}], "c")]
    assert {fact.key.split(".")[1] for fact in calls_made(numbered(made)) if fact.key.startswith("call.")} == {"act"}


def test_a_result_without_its_call_is_no_line() -> None:
    facts = read([calls(("c", "book_hut", {"hut": "Alm"})), result({"booking_id": "H-881"}, "c")])
    assert not quotation_lines(tuple(fact for fact in facts if fact.source_seq == 2), len)


def test_an_error_of_a_long_result_is_kept() -> None:
    noise = "\n".join(f"step {n} of the build went as planned" for n in range(100))
    line = one(
        calls(("c", "build", {"target": "shop-web"})),
        result(f"{noise}\nERROR: cart.ts missing\n{noise}", "c"),
        about="shop-web",
    )
    assert '"ERROR: cart.ts missing"' in line


outcomes = st.one_of(
    st.sampled_from(FAILED), st.text(max_size=60), st.dictionaries(st.text(max_size=8), st.integers(), max_size=4)
)


@settings(max_examples=60, deadline=None)
@given(st.lists(outcomes, min_size=1, max_size=5))
def test_no_call_is_shown_as_done_whose_result_failed(told: list[object]) -> None:
    messages: list[Message] = []
    for n, each in enumerate(told):
        messages += [calls((f"c{n}", "pay", {"bill": f"BILL-{n}x"})), result(each, f"c{n}")]
    shown = lines(*messages)
    for n in range(len(told)):
        if is_failed(messages[2 * n + 1]):
            assert all("(failed)" in line for line in shown if f"BILL-{n}x" in line)


@pytest.mark.parametrize(
    "told", ["404 Not Found", "503: Service Unavailable", "HTTP/1.1 500", {"status": 404}, {"code": "503"}]
)
def test_a_number_with_what_it_stands_for_says_it_failed(told: object) -> None:
    assert is_failed(result(told))


@pytest.mark.parametrize(
    "told", ["540", "404", "450 rows", "512 MB are free", "500 internal users", {"result": 540}, {"outcome": 404}]
)
def test_a_number_alone_is_no_failure(told: object) -> None:
    """Tools count, measure and add."""
    assert not is_failed(result(told))


def test_a_long_list_tells_what_was_said_of_it() -> None:
    orders = [{"order": f"O-{n}", "customer": f"Kunde {n}", "total": n} for n in range(1000, 2000)]
    (line,) = lines(calls(("c1", "orders", {"table": "all"})), result(orders), says("The first one is O-1003."))[:1]
    assert line == "orders: table=all -> O-1003; total=1003"


@pytest.mark.parametrize("sign", [";", "\t", " | "])
def test_a_row_that_was_told_is_kept(sign: str) -> None:
    rows = [("Bolt small", 12), ("Washer", 3), *((f"Part {name}", 4000) for name in "abcdefghijklmnopqrstuvw")]
    table = "\n".join(f"{10 + place}{sign}{name}{sign}{left}" for place, (name, left) in enumerate(rows))
    line = one(
        calls(("c1", "stock", {"file": "all"})),
        result(table),
        says("Only the Washer is short of its minimum."),
        about="stock",
    )
    assert "Washer" in line


def test_a_process_that_failed_and_then_worked_says_so() -> None:
    made = [
        message
        for place, code in enumerate((2, 0))
        for message in (
            calls((f"c{place}", "exec", {"command": "make test"})),
            result({"output": f"{code} of 44 are broken", "metadata": {"exit_code": code}}, f"c{place}"),
        )
    ]
    assert lines(*made) == ['exec: make test -> "0 of 44 are broken" (after 1 failure)']


def test_what_a_protocol_puts_around_a_result_is_no_line() -> None:
    told = {"content": [{"type": "text", "text": json.dumps({"ticket": "T-14", "assignee": "Wim"})}], "isError": False}
    line = one(calls(("c1", "assign", {"to": "me"})), result(told), about="assign")
    assert line == "assign: to=me -> T-14; assignee=Wim"


@pytest.mark.parametrize(
    "label", ["dopłata", "价格", "цена доставки", "कीमत", "配送料", "가격", "prix_spécial", "السعر", "ราคา"]
)
def test_a_value_stands_with_its_name_in_any_script(label: str) -> None:
    line = one(calls(("c1", "order", {label: 9, "paczka": "small"})), result({label: 49, "left": 3}), about="order")
    name = label.replace(" ", "_")
    assert line == f"order: {name}=9; small -> {name}=49; left=3"


@pytest.mark.parametrize(
    ("told", "end"),
    [
        ("{'ok': False, 'error': 'tier is locked', 'id': 'CU-881'}", "error=tier is locked; ok=false"),
        (
            "<s:Body><s:Fault><faultstring>Account is suspended</faultstring></s:Fault></s:Body>",
            "faultstring=Account is suspended",
        ),
        ("<html><title>429 Too Many Requests</title><p>nginx</p></html>", '"429 Too Many Requests"; "nginx"'),
    ],
)
def test_a_failure_in_another_form_is_marked(told: str, end: str) -> None:
    assert (
        one(calls(("c1", "update", {"id": "CU-881"})), result(told), about="update")
        == f"update (failed): CU-881 -> {end}"
    )
