"""What packs know of languages: dates that were meant, polite words, words that take back."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.facts.quoting.language_packs import (
    begins_to_agree,
    begins_to_correct,
    days_meant,
    is_courtesy,
    language_packs,
    rules,
    takes_back,
    tells_health,
)

TUESDAY = date(2026, 5, 12)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("I see the doctor the day after tomorrow.", "2026-05-14"),
        ("The boiler broke the day before yesterday.", "2026-05-10"),
        ("Übermorgen kommt der Schornsteinfeger.", "2026-05-14"),
        ("Pasado mañana me operan la rodilla.", "2026-05-14"),
        ("On se voit après-demain.", "2026-05-14"),
        ("Depois de amanhã chega a carga.", "2026-05-14"),
        ("Послезавтра защита диплома.", "2026-05-14"),
        ("后天下午我去办护照。", "2026-05-14"),
        ("あさって引っ越し業者が来ます。", "2026-05-14"),
        ("모레 이사해요.", "2026-05-14"),
        ("Öbür gün taşınıyoruz.", "2026-05-14"),
        ("سأسافر بعد غد", "2026-05-14"),
        ("I call tomorrow.", "13 May 2026"),
        ("In ten days the choir sings.", "2026-05-22"),
        ("Vor drei Tagen habe ich den Antrag abgegeben.", "2026-05-09"),
        ("Viajo dentro de dos semanas.", "2026-05-26"),
        ("Je l'ai perdu il y a 5 jours.", "2026-05-07"),
        ("Comprei há 4 dias.", "2026-05-08"),
        ("Через 3 дня вылет.", "2026-05-15"),
        ("3 gün önce aldım.", "2026-05-09"),
        ("我三天前买的。", "2026-05-09"),
        ("3日前に買いました。", "2026-05-09"),
        ("2주 뒤에 이사해요.", "2026-05-26"),
        ("اشتريته قبل ثلاثة أيام", "2026-05-09"),
        ("मैंने तीन दिन पहले लिया।", "2026-05-09"),
    ],
)
def test_a_relative_time_has_its_date(text: str, meant: str) -> None:
    assert days_meant(text, TUESDAY) == (meant,)


@pytest.mark.parametrize(
    "text",
    [
        'I watched "Tomorrow Is Another Day" and liked it.',
        'She wrote in March: "I arrive tomorrow with the sleeper."',
        "Yesterday Is Here is the name of the bar.",
        "Er las «Morgen war Krieg» und schlief ein.",
        "彼女は「明日来る」と書いた。",
    ],
)
def test_titles_and_quoted_words_have_no_date(text: str) -> None:
    assert days_meant(text, TUESDAY) == ()


@pytest.mark.parametrize(
    "text",
    [
        "He built it in ten days.",
        "Das haben wir in zwei Wochen geschafft.",
        "Lo hice en 3 semanas.",
        "收到货3天后可以退。",
        "12月3日前に返事をください。",
        "第十三天前台没有人。",
        "3일 전부 바빠요.",
        "It grew by 1.3 days ago.",
    ],
)
def test_how_long_something_took_has_no_date(text: str) -> None:
    assert days_meant(text, TUESDAY) == ()


@pytest.mark.parametrize(
    "text", ["Thanks a lot!", "Ja, danke.", "好的，谢谢", "Спасибо большое", "네 감사합니다", "Sí, gracias"]
)
def test_polite_words_say_nothing(text: str) -> None:
    assert is_courtesy(text)


@pytest.mark.parametrize("text", ["Thanks, at 8.", "Ja, mit Milch.", "好的，八点", "No nuts!", "Sí, dos"])
def test_words_that_say_something_are_not_only_polite(text: str) -> None:
    assert not is_courtesy(text)


@pytest.mark.parametrize(
    "text",
    ["Cancel the subscription of my mother, please, and the paper too", "I scrap cars.", "算了一下，一共十二个人"],
)
def test_what_only_sounds_like_it_takes_nothing_back(text: str) -> None:
    assert not takes_back(text)


def test_every_pack_is_whole() -> None:
    for pack in language_packs().values():
        assert pack.courtesy
        assert pack.takes_back
        assert pack.corrects
        assert pack.days


@pytest.mark.parametrize(
    "text",
    [
        "Jednak nie, odwołaj.",
        "Mais non, je plaisante.",
        "No wait, forget it",
        "やっぱりキャンセルで。",
        "Lascia perdere.",
        "Glöm det.",
        "Laat maar zitten",
        "Ach nein, vergiss es!",
        "On second thought, don't.",
    ],
)
def test_words_behind_an_exclamation_take_back(text: str) -> None:
    assert takes_back(text)


@pytest.mark.parametrize(
    "text",
    [
        "Meet Ann, cancel the other room",
        "Nie vor zehn anrufen.",
        "Mai ist gut.",
        "Als ich kam",
        "I forget it, sadly",
        "本をキャンセルで",
    ],
)
def test_words_of_another_sense_take_nothing_back(text: str) -> None:
    assert not takes_back(text)
    assert not begins_to_correct(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("Parto dopodomani per Bari.", "2026-05-14"),
        ("Tra 3 giorni parto.", "2026-05-15"),
        ("Overmorgen vertrekken we.", "2026-05-14"),
        ("Pojutrze wyjeżdżam.", "2026-05-14"),
        ("Vi åker i övermorgon.", "2026-05-14"),
        ("Han kom för 4 dagar sedan.", "2026-05-08"),
    ],
)
def test_times_of_more_languages_have_their_dates(text: str, meant: str) -> None:
    assert days_meant(text, TUESDAY) == (meant,)


@pytest.mark.parametrize(
    "text",
    [
        "Sono allergica ai crostacei.",
        "Ik heb een notenallergie, allergisch dus.",
        "Mam alergię na orzechy.",
        "Jag är allergisk.",
    ],
)
def test_health_is_heard_in_more_languages(text: str) -> None:
    assert tells_health(text)


@pytest.mark.parametrize(
    "text", ["Nooit voor tien uur bellen.", "Proszę nigdy nie dzwonić.", "Aldrig före tio.", "Se piove, annulla."]
)
def test_rules_are_heard_in_more_languages(text: str) -> None:
    assert rules(text)


@given(st.text(alphabet="-—_.,!?' \"aé好\u0301\u200d", max_size=12))
def test_no_text_is_too_odd_to_be_heard(text: str) -> None:
    for heard in (takes_back, begins_to_correct, is_courtesy, rules, tells_health):
        assert heard(text) in (True, False)


def test_only_a_whole_word_accepts() -> None:
    assert not begins_to_agree("好像不对")
    assert begins_to_agree("好的 明天")
