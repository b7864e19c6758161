import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.tokens.estimate import EstimateCounter
from reactor_memory.tokens.tiktoken_counter import TiktokenCounter
from tests.scenes.tables import each_row

count = EstimateCounter().count


@each_row(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        (" ", 1),
        ("   ", 1),
        ("Hello World", 2),
        ("a" * 100, 25),
        ("中" * 30, 20),
        ("ひ" * 30, 20),
        ("한" * 30, 20),
        ("😀😁😂", 3),
        ("a" * 40 + "한" * 15, 20),
        ("я" * 30, 10),
        ("a" * 2_000, 500),
        ("a" * 2_001, 500),
        ("a" * 3_000 + "한" * 3_000, 2_750),
        ("a" * 50_000, 12_500),
        ("\ud800", 1),
    ],
)
def test_known_values(text: str, tokens: int):
    assert count(text) == tokens
    assert count(text) == tokens, "counting again changes nothing"


@pytest.mark.parametrize("letter", ["한", "中", "ひ", "カ"])
def test_chinese_japanese_and_korean_cost_more_than_equally_long_latin(letter: str):
    assert all(count(letter * length) > count("a" * length) for length in range(3, 100))


@given(st.text(), st.text())
def test_a_longer_text_never_counts_less(text: str, more: str):
    assert count(text) <= count(text + more)


@each_row(
    "text",
    [
        "I would like to change the delivery address of order #4711 to 12 Baker Street, please.",
        '{"order_id": "A-1001", "status": "shipped", "items": [{"sku": "X9", "quantity": 2}]}',
        "Je voudrais réserver une table pour quatre personnes vendredi soir à vingt heures.",
        "配送先の住所を変更したいのですが、どうすればよいですか。",
        "주문을 취소하고 환불을 받고 싶습니다.",
        "Я хочу отменить заказ и вернуть деньги.",
    ],
)
def test_it_stays_within_factor_of_two_of_a_real_tokenizer(text: str):
    exact = TiktokenCounter().count(text)
    assert exact / 2 <= count(text) <= exact * 2
