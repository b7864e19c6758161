"""Random settings, random messages and random questions for a context.

Every text that is not blank begins with a word of its own, which the summarizer repeats: where a word turns up, its
message is shown, or remembered.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import Any

from reactor_memory import Message, ToolCall
from reactor_memory.models import Role
from reactor_memory.models.ledger import Extraction, Fact

THOUGHT = Message.assistant(parts=({"type": "reasoning", "id": "rs_1", "summary": []},))

_WORD = re.compile(r"word\d{5}")


def own_words(text: str) -> set[str]:
    """The words of their own that messages left in `text`."""
    return set(_WORD.findall(text))


def remember_words(messages: Sequence[Message]) -> Extraction:
    """A fact for the own word of each message, one that each message replaces, one that no message says, and a
    narrative that names all words.
    """
    said = [(word, message.seq or 0) for message in messages for word in sorted(own_words(message.content))]
    facts = [Fact(anchor=f"about {word}", key="word", value=word, source_seq=seq) for word, seq in said]
    facts += [Fact(anchor="talk", key="latest", value=word, source_seq=seq) for word, seq in said]
    facts += [Fact(anchor="talk", key="made_up", value="something else", source_seq=seq) for _, seq in said[:1]]
    return Extraction(facts=tuple(facts), narrative=" ".join(f"It said {word}." for word, _ in said[:30]))


def random_sections(chance: Random) -> dict[str, dict[str, Any]]:
    """Settings at and between their extremes: windows of one message, no room for facts, a model that takes little."""
    trigger = chance.choice([3, 5, 8, 20])
    summary = {
        "trigger_message_count": trigger,
        "recent_message_count": chance.randint(1, min(trigger - 1, 10)),
        "segment_message_count": chance.choice([1, 2, 5, 10, 50]),
        "mode": chance.choice(["ledger", "ledger", "ledger", "full"]),
        "max_fact_tokens": chance.choice([8000, 60, 0]),
        "memory_role": chance.choice(["system", "user"]),
    }
    context = {
        "window_growth": chance.choice(["auto", "messages", "tokens"]),
        "max_tokens": chance.choice([128_000, 128_000, 6000]),
        "max_window_tokens": chance.choice([16_000, 200]),
    }
    history = {"max_conversation_turns": chance.choice([1, 2, 10])}
    return {"summary": summary, "context": context, "history": history}


class RandomTalk:
    """What users, assistants, tools and others say in one history."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._said = 0

    def first_batch(self) -> list[Message]:
        """A turn, most often behind a message that no history should begin with."""
        leads = [Message.assistant(self._text()), Message.system(self._text()), self._result("no call")]
        return [self._chance.choice(leads), *self.turn()] if self._sometimes(0.75) else self.turn()

    def batch(self) -> list[Message]:
        """A turn, at times cut short: its calls may lack results, which may come never."""
        turn = self.turn()
        return turn[: self._chance.randint(1, len(turn))] if self._sometimes(0.1) else turn

    def turn(self) -> list[Message]:
        """What the user says, tool traffic, and most often an answer."""
        turn = [Message.user(self._text()) for _ in range(2 if self._sometimes(0.1) else 1)]
        for _ in range(self._chance.choice([0, 0, 0, 1, 2, 5, 30])):
            turn += self._tool_round()
        if self._sometimes(0.9):
            turn += [THOUGHT] if self._sometimes(0.2) else []
            turn.append(self._from("assistant", "assistant", "agent", text=self._text_or_none()))
        if self._sometimes(0.1):
            turn.append(self._from("system", "summary", text=self._text()))
        return turn

    def request(self) -> dict[str, Any]:
        """Arguments of a load: a budget of any size or what stands before the context, a message to come, a query."""
        request: dict[str, Any] = {}
        if self._sometimes(0.6):
            request["budget"] = self._chance.choice([1, 20, 60, 150, 400, 1000, 4000, 50_000])
        elif self._sometimes(0.5):
            request |= {"system": "be kind " * 10, "tools": [{"name": "look_up", "description": "finds " * 50}]}
        if self._sometimes(0.7):
            request["message"] = Message.user("and now " * self._chance.choice([1, 15, 150]))
        if self._sometimes(0.2):
            request["query"] = f"hello {_word(self._chance.randint(1, self._said))}"
        return request

    def _tool_round(self) -> list[Message]:
        """Calls made together, most of them answered. Without a text between them, two rounds use the same ids. With
        reasoning, each piece of it may be a message of its own.
        """
        ids = [f"call {self._said}.{index}" for index in range(self._chance.choice([1, 1, 2, 3]))]
        calls = [ToolCall(id=call_id, name="look_up", arguments={"where": "there"}) for call_id in ids]
        before = [Message.assistant(self._text())] if self._sometimes(0.2) else []
        asked = [Message.assistant(self._text_or_none(), tool_calls=calls)]
        if self._sometimes(0.3):
            asked = [THOUGHT, *before, *(Message.assistant(tool_calls=[call]) for call in calls)]
            before = []
        return [*before, *asked, *(self._result(call_id) for call_id in ids if self._sometimes(0.95))]

    def _result(self, call_id: str) -> Message:
        text = '{"found": 1}' if self._sometimes(0.3) else self._text_or_none()
        return Message.tool(text, tool_call_id=call_id)

    def _from(self, *roles: Role, text: str) -> Message:
        return Message(role=self._chance.choice(roles), content=text)

    def _text_or_none(self) -> str:
        return self._text() if self._sometimes(0.5) else ""

    def _text(self) -> str:
        self._said += 1
        length = self._chance.choice([0, 3, 10, 60])
        return " ".join([_word(self._said), *self._chance.choices(["hello", "order", "table"], k=length)])

    def _sometimes(self, probability: float) -> bool:
        return self._chance.random() < probability


def _word(number: int) -> str:
    return f"word{number:05}"
