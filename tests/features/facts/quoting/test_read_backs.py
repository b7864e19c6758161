"""What was read back and accepted is what was agreed; what only sounds like it is not."""

from __future__ import annotations

import pytest

from reactor_memory.features.facts.quoting.language_packs import agrees, begins_to_correct
from reactor_memory.features.facts.quoting.quotation_lines import quotation_lines
from reactor_memory.models import Message
from tests.features.facts.quoting.reading import lines, read, says, user

BOOKING = (
    user("I need tickets for Girl In Red."),
    says("Which city?"),
    user("Los Angeles, please."),
    says("For which day?"),
    user("The 6th of March."),
    says("How many?"),
    user("Two tickets."),
)
READ_BACK = "Please confirm: 2 tickets for Girl In Red in Los Angeles on the 6th of March."


def test_what_was_read_back_and_accepted_is_agreed() -> None:
    told = lines(*BOOKING, says(READ_BACK), user("Yes, that is correct."), says("Booked."))
    assert f'agreed: "{READ_BACK}"' in told


@pytest.mark.parametrize(("answer", "is_agreed"), [("Yes, please.", True), ("Hm, which row is it?", False)])
def test_a_reply_that_reads_back_is_agreed_if_accepted(answer: str, *, is_agreed: bool) -> None:
    back = "Please confirm: Boyer Dental on March 13th at 2 pm."
    asked = (user("I need Boyer Dental."), says("When?"), user("Is there anything at 2 pm on March 13th?"))
    told = "\n".join(lines(*asked, says(back), user(answer), says("Booked.")))
    assert ("agreed: " in told and back in told) == is_agreed


@pytest.mark.parametrize("answer", ["No, make it three tickets.", "Sorry, can you make it three tickets?"])
def test_what_was_corrected_stands_with_its_correction(answer: str) -> None:
    told = lines(*BOOKING, says(READ_BACK), user(answer), says("Of course."))
    assert f'(to "{READ_BACK}") "{answer}"' in told
    assert not any(line.startswith("agreed") for line in told)


@pytest.mark.parametrize("answer", ["No.", "Thanks!", "Later, please."])
def test_what_was_not_accepted_is_not_agreed(answer: str) -> None:
    told = lines(*BOOKING, says(READ_BACK), user(answer), says("Fine."))
    assert not any(line.startswith("agreed") for line in told)


def test_a_read_back_of_several_sentences_is_one_line() -> None:
    long = (
        "Let me read it back to you, so that nothing is wrong in the end. You want 2 tickets for Girl In Red."
        " The concert is in Los Angeles. It takes place on the 6th of March, and the tickets come by mail to you."
    )
    told = lines(*BOOKING, says(long), user("Yes."), says("Booked."))
    (line,) = [line for line in told if line.startswith("agreed: ")]
    assert "Girl In Red" in line
    assert "Los Angeles" in line
    assert "6th of March" in line


OFFERS = tuple(
    says(f"You want {count} tickets for {band} in {city}?")
    for count, band, city in ((2, "Lights", "Lyon"), (3, "Madonna", "Oslo"), (4, "Gloryhammer", "Turin"))
)


def value_beside(about: str, *messages: Message) -> float:
    return max(each.line.value for each in quotation_lines(read(messages), len) if about in each.line.text)


@pytest.mark.parametrize("answer", ["Yes, I do.", "Yes, please."])
def test_yes_said_often_says_each_time_what_was_asked(answer: str) -> None:
    others = (user("Sing it."), says("La la."), user("Louder, and with the dog."), says("Woof."))
    often = [message for offer in OFFERS for message in (offer, user(answer), says("Done."))]
    once = value_beside("Madonna", OFFERS[1], user(answer), says("Done."), *others)
    assert value_beside("Madonna", *often, *others) > 0.3 * once
    asked = says("Anything else?")
    polite = [message for _ in range(3) for message in (asked, user("Yes, I do."), says("Done."))]
    assert value_beside("Yes, I do.", *polite, *others) < 0.3 * once


def test_an_offer_says_nothing_of_what_was_agreed() -> None:
    told = lines(
        user("Is there a hut near Bern?"), says("The Alm has 12 beds and a stove."), user("Thanks."), says("Bye.")
    )
    assert not any(line.startswith("agreed") for line in told)


@pytest.mark.parametrize(
    "text", ["Yes.", "yep, that's right", "Ja, genau.", "Sí.", "D'accord.", "はい", "네", "Yes. What is the address?"]
)
def test_an_answer_accepts(text: str) -> None:
    assert agrees(text)


@pytest.mark.parametrize(
    "text", ["No.", "Thanks.", "Yes, but make it 3.", "Yes. But 3 of them.", "Nein.", "いいえ", "Hello!"]
)
def test_an_answer_does_not_accept(text: str) -> None:
    assert not agrees(text)


@pytest.mark.parametrize("text", ["No, please book four tickets.", "Nein, lieber am Freitag", "不对，是三张票"])
def test_an_answer_begins_with_a_correction(text: str) -> None:
    assert begins_to_correct(text)


@pytest.mark.parametrize(
    "order", ["Save it as churn_v2.joblib.", "Rechnung an Wendelin bitte.", "Ouvre la fenêtre du garage."]
)
def test_a_new_order_is_no_answer_to_a_read_back(order: str) -> None:
    back = READ_BACK.replace("Please confirm: ", "I wrote down ")
    assert f'"{order}"' in lines(*BOOKING, says(back), user(order), says("Done."))
