"""One turn of an agent: load, let the model run, save what happened."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence

from reactor_memory.core.context.context import Context
from reactor_memory.core.context.given_messages import MessagesLike, answer_of, messages_of
from reactor_memory.core.turn_log import Stored, TurnLog
from reactor_memory.errors import InvalidMessageError
from reactor_memory.models import Message
from reactor_memory.models.turns import attached

_ANSWERING = ("assistant", "agent")
_TURN = (*_ANSWERING, "tool")


class Turn:
    """The turn that `ConversationManager.turn` gives to its block.

    `context` is the context as it was loaded. The caller adds what the agent does with `add`, which stores it, and
    `answer` (or `stream`), which is stored when the block ends without an exception.
    """

    def __init__(
        self,
        message: Message,
        context: Context,
        assemble: Callable[[Sequence[Message]], Context],
        log: TurnLog,
    ) -> None:
        self.message = message
        self.context = context
        self._assemble = assemble
        self._log = log

    @property
    def seq(self) -> int | None:
        """Where the user message stands in the session; None while it is not stored."""
        return self._log.first_seq or None

    @property
    def is_resumed(self) -> bool:
        """Whether the turn began before and goes on, behind what it had stored then."""
        return self._log.is_resumed

    def __repr__(self) -> str:
        said = "answered" if self._log.answer else "no answer yet"
        return f"<Turn: {said}, {len(self._log.traffic)} messages of tools, {self.context!r}>"

    def messages(self) -> list[Message]:
        """The context again with the tool traffic of this turn so far, fitted into the budget."""
        return self.current_context().messages

    def current_context(self) -> Context:
        """Like `messages`, with its report."""
        traffic = [*self._log.traffic, *self._log.unanswered]
        return self._assemble([self.message, *traffic]) if traffic else self.context

    def add(self, *messages: MessagesLike) -> Stored:
        """Tool calls and their results, in the order in which they happened: ``await turn.add(call, result)``.

        Awaited, it returns when they are stored (except with ``durable="end"``); not awaited, they are stored soon, and
        at the latest with what follows. Raises `InvalidMessageError` and `LimitExceededError` before anything is
        stored; awaited, what `save_history` raises. To give the same again after an error repeats the step.
        """
        taken: list[Message] = []
        for position, given in enumerate(messages):
            taken += messages_of(given, field=f"messages[{position}]")
        if taken:
            self._log.put(attached(taken, self._log.traffic))
        return self._log.soon()

    def answer(self, answer: MessagesLike) -> None:
        """The final answer of the model: a text, or a message of the role assistant or agent. The last one counts.

        A whole response of a provider will do, as its SDK gives it. A list is all that a provider gave, such as the
        `output` of OpenAI's Responses: tool traffic, and the answer at its end. Raises `InvalidMessageError` for a last
        message of another role, and for what the user said.
        """
        given = answer_of(answer)
        if not given:
            raise InvalidMessageError("answer", "is empty; give what the model said")
        if given[-1].role not in _ANSWERING:
            raise InvalidMessageError("answer", f"has the role {given[-1].role}; tool traffic goes to add()")
        if unexpected := next((message.role for message in given if message.role not in _TURN), None):
            remedy = "give only what the model and its tools said in this turn"
            raise InvalidMessageError("answer", f"holds a message of the role {unexpected}; {remedy}")
        self._log.answer = tuple(attached(given, self._log.traffic))

    async def stream(self, chunks: AsyncIterable[str]) -> AsyncIterator[str]:
        """Pass a streamed answer through. It is the answer once it is complete; a broken or empty stream is none."""
        parts: list[str] = []
        async for chunk in chunks:
            parts.append(chunk)
            yield chunk
        if text := "".join(parts):
            self.answer(text)

    def saved_messages(self) -> tuple[Message, ...]:
        """The messages of the turn: the user message, the tool traffic, the answer."""
        return (self.message, *self._log.traffic, *self._log.answer)
