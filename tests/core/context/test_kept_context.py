"""What is made of a context that is given again."""

from __future__ import annotations

import pickle
from typing import Any

from reactor_memory.core.context.context import Context
from reactor_memory.core.context.kept_context import KeptContext
from reactor_memory.models import Message

REPORT: Any = None


def test_what_is_made_of_a_kept_context_is_made_once() -> None:
    kept = KeptContext([Message.user("hello")], True, REPORT, 1000, {})
    made: list[Context] = []

    def make(context: Context) -> int:
        made.append(context)
        return len(made)

    assert [kept.given().once(key, make) for key in "aabba"] == [1, 1, 2, 2, 3]
    assert len(kept.made) == 1


def test_what_is_made_of_any_other_context_is_made_anew() -> None:
    context = Context(messages=[], report=REPORT)
    assert context.once("key", id) == context.once("key", id) == id(context)
    assert [context.once("key", make) for make in (lambda _: 1, lambda _: 2)] == [1, 2]


def test_a_pickled_copy_shares_nothing_that_was_made() -> None:
    kept = KeptContext([Message.user("hello")], True, REPORT, 1000, {})
    given = kept.given()
    given.once("key", lambda _: 1)
    copied = pickle.loads(pickle.dumps(given))
    assert copied.once("key", lambda _: 2) == 2
