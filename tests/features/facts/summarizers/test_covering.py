"""What a message of a person says most with, in the fewest sentences."""

from __future__ import annotations

from reactor_memory.features.facts.summarizers.statements import COVER, fewest_covering, statement_of
from reactor_memory.features.facts.summarizers.text_facts import text_facts
from reactor_memory.models import Message
from reactor_memory.text.words import read_sentences

SPOKEN = (
    "I painted a lake with purple hills behind the old mill. It was fun to do. My neighbour framed the painting and"
    " hung the canvas above our kitchen table."
)


def covering(text: str) -> list[str]:
    sentences = read_sentences(text)
    statements = [each for sentence in sentences if (each := statement_of(sentence, frozenset()))]
    content = frozenset(word for sentence in sentences for word in sentence.content)
    return [text[each.start : each.stop] for each in fewest_covering(statements, content)]


def test_sentences_that_say_little_are_left_out() -> None:
    assert covering(SPOKEN) == [
        "I painted a lake with purple hills behind the old mill",
        "My neighbour framed the painting and hung the canvas above our kitchen table",
    ]


def test_what_others_say_too_is_left_out_first() -> None:
    text = (
        "I repair wooden boats in the harbour. I repair boats in the wooden harbour daily. My brother sells painted"
        " lanterns to tourists."
    )
    assert covering(text) == [
        "I repair boats in the wooden harbour daily",
        "My brother sells painted lanterns to tourists",
    ]


def test_names_and_numbers_stay() -> None:
    text = "We hiked through muddy forests and over windy ridges till the sky glowed. Then Rex barked at 12 geese."
    assert covering(text)[-1] == "Then Rex barked at 12 geese"


def test_nothing_is_left_out_of_what_says_too_little() -> None:
    text = "I mend old clocks. Where do you keep yours, and did the carpenter ever bring the missing pendulum back?"
    assert covering(text) == ["I mend old clocks"]


def test_most_words_stay() -> None:
    content = frozenset(word for sentence in read_sentences(SPOKEN) for word in sentence.content)
    told = frozenset(word for said in covering(SPOKEN) for each in read_sentences(said) for word in each.content)
    assert len(told & content) >= COVER * len(content)


def test_people_with_names_are_told_so() -> None:
    messages = [
        Message(role="user", name="Ann", content=SPOKEN, seq=1),
        Message(role="assistant", name="Bob", content="Where is the mill?", seq=2),
    ]
    values = [fact.value for fact in text_facts(messages) if fact.anchor.startswith("Ann")]
    assert values == covering(SPOKEN)
