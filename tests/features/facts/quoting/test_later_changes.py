"""What was agreed stands with what its user said of it later, and with what the model answered."""

from __future__ import annotations

import pytest

from reactor_memory.models import Message
from tests.features.facts.quoting.reading import lines, says, user

CHARTER = (
    user("Can you reserve a boat, the Ivory Thistle?"),
    says("For which day?"),
    user("August 13th, please."),
    says("Which harbour?"),
    user("Gull Rock."),
    says("So that is the boat Ivory Thistle on August 13th from Gull Rock. Shall I go ahead?"),
    user("Yes, please."),
    says("It is done."),
)
REPAIR = (
    user("I need a roofer at Amber Cedar."),
    says("When?"),
    user("On June 2nd, as an emergency."),
    says("To confirm: a roofer at Amber Cedar on June 2nd, as an emergency. Is that right?"),
    user("Yes, that is right."),
    says("Noted."),
)
TALK = tuple(each for _ in range(8) for each in (user("We sat by the river."), says("How nice that was.")))


def agreed(*later: Message, before: tuple[Message, ...] = REPAIR) -> str:
    told = lines(*CHARTER, *before, *TALK, *later, *TALK)
    (line,) = [line for line in told if line.startswith('agreed: "So that is the boat')]
    return line


@pytest.mark.parametrize(
    ("change", "reply"),
    [
        ("The Ivory Thistle should leave on August 29th now.", "I have changed that."),
        ("Please move the Ivory Thistle to Eel Bay.", "Updated: Ivory Thistle, Eel Bay."),
        ("Can the Ivory Thistle leave on August 29th?", "No luck, it remains the 13th."),
        ("Book the Ivory Thistle with a skipper, please.", "That was refused."),
    ],
)
def test_what_was_agreed_stands_with_its_later_change(change: str, reply: str) -> None:
    assert agreed(user(change), says(reply)).endswith(f' then "{change}" (the assistant: "{reply}")')


def test_a_change_in_another_language() -> None:
    told = lines(
        user("Ich brauche einen Tisch im Gasthof Lindenhof."),
        says("Für wie viele?"),
        user("Für sechs, am 3. Mai."),
        says("Also: ein Tisch im Gasthof Lindenhof für sechs am 3. Mai. Soll ich ihn bestellen?"),
        user("Ja, bitte."),
        says("Erledigt."),
        *TALK,
        user("Der Tisch im Gasthof Lindenhof wird am 4. Mai gebraucht."),
        says("Das habe ich geändert."),
    )
    assert any("am 3. Mai" in line and 'then "Der Tisch' in line and "Das habe ich geändert." in line for line in told)


@pytest.mark.parametrize(
    "later",
    [
        (user("What is the Ivory Thistle like?"), says("A boat with two masts.")),
        (user("The roofer at Amber Cedar can come on June 9th."), says("I have changed that.")),
        (user("Is there a harbour with a good restaurant?"), says("There is, in Eel Bay.")),
        (user("The Ivory Thistle should leave on August 29th now."), says("Which time?")),
        (user("Is it true that the Ivory Thistle holds 40 people?"), says("It is.")),
        (user("Did the Ivory Thistle sink in 1998?"), says("No, that was another one.")),
        (user("The Ivory Thistle was wonderful, we saw 12 dolphins."), says("How nice.")),
        (user("I want the Ivory Thistle on August 29th.", name="Bob"), says("You have it.")),
    ],
    ids=[
        "question",
        "another thing",
        "one common word",
        "asked back",
        "other number",
        "year",
        "remark",
        "another user",
    ],
)
def test_what_only_sounds_like_a_change_stands_apart(later: tuple[Message, ...]) -> None:
    assert " then " not in agreed(*later)


def test_what_names_two_things_changes_none() -> None:
    again = (
        user("Can you reserve a boat again, the Ivory Thistle?"),
        says("For which day?"),
        user("September 20th, please."),
        says("Which harbour?"),
        user("Eel Bay."),
        says("So that is the boat Ivory Thistle on September 20th from Eel Bay. Shall I go ahead?"),
        user("Yes, please."),
        says("It is done."),
    )
    asked = user("Please cancel the Ivory Thistle.")
    told = lines(*CHARTER, *TALK, *again, *TALK, asked, says("I have changed that."))
    assert not any("then" in line and "cancel" in line for line in told)
