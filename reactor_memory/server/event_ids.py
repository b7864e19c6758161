"""The ids of the events of a stream, by which a client that reconnects says what it has seen."""

from __future__ import annotations

import re

from reactor_memory.server.problems import BAD_PARAMETER, ProblemError, invalid

HEADER = "Last-Event-ID"

_EVENT_ID = re.compile(r"(.{1,255})\.([0-9]{1,15}|end)", re.DOTALL)


def of_piece(response_id: str, event: int) -> str:
    return f"{response_id}.{event}"


def of_end(response_id: str) -> str:
    return f"{response_id}.end"


def last_seen(event_id: str, response_id: str) -> int | None:
    """The number of the piece; None for the end of the response. Raises `ProblemError` for an id of something else."""
    parts = _EVENT_ID.fullmatch(event_id)
    if parts is None or parts[1] != response_id:
        raise not_of_this_stream()
    return None if parts[2] == "end" else int(parts[2])


def not_of_this_stream() -> ProblemError:
    return invalid(HEADER, "is no event of this stream: begin it anew, without this header", BAD_PARAMETER)
