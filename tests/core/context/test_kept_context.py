"""What is made of a context that is given again."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from reactor_memory.core.context.context import Context
from reactor_memory.core.context.kept_context import KeptContext
from reactor_memory.models import Message
from reactor_memory.server.json_answers import Encoded

REPORT: Any = None


def test_what_is_made_of_a_kept_context_is_made_once() -> None:
    kept = KeptContext([Message.user("hello")], True, REPORT, 1000, {}, room=1000)
    made: list[Context] = []

    def make(context: Context) -> int:
        made.append(context)
        return len(made)

    assert [kept.given().once(key, make) for key in "aabba"] == [1, 1, 2, 2, 3]
    assert len(kept.made) == 1


@pytest.mark.parametrize(("length", "times"), [(100, 1), (5_000, 2)])
def test_what_takes_more_than_its_room_is_made_anew(length: int, times: int) -> None:
    kept = KeptContext([Message.user("hello")], True, REPORT, 1000, {}, room=1000)
    made: list[Context] = []

    def make(context: Context) -> Encoded:
        made.append(context)
        encoded = Encoded.__new__(Encoded)
        encoded.body = b"." * length
        return encoded

    given = [kept.given().once("key", make) for _ in range(2)]
    assert len(set(map(id, given))) == times == len(made)


def test_what_is_made_of_any_other_context_is_made_anew() -> None:
    context = Context(messages=[], report=REPORT)
    assert context.once("key", id) == context.once("key", id) == id(context)
    assert [context.once("key", make) for make in (lambda _: 1, lambda _: 2)] == [1, 2]


def test_a_pickled_copy_shares_nothing_that_was_made() -> None:
    kept = KeptContext([Message.user("hello")], True, REPORT, 1000, {}, room=1000)
    given = kept.given()
    given.once("key", lambda _: 1)
    copied = pickle.loads(pickle.dumps(given))
    assert copied.once("key", lambda _: 2) == 2
