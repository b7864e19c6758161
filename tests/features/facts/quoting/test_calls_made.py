"""One line a call, with what its own result says; never a failure told as done."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactor_memory.features.facts.quoting.calls_made import is_failed
from reactor_memory.models import Message
from tests.features.facts.quoting.reading import calls, lines, one, result, says, user

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
