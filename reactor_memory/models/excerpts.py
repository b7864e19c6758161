"""How a message is shown that is too long for its window."""

from __future__ import annotations

from typing import NamedTuple


class Excerpt(NamedTuple):
    """The first `head` and the last `tail` characters of message `seq`, which cost `tokens` with the mark between them;
    without tokens it is not shown at all. `cuts_calls`: long arguments of its calls are left out, too.
    """

    seq: int
    head: int = 0
    tail: int = 0
    tokens: int = 0
    cuts_calls: bool = False
