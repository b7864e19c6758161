"""Every error that this library raises on purpose.

::

    ReactorMemoryError
    ├── InvalidInputError              a value that the caller gave
    │   ├── InvalidMessageError
    │   ├── LimitExceededError
    │   ├── ImportFormatError
    │   ├── SearchTypeUnavailableError
    │   ├── PageTokenError
    │   └── StreamPositionError
    ├── ConfigurationError             settings, plug-ins, wiring
    │   ├── MissingExtraError
    │   └── PluginError
    ├── SessionError                   the state or the owner of a session
    │   ├── SessionNotFoundError
    │   ├── SessionOwnershipError
    │   ├── SessionDeletedError
    │   ├── MessageNotFoundError
    │   ├── TurnNotFoundError
    │   ├── MemberNotFoundError
    │   ├── AccessDeniedError          a member with too little access
    │   ├── SharingConflictError
    │   ├── IdempotencyConflictError
    │   ├── ActiveSessionConflictError
    │   ├── ResponseNotFoundError
    │   ├── ResponseConflictError      a response that is being written
    │   └── CopyConflictError
    ├── TransferNotFoundError
    ├── NotGrantedError                a caller of the wrong kind, or a key without the grant
    ├── TooManyStreamsError
    ├── BudgetExceededError
    ├── SummarizationError
    ├── ChatModelError
    ├── EmbeddingError
    ├── RedactionError
    ├── ServiceError                   what a memory service answered to its client
    ├── ChatMemoryError                what the chat memory raises, with its cause
    │   ├── ConversationNotFoundError
    │   ├── DataValidationError
    │   └── GenericMemoryError
    └── StoreError                     the database
        ├── StoreUnavailableError
        │   ├── OutcomeUnknownError
        │   └── StoreReadOnlyError
        ├── StoreFullError
        ├── StoreCorruptError
        ├── StoreClosedError
        │   └── OtherProcessError
        └── SchemaError

Messages name the field and the remedy. They never carry message text, keys or passwords.
"""

from __future__ import annotations


class ReactorMemoryError(Exception):
    """The base of all errors of this library."""


class InvalidInputError(ReactorMemoryError):
    """A value given by the caller is not valid. Nothing was stored or changed.

    `field` names the argument, such as ``messages[2].content``.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class InvalidMessageError(InvalidInputError):
    """A message holds something that no store can keep and give back unchanged."""


class LimitExceededError(InvalidInputError):
    """A value is larger than a limit; `setting` is the one that raises it, None where nothing does."""

    def __init__(
        self, field: str, *, actual: int, limit: int, unit: str, setting: str | None = None, instead: str = "send less"
    ) -> None:
        remedy = f"raise the setting {setting} or {instead}" if setting else instead
        super().__init__(field, f"has {actual} {unit}, the limit is {limit}: {remedy}")
        self.actual = actual
        self.limit = limit
        self.unit = unit
        self.setting = setting


class QuotaExceededError(InvalidInputError):
    """The user has as much of `unit` as the setting `setting` allows: `left` more are possible, until some go."""

    def __init__(self, field: str, *, limit: int, left: int, unit: str, setting: str) -> None:
        super().__init__(
            field, f"is more than there is room for: {left} of {limit} {unit} are left; delete some, or raise {setting}"
        )
        self.limit = limit
        self.left = left
        self.unit = unit
        self.setting = setting


class ImportFormatError(InvalidInputError):
    """A line of an imported file is not in the documented format."""


class SearchTypeUnavailableError(InvalidInputError):
    """The kind of search that was asked for is not configured. `search_type` names it."""

    def __init__(self, search_type: str) -> None:
        super().__init__("searchType", f"{search_type} needs an embedder, which is not configured: use auto or keyword")
        self.search_type = search_type


class PageTokenError(InvalidInputError):
    """A page token was altered, or belongs to another caller, route or filter. Begin with the first page again."""

    def __init__(self) -> None:
        super().__init__("cursor", "is not a page token of this listing: begin with the first page again")


class StreamPositionError(InvalidInputError):
    """A stream has no such piece yet. Begin with the first one again."""

    def __init__(self) -> None:
        super().__init__("after", "is no piece of this stream: begin it anew")


class ConfigurationError(ReactorMemoryError):
    """A setting is unknown, impossible, or names something that is not there. `key` names it."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key}: {problem}")
        self.key = key
        self.problem = problem


class MissingExtraError(ConfigurationError):
    """A setting asks for an optional package that is not installed."""

    def __init__(self, key: str, *, package: str, extra: str) -> None:
        super().__init__(key, f"needs the package {package}: install it with: pip install 'reactor-memory[{extra}]'")
        self.package = package
        self.extra = extra


class PluginError(ConfigurationError):
    """An installed plug-in cannot be loaded or does not supply what it declares."""


class SessionError(ReactorMemoryError):
    """An operation on a session that its state or its owner does not allow."""

    def __init__(self, session_id: str, problem: str) -> None:
        super().__init__(f"session {session_id!r}: {problem}")
        self.session_id = session_id


class SessionNotFoundError(SessionError):
    """No such session. Loading an unknown session is no error: a conversation may begin."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id, "does not exist")


class SessionOwnershipError(SessionError):
    """The session belongs to someone else. Whose it is, is not said."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id, "belongs to another user")


class SessionDeletedError(SessionError):
    """The session was deleted. Its id is never used again: begin a new session."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id, "was deleted; begin a new session under a new id")


class MessageNotFoundError(SessionError):
    """The session has no such message, or nobody who asks may see it."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id, "has no such message")


class TurnNotFoundError(SessionError):
    """The newest turn of the session has its answer, or there is none: nothing is left to go on with."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id, "has no turn without an answer; give a message to begin one")


class MemberNotFoundError(SessionError):
    """The conversation has no such member."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id, "has no such member")


class AccessDeniedError(SessionError):
    """A member asks for more than their level allows. `needed` is the least level that may."""

    def __init__(self, session_id: str, *, needed: str) -> None:
        super().__init__(session_id, f"needs the access level {needed}: ask a manager of the conversation")
        self.needed = needed


class SharingConflictError(SessionError):
    """The change of members or owner conflicts with the current state. `reason` is one word, such as
    ``already_member``, ``transfer_pending``, ``sole_owner``; `problem` says it in full.
    """

    def __init__(self, session_id: str, reason: str, problem: str) -> None:
        super().__init__(session_id, problem)
        self.reason, self.problem = reason, problem


class IdempotencyConflictError(SessionError):
    """The idempotency key was already used in this session for other messages."""

    def __init__(self, session_id: str, key: str) -> None:
        super().__init__(
            session_id,
            "the idempotency key was used before with other content; use a new key for new messages",
        )
        self.key = key


class ActiveSessionConflictError(SessionError):
    """Another session became active meanwhile. Ask which one it is, and decide again."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id, "cannot become active: what is active has changed; resolve again")


class ResponseNotFoundError(SessionError):
    """The session has no such response, or its time is over."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id, "has no such response")


class ResponseConflictError(SessionError):
    """The request conflicts with the state of the response. `reason` is one word: ``superseded`` by a newer one,
    ``response_ended``, or ``streams_disabled`` by the settings.
    """

    def __init__(self, session_id: str, reason: str, problem: str) -> None:
        super().__init__(session_id, problem)
        self.reason, self.problem = reason, problem


class CopyConflictError(SessionError):
    """The target of a copy holds another session under this id, or somebody wrote to the session meanwhile."""

    def __init__(self, session_id: str) -> None:
        super().__init__(
            session_id,
            "the target holds other messages or another session under this id, and nothing is overwritten; delete it "
            "there, or leave it out",
        )


class TransferNotFoundError(ReactorMemoryError):
    """No such offer of ownership is pending, or it is none to, or by, who asks."""

    def __init__(self, transfer_id: str) -> None:
        super().__init__(f"transfer {transfer_id!r}: is not pending")
        self.transfer_id = transfer_id


class NotGrantedError(ReactorMemoryError):
    """Users, or agents, or agents with this key may not do this, in any conversation. `needed` says what is missing."""

    def __init__(self, needed: str) -> None:
        super().__init__(f"not granted: this needs {needed}")
        self.needed = needed


class TooManyStreamsError(ReactorMemoryError):
    """The caller follows as many responses at once as they may. `limit` is how many."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"streams: {limit} at once are the limit; close one")
        self.limit = limit


class BudgetExceededError(ReactorMemoryError):
    """Even the smallest context that keeps the promises does not fit.

    `budget` and `minimum` are tokens; a budget of `minimum` works.
    """

    def __init__(self, *, budget: int, minimum: int) -> None:
        super().__init__(f"budget: {budget} tokens are too few, the smallest budget that works is {minimum} tokens")
        self.budget = budget
        self.minimum = minimum


class SummarizationError(ReactorMemoryError):
    """The summarizer gave no usable answer.

    `reason` is one word for logs and reports (``timeout``, ``rate_limited``, ``unavailable``, ``refused``,
    ``truncated``, ``malformed``, ``rejected``, ``too_long``, ``redaction``); `retryable` says whether the same request
    may succeed later; `retry_after_seconds` is the provider's own wish, if it stated one. `tokens` is what the useless
    answer cost.
    """

    def __init__(
        self,
        reason: str,
        problem: str,
        *,
        retryable: bool = True,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(f"summarizer: {problem} ({reason})")
        self.reason = reason
        self.problem = problem
        self.retryable = retryable
        self.retry_after_seconds = retry_after_seconds
        self.tokens = 0


class ChatModelError(ReactorMemoryError):
    """The model of a chat gave no complete answer. `reason` is one word, as in `SummarizationError`."""

    def __init__(self, reason: str, problem: str) -> None:
        super().__init__(f"chat model: {problem} ({reason})")
        self.reason = reason


class EmbeddingError(ReactorMemoryError):
    """The embedder gave no usable vectors. `reason` is one word, `retryable` as in `SummarizationError`."""

    def __init__(self, reason: str, problem: str, *, retryable: bool = True) -> None:
        super().__init__(f"embedder: {problem} ({reason})")
        self.reason = reason
        self.retryable = retryable


class RedactionError(ReactorMemoryError):
    """The redactor failed, so nothing was summarised, indexed or searched of what it was given.

    `reason` is the name of what it raised; its text is not repeated.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"redactor: failed with {reason}; repair it, or name another one in the setting redactor")
        self.reason = reason


class ServiceError(ReactorMemoryError):
    """A memory service refused a request, or failed at it, in a way that no other error of this library says.

    `code` is stable (``forbidden``, ``rate_limited``, ...; ``unreadable`` for an answer that is none of a memory
    service), `status` the one of HTTP. `request_id` finds the request in the logs of the service.
    """

    def __init__(self, code: str, problem: str, *, status: int, request_id: str | None = None) -> None:
        super().__init__(f"memory service: {problem} ({code}, status {status}, request {request_id or 'unknown'})")
        self.code = code
        self.problem = problem
        self.status = status
        self.request_id = request_id


class ChatMemoryError(ReactorMemoryError):
    """The base of what `ChatMemoryService` raises. What went wrong is the cause (``__cause__``), where there is one."""

    def __init__(self, conversation_id: str, problem: str) -> None:
        super().__init__(f"conversation {conversation_id!r}: {problem}")
        self.conversation_id = conversation_id

    @property
    def cause(self) -> BaseException | None:
        return self.__cause__


class ConversationNotFoundError(ChatMemoryError):
    """The conversation was never begun, was cleared or was deleted."""

    def __init__(self, conversation_id: str) -> None:
        super().__init__(conversation_id, "does not exist")


class DataValidationError(ChatMemoryError):
    """A value given by the caller is not valid. Nothing was stored or changed."""


class GenericMemoryError(ChatMemoryError):
    """Store, strategy or summarizer failed. With `messages_stored` the messages of the call are stored all the same:
    adding them again would store them twice.
    """

    def __init__(self, conversation_id: str, problem: str, *, messages_stored: bool = False) -> None:
        super().__init__(conversation_id, problem)
        self.messages_stored = messages_stored


class StoreError(ReactorMemoryError):
    """The database did not do what it was asked."""


class StoreUnavailableError(StoreError):
    """The database cannot be reached, is locked, or did not answer by the deadline of the call. Nothing was stored."""


class OutcomeUnknownError(StoreUnavailableError):
    """A write was under way when its deadline came or its connection broke: it is stored whole, or not at all.

    A save is repeated safely with the same idempotency key, which settles it; without one, read first.
    """

    def __init__(self) -> None:
        super().__init__(
            "store: the database did not say in time whether the write was done; repeat it with the same "
            "idempotency key, or without one look first whether it is there"
        )


class StoreReadOnlyError(StoreUnavailableError):
    """The database can be read but not written: rights, a mount or the server forbid it. Loads go on."""


class StoreFullError(StoreError):
    """The disk or the quota of the database is full. Reads go on; saves succeed again when there is space."""


class StoreCorruptError(StoreError):
    """The database file or a row is damaged or was not written by this library."""


class StoreClosedError(StoreError):
    """The store was used before it was opened or after it was closed."""

    def __init__(self, problem: str = "is not open; use it inside the block of `open_memory`") -> None:
        super().__init__(f"store: {problem}")


class OtherProcessError(StoreClosedError):
    """A memory was used in a process that was forked after it was opened. The process that opened it is unharmed."""

    def __init__(self) -> None:
        super().__init__(
            "was opened in another process, and a fork takes neither threads nor connections along: "
            "open it in this process, after the fork"
        )


class SchemaError(StoreError):
    """The schema of the database is behind or ahead of this version of the library."""
