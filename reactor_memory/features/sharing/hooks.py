"""What becomes of memberships, transfers and answered requests when the log changes."""

from __future__ import annotations

from reactor_memory.core.log.branches import group_of
from reactor_memory.core.log.hooks import LogHook
from reactor_memory.core.log.rows import key_of, to_json
from reactor_memory.database.operations import Query, Steps
from reactor_memory.features.sharing.member_operations import forget_user


class SharingHook(LogHook):
    def on_delete(self, session_id: str) -> Steps[None]:
        yield Query("delete_transfers", key_of(session_id))

    def on_purge(self, session_id: str) -> Steps[None]:
        yield Query("delete_memberships", key_of(session_id))
        yield Query("delete_transfers", key_of(session_id))
        yield Query("delete_answers_of_group", {"group_id": group_of(session_id)})

    def on_user_forgotten(self, user_id: str, now: int) -> Steps[int]:
        answers = yield Query("delete_answers_of_user", {"user_id": user_id, "named": to_json(user_id)})
        return len(answers) + (yield from forget_user(user_id))


HOOK = SharingHook()
