"""The tool with which an agent keeps its notes, for any framework that knows a name, a JSON schema and a call."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from reactor_memory.errors import InvalidInputError
from reactor_memory.features.notes.changes import DESTRUCTIVE, OPERATIONS
from reactor_memory.features.notes.models import NotesResult

log = logging.getLogger(__name__)

NAME: Final = "manage_long_term_memory"
NO_NOTES: Final = "(There are no notes yet.)"
_ARGUMENTS: Final = ("operation", "content", "section_header")


class ManageLongTermMemoryTool:
    """Notes of one agent about one user: both are fixed in `apply`, and the model never sees or chooses them.

    Calling it never raises: the text that it returns says what went wrong.
    """

    def __init__(
        self, apply: Callable[..., Awaitable[NotesResult]], *, max_chars: int, allow_destructive: bool
    ) -> None:
        self._apply = apply
        self._max_chars = max_chars
        self._allow_destructive = allow_destructive

    @property
    def name(self) -> str:
        return NAME

    @property
    def operations(self) -> tuple[str, ...]:
        """Those that are switched on."""
        return tuple(each for each in OPERATIONS if self._allow_destructive or each not in DESTRUCTIVE)

    @property
    def description(self) -> str:
        return (
            "Keep notes about this user that outlast the conversation: preferences, standing instructions, facts worth "
            "remembering. The notes are one Markdown text; keep related things in a section under a header such as "
            f"'## Food'. At most {self._max_chars} characters. Read them before you change them."
        )

    @property
    def input_schema(self) -> dict[str, Any]:
        """A JSON schema of the arguments; all of them may be left out."""
        return {
            "type": "object",
            "properties": {
                "operation": {
                    "type": "string",
                    "enum": list(self.operations),
                    "default": "read",
                    "description": "What to do with the notes.",
                },
                "content": {
                    "type": "string",
                    "description": "The text, for every operation that writes. Of a section: what stands below its "
                    "header.",
                },
                "section_header": {
                    "type": "string",
                    "description": "Which section, by its title: 'Food'. If several have it: 'Likes > Food', "
                    "'## Food' or 'Food [2]'.",
                },
            },
            "additionalProperties": False,
        }

    async def __call__(self, **arguments: Any) -> str:
        """The notes, what was done, or ``Error: ...``."""
        given = {name: value for name, value in arguments.items() if value is not None}
        try:
            _check_arguments(given)
            operation = given.pop("operation", "read")
            result = await self._apply(operation, **given)
        except InvalidInputError as error:
            return f"Error: {error}"
        except Exception as error:
            log.warning("notes: %s failed with %s", NAME, type(error).__name__)
            return "Error: the notes cannot be reached now; nothing is known to have changed. Try again later."
        return self._answer(operation, result)

    def _answer(self, operation: str, result: NotesResult) -> str:
        if result.status == "ok" and operation == "read":
            return result.notes.text or NO_NOTES
        if result.status == "ok":
            return f"Done. The notes have {len(result.notes.text)} of {self._max_chars} characters."
        return f"Nothing to do: {result.message}." if result.status == "unchanged" else f"Error: {result.message}"


def _check_arguments(given: dict[str, Any]) -> None:
    for name, value in given.items():
        if name not in _ARGUMENTS:
            raise InvalidInputError("arguments", f"hold something unknown; known are {', '.join(_ARGUMENTS)}")
        if type(value) is not str:
            raise InvalidInputError(name, f"is a {type(value).__name__}, must be a string")
