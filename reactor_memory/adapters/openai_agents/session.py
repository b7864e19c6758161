"""A conversation of this library as a session of the OpenAI Agents SDK."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, cast
from weakref import WeakKeyDictionary

from agents import RunContextWrapper, SessionSettings, TResponseInputItem

from reactor_memory.adapters.loop_bridge import Crossing
from reactor_memory.errors import InvalidInputError, SessionNotFoundError
from reactor_memory.forms.response_items import is_compaction, plain_item, to_items, to_message
from reactor_memory.memory import Memory
from reactor_memory.models import JsonObject, Message
from reactor_memory.models.turns import units


class ReactorMemorySession:
    """`agents.Session`: every item is kept as it is, and a run begins with what memory has of what it does not show.

    `user_id` is who asks: a session with an owner raises `SessionOwnershipError` for everybody else. The items for a
    run are the blocks of memory (the notes of `agent_name`, facts, narrative, pins) and then the newest items, whole
    turns, in at most `budget` tokens; without `budget`, as the settings say. Unless `with_memory`, they are all items.
    ``limit`` of `session_settings` (a dict of its fields will do), or of the run, makes the newest items fewer; memory
    does not count. What it cuts
    off of what the budget would hold is not in memory either: give a budget rather than a limit.

    Every thread and event loop may use it, so `Runner.run_sync` has it, too, beside the thread of the memory.
    """

    def __init__(
        self,
        memory: Memory,
        session_id: str,
        *,
        user_id: str | None = None,
        agent_name: str | None = None,
        budget: int | None = None,
        with_memory: bool = True,
        session_settings: SessionSettings | JsonObject | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings: SessionSettings | None = _settings_of(session_settings)
        self._memory = memory
        self._crossing = Crossing(memory.loop)
        self._user_id = user_id
        self._agent_name = agent_name
        self._budget = budget
        self._with_memory = with_memory
        self._cleared_until = 0
        self._added: WeakKeyDictionary[RunContextWrapper[Any], int] = WeakKeyDictionary()

    async def get_items(
        self, limit: int | None = None, *, wrapper: RunContextWrapper[Any] | None = None
    ) -> list[TResponseInputItem]:
        """The items for a run, oldest first. Given a `limit` by anybody but a run that begins, exactly the newest
        `limit` items: so a run that has to take back what it added sees the end of the log as it is.
        """
        return await self._crossing.acall(lambda: self._items_for(limit, wrapper))

    async def _items_for(self, limit: int | None, wrapper: RunContextWrapper[Any] | None) -> list[TResponseInputItem]:
        most = limit if limit is not None else _settings_of(self.session_settings).limit
        if self._with_memory and (limit is None or self._begins(wrapper, limit)):
            return await self._items_with_memory(most)
        return await self._newest_items(most)

    async def add_items(
        self, items: list[TResponseInputItem], *, wrapper: RunContextWrapper[Any] | None = None
    ) -> None:
        """Append the items as one batch, durably, all or none of them. Raises `InvalidInputError` for one that is no
        JSON object.
        """
        if not items:
            return
        messages = [to_message(plain_item(item, position)) for position, item in enumerate(items)]
        await self._crossing.acall(lambda: self._save(messages, wrapper))

    async def _save(self, messages: Sequence[Message], wrapper: RunContextWrapper[Any] | None) -> None:
        cleared_until, self._cleared_until = self._cleared_until, 0
        if cleared_until and any(map(is_compaction, messages)):
            await self._memory.archive(self.session_id, user_id=self._user_id, until_seq=cleared_until)
        await self._memory.save_history(self.session_id, messages, user_id=self._user_id, agent_name=self._agent_name)
        if wrapper is not None:
            self._added[wrapper] = self._added.get(wrapper, 0) + len(messages)

    async def pop_item(self, *, wrapper: RunContextWrapper[Any] | None = None) -> TResponseInputItem | None:
        """Withdraw the newest message, with the facts drawn from it, and return its item; None if there is none.

        A message of another framework may be several items, text and calls: it goes whole, and the last is returned.
        """
        return await self._crossing.acall(self._pop)

    async def _pop(self) -> TResponseInputItem | None:
        try:
            withdrawn = await self._memory.withdraw(self.session_id, user_id=self._user_id)
        except SessionNotFoundError:
            return None
        except InvalidInputError:
            if await self._read(last=1):
                raise  # inherited by a fork: it belongs to another session
            return None
        return _as_items([withdrawn])[-1]

    async def clear_session(self, *, wrapper: RunContextWrapper[Any] | None = None) -> None:
        """Archive everything: the session goes on, empty, and memory shows nothing of what was said, until
        ``memory.restore``. Nothing is destroyed, which ``memory.erasure.erase`` does by name. Raises
        `InvalidInputError` in a fork, whose first messages are another session's: begin a new session instead.

        When the next items that this object adds hold a ``compaction``, they take the place of what was cleared: then
        memory keeps showing the facts of the cleared messages.
        """
        await self._crossing.acall(self._clear)

    async def _clear(self) -> None:
        try:
            session = await self._memory.get_session(self.session_id, user_id=self._user_id)
        except SessionNotFoundError:
            return
        if session.forked_from_id is not None:
            raise InvalidInputError("session_id", "is a fork, which cannot be cleared; begin a new session instead")
        await self._memory.archive(self.session_id, user_id=self._user_id, clear=True)
        self._cleared_until = session.last_seq

    def _begins(self, wrapper: RunContextWrapper[Any] | None, limit: int) -> bool:
        """Whether a run asks for its history, not for the end of the log that it added itself."""
        return wrapper is not None and self._added.get(wrapper, 0) < limit

    async def _items_with_memory(self, limit: int | None) -> list[TResponseInputItem]:
        context = await self._memory.load_history(
            self.session_id, user_id=self._user_id, agent_name=self._agent_name, budget=self._budget
        )
        if limit is None:
            return _as_items(context.messages)
        window = context.part("window")
        return _as_items([*context.messages[: len(context.messages) - len(window)], *_newest_units(window, limit)])

    async def _newest_items(self, limit: int | None) -> list[TResponseInputItem]:
        if limit == 0:
            return []
        last = limit if limit is not None and limit > 0 else None
        return _newest(_as_items(await self._read(last=last)), limit)

    async def _read(self, *, last: int | None) -> Sequence[Message]:
        return await self._memory.read_messages(self.session_id, user_id=self._user_id, last=last)


def _settings_of(given: object) -> SessionSettings:
    if given is None:
        return SessionSettings()
    if isinstance(given, SessionSettings):
        return given
    known = [field.name for field in fields(SessionSettings)]
    try:
        return SessionSettings(**_with_keys(given, known))
    except (TypeError, ValueError):  # pydantic's error would quote what was given
        problem = f"must be SessionSettings or a dict of its fields ({', '.join(known)}), such as {{'limit': 20}}"
        raise InvalidInputError("session_settings", problem) from None


def _with_keys(given: object, known: Sequence[str]) -> JsonObject:
    if not isinstance(given, dict) or not set(cast("JsonObject", given)) <= set(known):
        raise TypeError
    return cast("JsonObject", given)


def _as_items(messages: Sequence[Message]) -> list[TResponseInputItem]:
    return [cast("TResponseInputItem", item) for message in messages for item in to_items(message)]


def _newest(items: list[TResponseInputItem], limit: int | None) -> list[TResponseInputItem]:
    """As in the SDK's own sessions, a negative limit is none."""
    return items if limit is None or limit < 0 else items[max(0, len(items) - limit) :]


def _newest_units(messages: Sequence[Message], limit: int) -> Sequence[Message]:
    """The newest messages that are `limit` items at most, cut where a model takes it. A negative limit is none."""
    start, count = len(messages), 0
    for unit in reversed(units(messages)):
        count += len(_as_items([messages[index] for index in unit]))
        if 0 <= limit < count:
            break
        start = unit.start
    return messages[start:]
