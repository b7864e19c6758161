"""The notes of an agent about a user: one Markdown text, every version of it kept."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reactor_memory.core.validation import check_optional_id, check_user_and_agent
from reactor_memory.database.database import Database
from reactor_memory.errors import InvalidInputError
from reactor_memory.features.notes import operations as note_rows
from reactor_memory.features.notes.changes import DESTRUCTIVE, Change, RefusedChangeError, changed
from reactor_memory.features.notes.models import Notes, NotesResult
from reactor_memory.features.notes.tool import ManageLongTermMemoryTool
from reactor_memory.text.borders import cut

if TYPE_CHECKING:
    from reactor_memory.core.ports import Clock

WRITE_ATTEMPTS = 2
"""Once more after another writer was faster."""


class LongTermMemory:
    """Reads and changes notes. A change is stored as the next version, and only if no other was stored meanwhile.

    Notes have at most `max_chars` characters. Unless `allow_destructive`, operations that take text away are refused.
    All methods raise `InvalidInputError` for ids that no store can keep, and `StoreError` when the store fails.
    """

    def __init__(self, *, database: Database, clock: Clock, max_chars: int, allow_destructive: bool) -> None:
        self._database = database
        self._clock = clock
        self.max_chars = max_chars
        self.allow_destructive = allow_destructive

    async def read(self, user_id: str, agent_name: str) -> Notes:
        """The newest version; version 0, an empty text, if there is none."""
        check_user_and_agent(user_id, agent_name)
        return await self._database.read(note_rows.read_notes, user_id, agent_name)

    async def versions(self, user_id: str, agent_name: str, *, limit: int = 50) -> tuple[Notes, ...]:
        """The newest versions, newest first."""
        check_user_and_agent(user_id, agent_name)
        return await self._database.read(note_rows.list_notes, user_id, agent_name, limit=limit)

    async def apply(
        self,
        user_id: str,
        agent_name: str,
        operation: str,
        *,
        content: str | None = None,
        section_header: str | None = None,
        create_if_missing: bool = False,
        separator: str | None = None,
        truncate: bool = False,
        author: str | None = None,
    ) -> NotesResult:
        """Do one of the seven operations of the tool. What cannot be done is told in the result, nothing is raised.

        ``append`` and ``prepend`` put one blank line, or `separator`, between the parts. With `create_if_missing`,
        ``replace_section_by_header`` adds a section that is not there. A text that is too long is refused, or with
        `truncate` cut at its end, which the message tells.
        """
        check_user_and_agent(user_id, agent_name)
        check_optional_id("author", author)
        change = Change(
            operation=operation,
            content=content,
            section_header=section_header,
            create_if_missing=create_if_missing,
            separator=separator,
        )
        newest = Notes(user_id=user_id, agent_name=agent_name)
        for _ in range(WRITE_ATTEMPTS):
            newest = await self._database.read(note_rows.read_notes, user_id, agent_name)
            result = self._decided(newest, change, truncate, author)
            if result.notes is newest or await self._database.write(note_rows.put_notes, result.notes):
                return result
        return _conflict(newest)

    async def undo(self, user_id: str, agent_name: str, *, to_version: int | None = None) -> NotesResult:
        """Make the version before the newest, or `to_version`, hold again, as a new version.

        So undoing twice brings back what was undone. Version 0 is the empty text. Raises `InvalidInputError` for a
        version that there never was, or that was erased.
        """
        check_user_and_agent(user_id, agent_name)
        newest = await self._database.read(note_rows.read_notes, user_id, agent_name)
        wanted = max(0, newest.version - 1) if to_version is None else to_version
        earlier = await self._database.read(note_rows.read_notes, user_id, agent_name, version=wanted)
        if to_version is not None and earlier.version != to_version:
            raise InvalidInputError("to_version", "names no version that is kept; `versions` lists those that are")
        if earlier.text == newest.text:
            return NotesResult(status="unchanged", notes=newest, message="the notes are as they were then")
        undone = self._next(newest, earlier.text, earlier.author)
        return (
            NotesResult(status="ok", notes=undone)
            if await self._database.write(note_rows.put_notes, undone)
            else _conflict(newest)
        )

    def tool(self, user_id: str, agent_name: str) -> ManageLongTermMemoryTool:
        """The tool with which the agent keeps its notes about this user."""
        check_user_and_agent(user_id, agent_name)
        return ManageLongTermMemoryTool(
            partial(self.apply, user_id, agent_name, author=agent_name),
            max_chars=self.max_chars,
            allow_destructive=self.allow_destructive,
        )

    def _decided(self, newest: Notes, change: Change, truncate: bool, author: str | None) -> NotesResult:
        """The result, if nobody else writes meanwhile."""
        try:
            self._check_allowed(change.operation)
            text = changed(newest.text, change)
            kept = self._fitting(newest.text, text, truncate)
        except RefusedChangeError as refused:
            return NotesResult(status=refused.status, notes=newest, message=str(refused))
        if change.operation == "read":
            return NotesResult(status="ok", notes=newest)
        if kept == newest.text:
            return NotesResult(status="unchanged", notes=newest, message="the notes are so already")
        lost = len(text) - len(kept)
        message = f"{lost} characters at the end were cut off to keep within {self.max_chars}" if lost else ""
        return NotesResult(status="ok", notes=self._next(newest, kept, author), message=message)

    def _check_allowed(self, operation: str) -> None:
        if operation in DESTRUCTIVE and not self.allow_destructive:
            raise RefusedChangeError("forbidden", f"{operation} is switched off (notes.allow_destructive)")

    def _fitting(self, before: str, text: str, truncate: bool) -> str:
        """`text`, if it is short enough, or no longer than what there is since before the limit was lowered."""
        if len(text) <= max(self.max_chars, len(before)):
            return text
        if truncate:
            return cut(text, self.max_chars)
        problem = f"the notes would have {len(text)} characters, the limit is {self.max_chars}"
        raise RefusedChangeError("too_large", f"{problem}: shorten or remove a section first, or write less")

    def _next(self, newest: Notes, text: str, author: str | None) -> Notes:
        return replace(newest, version=newest.version + 1, text=text, author=author, created_at=self._clock())


def _conflict(newest: Notes) -> NotesResult:
    return NotesResult(
        status="conflict", notes=newest, message="others changed the notes at the same time: read them and try again"
    )
