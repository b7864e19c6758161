"""Which session a user talks in to an agent, agreed between all clients and devices of that user.

The store decides; what a client has cached is only a hint. So an id is never made up, nor written over, because the
store could not be asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from reactor_memory.core.validation import check_session_id, check_user_and_agent
from reactor_memory.database.database import Database
from reactor_memory.errors import (
    ActiveSessionConflictError,
    InvalidInputError,
    SessionDeletedError,
    SessionOwnershipError,
    StoreUnavailableError,
)
from reactor_memory.features.active_sessions import operations as active_rows
from reactor_memory.features.active_sessions.models import ActiveSession
from reactor_memory.models import Value

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock, MessageStore

Source: TypeAlias = Literal["cached", "active", "new", "unverified"]

START_ATTEMPTS = 3
"""Between reading what is active and replacing it, another client may replace it."""


class Resolved(Value, frozen=True, kw_only=True):
    """The session to talk in. `source`: the cached id is the active one (``cached``), another one was active
    (``active``), there was none (``new``), or the store could not be asked (``unverified``: the cached id as it was).
    """

    session_id: str
    source: Source


class SessionDirectory:
    """One active session for each user and agent.

    A session that was deleted, or that belongs to someone else, is never active. All methods raise `InvalidInputError`
    for ids that no store can keep, and `StoreError` when the store fails.
    """

    def __init__(self, *, database: Database, messages: MessageStore, clock: Clock, new_id: Callable[[], str]) -> None:
        self._database = database
        self._messages = messages
        self._clock = clock
        self._new_id = new_id

    async def resolve(self, user_id: str, agent_name: str, *, cached_id: str | None = None) -> Resolved:
        """The session to go on with. Keep its id, in place of `cached_id`, unless it is ``unverified``.

        While the store cannot be reached, a cached id is given back as ``unverified``; without one
        `StoreUnavailableError` is raised. Neither changes what is active.
        """
        check_user_and_agent(user_id, agent_name)
        cached_id = _session_id_or_none(cached_id)
        try:
            return await self._resolve(user_id, agent_name, cached_id)
        except StoreUnavailableError:
            if cached_id is None:
                raise
            return Resolved(session_id=cached_id, source="unverified")

    async def get_or_create(self, user_id: str, agent_name: str, *, candidate: str | None = None) -> ActiveSession:
        """The active session, which is in use from now on. If there is none, `candidate` (None: a new id) becomes it.

        All who ask at the same time get the same answer. `candidate` may be a session that does not exist yet; it
        raises `SessionOwnershipError` if it belongs to someone else, and `SessionDeletedError`.
        """
        check_user_and_agent(user_id, agent_name)
        if candidate is not None:
            await self._check_own(candidate, user_id)
        return await self._get_or_create(user_id, agent_name, candidate or self._new_id())

    async def switch(self, user_id: str, agent_name: str, *, expected: str | None, new: str) -> ActiveSession:
        """Make `new` active in place of `expected` (None: in place of none).

        Raises `ActiveSessionConflictError` if something else is active, and what `get_or_create` raises for `new`.
        """
        check_user_and_agent(user_id, agent_name)
        await self._check_own(new, user_id)
        switched = await self._switch(user_id, agent_name, expected, new)
        if switched is None:
            raise ActiveSessionConflictError(new)
        return switched

    async def start_new(self, user_id: str, agent_name: str) -> ActiveSession:
        """Make a new id active, whatever was. Raises `ActiveSessionConflictError` if others keep changing it."""
        check_user_and_agent(user_id, agent_name)
        new = self._new_id()
        for _ in range(START_ATTEMPTS):
            active = await self._database.read(active_rows.get_active, user_id, agent_name)
            expected = None if active is None else active.session_id
            started = await self._switch(user_id, agent_name, expected, new)
            if started is not None:
                return started
        raise ActiveSessionConflictError(new)

    async def heartbeat(self, user_id: str, agent_name: str, session_id: str) -> bool:
        """Note that the session is in use; False if it is not the active one."""
        check_user_and_agent(user_id, agent_name)
        check_session_id(session_id, creating=False)
        return await self._database.write_relaxed(
            active_rows.touch_active, user_id, agent_name, session_id, now=self._clock()
        )

    async def list(self, user_id: str) -> tuple[ActiveSession, ...]:
        """What the user has with each agent, the one used last first; after a deactivation without a session."""
        check_user_and_agent(user_id, "any")
        return await self._database.read(active_rows.list_active, user_id)

    async def deactivate_stale(self, *, older_than_seconds: float) -> int:
        """Of all users, deactivate what was not used for so long; how many. The sessions themselves stay as they are,
        but whoever resolves next begins a new one.
        """
        if not older_than_seconds > 0:
            raise InvalidInputError("older_than_seconds", "must be more than 0")
        return await self._database.write(
            active_rows.deactivate_active, before=self._clock() - int(older_than_seconds * 1_000_000)
        )

    async def _resolve(self, user_id: str, agent_name: str, cached_id: str | None) -> Resolved:
        active = await self._database.read(active_rows.get_active, user_id, agent_name)
        if active is not None and active.session_id is not None and await self._is_own(active.session_id, user_id):
            return Resolved(
                session_id=active.session_id, source="cached" if active.session_id == cached_id else "active"
            )
        candidate = self._new_id()
        created = await self._get_or_create(user_id, agent_name, candidate)
        return Resolved(session_id=_id_of(created), source="new" if created.session_id == candidate else "active")

    async def _get_or_create(self, user_id: str, agent_name: str, candidate: str) -> ActiveSession:
        active = await self._database.write(
            active_rows.get_or_create_active, user_id, agent_name, candidate, now=self._clock()
        )
        if active.session_id == candidate or await self._is_own(_id_of(active), user_id):
            return active
        await self._switch(user_id, agent_name, active.session_id, None)
        return await self._database.write(
            active_rows.get_or_create_active, user_id, agent_name, candidate, now=self._clock()
        )

    async def _switch(
        self, user_id: str, agent_name: str, expected: str | None, new: str | None
    ) -> ActiveSession | None:
        return await self._database.write(
            active_rows.switch_active, user_id, agent_name, expected=expected, new=new, now=self._clock()
        )

    async def _check_own(self, session_id: str, user_id: str) -> None:
        """A session that does not exist yet may become the user's."""
        check_session_id(session_id, creating=False)
        if await self._messages.get_session(session_id, user_id) is None:
            check_session_id(session_id, creating=True)

    async def _is_own(self, session_id: str, user_id: str) -> bool:
        try:
            await self._messages.get_session(session_id, user_id)
        except (SessionDeletedError, SessionOwnershipError):
            return False
        return True


def _session_id_or_none(cached_id: str | None) -> str | None:
    """A cache may hold anything. What cannot be an id counts as nothing."""
    try:
        check_session_id(cached_id, creating=False)
    except InvalidInputError:
        return None
    return cached_id


def _id_of(active: ActiveSession) -> str:
    """Of a session that was just made active."""
    assert active.session_id is not None
    return active.session_id
