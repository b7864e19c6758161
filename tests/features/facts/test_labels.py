"""Which part of a line bears which label."""

from __future__ import annotations

from reactor_memory.features.facts.labels import Part, labels, shape_of, short_label
from tests.scenes.tables import each_row


def row(title: str = "", /, **given: str) -> str:
    parts = [Part(key, value) for key, value in given.items()]
    made = labels(parts, title=title)
    return "; ".join(f"{a}={part.value}" if a else part.value for a, part in zip(made, parts, strict=True))


@each_row(
    ("title", "given", "shown"),
    [
        ("BuyBusTicket", {"from_city": "Anaheim", "to_city": "Fresno"}, "from=Anaheim; to=Fresno"),
        ("Trip", {"origin_city": "Anaheim", "destination_city": "Fresno"}, "origin=Anaheim; destination=Fresno"),
        (
            "Trip",
            {"departure_date": "2026-01-02", "return_date": "2026-01-09"},
            "departure=2026-01-02; return=2026-01-09",
        ),
        (
            "Stay",
            {"check_in_date": "2026-01-02", "check_out_date": "2026-01-09"},
            "check_in=2026-01-02; check_out=2026-01-09",
        ),
        ("Stay", {"day": "2026-01-02", "hour": "15:00", "hotel_name": "Nord"}, "2026-01-02; 15:00; Nord"),
        ("Stay", {"hotel_name": "Nord", "room_kind": "double"}, "Nord; room=double"),
        ("PlayMedia", {"track": "Drive", "artist": "Joe Bonamassa"}, "track=Drive; artist=Joe Bonamassa"),
        ("BuyEventTickets", {"event": "Girl In Red", "city": "Los Angeles"}, "Girl In Red; city=Los Angeles"),
        ("account", {"minimum_balance": "500", "maximum_balance": "900"}, "minimum_balance=500; maximum_balance=900"),
        ("account", {"balance": "500", "minimum_balance": "300"}, "balance=500; minimum_balance=300"),
        ("cart", {"total_price": "$50.25", "unit_price": "$5"}, "total_price=$50.25; unit_price=$5"),
        ("cart", {"number_of_items": "12345"}, "items=12345"),
        ("place", {"has_live_music": "True", "sauce": "ADD"}, "live_music=True; sauce=ADD"),
        ("drink", {"hot_or_iced": "Iced", "milk_options": "Oat Milk"}, "hot_or_iced=Iced; milk_options=Oat Milk"),
        ("order", {"item.1": "Latte", "item.2": "Mocha"}, "item.1=Latte; item.2=Mocha"),
        (
            "order",
            {"item": "Latte", "milk": "Oat Milk", "item.17": "Mocha", "milk.17": "Almond Milk"},
            "first_item=Latte; first_milk=Oat Milk; item.17=Mocha; milk.17=Almond Milk",
        ),
        ("taxi", {"start_time": "10:00", "end_time": "12:30"}, "start=10:00; end=12:30"),
        (
            "fare",
            {"departure_date": "2026-01-02", "departure_time": "10:00", "arrival_time": "11:00"},
            "2026-01-02; departure_time=10:00; arrival=11:00",
        ),
        ("memo", {"formula": "a=b"}, "formula=a=b"),
        ("policy", {"days_before_expiry": "5"}, "days_before_expiry=5"),
        ("bucket", {"log_retention_days": "5", "id": "b1"}, "retention_days=5; b1"),
        ("đơn", {"trang_thai": "da_giao", "ma": "DH-5"}, "trang_thai=da_giao; ma=DH-5"),
        ("reserva", {"numero_de_noches": "4", "nombre": "Ana"}, "numero_de_noches=4; nombre=Ana"),
    ],
)
def test_a_part_bears_enough_of_its_key_to_be_distinct(title: str, given: dict[str, str], shown: str) -> None:
    assert row(title, **given) == shown


def test_the_name_that_an_id_stands_for_stands_bare() -> None:
    parts = [Part("notes", "extra hot"), Part("menu_item", "Latte", is_resolved=True)]
    assert labels(parts, title="order 7") == ["notes", ""]


def test_a_further_thing_in_a_row_says_which_it_is() -> None:
    parts = [Part("menu_item", "Latte", is_resolved=True), Part("menu_item.83681", "Mocha", is_resolved=True)]
    assert labels(parts, title="order 7") == ["", "menu_item.83681"]


def test_one_label_stands_for_one_part() -> None:
    assert row("x", a_total="5", b_total="5") == "a_total=5; b_total=5"
    assert row("trip", from_="Rome", to="Oslo") == "from=Rome; to=Oslo"


@each_row(
    ("value", "shape"),
    [
        ("ADD", "flag"),
        ("false", "flag"),
        ("TV", "flag"),
        ("2026-01-02", "date"),
        ("2 pm", "time"),
        ("10:15", "time"),
        ("15150.75", "number"),
        ("$1,200", "number"),
        ("50%", "number"),
        ("415-561-4900", "text"),
        ("Oslo", "text"),
    ],
)
def test_the_shape_of_a_value(value: str, shape: str) -> None:
    assert shape_of(value) == shape


def test_a_part_alone_has_the_shortest_label() -> None:
    assert (short_label("departure_date"), short_label("number_of_seats"), short_label("name")) == (
        "departure",
        "seats",
        "name",
    )
