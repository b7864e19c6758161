"""A question is heard in every language that has data, a statement is not taken for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.text.asking import MAX_TAIL, asking_part, asks, asks_anew
from tests.scenes.tables import each_row


@each_row(
    "text",
    [
        "Who serviced the boiler?",
        "what was my order number",
        "hi, where did we put it",
        "the code you told me last time",
        "wo war das nochmal",
        "où est la clé",
        "cuándo es la cita",
        "qual era o código",
        "quando è l'appuntamento",
        "wanneer was de afspraak",
        "när är mötet",
        "mikor van a találkozó",
        "hvornår er mødet",
        "когда у меня встреча",
        "коли зустріч",
        "gdzie jest klucz",
        "toplantı saat kaçta",
        "arabayı servise götürdüm mü",
        "kapan rapat kita",
        "cuộc họp khi nào",
        "متى الموعد",
        "قرار ما کی است",
        "מתי הפגישה",
        "मेरी बैठक कब है",
        "내 약속이 언제였지",
        "예약이 내일인가요",
        "予約はいつですか",
        "会议是什么时候",
        "我上次说的那家店",
        "นัดวันไหน",
        "πότε είναι το ραντεβού",
        "Το κλειδί;",
        "որտե՞ղ է",
        "እንዴት ነህ፧",
        "何時でした？",
        "أين؟",
        "Book like last time please",
        "List all singer names in concerts in year 2014.",
        "Find the first name and age of students who have a pet",
        "Thanks. Show the invoices of May",
        "Give me the address of the dentist.",
        "Zeig mir die Rechnungen vom Mai",
        "Donne-moi le numéro du dossier",
        "Dime la dirección del hotel",
        "Wypisz wszystkie zamówienia",
        "Покажи адрес гостиницы",
        "Bana otelin adresini göster",
        "列出所有订单",
        "ホテルの住所を教えて",
        "호텔 주소 알려줘",
    ],
)
def test_questions_and_what_points_back(text: str) -> None:
    assert asks(text)


@each_row(
    "text",
    [
        "",
        "ok",
        "Thanks, that is great.",
        "I went to the shop and bought a bike",
        "see https://example.com/?q=1",
        "const found = x?.y ?? z",
        "was great",
        "Danke, das passt",
        "Ich fahre morgen nach Berlin.",
        "Merci beaucoup",
        "Je pars demain à Paris",
        "Mañana voy a Madrid",
        "Спасибо, отлично",
        "好的，谢谢",
        "明天我去北京",
        "ありがとうございます",
        "明日東京に行きます",
        "내일 서울에 가요",
        "teşekkürler, çok iyi",
        "شكرا جزيلا",
        "תודה רבה",
        "धन्यवाद",
        "No, that is all. Thank you again for your help",
        "Moments like these remind us how important friends are",
        "I remember the gorgeous lake in the mountains",
        "Find me a restaurant in San Jose",
        "That one sounds perfect.",
        "Actually, make that one ticket",
    ],
)
def test_statements(text: str) -> None:
    assert not asks(text)


def test_only_the_end_of_a_long_text_asks() -> None:
    assert asks("line\n" * 1_000 + "Is that right?")
    assert not asks("Is that right? " + "word " * MAX_TAIL)


@given(st.text(st.characters(), max_size=300))
def test_no_text_is_too_strange(text: str) -> None:
    assert asks(text) in (True, False)
    assert asks_anew(asking_part(text)) in (True, False)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("That sounds great. Where is the hotel?", "Where is the hotel?"),
        ("Which file? Thanks! Which line of a.b?", "Which file? Which line of a.b?"),
        ("见到你很高兴。酒店在哪里？", "酒店在哪里?"),
        ("tell me where the hotel is", "tell me where the hotel is"),
        ("Where is over_time.py", "Where is over_time.py"),
        ("我下周要搬家。我的地址是什么？谢谢！", "我的地址是什么?"),
    ],
)
def test_the_sentences_that_ask(text: str, part: str) -> None:
    assert asking_part(text) == part


@pytest.mark.parametrize(
    "text",
    [
        "What do you think about it?",
        "Would you like some tea?",
        "Is there anything else?",
        "Was halten Sie von Brunnen?",
        "Tu penses qu'il va pleuvoir ?",
        "¿Te gusta el café?",
        "你觉得风筝怎么样？",
        "最近どうですか？",
        "Вам нравятся фонтаны?",
    ],
)
def test_questions_for_what_nobody_said(text: str) -> None:
    assert asks_anew(text)


@pytest.mark.parametrize(
    "text",
    [
        "What did I tell you about my landlord?",
        "Which hotel did we book?",
        "Is there anything else that you said last time?",
        "Was hat der Brunnen gekostet?",
        "¿Cuándo llega el tren?",
        "酒店的地址是什么？",
        "What did you recommend for the hotel in Porto?",
        "Can I still cancel the Lisbon booking?",
        "What are you allergic to?",
        "Какой чай нравится моей маме?",
        "¿Qué café le gusta a mi madre?",
        "母は何が好きですか？",
        "ใครรับผิดชอบโครงการนี้?",
        "",
    ],
)
def test_questions_for_what_was_said(text: str) -> None:
    assert not asks_anew(text)
