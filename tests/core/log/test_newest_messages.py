"""A load of the newest messages reads as few rows as show what more of them would show."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from time import monotonic

from hypothesis import example, given
from hypothesis import strategies as st

from reactor_memory.core.context.selection import newest
from reactor_memory.core.log import operations
from reactor_memory.core.log.branches import root_branch
from reactor_memory.database.operations import Steps, T
from reactor_memory.database.schema import prepared_schema
from reactor_memory.database.sqlite_transactions import WRITE, SqliteSession
from reactor_memory.models import Message
from reactor_memory.models.requests import AppendRequest, ContextQuery, step_key
from reactor_memory.models.turns import in_turns
from reactor_memory.wiring.queries import QUERIES

SHOWN, BEFORE = 4, 3

events = st.lists(
    st.one_of(
        st.just(("asks", 0)),
        st.tuples(st.sampled_from(["answers", "answers twice", "says"]), st.integers(0, 2)),
        st.just(("withdraws", 0)),
    ),
    min_size=SHOWN,
    max_size=16,
)


class Log:
    """A session in which turns run at once: the steps of a turn name where it began."""

    def __init__(self, session: SqliteSession) -> None:
        self._session = session
        self._begun: list[int] = []
        self.last = 0

    def run(self, steps: Steps[T]) -> T:
        return self._session.run(WRITE, lambda: steps, monotonic() + 60)

    def happen(self, event: str, back: int) -> None:
        if event == "withdraws":
            withdrawn = "UPDATE messages SET state = 'withdrawn' WHERE seq = ?"
            self._session.connection.execute(withdrawn, (max(1, self.last - 1),))
            return
        key = None
        if event.startswith("answers") and self._begun:
            key = step_key(self._begun[-1 - min(back, len(self._begun) - 1)], self.last)
        role = "user" if event == "asks" else "assistant"
        message = Message(role=role, content=f"{event} {self.last}", message_id=f"m{self.last}")
        messages = (message,) * (2 if event == "answers twice" else 1)
        request = AppendRequest(session_id="s", user_id=None, messages=messages, now=1, idempotency_key=key)
        self.last = self.run(operations.append(request)).last_seq
        if event == "asks":
            self._begun.append(self.last)

    def shown(self) -> list[int | None]:
        query = ContextQuery(session_id="s", user_id=None, last_count=SHOWN, before_count=BEFORE)
        rows = self.run(operations.read_context(query))
        return [each.seq for each in newest(in_turns(rows.messages, rows.steps), SHOWN)]

    def shown_of_more(self) -> list[int | None]:
        branch = root_branch("s")
        messages = self.run(operations.read_along(branch, last=SHOWN + BEFORE))
        steps = self.run(operations.read_steps(branch, messages))
        return [each.seq for each in newest(in_turns(messages, steps), SHOWN)]


ASKS, ANSWERS, WITHDRAWS = ("asks", 0), ("answers", 0), ("withdraws", 0)
LATE, LATE_TWICE = ("answers", 1), ("answers twice", 1)


@example([ASKS, ANSWERS, ASKS, LATE])
@example([ASKS, ASKS, ANSWERS, LATE, LATE, ASKS, ANSWERS])
@example([ASKS, ASKS, LATE_TWICE, WITHDRAWS, ASKS, ANSWERS])
@given(events)
def test_fewer_rows_show_what_more_would_show(happened: list[tuple[str, int]]) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(prepared_schema())
        log = Log(SqliteSession(connection, QUERIES.sqlite))
        for event, back in happened:
            log.happen(event, back)
        assert log.shown() == log.shown_of_more()
