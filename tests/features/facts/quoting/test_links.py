"""What follows, answers, repeats and corrects what: in any language, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reactor_memory.features.facts.quoting.links import linked
from reactor_memory.features.facts.quoting.log_records import calls_of, statements_of
from reactor_memory.features.facts.quoting.quotation_lines import quotation_lines
from reactor_memory.models import Message
from tests.features.facts.quoting.reading import calls, lines, one, read, result, says, user


@pytest.mark.parametrize(
    ("said", "back"),
    [
        ("Book a court at Halden for Thursday.", "Scrap that."),
        ("Ich habe ein Weingut in Istrien gekauft.", "War nur ein Scherz!"),
        ("Pide dieciocho sillas plegables.", "Anúlalo."),
        ("帮我订四张去杭州的车票。", "算了"),
        ("Закажи столик у окна на субботу.", "Отмени."),
        ("窓側の席を予約して。", "やっぱりやめ"),
        ("Put 26 candles on the list.", "no, cancel"),
    ],
)
def test_what_was_taken_back_is_never_told_without_that(said: str, back: str) -> None:
    told = lines(user(said), says(f"Done: {said}"), user(back), says("OK."))
    assert [line for line in told if said in line] == [f'"{said}" (taken back: "{back}")']


@pytest.mark.parametrize(
    ("said", "correction"),
    [
        ("The rehearsal starts at 7.", "Sorry, at 8."),
        ("Der Zug fährt von Gleis 9.", "Nein, 12."),
        ("我们一共 6 个人", "不对，7 个人"),
        ("La cena es a las 21.", "perdón, a las 22"),
        ("Toplam 73 koli oldu.", "pardon 74"),
    ],
)
def test_a_correction_in_a_word_stands_with_what_it_corrects(said: str, correction: str) -> None:
    line = one(user(said), says("Noted."), user(correction), about=said)
    assert line == f'"{said}" then "{correction}"'


@pytest.mark.parametrize(
    ("said", "correction"),
    [
        ("Schlüsselübergabe mit Frau Dethlefs ist am 28. Juni.", "ach nein, am 29. juni, sie hat alles verschoben"),
        ("드레스 가봉은 9월 2일이에요.", "아 9월 3일로 바뀌었어요"),
        ("The van seats 8 people.", "oh no, 6 people, the rear bench was dismantled"),
        ("Le loyer est de 800 euros.", "ah non, 820 euros, Gaspard augmente tout"),
        ("会场能坐 40 人。", "改成 55 人坐"),
    ],
)
def test_another_number_of_the_same_kind_stands_with_it(said: str, correction: str) -> None:
    line = one(user(said), says("Noted."), user(correction), about=said)
    assert line == f'"{said}" then "{correction}"'


def test_numbers_of_another_kind_correct_nothing() -> None:
    told = lines(user("The van seats 8 people."), says("Good."), user("The rent is 40 dinars."))
    assert '"The van seats 8 people."' in told


def test_a_statement_that_was_answered_stands_once() -> None:
    said = "The freezer must rest for two hours, as was said before."
    told = lines(user(said), says("Yes, so that the coolant settles."))
    assert sum(said in line for line in told) == 1


@pytest.mark.parametrize(
    "asked", ["And tell me about river {}.", "And {}?", "Und Gleis {}?", "还有 {} 号", "Y la fila {}."]
)
def test_one_of_a_series_corrects_nothing(asked: str) -> None:
    told = lines(user("My order number is A-1042."), *(user(asked.format(number)) for number in range(11, 31)))
    assert '"My order number is A-1042."' in told


@pytest.mark.parametrize("words", ["I'm vegan.", "Soy celíaco.", "Я левша", "알레르기 있어요", "Ich bin Vegetarier."])
def test_short_words_that_say_something_stand_alone(words: str) -> None:
    assert f'"{words}"' in lines(user("We are planning a dinner for the whole team."), says("Nice."), user(words))


def test_an_answer_stands_with_its_question() -> None:
    line = one(user("Book a seat."), says("Aisle or window?"), user("window"), about='"window"')
    assert line == '(to "Aisle or window?") "window"'


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Is my dentist in Sorrel Road?", "I do not know."),
        ("Welche Fähre geht nach Hvar?", "Die um neun."),
        ("卫星电话几点开机？", "早八点。"),
        ("¿Quién diseñó Marktown?", "Howard Van Doren Shaw."),
        ("What formed in New Jersey in 1983", "Bon Jovi."),
    ],
)
def test_what_the_model_answers_stands_with_the_question(question: str, answer: str) -> None:
    assert f'the assistant: (to "{question}") "{answer}"' in lines(user(question), says(answer))


def test_no_answer_stands_with_the_question_of_another_turn() -> None:
    """Of a long log not all is kept: here the answer to the first question, and the second question."""
    asked = "Which river does the town of Verden lie on?"
    facts = read([user(asked), says("The Aller."), user("And which state is Bisquick made in?"), says("In Minnesota.")])
    kept = tuple(fact for fact in facts if fact.source_seq in (1, 4))
    told = [each.line.text for each in quotation_lines(kept, len)]
    assert not any(asked in line and "Minnesota" in line for line in told)


def test_a_question_that_was_taken_back_still_stands() -> None:
    told = lines(user("Can you book a court at Halden?"), says("At once."), user("Scrap that."))
    assert '"Can you book a court at Halden?" (taken back: "Scrap that.")' in told


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The budget for the kitchen is 4200 euros.", "The budget for the kitchen is 5100 euros now."),
        ("Das Konzert in der Stadthalle beginnt um 19 Uhr.", "Das Konzert in der Stadthalle beginnt erst um 20 Uhr."),
        ("El depósito de la furgoneta son 300 euros.", "El depósito de la furgoneta son 250 euros."),
    ],
)
def test_a_statement_made_again_with_other_numbers_marks_the_older(old: str, new: str) -> None:
    told = lines(user(old), says("Noted."), user(new), says("Noted."))
    assert f'"{old}" (told otherwise later)' in told
    assert f'"{new}"' in told


@pytest.mark.parametrize(
    ("one_of_a_kind", "another"),
    [
        ("My sister Ida lives in Oslo.", "My sister Maja lives in Bern."),
        ("My appointment with Dr Penn is on 2 June.", "My appointment with the bank is on 9 June."),
        ("Unser Hund Rex ist 4.", "Unsere Katze Mia frisst nur Fisch."),
        ("My brother is a baker in Turku.", "My brother is a pilot in Oulu."),
    ],
)
def test_two_of_a_kind_stand_side_by_side(one_of_a_kind: str, another: str) -> None:
    told = lines(user(one_of_a_kind), says("Nice."), user(another), says("Nice."))
    assert f'"{one_of_a_kind}"' in told
    assert f'"{another}"' in told


def test_a_series_of_numbers_is_no_correction() -> None:
    told = lines(*(user(f"The counter at the gate of the park shows {n}00 today.") for n in range(1, 7)))
    assert not any("otherwise" in line for line in told)


def test_the_same_words_of_two_people_correct_nobody() -> None:
    told = lines(user("My budget is 400 euros a month.", "Ann"), user("My budget is 900 euros a month.", "Ben"))
    assert not any("otherwise" in line for line in told)


def test_the_same_words_are_told_once() -> None:
    rule = "Answer in French and sign every mail with the full name."
    asks = [m for n in range(4) for m in (user(rule), says(f"Answer number {n} of the day."))]
    assert sum(rule in line for line in lines(*asks)) == 1


def test_links_are_drawn_from_what_is_kept() -> None:
    facts = read([user("Book a court at Halden."), says("OK."), user("Scrap that.")])
    assert {fact.key.split(".")[0] for fact in facts} == {"quote"}
    assert all("taken back" not in fact.value for fact in facts)


@pytest.mark.parametrize(
    "question",
    [
        "Which player made the fewest final tables?",
        "Welcher Spieler stand am seltensten im Finale?",
        "¿Qué jugador llegó a menos finales?",
        "哪位选手进决赛最少？",
        "Кто реже всех был в финале?",
    ],
)
def test_what_was_called_for_an_answer_is_worth_less(question: str) -> None:
    def worth(said: str, about: str) -> float:
        log = (
            user(said),
            calls(("a", "run_query", {"text": "SELECT name FROM players ORDER BY finals"})),
            result("[('Teodor Salparov',), ('Maksim Botin',)]", "a"),
            says("Teodor Salparov."),
            user("Now something else."),
        )
        return next(each.line.value for each in quotation_lines(read(log), len) if about in each.line.text)

    assert worth(question, "run_query") < worth("Players.", "run_query") / 2


@pytest.mark.parametrize("said", ["Where is the harbour?", "港はどこですか？", "¿Dónde está el puerto?"])
def test_an_answer_is_kept_longer_than_a_remark(said: str) -> None:
    def salience(words: str) -> int:
        facts = read((user(words), says("The harbour lies behind the old mill."), user("Fine.")))
        return next(fact.salience for fact in facts if "old mill" in fact.value)

    assert salience(said) > salience("Tell me more.")


@pytest.mark.parametrize(
    "nod", ["I note that.", "Gut, ich halte alles fest.", "저장했습니다.", "Merci, je le garde.", "地址已记下。"]
)
def test_a_nod_of_the_model_is_no_line(nod: str) -> None:
    told = lines(
        user("The fridge goes to my sister Almut in the new house."), says(nod), user("The key is under the pot.")
    )
    assert not any(nod in line for line in told)


@pytest.mark.parametrize(
    "said", ["Sorry, that failed.", "It was refused.", "Es ging nicht.", "没有成功。", "Your gate is 12."]
)
def test_what_the_model_says_of_what_it_did_stands(said: str) -> None:
    told = lines(
        user("Please order the oak shelf for the hall."),
        calls(("c1", "order_shelf", {"wood": "oak"})),
        result("see the log of the shop"),
        says(said),
        user("And the lamp?"),
    )
    assert any(said in line for line in told)


def test_a_short_answer_of_the_model_stands() -> None:
    told = lines(user("Which bird is that?"), says("A raven."), user("The key is under the pot."))
    assert any("A raven." in line for line in told)


@pytest.mark.parametrize(
    ("back", "nod"), [("Anúlalo.", "Anulado."), ("Scrap that.", "All undone."), ("算了", "已取消")]
)
def test_a_nod_to_what_was_taken_back_stands(back: str, nod: str) -> None:
    assert any(nod in line for line in lines(user("Order the oak shelf for the hall."), user(back), says(nod)))


@pytest.mark.parametrize(
    ("rule", "later"),
    [
        (
            "Never spend more than 900 dollars on train upgrades.",
            "From now on you may spend up to 850 dollars on train upgrades.",
        ),
        ("never spend more than 775 dollars on stock photos.", "raise the limit for stock photos to 725 dollars."),
        ("Niemals mehr als 40 Euro für frische Blumen ausgeben.", "Für frische Blumen dürfen es jetzt 60 Euro sein."),
        ("Never keep cold samples longer than 3 days.", "The lab allows cold samples to stay for 5 days now."),
        (
            "Ne dépensez jamais plus de 30 euros en fleurs fraîches.",
            "Désormais 45 euros pour les fleurs fraîches, ça va.",
        ),
    ],
)
def test_a_rule_stands_with_its_new_limit(rule: str, later: str) -> None:
    between = [user("We sat by the river."), says("How nice that you found the time for it.")] * 4
    assert one(user(rule), *between, user(later), about=rule) == f'"{rule}" then "{later}"'


@pytest.mark.parametrize(
    ("first", "second", "changed"),
    [
        (
            "Never spend more than 425 dollars on hotel rooms.",
            "Never spend more than 550 dollars on stock photos.",
            "From now on you may spend up to 825 dollars on stock photos.",
        ),
        (
            "Never keep cold samples longer than 3 days.",
            "Never keep blood plates longer than 9 days.",
            "The lab allows blood plates to stay for 12 days now.",
        ),
        (
            "Niemals mehr als 40 Euro für frische Blumen ausgeben.",
            "Niemals mehr als 90 Euro für bunte Kerzen ausgeben.",
            "Für bunte Kerzen dürfen es jetzt 120 Euro sein.",
        ),
        (
            "Ne dépensez jamais plus de 30 euros en fleurs fraîches.",
            "Ne dépensez jamais plus de 70 euros en bougies dorées.",
            "Désormais 95 euros pour les bougies dorées, ça va.",
        ),
        (
            "Никогда не тратьте больше 40 евро на полевые цветы.",
            "Никогда не тратьте больше 90 евро на восковые свечи.",
            "Теперь на восковые свечи можно 120 евро.",
        ),
    ],
)
def test_rules_that_are_worded_alike_keep_their_own_limits(first: str, second: str, changed: str) -> None:
    between = [user("We sat by the river."), says("How nice that you found the time for it.")] * 4
    told = lines(user(first), *between, user(second), *between, user(changed))
    assert f'"{first}"' in told
    assert f'"{second}" then "{changed}"' in told


def test_a_limit_of_something_else_stands_apart() -> None:
    told = lines(
        user("Never spend more than 900 dollars on train upgrades."),
        user("The hotel rooms by the old harbour cost us 425 dollars a night."),
    )
    assert '"Never spend more than 900 dollars on train upgrades."' in told


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            "The rental for Oda Quill has to be set up: of a harp, until July 20th, with a deposit of 91 euros.",
            "Please place the rental for Ewan Strand of a vibraphone, until April 28th, with a deposit of 54 euros.",
        ),
        (
            "The parcel to Dario Barrow has to be picked up at noon, weighing 66 kilos.",
            "Let us do the parcel to Piet Lindqvist next, picked up on Monday, weighing 80 kilos.",
        ),
        (
            "Die Fahrt für Frau Busch nach Lindau mit 12 Euro Trinkgeld muss am Abend sein, niemals vor 18 Uhr.",
            "Bitte bestelle die Fahrt für Herrn Kress nach Soest mit 20 Euro Trinkgeld, Abholung um 7 Uhr.",
        ),
    ],
)
def test_two_things_of_a_kind_are_no_new_limit(first: str, second: str) -> None:
    told = lines(
        user(first), says("Fine."), user("Which music do they play there in the evening?"), says("Jazz."), user(second)
    )
    assert not any(" then " in line for line in told)


def test_an_interrupted_call_is_no_failure_of_the_next() -> None:
    """It may have been done: memory says both."""
    told = lines(
        user("Refund order A-1042."),
        calls(("c1", "refund", {"order": "A-1042"})),
        user("Are you there?"),
        calls(("c2", "refund", {"order": "A-1042"})),
        result({"status": "refunded"}, "c2"),
    )
    first, second = [line for line in told if line.startswith("refund")]
    assert "unknown" in first
    assert second.endswith("status=refunded")


@pytest.mark.parametrize(
    ("reply", "is_correction"),
    [
        ("Lol, I'd give you 500.", False),
        ("Right, good you remember.", False),
        ("我可以。", False),
        ("No wait, 7.", True),
        ("Scratch that.", True),
        ("Nein, doch 7.", True),
    ],
)
def test_short_words_follow_another_speaker_only_if_they_correct(reply: str, is_correction: bool) -> None:
    told = lines(
        user("We bring her lasagna at 6 on Sunday, will you join us?", "Ben"),
        user("I cannot, I sell my car for 900 on that day.", "Mia"),
        user(reply, "Ben"),
    )
    assert any("lasagna" in line and reply in line for line in told) == is_correction


@pytest.mark.parametrize(
    ("said", "correction", "between"),
    [
        ("نريد القاعة لحوالي 60 ضيفًا.", "عفوًا، العدد أصبح 75 ضيفًا.", "نختار الياسمين."),
        ("We need the hall for 60 guests.", "Sorry, it is 75 guests now.", "We take the Jasmine hall."),
        ("Wir sind 60 Gäste.", "Ach nein, 75 Gäste.", "Wir nehmen den Saal Jasmin."),
        ("Seremos 60 invitados.", "Perdón, ahora somos 75 invitados.", "Elegimos el Jazmín."),
        ("我们有60位客人。", "不对，是75位。", "就选茉莉厅。"),
    ],
)
def test_a_correction_stands_with_the_number_of_its_kind(said: str, correction: str, between: str) -> None:
    rest = [says("What budget?"), user("At most 3000."), says("Jasmine or Rose?"), user(between), says("Booked.")]
    assert one(user(said), *rest, user(correction), about=said) == f'"{said}" then "{correction}"'


@pytest.mark.parametrize("said", ["I am allergic to walnuts.", "My sister moved to Ghent in May.", "Ich spiele Cello."])
def test_people_with_the_role_of_the_model_count_as_people(said: str) -> None:
    talk = [user("We met at the lake and talked for hours.", "Ann"), Message.assistant(said, name="Bo")]
    weights = {each.line.text: each.line.value for each in quotation_lines(read([*talk, user("Nice!", "Ann")]), len)}
    plain = [user("We met at the lake and talked for hours.", "Ann"), user(said, "Bo"), user("Nice!", "Ann")]
    as_user = {each.line.text: each.line.value for each in quotation_lines(read(plain), len)}
    assert weights[f'Bo: "{said}"'] == as_user[f'Bo: "{said}"']


def value_of(messages: Sequence[Message], about: str) -> float:
    """What the line is worth that holds `about`."""
    (value,) = [each.line.value for each in quotation_lines(read(messages), len) if about in each.line.text]
    return value


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("Find me a hut with a stove.", "The Alm has a stove and costs 84."),
        ("帮我找一家带炉子的小屋。", "有的，Alm 带炉子，84 元一晚。"),
        ("Finde mir eine Hütte mit Ofen.", "Die Alm hat einen Ofen und kostet 84."),
    ],
)
def test_what_was_found_and_told_is_worth_more(asked: str, answer: str) -> None:
    found = {
        "name": "Alm",
        "walls": "wood",
        "beds": "twelve",
        "roof": "slate",
        "view": "lake",
        "floor": "oak",
        "price": 84,
    }
    look = [user(asked), calls(("c1", "find_hut", {"stove": True})), result(found)]
    told, untold = [*look, says(answer)], [*look, says("One moment, I am still looking around.")]
    assert value_of(told, "find_hut") > 1.5 * value_of(untold, "find_hut")
    assert "84" in one(*told, about="find_hut").partition(" -> ")[2].partition(" (")[0]


def test_a_finding_weighs_less_where_things_are_done() -> None:
    found = {"name": "Alm 7", "walls": "wood", "price": "84 a night"}
    look = [
        user("Find me a hut."),
        calls(("c1", "find_hut", {"stove": True})),
        result(found),
        says("The Alm 7 is free."),
    ]
    booked = [*look, user("Take one."), calls(("c2", "send_note", {"text": "Fetch the key"})), result("", "c2")]
    assert value_of(booked, "find_hut") < value_of(look, "find_hut") / 2


def test_the_answer_of_work_is_kept_longer_than_calls() -> None:
    call = [
        calls(("c1", "execute_sql", {"query": "SELECT name FROM singers"})),
        result("[('Timbaland',), ('Rose White',)]"),
    ]
    log = [user("Which singers sang in 2014?"), *call, says("In 2014 the singers Timbaland and Rose White sang there.")]
    worth = {fact.anchor.partition(" ")[0]: fact.salience for fact in read(log)}
    assert worth["the"] > worth["execute_sql"]


@pytest.mark.parametrize("question", ["Which singers sang in 2014?", "2014 年是谁唱的？", "Wer sang 2014?"])
def test_a_question_of_work_is_kept_as_long_as_answers(question: str) -> None:
    call = [calls(("c1", "execute_sql", {"query": "SELECT name FROM singers"})), result("[('Rose White',)]")]

    def salience(*messages: Message) -> int:
        return next(fact.salience for fact in read(messages) if fact.value == question)

    assert salience(user(question), *call, says("Rose White.")) > 1.5 * salience(user(question), says("Rose White."))


def test_what_closes_a_turn_needs_no_next_question() -> None:
    sung, danced = says("In 2014 Rose White sang."), says("Ida Krone danced there.")
    facts = read([user("Who sang?"), sung, user("And who danced?"), danced])
    kept = [fact for fact in facts if fact.value != "And who danced?"]
    weights = [{each.record.fact: each.weight for each in linked(statements_of(of), []).said} for of in (facts, kept)]
    answer = next(fact for fact in facts if "Rose White" in fact.value)
    assert weights[0][answer] == weights[1][answer]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("How old are pupils who have a pet?", "How old are pupils who have a pet and no dog or cat?"),
        ("Wie alt sind Schüler mit Haustier?", "Wie alt sind Schüler mit Haustier ohne Hund und Katze?"),
        ("¿Cuántos socios tiene el club?", "¿Cuántos socios tiene el club en Lugo desde enero?"),
        ("Сколько книг в библиотеке школы?", "Сколько книг в библиотеке школы на втором этаже?"),
        ("Quel est le prix du billet adulte ?", "Quel est le prix du billet adulte pour la grotte rouge ?"),
    ],
)
def test_an_answer_to_another_question_replaces_none(first: str, second: str) -> None:
    def told(*answers: tuple[str, int]) -> list[str]:
        return lines(*(each for said, number in answers for each in (user(said), says(f"{said} {number}"))))

    assert not [line for line in told((first, 18), (second, 31)) if "told otherwise" in line]
    assert [line for line in told((first, 18), (first, 31)) if "told otherwise" in line]


def test_an_answer_that_repeats_its_question_stands_without() -> None:
    question = "Which singers sang in 2014?"
    assert "(to" not in one(user(question), says(f'To "{question}": Timbaland and Rose White.'), about="Timbaland")


@pytest.mark.parametrize(("again", "is_overcome"), [("ok: 12 rows", True), ("Timeout: the host is away", False)])
def test_a_try_that_another_one_overcame_is_worth_less(again: str, *, is_overcome: bool) -> None:
    first = [user("Count the rows."), calls(("c1", "run_query", {"query": "count x"})), result("Error: no column x")]
    facts = read([*first, calls(("c2", "run_query", {"query": "count all"})), result(again, "c2")])
    before, after = linked(statements_of(facts), calls_of(facts)).made
    assert (before.weight < after.weight / 2) == is_overcome


@pytest.mark.parametrize(
    ("said", "correction"),
    [
        ("We can call at most 900 customers a month.", "Sorry, 1,200 calls, not 900."),
        ("Die Halle fasst 340 Leute.", "Nein, nicht 340, es sind 430."),
        ("El código es 7719.", "Perdón, no 7719 sino 7791."),
        ("Поезд номер 118.", "Нет, не 118, а 811."),
        ("会议室是 204 号房。", "不对，不是 204，是 402。"),
    ],
)
def test_a_correction_finds_the_number_that_it_denies(said: str, correction: str) -> None:
    rest = [says("Noted. What else is there to say?"), user("The rest of it may wait until spring."), says("Good.")]
    assert one(user(said), *rest, user(correction), about=said) == f'"{said}" then "{correction}"'


@pytest.mark.parametrize(
    ("said", "question", "answer"),
    [
        ("The garage wants 4280 EUR.", "Do you agree?", "No, I also had a rental car at 41 EUR a day."),
        ("Die Reparatur kostet 4280 Euro.", "Passt das so?", "Nein, der Mietwagen kam auf 41 Euro am Tag."),
        ("La reparación cuesta 4280 euros.", "¿De acuerdo?", "No, el alquiler fueron 41 euros al día."),
        ("Le garage demande 4280 euros.", "Est-ce tout ?", "Non, la location était de 41 euros par jour."),
        ("Tamirat 4280 lira tuttu.", "Hepsi bu mu?", "Hayır, kiralık araç günlük 41 lira tuttu bence."),
    ],
)
def test_a_refusal_with_another_matter_corrects_no_number(said: str, question: str, answer: str) -> None:
    told = lines(user(said), says("Noted."), user("The lamp was broken before."), says(question), user(answer))
    assert not any(said in line and answer in line for line in told)


@pytest.mark.parametrize(
    ("said", "correction"),
    [
        ("The invoice for Halvorsen is 3,410 dollars.", "Hmm, I misread that, it's 4,310 dollars."),
        ("Wir treffen uns am Gleis 7.", "Stimmt nicht, Gleis 11."),
        ("Koden till porten är 5512.", "Nej förlåt, 5521."),
        ("Kamar saya nomor 214.", "Maaf, nomor 241."),
        ("Поїзд відправляється о 14:20.", "Вибачте, о 16:40."),
        ("Code na kopii to 8811.", "oj, 8118"),
    ],
)
def test_a_number_written_alike_corrects_in_any_language(said: str, correction: str) -> None:
    line = one(user(said), says("Noted."), user(correction), about=said)
    assert line == f'"{said}" then "{correction}"'


@pytest.mark.parametrize(
    "other",
    [
        "I also need 2 tickets for the matinee with the mayor.",
        "Nadia told me that she paid 350 dollars for her bicycle.",
        "Die Lesung dauert 45 Minuten.",
    ],
)
def test_what_tells_more_than_a_number_stands_alone(other: str) -> None:
    told = lines(user("We pay 420 dollars for the 3 tickets."), says("Noted."), user(other))
    assert f'"{other}"' in told


@pytest.mark.parametrize("echo", ["Done: port 8443.", "Port 8443 ist offen.", "好的，端口 8443。", "8443 it is."])
def test_an_echo_of_a_corrected_number_says_so(echo: str) -> None:
    made = [calls(("c1", "set", {"key": "p"})), result({"ok": True})]
    told = lines(
        user("Use port 8443 for the gateway."), *made, says(echo), user("I meant 8444."), says("Port 8444 now.")
    )
    assert not any("8443" in line and "8444" not in line and "otherwise" not in line for line in told)
    assert any("8444" in line for line in told)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("Und der Gutachter soll am Dienstag kommen.", "Doch lieber Mittwoch."),
        ("Reserva para el martes.", "Mejor el miércoles."),
        ("Envoyez-le à Paul.", "Pardon, à Pauline."),
        ("Ship it to Berlin.", "Actually Hamburg."),
        ("The damage happened on 3 May.", "The date was 2 May, not 3 May."),
        ("Das Datum des Schadens war der 3. Mai.", "Das Datum war der 2., nicht der 3. Mai."),
    ],
)
def test_a_correction_in_few_words_stands_behind_what_it_corrects(first: str, then: str) -> None:
    assert f'"{first}" then "{then}"' in lines(user(first), says("That is noted."), user(then), says("Noted, too."))


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("A burger please.", "No onions."),
        ("Book it for 3 May at 5 pm.", "I need 2 rooms, not 3 beds."),
        ("The old price was 30 euros.", "We need 4 chairs, not 30 of wood."),
    ],
)
def test_what_denies_something_else_stands_by_itself(first: str, then: str) -> None:
    told = lines(user(first), says("That is noted."), user(then), says("Noted, too."))
    assert not any(" then " in line for line in told)
