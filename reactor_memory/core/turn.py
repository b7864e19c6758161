"""One turn of an agent: load, let the model run, save what happened."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence

from reactor_memory.core.context.message_forms import MessageLike, MessagesLike, message_of, messages_of
from reactor_memory.core.context.report import Context
from reactor_memory.errors import InvalidMessageError
from reactor_memory.models import Message


class Turn:
    """What `ConversationManager.turn` hands to the caller.

    `context` is the context as it was loaded. What the agent does is told with `add` and `answer` (or `stream`), and
    stored when the block ends without an exception.
    """

    def __init__(self, message: Message, context: Context, assemble: Callable[[Sequence[Message]], Context]) -> None:
        self.message = message
        self.context = context
        self._assemble = assemble
        self._traffic: list[Message] = []
        self._answer: Message | None = None

    def messages(self) -> list[Message]:
        """The context again with the tool traffic of this turn so far, fitted into the budget."""
        return self.current_context().messages

    def current_context(self) -> Context:
        """Like `messages`, with its report."""
        return self._assemble([self.message, *self._traffic]) if self._traffic else self.context

    def add(self, *messages: MessagesLike) -> None:
        """Tool calls and their results, in the order in which they happened."""
        for position, given in enumerate(messages):
            self._traffic.extend(messages_of(given, field=f"messages[{position}]"))

    def answer(self, answer: MessageLike) -> None:
        """The final answer of the model: a text, or a message of the role assistant or agent. The last one counts.

        Raises `InvalidMessageError` for a message of another role.
        """
        given = message_of(answer, field="answer", text_role="assistant")
        if given.role not in ("assistant", "agent"):
            raise InvalidMessageError("answer", f"has the role {given.role}; tool traffic goes to add()")
        self._answer = given

    async def stream(self, chunks: AsyncIterable[str]) -> AsyncIterator[str]:
        """Pass a streamed answer through. It is the answer once it is complete; a broken or empty stream is none."""
        parts: list[str] = []
        async for chunk in chunks:
            parts.append(chunk)
            yield chunk
        if text := "".join(parts):
            self.answer(text)

    def saved_messages(self) -> tuple[Message, ...]:
        """What is stored at the end: the user message, the tool traffic, the answer."""
        answer = (self._answer,) if self._answer is not None else ()
        return (self.message, *self._traffic, *answer)
