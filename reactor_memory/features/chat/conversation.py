"""A person and a model in one session."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing

from reactor_memory.core.manager import ConversationManager
from reactor_memory.errors import SessionNotFoundError
from reactor_memory.features.chat.chat_model import ChatModel
from reactor_memory.features.chat.columns import count
from reactor_memory.features.chat.commands import ChatCommands, text_of
from reactor_memory.features.chat.hierarchical_summaries import ChatSummaries
from reactor_memory.features.chat.replies import Progress, Reply
from reactor_memory.features.facts.facts import Facts
from reactor_memory.features.pins.pins import Pins
from reactor_memory.models import Message


class Chat:
    """Takes what a person types, line by line: commands to `handle`, everything else to `say`.

    One call at a time. Whatever was said is stored when `say` returns, and stays when the process ends.
    """

    def __init__(
        self,
        *,
        manager: ConversationManager,
        facts: Facts,
        pins: Pins,
        model: ChatModel,
        summaries: ChatSummaries,
        session_id: str,
        user_id: str | None = None,
        budget: int | None = None,
        system: str | None = None,
    ) -> None:
        self._manager = manager
        self._model = model
        self._summaries = summaries
        self._user_id = user_id
        self._budget = budget
        self._system = system or None
        self._commands = ChatCommands(
            manager=manager,
            facts=facts,
            pins=pins,
            summaries=summaries,
            session_id=session_id,
            user_id=user_id,
            budget=budget,
            system=self._system,
        )

    @property
    def session_id(self) -> str:
        """The session in which the chat goes on; `/fork` changes it."""
        return self._commands.session_id

    async def begin(self) -> str:
        """Who answers, and what there is. Call it first: it raises `SessionError` for a session that cannot be used."""
        messages = await self._length()
        await self.news()
        what = count(messages, "message") if messages else "new"
        return f"{self.session_id} · {what} · {self._model.name}\n{self._model.notice}\n/help lists the commands."

    async def handle(self, line: str, progress: Progress | None = None) -> Reply | None:
        """The reply if `line` is a command or answers the question of one; None: it is for `say`."""
        return await self._commands.handle(line, progress)

    async def say(self, line: str, show: Callable[[str], None]) -> None:
        """Ask the model, and `show` each piece of its answer. The answer is stored once it is complete.

        If the model fails, or the call is cancelled, what the person said is stored alone and the exception goes on:
        `ChatModelError` or what `manager.turn` raises.
        """
        message = Message.user(text_of(line))
        async with (
            self._manager.turn(
                self.session_id, message, user_id=self._user_id, budget=self._budget, system=self._system
            ) as turn,
            aclosing(self._model.stream(turn.messages(), system=self._system)) as pieces,
        ):
            async for piece in turn.stream(pieces):
                show(piece)

    async def news(self) -> str | None:
        """What was summarised since the last call without being asked for; None: nothing."""
        return await self._summaries.news(self.session_id, self._user_id)

    async def _length(self) -> int:
        try:
            return (await self._manager.get_session(self.session_id, user_id=self._user_id)).last_seq
        except SessionNotFoundError:
            if "~" in self.session_id:  # only `fork` makes such an id
                raise
            return 0
