"""The commands of a chat: a line in, a reply out. No terminal is known here, so any host may use them."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from reactor_memory.core.context.context import Context
from reactor_memory.core.manager import ConversationManager
from reactor_memory.errors import ReactorMemoryError, SessionNotFoundError
from reactor_memory.features.chat.columns import columns, count, excerpt
from reactor_memory.features.chat.hierarchical_summaries import ChatSummaries
from reactor_memory.features.chat.replies import Progress, Reply, Unseen
from reactor_memory.features.facts.facts import Facts
from reactor_memory.features.facts.tracing import TracedFact
from reactor_memory.features.pins.pins import Pins
from reactor_memory.models import Message, Pin

MARK = "/"
NOTHING_SAID = "nothing has been said in this session yet"
_NO_COMMAND = "It was not sent to the model: a text may begin with // to be sent with one slash."


class Command(NamedTuple):
    arguments: str
    summary: str
    run: Callable[[str, Progress], Awaitable[Reply]]


class ChatCommands:
    """Carries out the commands of one chat. `session_id` changes when the chat goes on in a fork."""

    def __init__(
        self,
        *,
        manager: ConversationManager,
        facts: Facts,
        pins: Pins,
        summaries: ChatSummaries,
        session_id: str,
        user_id: str | None,
        budget: int | None,
        system: str | None,
    ) -> None:
        self.session_id = session_id
        self._manager = manager
        self._known = facts
        self._pins = pins
        self._summaries = summaries
        self._user_id = user_id
        self._budget = budget
        self._system = system
        self._asked: Callable[[str], Awaitable[Reply]] | None = None
        self._commands = {
            "summarize": Command("", "make summaries of older messages now", self._summarize),
            "stats": Command("", "how long the session is and what is summarised", self._stats),
            "context": Command("[TEXT]", "what the model would see next (if you said TEXT)", self._context),
            "facts": Command("", "the facts that were found", self._facts),
            "pin": Command("[SEQ | ANCHOR KEY]", "keep a message or a fact in every context; list pins", self._pin),
            "unpin": Command("SEQ | ANCHOR KEY", "take a pin back", self._unpin),
            "fork": Command("[SEQ]", "go on in a branch that shares what came before SEQ", self._fork),
            "delete": Command("", "delete the session, after asking", self._delete),
            "help": Command("", "list the commands", self._help),
            "quit": Command("", "leave", self._quit),
        }

    async def handle(self, line: str, progress: Progress | None = None) -> Reply | None:
        """The reply to a command, or to the answer of a question that a command asked; None: `line` is for the model.

        Whatever begins with a slash is a command, also one that does not exist: it never reaches the model.
        """
        asked, self._asked = self._asked, None
        if asked is None and not is_command(line):
            return None
        try:
            return await (self._run(line.strip(), progress or Unseen()) if asked is None else asked(line.strip()))
        except SessionNotFoundError:
            return Reply(text=NOTHING_SAID)
        except ReactorMemoryError as error:
            return Reply(text=str(error), failed=True)

    async def _run(self, line: str, progress: Progress) -> Reply:
        name, _, arguments = line.removeprefix(MARK).partition(" ")
        command = self._commands.get(name.lower())
        if command is None:
            return Reply(text=self._hint(name), failed=True)
        if arguments.strip() and not command.arguments:
            return Reply(text=f"/{name} takes nothing: see /help", failed=True)
        return await command.run(arguments.strip(), progress)

    def _hint(self, name: str) -> str:
        near = difflib.get_close_matches(name.lower(), self._commands, n=1)
        instead = f"did you mean /{near[0]}?" if near else "/help lists the commands."
        return f"there is no command /{excerpt(name, 30)}; {instead} {_NO_COMMAND}"

    # -- looking ------------------------------------------------------------------------------------------------

    async def _help(self, arguments: str, progress: Progress) -> Reply:
        rows = [(f"/{name} {each.arguments}".rstrip(), each.summary) for name, each in self._commands.items()]
        return Reply(text=columns(rows))

    async def _stats(self, arguments: str, progress: Progress) -> Reply:
        session = await self._manager.get_session(self.session_id, user_id=self._user_id)
        stats = await self._summaries.stats(session, self._user_id)
        whose = "no owner" if session.owner_id is None else f"owner {session.owner_id}"
        fork = f", forked from {session.forked_from_id}" if session.forked_from_id else ""
        return Reply(text=f"session {session.session_id}, {whose}{fork}\n{stats.text}", report=stats.report)

    async def _context(self, text: str, progress: Progress) -> Reply:
        context = await self._manager.load_history(
            self.session_id,
            user_id=self._user_id,
            message=Message.user(text) if text else None,
            budget=self._budget,
            system=self._system,
        )
        return Reply(text=_context_text(context) if context.messages else NOTHING_SAID, report=context)

    async def _facts(self, arguments: str, progress: Progress) -> Reply:
        found = await self._known.trace(self.session_id, user_id=self._user_id)
        return Reply(text=_facts_text(found), report=found)

    # -- changing -----------------------------------------------------------------------------------------------

    async def _summarize(self, arguments: str, progress: Progress) -> Reply:
        session = await self._manager.get_session(self.session_id, user_id=self._user_id)
        return await self._summaries.summarize(session, self._user_id, progress)

    async def _pin(self, arguments: str, progress: Progress) -> Reply:
        if not arguments:
            pins = await self._pins.list(self.session_id, user_id=self._user_id)
            return Reply(text="\n".join(map(_pin_text, pins)) or "nothing is pinned", report=pins)
        target = _target(arguments)
        if target is None:
            return _usage("pin", self._commands)
        pin = await self._pins.add(self.session_id, user_id=self._user_id, seq=target.seq, fact=target.fact)
        return Reply(text=f"pinned: {_pin_text(pin)}", report=(pin,))

    async def _unpin(self, arguments: str, progress: Progress) -> Reply:
        target = _target(arguments)
        if target is None:
            return _usage("unpin", self._commands)
        gone = await self._pins.remove(self.session_id, user_id=self._user_id, seq=target.seq, fact=target.fact)
        return Reply(text="unpinned" if gone else "it was not pinned", report=gone)

    async def _fork(self, arguments: str, progress: Progress) -> Reply:
        if arguments and not arguments.isdecimal():
            return _usage("fork", self._commands)
        before = await self._manager.get_session(self.session_id, user_id=self._user_id)
        at_seq = int(arguments) if arguments else before.last_seq + 1
        fork = await self._manager.fork(self.session_id, at_seq=at_seq, user_id=self._user_id)
        self.session_id = fork.session_id
        shared = f"it shares {count(at_seq - 1, 'message')} with {before.session_id}"
        return Reply(text=f"going on in {fork.session_id}: {shared}", report=fork)

    async def _delete(self, arguments: str, progress: Progress) -> Reply:
        session = await self._manager.get_session(self.session_id, user_id=self._user_id)
        self._asked = self._delete_if_yes
        what = f"{session.session_id} ({count(session.last_seq, 'message')})"
        return Reply(text=f"Delete {what} and its forks for ever? yes or no", asks=True)

    async def _delete_if_yes(self, answer: str) -> Reply:
        if answer.lower() not in ("y", "yes"):
            return Reply(text="nothing was deleted")
        gone = await self._manager.delete(self.session_id, user_id=self._user_id)
        lines = [f"deleted {each}" for each in gone.session_ids] or ["was deleted before"]
        lines += [f"not gone yet: {each}, background work goes on" for each in gone.left]
        return Reply(text="\n".join(lines), report=gone.session_ids, ends=True)

    async def _quit(self, arguments: str, progress: Progress) -> Reply:
        return Reply(text="", ends=True)


def is_command(line: str) -> bool:
    """Whether a line is no text for the model. Two slashes begin a text that begins with one."""
    text = line.strip()
    return text.startswith(MARK) and not text.startswith(MARK * 2)


def text_of(line: str) -> str:
    """What the model is told: `line` as it is, but that two slashes at its beginning are one."""
    return line.strip().removeprefix(MARK) if line.strip().startswith(MARK * 2) else line


class _Target(NamedTuple):
    """What is pinned: a message or a fact."""

    seq: int | None = None
    fact: tuple[str, str] | None = None


def _target(arguments: str) -> _Target | None:
    """``7`` is a message, ``"order 5" number`` a fact; None: neither."""
    try:
        match shlex.split(arguments):
            case [seq] if seq.isdecimal():
                return _Target(seq=int(seq))
            case [anchor, key]:
                return _Target(fact=(anchor, key))
            case _:
                return None
    except ValueError:  # an open quotation mark
        return None


def _usage(name: str, commands: dict[str, Command]) -> Reply:
    return Reply(text=f'usage: /{name} {commands[name].arguments} (quote what has blanks: "order 5")', failed=True)


def _context_text(context: Context) -> str:
    report = context.report
    parts = ", ".join(f"{part} {tokens:,}" for part, tokens in report.tokens.items() if tokens)
    head = f"{count(len(context.messages), 'message')}, {report.total_tokens:,} of {report.budget:,} tokens: {parts}"
    lines = [f"{message.role}: {excerpt(message.content)}" for message in context.messages]
    return "\n".join([head, *lines])


def _facts_text(found: Sequence[TracedFact]) -> str:
    lines = [
        f"message {each.fact.source_seq}: {each.fact.anchor} · {each.fact.key}: {excerpt(each.fact.value)}"
        for each in found
    ]
    return "\n".join(lines) or "no facts yet: they are found in the background, once the session is long enough"


def _pin_text(pin: Pin) -> str:
    what = f"message {pin.seq}" if pin.fact is None else f"fact {pin.fact[0]} {pin.fact[1]}"
    return f"{what}: {excerpt(pin.text)}"
