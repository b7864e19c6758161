"""A sentence of a narrative is told unless a message says something else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.facts.verification.narrative_proof import proven_narrative, told_sentences
from reactor_memory.models import Message
from tests.scenes.tables import each_row

SAID = (
    Message.user("I am allergic to latex and I live in Oslo. Ann owes Ben five euros.", seq=1),
    Message.assistant("Noted.", seq=2),
    Message.user("I do not eat pork unless it is organic.", seq=3),
    Message.assistant("The parcel was shipped.", seq=4),
    Message.user("anna lives in rome", seq=5),
    Message.user("The meeting is at 7 pm.", seq=6),
    Message.user("The meeting is at 8 pm.", seq=7),
    Message.user("Is the cellar dry?", seq=8),
)


@each_row(
    ("sentence", "source"),
    [
        ("The user is allergic to latex and lives in Oslo.", 1),
        ("The user is not allergic to latex and lives in Oslo.", None),
        ("The assistant is allergic to latex and lives in Oslo.", None),
        ("The user is allergic to latex and lives in Paris.", None),
        ("The user has an allergy.", 0),
        ("The user was calm.", 0),
        ("The user eats pork.", None),
        ("The user does not eat pork.", None),
        ("The user does not eat pork unless it is organic.", 3),
        ("Ann owes Ben 5 euros.", 1),
        ("Ann owes Ben six euros.", None),
        ("Ben owes Ann five euros.", None),
        ("Berta owes Ben five euros.", None),
        ("berta lives in rome.", None),
        ("anna lives in rome.", 5),
        ("The parcel was shipped.", 4),
        ("The parcel was not shipped.", None),
        ("The meeting is at 7 pm.", None),
        ("The meeting is at 8 pm.", 7),
        ("The cellar is dry.", None),
        ("They talked.", 0),
        ("Sure, I will remember that you live in Oslo.", None),
        ("Берта живёт в Риме.", None),
        ("ベルタはローマに住んでいる。", None),
    ],
)
def test_sentences_that_no_message_says_are_dropped(sentence: str, source: int | None) -> None:
    told = told_sentences(f"{sentence} They talked.", SAID)
    assert [each.source_seq for each in told] == ([] if source is None else [source]) + [0]
    assert proven_narrative(sentence, SAID) == ("" if source is None else sentence)


def test_several_people_are_called_by_name() -> None:
    said = [
        Message(role="user", name=name, content=f"I live in {city}.", seq=1)
        for name, city in (("Ann", "Oslo"), ("Ben", "Rome"))
    ]
    assert (
        proven_narrative("Ann lives in Oslo. Ben lives in Oslo. The user lives in Oslo.", said) == "Ann lives in Oslo."
    )


@given(st.text(max_size=80))
def test_any_text_leaves_some_of_its_sentences(text: str) -> None:
    assert set(proven_narrative(text, SAID).split()) <= set(text.split())


def test_nothing_is_proven_without_messages() -> None:
    assert proven_narrative("The user is allergic to latex.", []) == ""
    assert told_sentences("", SAID) == []
