"""Storing the sessions of files: checked before the first write, repeatable after any interruption.

Files are read again for every step, never held: to check the format, to compare with the database, to store. What the
database holds of a session already must be the beginning of it in the file; the import continues from there. Batches
stand at fixed positions and carry idempotency keys, so that two imports at once store everything once. While a batch is
written, the next one is read, checked and counted.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar

from msgspec.structs import replace

from reactor_memory.core.manager import ConversationManager
from reactor_memory.core.validation import MessageLimits, check_message, check_session_id
from reactor_memory.errors import ImportFormatError, InvalidInputError, SessionNotFoundError
from reactor_memory.evaluation.transcripts import Line, read_lines, read_unread
from reactor_memory.imports.conversation import LeaveOut, say_nothing, stop
from reactor_memory.imports.json_files import is_foreign, looks_like_json, read_json, sources_of
from reactor_memory.imports.sqlite_files import is_sqlite, read_sqlite
from reactor_memory.models import Message, Value
from reactor_memory.models.requests import AppendRequest
from reactor_memory.text.bounded_files import UnreadableError, members
from reactor_memory.text.bounded_json import UNLIMITED
from reactor_memory.text.documents import page

T = TypeVar("T")

BATCH = 1000
"""Messages that are stored at once. A commit a hundred costs half as much again, a commit ten thousand no less."""

TAKEN = (
    "our own JSONL; messages or requests of OpenAI, Anthropic, Gemini and LangChain as JSON or JSONL; exports of "
    "ChatGPT and Claude; SQLite files of SQLiteSession (openai-agents), SQLChatMessageHistory (LangChain) and "
    "SqliteSaver (LangGraph); all but SQLite also packed with gzip"
)

MOST_SESSIONS = 100_000
"""Of one file: their ids are kept while it is checked."""

Advance = Callable[[int], None]
"""Told how many messages were done since the last call."""


STDIN = Path("-")
_COPIES = "reactor-memory-stdin-"


def shown_name(file: Path) -> str:
    """The name under which somebody gave a file."""
    return file.name if file.parent.name.startswith(_COPIES) else str(file)


class FileSize(Value, frozen=True, kw_only=True):
    """What a file holds."""

    file: Path
    sessions: int
    messages: int


class Imported(Value, frozen=True, kw_only=True, omit_defaults=True):
    """What became of a file: `stored` of its messages were not in the database before. `left_out`: what could not be
    read, a line each.
    """

    file: str
    sessions: int
    messages: int
    stored: int
    left_out: tuple[str, ...] = ()


@contextmanager
def files_of(given: Sequence[Path]) -> Generator[Sequence[Path]]:
    """The files, with a copy of stdin in place of ``-``: a file is read more than once."""
    if STDIN not in given:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix=_COPIES) as folder:
        copy = Path(folder) / "stdin"
        with copy.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            yield [copy if path == STDIN else path for path in given]
        except ImportFormatError as error:
            raise ImportFormatError(error.field.replace(str(copy), copy.name), error.problem) from None


class Naming(NamedTuple):
    """How the sessions of a file are called: `prefix` stands before their ids; `only` is the id of the only one."""

    prefix: str = ""
    only: str | None = None

    def of(self, line: Line) -> Line:
        return line._replace(session_id=self.prefix + (line.session_id if self.only is None else self.only))


AS_THEY_ARE = Naming()


def read_sessions(file: Path, naming: Naming, max_bytes: int, *, leave_out: LeaveOut = say_nothing) -> Iterator[Line]:
    """The sessions of a file, whatever its form. `leave_out` is told of rows that cannot be read."""
    return map(naming.of, _lines(file, max_bytes, leave_out))


def _lines(file: Path, max_bytes: int, leave_out: LeaveOut) -> Iterator[Line]:
    if is_sqlite(file):
        return read_sqlite(file, max_bytes=max_bytes, leave_out=leave_out)
    names = _members(file)
    if names is not None or is_foreign(file):
        return read_json(sources_of(file, names), max_bytes=max_bytes, leave_out=leave_out)
    if not looks_like_json(file):
        raise ImportFormatError(str(file), f"is in no form that is read, which are: {TAKEN} ({page('formats')})")
    return read_lines(file, max_bytes=max_bytes)


def _members(file: Path) -> Sequence[str] | None:
    try:
        return members(file)
    except UnreadableError as error:
        raise ImportFormatError(str(file), str(error)) from None


def _unread(file: Path, max_bytes: int) -> Iterator[tuple[str, Callable[[], Line]]]:
    """The ids of the sessions of a file, each with what reads the rest of it."""
    if is_sqlite(file) or _members(file) is not None or is_foreign(file):
        return ((line.session_id, partial(_itself, line)) for line in _lines(file, max_bytes, say_nothing))
    return read_unread(file, max_bytes=max_bytes)


def _itself(line: Line) -> Line:
    return line


def check_files(
    files: Iterable[Path], limits: MessageLimits, *, naming: Naming = AS_THEY_ARE, leave_out: LeaveOut = stop
) -> tuple[FileSize, ...]:
    """Raises `ImportFormatError` with the file and the line of the first thing that cannot be stored. `leave_out` is
    told of rows of databases that cannot be read.
    """
    seen: dict[str, str] = {}
    return tuple(_check_file(file, limits, naming, leave_out, seen) for file in files)


def _check_file(
    file: Path, limits: MessageLimits, naming: Naming, leave_out: LeaveOut, seen: dict[str, str]
) -> FileSize:
    faults: list[ImportFormatError] = []

    def tell(fault: ImportFormatError) -> None:
        if not faults:
            faults.append(fault)
        leave_out(fault)

    lines = read_sessions(file, naming, limits.max_session_bytes, leave_out=tell)
    sizes: list[int] = []
    for line in lines:
        if naming.only is not None and sizes:
            raise ImportFormatError(str(file), "holds 2 sessions or more: they cannot have one id, leave --session out")
        sizes.append(check_line(line, limits, seen))
        if len(sizes) > MOST_SESSIONS:
            raise ImportFormatError(str(file), f"holds more than {MOST_SESSIONS} sessions: import it in parts")
    if not sizes:
        raise faults[0] if faults else ImportFormatError(str(file), "holds no session")
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


class Origin(NamedTuple):
    """What is told of a session beside its messages."""

    title: str | None
    began_at: int | None


Describe: TypeAlias = Callable[[str, Origin], Awaitable[object]]


async def say_no_more(session_id: str, origin: Origin) -> None:
    """For a log that keeps messages only."""


LONGEST_TITLE = 200


def _usable(title: str | None) -> str | None:
    """A title in one line of printable characters."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in title or "").split())
    return line[:LONGEST_TITLE] or None


@dataclass(slots=True)
class Portion:
    """Batches that are stored together, and how many messages of their sessions were stored before."""

    batches: list[AppendRequest] = field(default_factory=list[AppendRequest])
    present: int = 0
    titles: dict[str, Origin] = field(default_factory=dict[str, Origin])

    @property
    def missing(self) -> int:
        return sum(len(batch.messages) for batch in self.batches)

    def describe(self, line: Line) -> None:
        began = next((each.created_at for each in line.messages if each.created_at is not None), None)
        if line.title or began is not None:
            self.titles[line.session_id] = Origin(title=_usable(line.title), began_at=began)

    def holds(self, session_id: str) -> bool:
        return bool(self.batches) and self.batches[-1].session_id == session_id


class Importer:
    """Stores the sessions of checked files for one user, in batches of `batch` messages."""

    def __init__(
        self,
        manager: ConversationManager,
        *,
        user_id: str | None,
        naming: Naming = AS_THEY_ARE,
        batch: int = BATCH,
        max_bytes: int = UNLIMITED,
        describe: Describe = say_no_more,
    ) -> None:
        self._manager = manager
        self._user_id = user_id
        self._naming = naming
        self._batch = batch
        self._max_bytes = max_bytes
        self._describe_one = describe
        self.grown: dict[str, None] = {}

    async def compare(self, file: Path) -> None:
        """Raises `ImportFormatError` if the database holds something else under an id of the file; writes nothing."""
        for session_id, read in _unread(file, self._max_bytes):
            head = self._naming.of(Line("", session_id, (), tuple))
            if await self._is_known(head.session_id):
                await self._present(self._naming.of(read()))

    async def store(self, file: Path, advance: Advance) -> int:
        """Store the messages that are missing; how many they were. `grown` are the sessions that got some."""
        return await self.store_lines(read_sessions(file, self._naming, self._max_bytes), advance)

    async def store_lines(self, lines: Iterable[Line], advance: Advance) -> int:
        """Store the messages of sessions that are missing; how many they were."""
        stored = 0
        async with aclosing(one_ahead(self._portions(lines))) as portions:
            async for portion in portions:
                await _all_of(map(self._manager.save_batch, portion.batches))
                self.grown.update(dict.fromkeys(batch.session_id for batch in portion.batches))
                await self._describe(portion.titles)
                stored += portion.missing
                advance(portion.present + portion.missing)
        return stored

    async def _portions(self, lines: Iterable[Line]) -> AsyncGenerator[Portion]:
        """What is to be stored, of which `present` messages are. No portion holds two batches of a session: the second
        must not be stored without the first.
        """
        portion = Portion()
        for line in lines:
            position = await self._present(line)
            portion.present += position
            while position < len(line.messages):
                if portion.missing >= BATCH or portion.holds(line.session_id):
                    yield portion
                    portion = Portion()
                batch = await self._prepared(line, position)
                portion.batches.append(batch)
                portion.describe(line)
                position += len(batch.messages)
        yield portion

    async def _describe(self, titles: Mapping[str, Origin]) -> None:
        for session_id, origin in titles.items():
            await self._describe_one(session_id, origin)

    async def _prepared(self, line: Line, position: int) -> AppendRequest:
        end = position - position % self._batch + self._batch
        given = line.messages[position:end]
        batch = await self._manager.prepare_batch(
            line.session_id, given, user_id=self._user_id, idempotency_key=f"import:{position}"
        )
        return as_it_happened(batch, given)

    async def _is_known(self, session_id: str) -> bool:
        try:
            await self._manager.get_session(session_id, user_id=self._user_id)
        except SessionNotFoundError:
            return False
        return True

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


def as_it_happened(batch: AppendRequest, given: Sequence[Message]) -> AppendRequest:
    """`batch` with the times of the messages that were given, none where none is known: an import is no event."""
    messages = tuple(
        replace(message, created_at=original.created_at)
        for message, original in zip(batch.messages, given, strict=True)
    )
    last = next((each.created_at for each in reversed(given) if each.created_at is not None), batch.now)
    return replace(batch, messages=messages, now=max(0, min(batch.now, last)))


async def one_ahead(steps: AsyncGenerator[T]) -> AsyncGenerator[T]:
    """The values of `steps`, each made while the one before it is used. Close it, so that nothing runs on."""
    coming = asyncio.ensure_future(anext(steps, None))
    try:
        while (step := await coming) is not None:
            coming = asyncio.ensure_future(anext(steps, None))
            yield step
    finally:
        coming.cancel()
        await asyncio.wait([coming])
        await steps.aclose()


async def _all_of(works: Iterable[Awaitable[object]]) -> None:
    """Do all at once and to the end, then raise what the first of them raised that failed."""
    for outcome in await asyncio.gather(*works, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


def _is_same(stored: Message, given: Message) -> bool:
    """Whether `stored` was made from `given`."""
    return replace(stored, seq=None, message_id=None, token_count=None, tokenizer=None) == given
