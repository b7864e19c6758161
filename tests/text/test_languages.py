"""Which language a text is written in."""

from __future__ import annotations

import pytest

from reactor_memory.text.languages import language_of


@pytest.mark.parametrize(
    "text", ["Marta come pollo", "No come carne", "Mi hijo come arroz", "Otra cosa", "Ele come pão", "Maria come peixe"]
)
def test_a_verb_of_another_language_tells_no_italian(text: str) -> None:
    assert language_of(text) != "it"


@pytest.mark.parametrize("text", ["Come stai?", "Come si dice?", "Cosa fai?", "Dove sei?", "Bello come il sole"])
def test_italian_is_told_by_its_questions(text: str) -> None:
    assert language_of(text) == "it"


@pytest.mark.parametrize(
    ("text", "language"),
    [("Él no come nada", "es"), ("Ele não come carne", "pt"), ("Wie geht es dir?", "de"), ("Il mange avec nous", "fr")],
)
def test_function_words_tell_the_language(text: str, language: str) -> None:
    assert language_of(text) == language
