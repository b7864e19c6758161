"""What becomes of responses when the log changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactor_memory.core.log.hooks import Gone, LogHook
from reactor_memory.database.operations import Steps
from reactor_memory.features.responses import operations as responses

if TYPE_CHECKING:
    from reactor_memory.core.ports import LedgerFold


class ResponsesHook(LogHook):
    def out_of_view(self, conversation_id: str, start: int, end: int, *, destroyed: bool) -> Steps[None]:
        if destroyed:
            yield from responses.forget_answers_between(conversation_id, start, end)

    def forget(self, gone: Gone, *, now: int, refold: LedgerFold) -> Steps[None]:
        """A response that was never bound to a message goes with the last message of its conversation."""
        yield from responses.forget_responses([each.session.session_id for each in gone.branches if each.is_emptied])

    def on_purge(self, session_id: str) -> Steps[None]:
        yield from responses.forget_responses([session_id])


HOOK = ResponsesHook()
