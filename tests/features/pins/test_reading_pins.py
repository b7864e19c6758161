"""A load reads the pins with what it reads anyway: a session without pins pays for no query of its own."""

from __future__ import annotations

from reactor_memory.core.log import operations as log
from reactor_memory.database.operations import Query, Row, Steps
from reactor_memory.models.requests import ContextQuery, ContextRows
from reactor_memory.wiring.queries import QUERIES

SESSION = ("s", "s", None, 1, None, 1, 1, None, None, None, None)
PIN = (1, 1, "user", "text", '{"sha256":"hash"}', 1, "tokenizer", 1)
NO_PIN = (None,) * len(PIN)


def run(steps: Steps[ContextRows], *session_rows: Row) -> tuple[list[str], ContextRows]:
    """The queries of an operation on a database that holds `session_rows` and nothing else, and its answer."""
    names: list[str] = []
    try:
        step = next(steps)
        while True:
            assert isinstance(step, Query)
            names.append(step.name)
            step = steps.send(session_rows if step.name == "session_with_pins" else ())
    except StopIteration as done:
        return names, done.value


def test_a_load_has_no_query_for_pins() -> None:
    query = ContextQuery(session_id="s", user_id=None, last_count=5, trigger_message_count=20)
    for session_rows, pins in (
        (((*SESSION, *NO_PIN, "user", 0, 0),), 0),
        (((*SESSION, *PIN, "user", 0, 0), (*SESSION, *PIN, "user", 0, 0)), 2),
    ):
        names, rows = run(log.read_context(query), *session_rows)
        assert names[:3] == ["session_with_pins", "layout", "summary_head"]
        assert all(name.startswith("messages_newest_first") for name in names[3:])
        assert len(rows.pins) == pins


def test_a_load_of_the_newest_messages_alone_reads_nothing_derived() -> None:
    query = ContextQuery(session_id="s", user_id=None, last_count=5)
    names, _ = run(log.read_context(query), (*SESSION, *NO_PIN, "user", 0, 0))
    assert names[0] == "session_with_pins"
    assert all(name.startswith("messages_newest_first") for name in names[1:])


def test_every_load_of_postgres_has_the_pins_in_its_statement() -> None:
    for name in ("read_newest_context", "read_context", "read_context_of_fork"):
        assert QUERIES.postgres[name].text.count("FROM entries AS pin") == 1
