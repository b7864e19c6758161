"""The door to the library: what an agent calls, twice a turn."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Unpack

import anyio
import msgspec

from reactor_memory.core import log
from reactor_memory.core.batches import BatchMaker
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.given_messages import MessageLike, MessagesLike, message_of
from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.core.load_requests import (
    LoadArguments,
    LoadRequest,
    as_given,
    checked_messages,
    load_request,
    with_traffic,
)
from reactor_memory.core.loading import LAYOUT_SECONDS, ContextLoader
from reactor_memory.core.turn import Turn
from reactor_memory.core.turn_log import Durable, StoredTurn, TurnLog
from reactor_memory.core.validation import (
    MessageLimits,
    check_is_text,
    check_optional_id,
    check_position,
    check_session_id,
)
from reactor_memory.database.database import Database
from reactor_memory.database.deadlines import in_time, within
from reactor_memory.errors import (
    InvalidInputError,
    ReactorMemoryError,
    SessionNotFoundError,
    StoreError,
    SummarizationError,
    TurnNotFoundError,
)
from reactor_memory.models import Message, SearchHit, Session, Value
from reactor_memory.models.requests import SUMMARIZE, Appended, AppendRequest, DeletedSessions
from reactor_memory.models.turns import attached, begun_by, last_turn_start, names_no_call

if TYPE_CHECKING:
    from reactor_memory.core.ports import BackgroundWork, Clock, Elsewhere, MessageStore, SummaryStore
    from reactor_memory.core.sources import Recall
    from reactor_memory.models.leases import WorkState
    from reactor_memory.models.ledger import Summary
    from reactor_memory.models.session_pages import SessionPage

logger = logging.getLogger(__name__)
PAGE = 500
CALLS_BEFORE = 200
"""Among so many messages of the log the call is looked for that a result belongs to which names none."""


def nothing(*_: object) -> AbstractAsyncContextManager[None]:
    """A block around which nothing happens."""
    return nullcontext()


class ManagerOptions(Value, frozen=True, kw_only=True):
    limits: MessageLimits
    delete_grace_days: int = 0
    timeout_seconds: float = 10.0


class ConversationManager:
    """Loads contexts and saves turns; everything it promises holds per session.

    Each call has one deadline, ``store.timeout_seconds``, for all that it asks of the database, and raises
    `StoreUnavailableError` or `OutcomeUnknownError` by then; `turn` has one for its load and one for each save. What
    may take long by its nature has none for the whole: `explain`, `summarize`, `drain`, `erase_user`,
    `stream_messages`.

    `user_id` is who asks. A session belongs to the user of its first save (None, the default: to everybody, for ever);
    everyone else gets a `SessionOwnershipError` from every method, and a deleted session raises `SessionDeletedError`.

    Where a message is taken, a `Message`, a text (what the user said) or a dict in the form of OpenAI, Anthropic or
    Gemini is; where several are, one or a list of them. Anything else raises `InvalidMessageError`.
    """

    def __init__(
        self,
        *,
        messages: MessageStore,
        summaries: SummaryStore,
        loader: ContextLoader,
        background: BackgroundWork,
        batches: BatchMaker,
        clock: Clock,
        random: Callable[[int], str],
        options: ManagerOptions,
        database: Database,
        aftermath: Callable[[], Elsewhere],
        recall: Callable[[], Recall],
        recorder: Callable[[LoadRequest, Context, bool], AbstractAsyncContextManager[None]] = nothing,
        after_save: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._recorded, self._after_save = recorder, after_save
        self._messages = messages
        self._summaries = summaries
        self._database = database
        self._aftermath = aftermath
        self._recall = recall
        self._loader = loader
        self._background = background
        self._batches = batches
        self._clock = clock
        self._random = random
        self._options = options
        self.timeout_seconds = options.timeout_seconds
        self.limits = options.limits
        self.budgets = log.last_budgets.LastBudgets()

    @in_time
    async def load_history(
        self,
        session_id: str,
        *,
        message: MessageLike | None = None,
        history: MessagesLike | None = None,
        traffic: MessagesLike = (),
        **arguments: Unpack[LoadArguments],
    ) -> Context:
        """The context for the next call of the model, as `LoadArguments` say.

        `message` is the user message to come: counted, put last, not saved. `traffic` follows it: what model and tools
        did since in this turn, nothing of it saved yet. `history`, if given, is used instead of the stored session,
        however long or empty it is, and nothing is read. An unknown session is an empty one: a conversation may begin.

        Raises `BudgetExceededError` if even the smallest context does not fit, and never waits longer than
        ``summary.lazy_timeout_seconds`` for a summary.
        """
        repeats = self._loader.keeps and message is history is None and not traffic and self._recorded is nothing
        if repeats and (again := await self._loader.again(session_id, arguments)) is not None:
            self.budgets.asked(session_id, arguments.get("budget"))
            return again
        request = load_request(session_id, message, arguments, self._options.limits)
        if traffic:
            request = with_traffic(request, traffic, self._options.limits)
        if history is not None:
            return await self._loader.from_history(request, checked_messages(history, "history", self._options.limits))
        loaded = await self._loader.load(request)
        if request.current:
            context = await self._loader.context(loaded, request.current)
        else:
            context = loaded.first or self._loader.assemble(loaded, ())
        self.budgets.asked(session_id, request.budget)
        if request.tools:
            self._batches.tools_declared(session_id, request.tools)
        if self._recorded is nothing:
            return self._loader.keep(session_id, arguments, loaded, context) if repeats else context
        async with self._recorded(request, context, False):
            return context

    @in_time
    async def save_history(
        self,
        session_id: str,
        messages: MessagesLike,
        *,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        agent_name: str | None = None,
    ) -> Appended:
        """Append a batch durably, whole or not at all, and let summaries grow in the background.

        Repeating a batch with the same `idempotency_key` returns the first answer; other messages under that key
        raise `IdempotencyConflictError`. Raises `InvalidMessageError` or `LimitExceededError` before anything is
        stored.
        """
        batch = await self.prepare_batch(
            session_id, messages, user_id=user_id, idempotency_key=idempotency_key, agent_name=agent_name
        )
        return await self.save_batch(batch)

    async def prepare_batch(
        self,
        session_id: str,
        messages: MessagesLike,
        *,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        agent_name: str | None = None,
    ) -> AppendRequest:
        """A batch checked and counted, for `save_batch`. Who stores many prepares the next while one is stored.

        Stores nothing; raises what `save_history` raises before it stores anything.
        """
        check_optional_id("agent_name", agent_name)
        batch = await self._batches.prepared(
            session_id, messages, user_id=user_id, idempotency_key=idempotency_key, agent_name=agent_name
        )
        return await self._with_calls(batch)

    async def _with_calls(self, batch: AppendRequest) -> AppendRequest:
        """Results that name no call, which Gemini and Ollama allow, belong to calls that the log may have."""
        uncalled = [message for message in batch.messages if message.role == "tool" and names_no_call(message)]
        calls = {call.id for message in batch.messages for call in message.tool_calls} if uncalled else ()
        if all(each.tool_call_id in calls for each in uncalled):
            return batch
        try:
            before = await self.read_messages(batch.session_id, user_id=batch.user_id, last=CALLS_BEFORE)
        except SessionNotFoundError:
            return batch
        return msgspec.structs.replace(batch, messages=tuple(attached(batch.messages, before)))

    @in_time
    async def save_batch(self, batch: AppendRequest) -> Appended:
        """Append what `prepare_batch` gave, as `save_history` does."""
        batch = self.budgets.told_by(batch)
        appended = await self._messages.append(batch)
        if not appended.replayed:
            self.budgets.stored(batch)
        self._background.messages_saved(batch.session_id, appended.last_seq)
        if self._after_save is not None:
            await self._after_save()
        return appended

    @asynccontextmanager
    async def turn(
        self,
        session_id: str,
        message: MessageLike | None = None,
        *,
        idempotency_key: str | None = None,
        resume: bool = False,
        durable: Durable = "step",
        **arguments: Unpack[LoadArguments],
    ) -> AsyncGenerator[Turn]:
        """Load, let the caller run the model inside the block, save the user message, the tool traffic and the answer::

            async with memory.turn("session-1", "Where is my order?", user_id="u1", budget=4000) as turn:
                turn.answer(await model(turn.messages()))

        `message` is what the user said; `arguments` are those of the load, and of `save_history` where it has them.

        The user message is stored before the block runs, each step when ``await turn.add(...)`` returns, the answer
        when the block ends. If the block raises, is cancelled, or its process dies, what was stored stays: a turn
        without an answer, whose open calls are shown with a result that says that they were interrupted. With `resume`
        the newest turn goes on if it has no answer (and `message` is left out, or what it began with); otherwise
        `message` begins a new one, and without one `TurnNotFoundError` is raised. A turn that is repeated under its
        `idempotency_key` goes on, too, and what is given again is stored once. With `durable` ``"end"`` everything is
        stored at the end, in one batch, and of a block that raises the user message alone.
        """
        given = None if message is None else message_of(message)
        earlier = await self._unanswered(session_id, arguments.get("user_id"), given) if resume else None
        given = given if earlier is None else earlier.message
        if given is None:
            if resume:
                raise TurnNotFoundError(session_id)
            raise InvalidInputError("message", "is missing: give what the user said, or resume=True")
        request = load_request(session_id, given, arguments, self._options.limits)
        log_of_turn = self._turn_log(request, idempotency_key, durable)
        if earlier is not None:
            log_of_turn.go_on(earlier)
        turn = await self._loaded_turn(request, given, log_of_turn)
        async with self._recorded(request, turn.context, True):
            if earlier is None:
                begun = await log_of_turn.begin(given)
                if begun is not None and begun.replayed:
                    await self._repeat(log_of_turn, request, begun.first_seq)
                    turn = await self._loaded_turn(request, given, log_of_turn)
            try:
                yield turn
            except BaseException:
                await self._keep_interrupted(log_of_turn, given)
                raise
            try:
                await log_of_turn.finish()
            except InvalidInputError:
                await self._keep_interrupted(log_of_turn, given)
                raise

    def _turn_log(self, request: LoadRequest, key: str | None, durable: Durable) -> TurnLog:
        check_optional_id("idempotency_key", key)
        if durable not in ("step", "end"):
            raise InvalidInputError("durable", "must be step or end")
        if key is None and durable == "step":
            key = f"turn {self._random(12)}"

        async def save(
            messages: Sequence[Message], *, idempotency_key: str | None, counter: MessageCounter | None
        ) -> Appended:
            with within(self._options.timeout_seconds):
                batch = await self._batches.prepared(
                    request.session_id,
                    messages,
                    user_id=request.user_id,
                    idempotency_key=idempotency_key,
                    agent_name=request.agent_name,
                    counter=counter,
                )
                return await self.save_batch(batch)

        return TurnLog(request.session_id, save, key=key, limits=self._options.limits, durable=durable)

    async def _loaded_turn(self, request: LoadRequest, message: Message, log_of_turn: TurnLog) -> Turn:
        """The turn with its context; of a turn that goes on, the log before it and what it did so far."""
        if log_of_turn.first_seq:
            request = msgspec.structs.replace(request, before_seq=log_of_turn.first_seq)
            request = with_traffic(request, [*log_of_turn.traffic, *log_of_turn.unanswered], self._options.limits)
        with within(self._options.timeout_seconds):
            loaded = msgspec.structs.replace(await self._loader.load(request), seqs=log_of_turn.seqs)
        self.budgets.asked(request.session_id, request.budget)
        self._batches.tools_declared(request.session_id, request.tools)
        log_of_turn.counter = loaded.counter
        return Turn(
            message,
            await self._loader.context(loaded, request.current),
            assemble=lambda current: self._loader.assemble(loaded, tuple(map(as_given, current))),
            log=log_of_turn,
        )

    @in_time
    async def _repeat(self, log_of_turn: TurnLog, request: LoadRequest, first_seq: int) -> None:
        session_id, user_id = request.session_id, request.user_id
        session = await self._messages.get_session(session_id, user_id)
        stored = None if session is None else await self._stored_turn(session, user_id, first_seq)
        if stored is not None:
            log_of_turn.repeat(stored)

    @in_time
    async def _unanswered(self, session_id: str, user_id: str | None, message: Message | None) -> StoredTurn | None:
        """The newest turn if it has no answer, and began with `message`, if there is one."""
        check_session_id(session_id, creating=False)
        check_optional_id("user_id", user_id)
        session = await self._messages.get_session(session_id, user_id)
        if session is None:
            return None
        read, last = (), 0
        while len(read) == last and not any(each.role == "user" for each in read):
            last = max(64, last * 4)
            read = await self._messages.read(session_id, user_id, last=last)
        turn = read[last_turn_start(read) :]
        if not turn or turn[0].role != "user":
            return None
        stored = await self._stored_turn(session, user_id, turn[0].seq or 1)
        return stored if stored and not stored.is_answered and stored.begins_with(message) else None

    async def _stored_turn(self, session: Session, user_id: str | None, first_seq: int) -> StoredTurn | None:
        """The turn that begins with a message, without the steps of others that run beside it."""
        found = await self._messages.read(session.session_id, user_id, after=first_seq - 1)
        if not found or found[0].seq != first_seq:
            return None
        count = (found[-1].seq or first_seq) - first_seq + 2
        steps = (await self._messages.read_background(session.session_id, after=first_seq - 1, limit=count)).steps
        begins, *others = begun_by(found, steps)
        following = tuple(each for each, begun in zip(found[1:], others, strict=True) if begun == begins)
        return StoredTurn(message=found[0], following=following, last_seq=session.last_seq)

    async def keep_budgets(self) -> None:
        """Store what loads asked for that no save stored, when a memory closes. Nothing fails for it, or waits."""
        budgets = self.budgets.taken()
        if not budgets:
            return
        try:
            with anyio.move_on_after(LAYOUT_SECONDS):
                await self._database.write_relaxed(log.last_budgets.store_last_budgets, budgets)
        except StoreError as error:
            logger.info("budgets of loads are not stored", extra={"reason": type(error).__name__})

    async def _keep_interrupted(self, log_of_turn: TurnLog, message: Message) -> None:
        """Also while being cancelled. The exception under way matters more than a fault here."""
        with anyio.CancelScope(shield=True):
            try:
                await log_of_turn.interrupted(message)
            except ReactorMemoryError as error:
                fields = {"session_id": log_of_turn.session_id, "reason": type(error).__name__}
                logger.warning("a failed turn is not stored whole", extra=fields)

    @in_time
    async def get_session(self, session_id: str, *, user_id: str | None = None) -> Session:
        """The session. Raises `SessionNotFoundError` if nothing was saved under this id."""
        check_session_id(session_id, creating=False)
        session = await self._messages.get_session(session_id, user_id)
        if session is None:
            raise SessionNotFoundError(session_id)
        return session

    @in_time
    async def list_sessions(
        self, *, user_id: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> SessionPage:
        """The sessions of a user, newest activity first; of `user_id` None, the sessions without an owner."""
        check_optional_id("user_id", user_id)
        check_position("limit", limit, least=1)
        if cursor is not None:
            check_is_text("cursor", cursor)
        return await self._messages.list_sessions(user_id, limit=limit, cursor=cursor)

    @in_time
    async def read_messages(
        self,
        session_id: str,
        *,
        user_id: str | None = None,
        last: int | None = None,
        after: int = 0,
        until: int | None = None,
        limit: int | None = None,
        archived: bool = False,
    ) -> tuple[Message, ...]:
        """The messages with `after` < seq <= `until`, oldest first: the newest `last`, or the first `limit`. With
        `archived` those that were archived or cleared, too.
        """
        check_session_id(session_id, creating=False)
        if last is not None and limit is not None:
            raise InvalidInputError("last", "give either last or limit, not both")
        for name, value in (("last", last), ("limit", limit)):
            if value is not None:
                check_position(name, value, least=1)
        for name, value in (("after", after), ("until", until)):
            if value is not None:
                check_position(name, value)
        if archived:
            return await self._database.read(
                log.operations.read_originals, session_id, user_id, after=after, until=until, last=last, limit=limit
            )
        return await self._messages.read(session_id, user_id, after=after, until=until, last=last, limit=limit)

    async def stream_messages(
        self, session_id: str, *, user_id: str | None = None, after: int = 0, archived: bool = False
    ) -> AsyncIterator[Message]:
        """All messages after `after`, oldest first, read page by page; as `read_messages`."""
        while page := await self.read_messages(session_id, user_id=user_id, after=after, limit=PAGE, archived=archived):
            for message in page:
                yield message
            after = page[-1].seq or 0

    @in_time
    async def search(
        self, session_id: str, query: str, *, user_id: str | None = None, limit: int = 20
    ) -> tuple[SearchHit, ...]:
        """The passages of the session that share words with `query`, the best first."""
        session = await self.get_session(session_id, user_id=user_id)
        check_position("limit", limit, least=1)
        check_is_text("query", query)
        return await self._recall().search(query, session, user_id, limit=limit)

    @in_time
    async def get_summary(self, session_id: str, *, user_id: str | None = None) -> Summary | None:
        """The current summary, or None if nothing was summarized yet."""
        await self.get_session(session_id, user_id=user_id)
        return await self._summaries.get_summary(session_id)

    async def summarize(
        self, session_id: str, *, user_id: str | None = None, timeout_seconds: float = 600.0
    ) -> Summary | None:
        """Do the background work of this session now, parked work too, and return the summary.

        Where ``background.enabled`` is false it is done here and now. The session must be longer than
        ``summary.trigger_message_count``, else there is nothing to do. Raises `SummarizationError` with the reason if
        some of the work failed, or was not done in time (``timeout``); what was done is stored.
        """
        await self.get_session(session_id, user_id=user_id)
        report = await self._background.work_on(session_id, timeout_seconds=timeout_seconds)
        if report.failed is not None:
            raise SummarizationError(report.failed, f"failed after {report.steps} steps, which are stored")
        return await self._summaries.get_summary(session_id)

    @in_time
    async def work_state(self, session_id: str, *, user_id: str | None = None) -> WorkState | None:
        """Where the background work of the session stands."""
        await self.get_session(session_id, user_id=user_id)
        return await self._summaries.work_state(session_id, SUMMARIZE)

    async def drain(self) -> None:
        """Wait until this process has no background work left."""
        await self._background.drain()

    @in_time
    async def fork(self, session_id: str, *, at_seq: int, user_id: str | None = None) -> Session:
        """A new branch that shares the messages before `at_seq` and continues the numbering with `at_seq`.

        Raises `LimitExceededError` for too many forks of forks (200).
        """
        check_position("at_seq", at_seq)
        parent = await self.get_session(session_id, user_id=user_id)
        log.forks.check_fork_depth(parent, at_seq)
        fork_id = f"{parent.group_id}~{self._random(12)}"
        return await self._messages.fork(session_id, user_id, at_seq=at_seq, fork_id=fork_id, now=self._clock())

    @in_time
    async def delete(self, session_id: str, *, user_id: str | None = None) -> DeletedSessions:
        """Delete a session with everything derived from it: a root with all its forks, a fork with those below it.

        With ``store.delete_grace_days`` the content stays in the database that long. Without, the answer tells whether
        its bytes are gone (`DeletedSessions.is_scrubbed`).
        """
        check_session_id(session_id, creating=False)
        purge = self._options.delete_grace_days == 0
        gone = await self._messages.delete(session_id, user_id, now=self._clock(), purge=purge)
        return await self.forget_deleted(gone)

    @in_time
    async def forget_deleted(self, session_ids: Sequence[str]) -> DeletedSessions:
        """For who deletes sessions in the log itself, as the service does: no work on them goes on, and without a grace
        time what is kept elsewhere goes, too.
        """
        await self._background.cancel(session_ids)
        left = await self._aftermath().of_sessions(session_ids) if self._options.delete_grace_days == 0 else ()
        return DeletedSessions(session_ids=tuple(session_ids), is_scrubbed=not left, left=left)
