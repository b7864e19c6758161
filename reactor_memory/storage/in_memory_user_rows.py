"""What belongs to a user, in the memory of this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import replace

from reactor_memory.models import ActiveSession, Notes


class KeptItem(NamedTuple):
    """The value of an item as JSON, so that nobody else holds it."""

    value: str
    created_at: int
    updated_at: int


@dataclass
class UserRows:
    """Found by user and agent. Versions of notes stand in their order."""

    active: dict[tuple[str, str], ActiveSession] = field(default_factory=dict[tuple[str, str], ActiveSession])
    notes: dict[tuple[str, str], list[Notes]] = field(default_factory=dict[tuple[str, str], list[Notes]])
    items: dict[str, dict[tuple[str, str], KeptItem]] = field(
        default_factory=dict[str, dict[tuple[str, str], KeptItem]]
    )


class InMemoryUserRows(ABC):
    """`ActiveSessionStore` and `NotesStore`, of a store that keeps `UserRows`."""

    @property
    @abstractmethod
    def _users(self) -> UserRows: ...

    async def get_active(self, user_id: str, agent_name: str) -> ActiveSession | None:
        return self._users.active.get((user_id, agent_name))

    async def get_or_create_active(self, user_id: str, agent_name: str, candidate: str, *, now: int) -> ActiveSession:
        known = self._users.active.get((user_id, agent_name))
        session_id = candidate if known is None or known.session_id is None else known.session_id
        return self._set_active(user_id, agent_name, session_id, now)

    async def switch_active(
        self, user_id: str, agent_name: str, *, expected: str | None, new: str | None, now: int
    ) -> ActiveSession | None:
        known = self._users.active.get((user_id, agent_name))
        if expected != (None if known is None else known.session_id):
            return None
        return self._set_active(user_id, agent_name, new, now)

    async def touch_active(self, user_id: str, agent_name: str, session_id: str, *, now: int) -> bool:
        touched = await self.switch_active(user_id, agent_name, expected=session_id, new=session_id, now=now)
        return touched is not None

    async def list_active(self, user_id: str) -> tuple[ActiveSession, ...]:
        own = [active for active in self._users.active.values() if active.user_id == user_id]
        return tuple(sorted(own, key=lambda active: (-active.last_active_at, active.agent_name)))

    async def deactivate_active(self, *, before: int) -> int:
        rows = self._users.active
        stale = [
            key for key, active in rows.items() if active.session_id is not None and active.last_active_at < before
        ]
        rows.update({key: replace(rows[key], session_id=None) for key in stale})
        return len(stale)

    async def read_notes(self, user_id: str, agent_name: str, *, version: int | None = None) -> Notes:
        versions = self._users.notes.get((user_id, agent_name), [])
        found = (notes for notes in reversed(versions) if version is None or notes.version == version)
        return next(found, Notes(user_id=user_id, agent_name=agent_name))

    async def put_notes(self, notes: Notes) -> bool:
        versions = self._users.notes.setdefault((notes.user_id, notes.agent_name), [])
        if notes.version != (versions[-1].version if versions else 0) + 1:
            return False
        versions.append(notes)
        return True

    async def list_notes(self, user_id: str, agent_name: str, *, limit: int = 50) -> tuple[Notes, ...]:
        return tuple(self._users.notes.get((user_id, agent_name), [])[::-1][:limit])

    async def forget_user(self, user_id: str, *, now: int) -> int:
        rows = self._users
        active = [key for key in rows.active if key[0] == user_id]
        noted = [key for key, versions in rows.notes.items() if key[0] == user_id and any(n.text for n in versions)]
        forgotten = len(active) + sum(len(rows.notes[key]) for key in noted)
        for key in active:
            del rows.active[key]
        for key in noted:
            after = rows.notes[key][-1].version + 1
            rows.notes[key] = [Notes(user_id=user_id, agent_name=key[1], version=after, created_at=now)]
        return forgotten + len(rows.items.pop(user_id, {}))

    def _set_active(self, user_id: str, agent_name: str, session_id: str | None, now: int) -> ActiveSession:
        known = self._users.active.get((user_id, agent_name))
        active = ActiveSession(
            user_id=user_id,
            agent_name=agent_name,
            session_id=session_id,
            last_active_at=now if known is None else max(now, known.last_active_at),
            created_at=now if known is None else known.created_at,
        )
        self._users.active[user_id, agent_name] = active
        return active
