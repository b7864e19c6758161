"""Who may replace what: the user's words give way to the user only, or to what the user accepted."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.facts.evidence import verify_facts
from reactor_memory.features.facts.merge import fold, successors
from reactor_memory.features.facts.verification.proof import proven
from reactor_memory.models import Message
from reactor_memory.models.ledger import Fact

FOLLOWED = st.lists(
    st.tuples(st.sampled_from(["assistant", "agent", "tool"]), st.sampled_from(["statement", "decision"])), max_size=6
)


def stated(value: str, seq: int, said_by: str = "user", act: str = "statement", **fields: object) -> Fact:
    given = {"anchor": "booking", "key": "time", "value": value, "source_seq": seq, "verified": True, **fields}
    return Fact(said_by=said_by, act=act, **given)  # type: ignore[arg-type]


def held(*facts: Fact) -> list[str]:
    return [fact.value for fact in fold(facts) if fact.said_by != "tool"]


@pytest.mark.parametrize("echo", ["assistant", "agent"])
def test_a_stale_echo_replaces_no_correction_of_the_user(echo: str) -> None:
    said = [stated("7 pm", 1), stated("8 pm", 3, act="correction"), stated("7 pm", 4, echo)]
    assert all(held(*order) == ["8 pm"] for order in permutations(said))
    assert successors(said)[said[2]] == said[1]


@given(FOLLOWED)
def test_nothing_but_the_user_replaces_what_the_user_stated(followed: list[tuple[str, str]]) -> None:
    told = stated("8 pm", 1)
    others = [stated(f"{seq} am", seq, by, act) for seq, (by, act) in enumerate(followed, start=2)]
    assert told in fold([told, *others])


def test_an_accepted_correction_of_the_model_replaces_it() -> None:
    assert held(stated("8 pm", 1), stated("9 pm", 2, "assistant", "correction")) == ["9 pm"]
    assert held(stated("9 pm", 2, "assistant", "correction"), stated("8 pm", 3)) == ["8 pm"]


def test_the_later_state_of_a_tool_replaces_its_earlier_one() -> None:
    states = [stated("open", 2, "tool", key="state"), stated("closed", 4, "tool", key="state")]
    assert fold([*states, stated("broken", 1, key="state")])[1:] == (states[1],)


def test_what_is_not_verified_replaces_nothing() -> None:
    assert held(stated("8 pm", 1), stated("9 pm", 2, verified=False)) == ["8 pm"]


ANSWERS = [
    ("Yes, that's right.", True),
    ("Ok, thanks!", True),
    ("No.", False),
    ("No, 8 pm was right.", False),
    ("What about the table?", False),
    ("对，谢谢", True),
    ("不对", False),
    ("Да, верно.", True),
    ("Нет, неверно.", False),
    ("Nein.", False),
    ("はい、お願いします", True),
]


@pytest.mark.parametrize(("answer", "is_accepted"), ANSWERS)
def test_a_correction_of_the_model_needs_consent(answer: str, is_accepted: bool) -> None:
    messages = [
        Message.user("The booking is for 8 pm.", seq=1),
        Message.assistant("The booking is for 9 pm.", seq=2),
        Message.user(answer, seq=3),
    ]
    claimed = Fact(anchor="booking", key="time", value="9 pm", source_seq=2, act="correction")
    (fact, *_) = proven(verify_facts([claimed], messages), messages)
    assert (fact.act == "correction") == is_accepted
