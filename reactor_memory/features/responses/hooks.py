"""What becomes of responses when the log changes."""

from __future__ import annotations

from reactor_memory.core.log.hooks import LogHook
from reactor_memory.database.operations import Steps
from reactor_memory.features.responses import operations as responses


class ResponsesHook(LogHook):
    def out_of_view(self, conversation_id: str, start: int, end: int, *, destroyed: bool) -> Steps[None]:
        if destroyed:
            yield from responses.forget_answers_between(conversation_id, start, end)

    def on_purge(self, session_id: str) -> Steps[None]:
        yield from responses.forget_responses([session_id])


HOOK = ResponsesHook()
