"""What of the results of calls is told: what says more than the arguments, and more than all results say."""

from __future__ import annotations

import pytest

from reactor_memory.models import Message
from tests.features.facts.quoting.reading import calls, headings, lines, one, result, user


def many(tool: str, asked: list[dict[str, object]], told: list[object]) -> list[Message]:
    """Calls of a tool, each with its result."""
    return [
        message
        for number, (given, got) in enumerate(zip(asked, told, strict=True))
        for message in (calls((f"{tool}{number}", tool, given)), result(got, f"{tool}{number}"))
    ]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"parcel": "KF1", "street": "6 Elm Lane", "town": "Farrow"}, {"to": "6 Elm Lane, Farrow"}),
        ({"ticket": "T-1", "owner": "Ida Moe"}, {"assigned": "ida-moe"}),
        ({"hotel": "苏州 博物馆", "nights": 2}, {"name": "苏州博物馆"}),
    ],
)
def test_a_result_that_says_its_arguments_again_is_not_told(given: dict[str, object], told: object) -> None:
    assert "->" not in one(calls(("c1", "change", given)), result(told), about=str(next(iter(given.values()))))


@pytest.mark.parametrize("chosen", ["Oslo", "Bergen"])
def test_which_of_several_arguments_it_became_is_told(chosen: str) -> None:
    asked = calls(("c1", "book_cabin", {"towns": "Oslo, Bergen", "nights": 2}))
    assert chosen in one(asked, result({"town": chosen}), about="book_cabin").partition("->")[2]


def test_a_phrase_of_all_results_is_not_told() -> None:
    names = ["Ada", "Bo", "Cy", "Di"]
    asked: list[dict[str, object]] = [{"to": name, "text": f"Hi {name}!"} for name in names]
    told = lines(*many("send_note", asked, [{"message": f"A note was sent to {name}."} for name in names]))
    assert not any("was sent" in line for line in told)
    assert all(any(name in line for line in told) for name in names)


def test_what_looks_found_is_told_however_often() -> None:
    asked: list[dict[str, object]] = [{"town": name} for name in ("Oslo", "Bergen", "Bodø", "Molde")]
    told = many("get_weather", asked, [{"sky": "clear and sunny"}] * 4)
    assert "sky=clear and sunny" in headings(*told)[0]


def test_why_calls_failed_is_told_however_often() -> None:
    asked: list[dict[str, object]] = [{"id": f"Q-{n}", "pages": n} for n in range(4)]
    told = lines(*many("update", asked, [{"status": "rejected", "reason": "clashes with another entry"}] * 4))
    assert sum("clashes with another entry" in line for line in told) == 4


def test_a_value_of_several_tools_is_not_told() -> None:
    deeds = ("book_room", "send_note", "add_label")
    made = [message for tool in deeds for message in many(tool, [{"about": f"x {tool}"}], [{"state": "open"}])]
    told = lines(*made, *many("close_case", [{"case": "C-9"}], [{"state": "shut"}]))
    assert not any("open" in line for line in told)
    assert any("shut" in line for line in told)


def test_a_change_is_told_however_often_its_value_is() -> None:
    deeds = ("book_room", "send_note", "add_label")
    made = [message for tool in deeds for message in many(tool, [{"about": f"x {tool}"}], [{"state": "done"}])]
    seen = many("get_case", [{"case": "C-9"}], [{"case": "C-9", "state": "waiting"}])
    closed = many("settle_case", [{"case": "C-9"}], [{"case": "C-9", "state": "done"}])
    assert "waiting → done" in one(*made, *seen, *closed, about="settle_case")


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("Confirmed. The reference is ", "."),
        ("Ihre Nummer lautet ", ""),
        ("予約番号は ", " です。"),
        ("Done, your reference: ", ""),
    ],
)
def test_a_phrase_around_references_stands_in_the_title(before: str, behind: str) -> None:
    asked: list[dict[str, object]] = [{"guest": name, "day": f"2026-05-0{n}"} for n, name in enumerate("ABCD", 1)]
    made = many("book_stay", asked, [f"{before}RX-74{n}{behind}" for n in range(4)])
    assert f'-> "{before}…{behind}"' in headings(*made)[0]
    assert [line.rpartition(" -> ")[2] for line in lines(*made)] == [f"RX-74{n}" for n in range(4)]


def test_a_result_of_other_words_stands_whole_in_the_table() -> None:
    asked: list[dict[str, object]] = [{"guest": f"Guest {n}", "day": f"2026-05-{n:02}"} for n in range(10, 21)]
    told: list[object] = [f"Confirmed as RX-74{n}." for n in range(10)]
    made = many("book_stay", asked, [*told, "On the waiting list as 3."])
    assert '-> "On the waiting list as 3."' in one(*made, about="waiting")


def test_a_value_of_nearly_all_results_stands_in_the_title() -> None:
    asked: list[dict[str, object]] = [{"text": f"post {n} of mine", "tag": f"#t{n}"} for n in range(4)]
    made = many("post", asked, [{"username": "john"}] * 4)
    assert "username=john" in headings(*made)[0]
    assert not any("john" in line for line in lines(*made))


def test_a_line_of_many_results_says_nothing_new() -> None:
    asked: list[dict[str, object]] = [{"file": f"a{n}.py"} for n in range(5)]
    told: list[object] = [f"Commit 34fbf5{n} fix {n} things\nUse undo to revert 34fbf5{n}" for n in range(5)]
    told = [f"{each}\nSaved to a{n}.py" for n, each in enumerate(told)]
    made = lines(*many("apply", asked, told))
    assert all(f"Commit 34fbf5{n}" in line for n, line in enumerate(made))
    assert not any("undo" in line or "Saved" in line for line in made)


def test_a_line_with_the_only_reference_stays() -> None:
    asked: list[dict[str, object]] = [{"guest": f"Guest {n}"} for n in range(5)]
    made = lines(*many("book", asked, [f"Thank you.\nYour code is RX-74{n}" for n in range(5)]))
    assert all(f"RX-74{n}" in line for n, line in enumerate(made))


def test_two_calls_of_many_arguments_are_a_table() -> None:
    asked: list[dict[str, object]] = [
        {"from": "Oslo", "to": "Bergen", "day": "2026-05-02"},
        {"from": "Molde", "to": "Bodø", "day": "2026-05-09"},
    ]
    assert all(line.startswith("+ ") for line in lines(*many("book_train", asked, ["", ""])))
    assert not any(line.startswith("+ ") for line in lines(*many("rm", [{"file": "a.py"}, {"file": "b.py"}], ["", ""])))


def test_what_the_model_says_of_each_call_is_not_told() -> None:
    made = [
        message
        for n in range(3)
        for message in (
            calls((f"c{n}", "set_limit", {"limit": 100 + n})),
            result("", f"c{n}"),
            Message.assistant("Ok."),
        )
    ]
    assert not any("Ok." in line for line in lines(user("Set it."), *made))


@pytest.mark.parametrize(
    ("name", "is_read"),
    [("order_status", True), ("git_log", True), ("server_info", True), ("order_pizza", False), ("post_message", False)],
)
def test_a_noun_of_looking_tells_a_look(name: str, is_read: bool) -> None:
    told = lines(calls(("c1", name, {"about": "pizza 7"})), result(""))
    assert (not told) == is_read


LONG_RESULTS = [
    ("check.........Passed\nother.........Failed\nCommit 7c80da7 fix: ticks\n400|\n401| show(3)", "Commit 7c80da7"),
    ("-----------\n| 12 | 14 |\n| 15 | 17 |\n-----------\nAll of the rows were counted", "All of the rows"),
    ("====== 1 ======\n>>> 12\n>>> 13\nTicket QR-44871 is open", "Ticket QR-44871"),
    ("１１：２２\n３３：４４\n５５：６６\n注文QX8841を受け付けました。", "QX8841"),
    ("[1/9]\n[2/9]\n[9/9]\nLes mesures sont écrites", "Les mesures"),
]


@pytest.mark.parametrize(("reply", "said"), LONG_RESULTS)
def test_what_a_result_names_stands_before_its_other_lines(reply: str, said: str) -> None:
    first, *further = lines(calls(("c1", "run_step", {"step": "all"})), result(reply))
    assert said in first
    assert further
    assert all(line.startswith(" (") and said not in line for line in further)
