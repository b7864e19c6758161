"""A load reads the pins with what it reads anyway: a session without pins pays for no query of its own."""

from __future__ import annotations

from reactor_memory.core.log import operations as log
from reactor_memory.database.operations import Query, Row, Steps
from reactor_memory.models.requests import ContextQuery, ContextRows
from reactor_memory.wiring.queries import QUERIES

SESSION = ("s", "s", None, 1, None, 1, 1, None, None, None, None)
PIN = (1, 1, "user", "text", '{"sha256":"hash"}', 1, "tokenizer", 1)
NO_LATER = (0, 0)
"""The session neither begins with a system message nor has later ones."""


def run(steps: Steps[ContextRows], *pins: Row) -> tuple[list[str], ContextRows]:
    """The queries of an operation on a database that holds a session with `pins` and nothing else, and its answer."""
    answers = {
        "session_head": [(*SESSION, *NO_LATER, bool(pins), 0)],
        "session_with_pins": [(*SESSION, *pin) for pin in pins],
    }
    names: list[str] = []
    try:
        step = next(steps)
        while True:
            assert isinstance(step, Query)
            names.append(step.name)
            step = steps.send(answers.get(step.name, ()))
    except StopIteration as done:
        return names, done.value


def test_a_load_has_no_query_for_pins() -> None:
    query = ContextQuery(session_id="s", user_id=None, last_count=5, trigger_message_count=20)
    for pins, first in (((), ["session_head"]), ((PIN, PIN), ["session_head", "session_with_pins"])):
        names, rows = run(log.read_context(query), *pins)
        assert names[: len(first) + 2] == [*first, "layout", "summary_head"]
        assert all(name.startswith("messages_newest_first") for name in names[len(first) + 2 :])
        assert len(rows.pins) == len(pins)


def test_a_load_of_the_newest_messages_alone_reads_nothing_derived() -> None:
    query = ContextQuery(session_id="s", user_id=None, last_count=5)
    names, _ = run(log.read_context(query))
    assert names[0] == "session_head"
    assert all(name.startswith("messages_newest_first") for name in names[1:])


def test_every_load_of_postgres_has_the_pins_in_its_statement() -> None:
    for name in ("read_newest_context", "read_context", "read_context_of_fork"):
        assert QUERIES.postgres[name].text.count("FROM entries AS pin") == 1
