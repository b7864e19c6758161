"""Plain true facts of a model count, whatever else their sentence says."""

from __future__ import annotations

from reactor_memory.features.facts.evidence import verify_facts
from reactor_memory.features.facts.verification.proof import judged
from reactor_memory.models import Message
from reactor_memory.models.ledger import Fact
from tests.scenes.tables import each_row

TABLE = "I need a table for 4 at Luigi's on Friday at 7pm"
BERLIN = "I live in Berlin with my sister Mia"
ROME = "Please book the flight to Rome for 240 euros"
STORE = "We decided to use PostgreSQL 17 for the store"


@each_row(
    ("text", "anchor", "key", "value"),
    [
        ("my order number is A-0001", "user", "order", "A-0001"),
        ("my order number is A-0001", "order 1", "number", "A-0001"),
        ("My order number is A-0001.", "user", "order_number", "A-0001"),
        ("My order number is A-0001.", "order", "number", "A-0001"),
        (f"I am Ann and {TABLE}", "user", "name", "Ann"),
        (f"I am Ann and {TABLE}", "reservation", "party_size", "4"),
        (TABLE, "reservation at Luigi's", "time", "7pm"),
        (TABLE, "Luigi's", "date", "Friday"),
        ("I'm allergic to peanuts", "user", "allergy", "peanuts"),
        (BERLIN, "user", "city", "Berlin"),
        (BERLIN, "Mia", "relation", "sister"),
        (ROME, "flight", "price", "240 euros"),
        (ROME, "flight to Rome", "price", "240 euros"),
        (ROME, "flight", "destination", "Rome"),
        (STORE, "store", "database", "PostgreSQL 17"),
        (STORE, "project", "decision", "use PostgreSQL 17 for the store"),
        ("The tests fail because the fixture closes the pool", "tests", "cause", "the fixture closes the pool"),
        ("The tests fail with a TimeoutError", "tests", "error", "TimeoutError"),
        ("my favorite color is blue", "user", "favorite_color", "blue"),
        ("I prefer window seats", "user", "seat_preference", "window seats"),
        ("I work as a nurse", "user", "occupation", "nurse"),
        ("The deadline is 14 March", "project", "deadline", "14 March"),
        ("my dog is called Rex", "user", "dog", "Rex"),
        ("Never email me", "user", "contact rule", "Never email me"),
        ("I'm 34 years old", "user", "age", "34"),
        ("My phone number is 555-0142, call me after 6", "user", "phone", "555-0142"),
        ("No, I moved to Hamburg last year", "user", "city", "Hamburg"),
        ("I was born in Oslo", "user", "birthplace", "Oslo"),
        ("We fly from Oslo to Bergen on 5 May", "trip", "origin", "Oslo"),
        ("We fly from Oslo to Bergen on 5 May", "trip", "destination", "Bergen"),
        ("We fly from Oslo to Bergen on 5 May", "trip", "date", "5 May"),
        ("I have two cats, Tom and Kit", "user", "cats", "Tom and Kit"),
        ("I would like a vegan menu for 12 people", "event", "guests", "12"),
        ("The rent is 900 euros a month", "rent", "amount", "900"),
        ("My wife is called Eva", "user", "wife", "Eva"),
        ("Use tabs, not spaces", "project", "indentation", "tabs"),
        ("Ich wohne in Hamburg", "user", "Wohnort", "Hamburg"),
        ("Ich heiße Jonas und arbeite als Koch", "user", "name", "Jonas"),
        ("Ich heiße Jonas und arbeite als Koch", "user", "Beruf", "Koch"),
        ("Mein Hund heißt Bello", "user", "Hund", "Bello"),
        ("Wir brauchen einen Tisch für 6 Personen um 19 Uhr", "Reservierung", "party_size", "6"),
        ("Wir brauchen einen Tisch für 6 Personen um 19 Uhr", "Reservierung", "Uhrzeit", "19 Uhr"),
        ("Der Zug fährt um 8 Uhr nach Köln", "Zug", "Ziel", "Köln"),
        ("Ich bin allergisch gegen Nüsse", "user", "Allergie", "Nüsse"),
        ("Vivo en Madrid con mi hermano", "user", "ciudad", "Madrid"),
        ("Me llamo Lucía y trabajo de enfermera", "user", "nombre", "Lucía"),
        ("Soy alérgica a las nueces", "user", "alergia", "nueces"),
        ("Quiero una mesa para 3 personas el viernes", "reserva", "party_size", "3"),
        ("La reunión es el lunes a las 9 horas", "reunión", "día", "lunes"),
        ("J'habite à Lyon avec mon frère", "user", "ville", "Lyon"),
        ("Je m'appelle Claire", "user", "nom", "Claire"),
        ("Je suis allergique aux noix", "user", "allergie", "noix"),
        ("Le train part de Lille à 7 heures", "train", "origin", "Lille"),
        ("Mon chien s'appelle Milou", "user", "chien", "Milou"),
        ("Eu moro em Lisboa com a minha irmã", "user", "cidade", "Lisboa"),
        ("O meu nome é Rui", "user", "nome", "Rui"),
        ("Quero uma mesa para 5 pessoas", "reserva", "party_size", "5"),
        ("Я живу в Казани с сестрой", "user", "город", "Казани"),
        ("Меня зовут Ольга", "user", "имя", "Ольга"),
        ("У меня аллергия на орехи", "user", "аллергия", "орехи"),
        ("我住在上海", "user", "城市", "上海"),
        ("我叫李明", "user", "姓名", "李明"),
        ("我对花生过敏", "user", "过敏", "花生"),
        ("東京に住んでいます", "user", "都市", "東京"),
        ("私の名前は健太です", "user", "名前", "健太"),
    ],
)
def test_a_plain_true_fact_counts(text: str, anchor: str, key: str, value: str) -> None:
    said = [Message.user(text, seq=1)]
    (found,) = judged(verify_facts([Fact(anchor=anchor, key=key, value=value, source_seq=1)], said), said)
    assert (found.verdict.is_covered, found.verdict.reason) == (True, "")
