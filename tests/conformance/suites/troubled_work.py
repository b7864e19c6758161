"""Work that is parked or failing is named in reports."""

from __future__ import annotations

from reactor_memory.core.log import background_work
from reactor_memory.models.requests import SUMMARIZE
from reactor_memory.testing.builders import append_messages, numbered, wall_clock
from reactor_memory.testing.work import Parked, sure_claim
from tests.scenes.stores import SqlStore as Store


class TroubledWork:
    """What `doctor` tells of background work."""

    park = Parked.park

    async def test_reports_name_what_is_parked_or_failing(self, store: Store) -> None:
        await self.park(store, "parked")
        await append_messages(store, "failing", numbered(4))
        await store.summaries.release(
            await sure_claim(store, "failing"), due_at=wall_clock(), attempts=1, error="timeout"
        )
        await append_messages(store, "fine", numbered(4), work_every=4)
        await append_messages(store, "done", numbered(4))
        await store.summaries.release(await sure_claim(store, "done"), due_at=None)
        found = await store.database.read(background_work.list_work, SUMMARIZE)
        assert {(each.session_id, each.attempts, each.parked, each.last_error) for each in found} == {
            ("parked", 5, True, "refused"),
            ("failing", 1, False, "timeout"),
        }
        assert len(await store.database.read(background_work.list_work, SUMMARIZE, limit=1)) == 1
        assert await store.database.read(background_work.list_work, "other") == ()
