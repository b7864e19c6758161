"""What an agent can do itself about what its context does not show: read again, search, keep a note.

Any framework can hand these tools to a model: each has a name, a description, a JSON schema and a call. Who asks and
about which session is fixed when they are made, so no text that a model reads can make it ask for somebody else's.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from reactor_memory.errors import InvalidInputError, ReactorMemoryError, StoreError
from reactor_memory.memory import Memory
from reactor_memory.models import JsonObject, Message, SearchHit, is_kept_by_author, is_posted_summary
from reactor_memory.models.memory_tools import NOTE_TOOL, READING_TOOL, SEARCHING_TOOL
from reactor_memory.text.relative_dates import day_of

log = logging.getLogger(__name__)

MOST_CHARACTERS = 16_000
MOST_HITS = 50
DEFAULT_HITS = 8
RESULTS_AFTER = 64
"""The results of a call are looked for among so many messages behind it."""

_LINES = re.compile(r"\s*(\d{1,9})\s*(?:[-–:.]+\s*(\d{1,9})\s*)?")
_SEARCHED = 4
"""With a filter, so many times as many hits are asked for: some will not pass."""

Call = Callable[..., Awaitable[str]]


class SessionTool:
    """A tool for a model. `name`, `description` and `input_schema` (JSON schema) tell the model of it.

    Calling it never raises for what a model or a store does wrong: then the text that it returns begins with
    ``Error: ``.
    """

    def __init__(
        self, name: str, description: str, properties: JsonObject, required: Sequence[str], call: Call
    ) -> None:
        self.name = name
        self.description = description
        self.input_schema: JsonObject = {
            "type": "object",
            "properties": properties,
            "required": list(required),
            "additionalProperties": False,
        }
        self._call = call

    def __repr__(self) -> str:
        return f"<SessionTool {self.name}>"

    async def __call__(self, **arguments: Any) -> str:
        try:
            return await self._call(**self._checked(arguments))
        except StoreError as error:
            log.warning("%s failed with %s", self.name, type(error).__name__)
            return "Error: the memory cannot be reached now. Try again later."
        except ReactorMemoryError as error:
            return f"Error: {error}"

    def _checked(self, arguments: Mapping[str, Any]) -> JsonObject:
        known = self.input_schema["properties"]
        given = {name: value for name, value in arguments.items() if value is not None or name == "text"}
        for name in given:
            if name not in known:
                raise InvalidInputError("arguments", f"hold something unknown; known are {', '.join(known)}")
        for name in self.input_schema["required"]:
            if name not in given:
                raise InvalidInputError(name, f"is missing: {known[name]['description']}")
        return given

    def to_openai(self) -> JsonObject:
        """The declaration for a chat completion."""
        function = {"name": self.name, "description": self.description, "parameters": self.input_schema}
        return {"type": "function", "function": function}

    def to_openai_responses(self) -> JsonObject:
        """The declaration for the Responses API."""
        return {
            "type": "function",
            "name": self.name,
            "description": self.description,
            "parameters": self.input_schema,
            "strict": False,
        }

    def to_anthropic(self) -> JsonObject:
        """The declaration for the Messages API."""
        return {"name": self.name, "description": self.description, "input_schema": self.input_schema}

    def to_gemini(self) -> JsonObject:
        """The declaration of a function for google-genai."""
        return {"name": self.name, "description": self.description, "parameters_json_schema": self.input_schema}


def session_tools(
    memory: Memory, session_id: str, *, user_id: str | None = None, agent_name: str | None = None
) -> tuple[SessionTool, ...]:
    """``memory_read``, ``memory_search`` and ``memory_note`` for one session.

    What other agents than `agent_name` keep for themselves is not read. They run on the event loop of the memory.
    """
    work = SessionWork(memory, session_id, user_id, agent_name)
    return (
        SessionTool(READING_TOOL, READ, _READ_PROPERTIES, ("seq",), work.read),
        SessionTool(SEARCHING_TOOL, SEARCH, _SEARCH_PROPERTIES, ("words",), work.search),
        SessionTool(NOTE_TOOL, NOTE, _NOTE_PROPERTIES, ("key", "text"), work.note),
    )


READ = (
    "Read a message of this conversation again that is shown only in part, as a stub or as a line of a log: the number "
    f"is the one that stands there, as in {READING_TOOL}(41) or #41. A call comes with its results."
)
SEARCH = "Find passages of this conversation by their words, also of what is not shown any more; the best come first."
NOTE = (
    "Keep a note for yourself about this work, such as your plan, ways that you rejected, or what is still open. It "
    "stays visible as it is, in place of the one with the same key; text null removes it."
)
_READ_PROPERTIES: JsonObject = {
    "seq": {"type": "integer", "minimum": 1, "description": "The number of the message."},
    "lines": {"type": "string", "description": "Only these lines, such as 120-180 or 7. Without it, the beginning."},
}
_SEARCH_PROPERTIES: JsonObject = {
    "words": {"type": "string", "description": "What to look for."},
    "after": {"type": "integer", "minimum": 0, "description": "Only behind the message with this number."},
    "tool": {"type": "string", "description": "Only results of the tool of this name, and calls of it."},
    "limit": {"type": "integer", "minimum": 1, "maximum": MOST_HITS, "description": "How many passages at most."},
}
_NOTE_PROPERTIES: JsonObject = {
    "key": {"type": "string", "description": "What the note is about, such as plan."},
    "text": {"type": ["string", "null"], "description": "The note, or null to remove it."},
}


class SessionWork:
    """What the tools do. What it raises tells the model what went wrong."""

    def __init__(self, memory: Memory, session_id: str, user_id: str | None, agent_name: str | None) -> None:
        self._memory = memory
        self._session_id = session_id
        self._user_id = user_id
        self._agent_name = agent_name

    async def read(self, seq: int | str, lines: str | int | None = None) -> str:
        place = _whole_number("seq", seq, least=1)
        wanted = _lines_of(lines)
        messages = await self._read(place - 1, place + RESULTS_AFTER)
        if not messages or messages[0].seq != place:
            raise InvalidInputError("seq", f"message {place} is not in this conversation, or not for you")
        shown = [messages[0], *results_of(messages[0], messages[1:])]
        room = max(1, MOST_CHARACTERS // len(shown))
        return "\n\n".join([message_text(message, wanted, room) for message in shown])

    async def search(
        self, words: str, after: int | None = None, tool: str | None = None, limit: int = DEFAULT_HITS
    ) -> str:
        hits = await self.hits(words, after=after, tool=tool, limit=limit)
        return "\n\n".join([f"#{hit.seq} {hit.text}" for hit in hits]) if hits else "Nothing found."

    async def hits(
        self, words: str, *, after: int | None = None, tool: str | None = None, limit: int = DEFAULT_HITS
    ) -> list[SearchHit]:
        """The best passages behind message `after`, and with a `tool` only of its calls and results."""
        after = _whole_number("after", after or 0, least=0)
        limit = min(_whole_number("limit", limit, least=1), MOST_HITS)
        asked = limit if not after and tool is None else _SEARCHED * limit
        found = await self._memory.recall(self._session_id, _text("words", words), user_id=self._user_id, limit=asked)
        hits = [hit for hit in found if hit.seq > after]
        if tool is not None:
            name = _text("tool", tool)
            hits = [hit for hit in hits if await self._is_of_tool(hit.seq, name)]
        return hits[:limit]

    async def note(self, key: str, text: str | None) -> str:
        checked = None if text is None else _text("text", text)
        await self._memory.pins.note(self._session_id, _text("key", key), checked, user_id=self._user_id)
        return "Removed." if checked is None else "Kept."

    async def _read(self, after: int, until: int) -> list[Message]:
        messages = await self._memory.read_messages(
            self._session_id, user_id=self._user_id, after=max(0, after), until=until
        )
        return [message for message in messages if self._may_see(message)]

    def _may_see(self, message: Message) -> bool:
        if is_posted_summary(message) or message.visibility == "system":
            return False
        return not is_kept_by_author(message) or message.author_id == self._agent_name

    async def _is_of_tool(self, seq: int, tool: str) -> bool:
        messages = await self._read(seq - RESULTS_AFTER, seq)
        if not messages or messages[-1].seq != seq:
            return False
        message = messages[-1]
        if message.role != "tool":
            return any(call.name == tool for call in message.tool_calls)
        names = [call.name for each in messages for call in each.tool_calls if call.id == message.tool_call_id]
        return (names[-1] if names else message.name) == tool


def results_of(message: Message, behind: Sequence[Message]) -> list[Message]:
    """The results of the calls of a message, among the messages behind it."""
    waiting = {call.id for call in message.tool_calls}
    found: list[Message] = []
    for each in behind:
        if each.role == "user" or not waiting:
            break
        if each.role == "tool" and each.tool_call_id in waiting:
            waiting.discard(each.tool_call_id or "")
            found.append(each)
    return found


def message_text(message: Message, lines: tuple[int, int] | None, room: int) -> str:
    """A message with where it stands, or the lines of it, in about so many characters."""
    calls = [f"[call {call.name} {call.arguments_text}]" for call in message.tool_calls]
    parts = [f"[{len(message.parts)} parts that are no text]"] if message.parts else []
    all_lines = "\n".join(filter(None, (message.content, *calls, *parts))).split("\n")
    first, last = lines or (1, len(all_lines))
    first, last = min(first, len(all_lines)), min(last, len(all_lines))
    text = "\n".join(all_lines[first - 1 : last])
    if len(text) > room:
        text = text[:room]
        last = first + text.count("\n")
        text += f"\n[… more; ask for lines {last}-{len(all_lines)}]"
    day = day_of(message.created_at)
    at = f", {day.isoformat()}" if day else ""
    name = f" of {message.name}" if message.role == "tool" and message.name else ""
    return f"[message {message.seq}: {message.role}{name}{at}; lines {first}-{last} of {len(all_lines)}]\n{text}"


def _lines_of(given: str | int | None) -> tuple[int, int] | None:
    if given is None or given == "":
        return None
    found = _LINES.fullmatch(str(given))
    if found is None or int(found[1]) < 1 or (found[2] is not None and int(found[2]) < int(found[1])):
        raise InvalidInputError("lines", "must be a range such as 120-180, or one number")
    return int(found[1]), int(found[2] or found[1])


def _whole_number(field: str, given: int | str, *, least: int) -> int:
    text = str(given).strip().lstrip("#")
    if isinstance(given, bool) or not text.isascii() or not text.isdigit() or len(text) > 18 or int(text) < least:
        raise InvalidInputError(field, f"must be a whole number from {least} on")
    return int(text)


def _text(field: str, given: object) -> str:
    if not isinstance(given, str):
        raise InvalidInputError(field, f"must be a text, is a {type(given).__name__}")
    return given
