"""Whether a reader can tell what a value is of: hits and misses made by hand, and renderings that try to cheat."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from reactor_memory.evaluation.attribution import is_attributable, keys_in
from reactor_memory.evaluation.probes import Probe
from reactor_memory.evaluation.units import Unit, lines_as_units, units_of
from reactor_memory.models import Message, ToolCall
from tests.evaluation.contexts import context_of
from tests.scenes.tables import each_row


def told(anchor: str, value: str, *lines: str, said: tuple[Message, ...] = ()) -> bool:
    probe = Probe(question="?", anchor=(anchor,), value=(value,))
    return is_attributable(probe, lines_as_units(lines), keys_in(said))


def called(name: str, /, **arguments: object) -> Message:
    return Message.assistant("", tool_calls=(ToolCall(id="c", name=name, arguments=arguments),))


@each_row(
    ("anchor", "value", "line"),
    [
        ("San Francisco", "Anaheim", "BuyBusTicket: from=Anaheim; to=San Francisco; 2019-03-02; 09:10"),
        ("San Francisco", "2019-03-02", "BuyBusTicket: from=Anaheim; to=San Francisco; 2019-03-02; 09:10"),
        ("San Francisco", "09:10", "BuyBusTicket: from=Anaheim; to=San Francisco; 2019-03-02; 09:10"),
        ("Bahia Resort", "2019-03-07", "ReserveHotel: check_in=2019-03-07; check_out=2019-03-11; Bahia Resort"),
        ("order 13087", "Latte", "order 13087: Latte; quantity=1; milk=Almond Milk"),
        ("Latte", "13087", "order 13087: Latte; quantity=1; milk=Almond Milk"),
        ("Drive", "TV", "PlayMedia: Drive; device=TV"),
        ("Pup", "3", "BuyEventTickets: event=Pup; tickets=2 then 3"),
        ("Kim", "7", "+ Kim; guests=7"),
        ("Kim", "no peanuts", "the user: no peanuts for Kim, please"),
        ("Kim", "11:00", "the user: pick up Kim's car at 11:00; bring it back on Thursday"),
        ("Anaheim", "San Francisco", "- from Anaheim to San Francisco on March 2nd"),
        ("Anaheim", "San Francisco", "The bus goes from Anaheim to San Francisco."),
        ("Anaheim", "San Francisco", "trip: from: Anaheim; to: San Francisco"),
        ("account", "500", "account: minimum_balance=500; maximum_balance=900"),
        ("account", "500", "account: balance=500; withdrawal=200"),
        ("Rex", "4", "dog: Rex; 4"),
        ("Rex", "4", "dog: adults=4; pups=4; Rex"),
    ],
)
def test_a_reader_can_tell(anchor: str, value: str, line: str) -> None:
    assert told(anchor, value, line)


@each_row(
    ("anchor", "value", "line"),
    [
        (
            "San Francisco",
            "Anaheim",
            "BuyBusTicket: luggage=False; 2019-03-02; 09:10; Anaheim; passengers=4; San Francisco",
        ),
        ("Bahia Resort", "2019-03-07", "ReserveHotel: 2019-03-07; 2019-03-11; Bahia Resort"),
        ("Bahia Resort", "15:00", "ReserveHotel: Bahia Resort; 15:00; 11:00"),
        ("order 1", "Latte", "order 1: Latte; Almond Milk; Iced"),
        ("Pup", "2", "BuyEventTickets: event=Pup; 2; 4"),
        ("Pup", "yes", "BuyEventTickets: event=Pup; yes; no"),
        ("account", "500", "account: balance=500; balance=900"),
        ("account", "500", "account: balance=500; maximum_balance=900"),
        ("Kim", "Rome", "+ Kim; Rome; 2"),
        ("Anaheim", "San Francisco", "BuyBusTicket: f=Anaheim; t=San Francisco; g=Economy"),
        ("Anaheim", "San Francisco", "BuyBusTicket: from=Anaheim; 2019-03-02"),
        ("Anaheim", "San Francisco", "Anaheim; San Francisco"),
        ("Anaheim", "San Francisco", "Anaheim"),
    ],
)
def test_a_reader_cannot_tell(anchor: str, value: str, line: str) -> None:
    assert not told(anchor, value, line)


def test_a_header_of_columns_names_the_parts_below_it() -> None:
    rows = ("trips (from; to; day):", "+ Anaheim; San Francisco; 2019-03-02")
    assert told("San Francisco", "Anaheim", *rows)
    assert not told("San Francisco", "Anaheim", rows[1])
    assert not told("San Francisco", "Anaheim", rows[0], "something else", rows[1])
    assert not told("San Francisco", "Anaheim", rows[0], "+ Anaheim; San Francisco")


def test_a_header_names_what_was_given_and_what_came_back() -> None:
    rows = (
        "trips (from; to; seats=2 -> ref; name):",
        "+ Anaheim; Rome; class=First -> FE-7; Oslo (day=3) then cancel: why=rain",
    )
    assert told("Rome", "Anaheim", *rows)
    assert told("Rome", "FE-7", *rows)
    assert told("Oslo", "rain", *rows)
    assert told("FE-7", "Oslo", *rows)
    assert told("Rome", "First", *rows)
    assert not told("Rome", "Oslo", rows[1])
    assert not told("Rome", "Oslo", rows[0], "+ Anaheim; Rome -> FE-7; Oslo; Kim")


def test_what_came_back_is_no_part_of_the_last_argument() -> None:
    assert told("Rome", "Oslo", "trip: to=Rome; from=Oslo -> ref=FE-7")
    assert not told("Rome", "Oslo", "trip: Rome; Oslo -> FE-7")


def test_a_label_is_measured_by_the_keys_that_were_used() -> None:
    """Alone the line is clear; the keys show that the label would do for the other value as well, or better."""
    said = (called("limits", minimum_balance=500, maximum_balance=900, maximum_withdrawal=200),)
    assert not told("limits", "500", "limits: balance=500; maximum=900", said=said)
    assert not told("limits", "900", "limits: minimum=500; maximum=900; withdrawal=200", said=said)
    assert told("limits", "500", "limits: minimum=500; maximum_balance=900; withdrawal=200", said=said)
    assert told("limits", "900", "limits: minimum=500; maximum_balance=900; withdrawal=200", said=said)


def test_the_whole_key_is_the_best_label_there_is() -> None:
    said = (called("limits", balance=500, minimum_balance=300),)
    assert told("limits", "500", "limits: balance=500; minimum_balance=300", said=said)
    assert not told("limits", "500", "limits: balance=500; minimum_balance=300")


def test_a_message_says_it_in_words_whatever_it_looks_like() -> None:
    probe = Probe(question="?", anchor=("Rome",), value=("Oslo",))
    shown = context_of(("window", Message.user("Rome; Oslo; 7; 8")))
    block = context_of(("facts", Message.system("trip: Rome; Oslo; 7; 8")))
    assert is_attributable(probe, units_of(shown))
    assert not is_attributable(probe, units_of(block))


def test_the_question_is_no_unit() -> None:
    probe = Probe(question="?", anchor=("Rome",), value=("Oslo",))
    assert not is_attributable(probe, units_of(context_of(("current", Message.user("Rome Oslo")))))


def test_one_good_unit_is_enough() -> None:
    probe = Probe(question="?", anchor=("Rome",), value=("Oslo",))
    assert is_attributable(probe, [Unit("trip: Rome; Oslo; Kiel"), Unit("trip: from=Rome; to=Oslo")])


CALLS: Mapping[str, Mapping[str, str]] = {
    "BuyBusTicket": {
        "from_city": "Anaheim",
        "to_city": "Fresno",
        "leaving_date": "2026-03-02",
        "leaving_time": "09:10",
    },
    "ReserveHotel": {"check_in_date": "2026-03-07", "check_out_date": "2026-03-11", "hotel": "Bahia", "city": "Kiel"},
    "set_limits": {"minimum_balance": "500", "maximum_balance": "900", "minimum_withdrawal": "20", "owner": "Kim"},
    "create_event": {"start_time": "10:00", "end_time": "12:30", "room_name": "Blue", "host_name": "Ana"},
    "order": {"main_dish": "Ramen", "side_dish": "Gyoza", "drink": "Mugicha", "guests": "3", "tables": "1"},
}

Labelling = Callable[[str, int, list[str]], str]


def attributable_share(label: Labelling) -> float:
    """Of the values of all calls, those that are told if each label is made by `label` of a key, its place, and all."""
    hits: list[bool] = []
    for name, given in CALLS.items():
        keys = list(given)
        labels = [label(key, place, keys) for place, key in enumerate(keys)]
        line = f"{name}: " + "; ".join(f"{a}={v}" if a else v for a, v in zip(labels, given.values(), strict=True))
        said = (called(name, **given),)
        hits += [told(name, value, line, said=said) for value in given.values()]
    return sum(hits) / len(hits)


def test_labels_that_are_kept_lose_nothing() -> None:
    assert attributable_share(lambda key, place, keys: key) == 1


@pytest.mark.parametrize(
    ("cheat", "most"),
    [
        (lambda key, place, keys: "", 0.35),
        (lambda key, place, keys: key if place % 2 else "", 0.85),
        (lambda key, place, keys: keys[(place + 1) % len(keys)], 0.1),
        (lambda key, place, keys: keys[-1 - place], 0.1),
        (lambda key, place, keys: key.rpartition("_")[2], 0.75),
        (lambda key, place, keys: key.partition("_")[0], 0.9),
        (lambda key, place, keys: key[0], 0.2),
        (lambda key, place, keys: "value", 0.1),
    ],
    ids=["dropped", "half-dropped", "shifted", "reversed", "last-word", "first-word", "first-letter", "one-for-all"],
)
def test_labels_that_are_dropped_shuffled_or_shortened_lose_points(cheat: Labelling, most: float) -> None:
    assert attributable_share(cheat) <= most


def test_what_a_later_call_was_given_stands_behind_its_name() -> None:
    """One order of two drinks: each argument belongs to the call that it stands behind."""
    row = "+ latte-23; Milk=Oat -> 56269 then add_item: item=mocha-16; option=Whole; part=7"
    header = "add_item (item; quantity=1 -> order):"
    assert told("56269", "mocha-16", header, row)
    assert told("56269", "7", header, row)
    assert not told("56269", "mocha-16", header, "+ item=latte-23; item=mocha-16 -> 56269")
