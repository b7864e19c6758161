"""Storing the sessions of files: checked before the first write, repeatable after any interruption.

Files are read again for every step, never held: to check the format, to compare with the database, to store. What the
database holds of a session already must be the beginning of it in the file; the import continues from there. Batches
stand at fixed positions and carry idempotency keys, so that two imports at once store everything once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from msgspec.structs import replace

from reactor_memory.cli.transcripts import Line, read_lines
from reactor_memory.errors import ImportFormatError, InvalidInputError
from reactor_memory.manager import ConversationManager
from reactor_memory.models import Message, Value
from reactor_memory.validation import MessageLimits, check_message, check_session_id

BATCH = 100
"""Messages that are stored at once."""

Advance = Callable[[int], None]
"""Told how many messages were done since the last call."""


class FileSize(Value, frozen=True, kw_only=True):
    """What a file holds."""

    file: Path
    sessions: int
    messages: int


class Imported(Value, frozen=True, kw_only=True):
    """What became of a file: `stored` of its messages were not in the database before."""

    file: str
    sessions: int
    messages: int
    stored: int


def read_sessions(file: Path, prefix: str = "") -> Iterator[Line]:
    """The sessions of a file, `prefix` put before their ids."""
    return (line._replace(session_id=prefix + line.session_id) for line in read_lines(file))


def check_files(files: Iterable[Path], limits: MessageLimits, *, prefix: str = "") -> tuple[FileSize, ...]:
    """Raises `ImportFormatError` with the file and the line of the first thing that cannot be stored."""
    seen: dict[str, str] = {}
    return tuple(_check_file(file, limits, prefix, seen) for file in files)


def _check_file(file: Path, limits: MessageLimits, prefix: str, seen: dict[str, str]) -> FileSize:
    sizes = [check_line(line, limits, seen) for line in read_sessions(file, prefix)]
    if not sizes:
        raise ImportFormatError(str(file), "holds no session")
    return FileSize(file=file, sessions=len(sizes), messages=sum(sizes))


def check_line(line: Line, limits: MessageLimits, seen: dict[str, str]) -> int:
    """The number of messages of a session. `seen` are the ids so far and where they stand."""
    try:
        check_session_id(line.session_id, creating=True)
        for number, message in enumerate(line.messages):
            check_message(message, limits, field=f"messages[{number}]")
    except InvalidInputError as error:
        raise ImportFormatError(line.where, str(error)) from None
    if not line.messages:
        raise ImportFormatError(line.where, "messages: is empty; give at least one message")
    if seen.setdefault(line.session_id, line.where) != line.where:
        raise ImportFormatError(line.where, f"id: the session stands in {seen[line.session_id]} too")
    return len(line.messages)


class Importer:
    """Stores the sessions of checked files for one user, in batches of `batch` messages."""

    def __init__(
        self, manager: ConversationManager, *, user_id: str | None, prefix: str = "", batch: int = BATCH
    ) -> None:
        self._manager = manager
        self._user_id = user_id
        self._prefix = prefix
        self._batch = batch

    async def compare(self, file: Path) -> None:
        """Raises `ImportFormatError` if the database holds something else under an id of the file; writes nothing."""
        for line in read_sessions(file, self._prefix):
            await self._present(line)

    async def store(self, file: Path, advance: Advance) -> int:
        """Store the messages that are missing; how many they were."""
        return sum([await self.store_line(line, advance) for line in read_sessions(file, self._prefix)])

    async def store_line(self, line: Line, advance: Advance) -> int:
        """Store the messages of one session that are missing; how many they were."""
        position = before = await self._present(line)
        advance(before)
        while position < len(line.messages):
            end = position - position % self._batch + self._batch
            batch = line.messages[position:end]
            await self._manager.save_history(
                line.session_id, batch, user_id=self._user_id, idempotency_key=f"import:{position}"
            )
            position += len(batch)
            advance(len(batch))
        return position - before

    async def _present(self, line: Line) -> int:
        """How many messages of the session are in the database, which may hold more of it."""
        count = 0
        async for message in self._manager.stream_messages(line.session_id, user_id=self._user_id):
            if count == len(line.messages):
                break
            if not _is_same(message, line.messages[count]):
                problem = f"id: the database holds other messages of {line.session_id!r}; use --session-prefix"
                raise ImportFormatError(line.where, problem)
            count += 1
        return count


def _is_same(stored: Message, given: Message) -> bool:
    """Whether `stored` was made from `given`, which may leave the time to the store."""
    at = None if given.created_at is None else stored.created_at
    return replace(stored, created_at=at, seq=None, message_id=None, token_count=None, tokenizer=None) == given
