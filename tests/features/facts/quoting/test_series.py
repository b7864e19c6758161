"""Statements that differ in one word are told as one."""

from __future__ import annotations

import pytest

from reactor_memory.models import Message
from tests.features.facts.quoting.reading import lines, says, user

THINGS = ("kites", "lanterns", "ferns", "gongs", "marbles")


@pytest.mark.parametrize(
    "request_",
    ["Please tell me something about {}.", "Bitte erzählen Sie etwas über {}.", "{} के बारे में कुछ बताइए।",
     "Расскажите мне что-нибудь про {}.", "Cuéntame alguna cosa sobre {}."],
)  # fmt: skip
def test_requests_that_differ_in_one_word_are_one_line(request_: str) -> None:
    told = lines(*(user(request_.format(thing)) for thing in THINGS))
    others = ", ".join(f'"{thing}"' for thing in THINGS[:-1])
    assert told == [f'"{request_.format(THINGS[-1])}" (also: {others})']


@pytest.mark.parametrize(
    "request_", ["说说{}吧。", "{}について何か教えてください。", "请告诉我{}的事", "{}は好きですか。", "ช่วยเล่าเรื่อง{}"]
)
def test_requests_without_spaces_are_one_line(request_: str) -> None:
    things = ("风筝", "栗子", "灯笼", "怀表", "燕子")
    told = lines(*(user(request_.format(thing)) for thing in things))
    others = ", ".join(f'"{thing}"' for thing in things[:-1])
    assert told == [f'"{request_.format(things[-1])}" (also: {others})']


def test_an_answer_that_fits_everything_is_told_once() -> None:
    talk: list[Message] = []
    for thing in THINGS:
        talk += [
            user(f"What about {thing}?"),
            says(f"A good deal was written about {thing} by people who loved {thing}."),
        ]
    assert sum("good deal" in line for line in lines(*talk)) == 1


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("你喜欢{}吗？", "关于{}，从古到今写的人很多。"),
        ("{}は好きですか。", "{}については昔から多くの人が書いています。"),
    ],
)
def test_an_answer_without_spaces_is_told_once(question: str, answer: str) -> None:
    talk: list[Message] = []
    for thing in ("风筝", "栗子", "灯笼", "怀表", "燕子"):
        talk += [user(question.format(thing)), says(answer.format(thing))]
    assert sum(answer[-6:] in line for line in lines(*talk)) == 1


def test_answers_that_tell_things_apart_all_stand() -> None:
    asked = {
        "Which bird is black?": "raven",
        "Who sang first?": "Mira",
        "What grows there?": "barley",
        "Who won it?": "Osei",
    }
    talk: list[Message] = []
    for question, answer in asked.items():
        talk += [user(question), says(f"The answer to that is {answer}.")]
    told = "\n".join(lines(*talk))
    assert all(f'(to "{question}") "The answer to that is {answer}."' in told for question, answer in asked.items())


@pytest.mark.parametrize("said", ["Take {} pills a day at noon.", "My order number is A-{}.", "Buy {}.", "I am {}."])
def test_numbers_and_few_words_are_no_series(said: str) -> None:
    words = ("3", "4", "5", "6") if "number" in said or "pills" in said else ("oats", "glue", "milk", "yarn")
    told = lines(*(user(said.format(word)) for word in words))
    assert not any("also:" in line for line in told)


def test_three_alike_are_no_series() -> None:
    told = lines(*(user(f"Please tell me something about {thing}.") for thing in THINGS[:3]))
    assert len(told) == 3


def test_four_alike_are_one_line() -> None:
    told = lines(*(user(f"Please tell me something about {thing}.") for thing in THINGS[:4]))
    assert told == ['"Please tell me something about gongs." (also: "kites", "lanterns", "ferns")']
