"""The ways by which something leaves view, and the sources that might still tell it. Both are registries: what is
registered here is tried with everything there (`tests.proofs.test_left_view`).

A history holds one secret. A way takes it out of view, and says which sources may still tell: every other one must
not. The parts of contexts are sources by the names that reports give them, so a part that a new feature brings is one
without being named.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any, NamedTuple, cast

import httpx
import msgspec

from reactor_memory import Memory, Message
from reactor_memory.features.search.models import MessageSearch
from reactor_memory.models.ledger import Condensed, Extraction, Fact
from reactor_memory.studio.app import create_app
from reactor_memory.studio.rendering import Pages
from reactor_memory.studio.studio import Studio
from reactor_memory.testing import ScriptedCondenser
from tests.acceptance.scenes import USER

OTHER = "another agent"
READER = "the agent"
FACT = ("locker", "code")
QUESTION = "What is the locker code?"
TIERS = {"recent_count": 4, "condensed_count": 6, "auto_threshold": 8}


class Scene:
    """A session whose message `seq` tells the secret."""

    def __init__(self, memory: Memory, chance: Random, secret: str) -> None:
        self.memory = memory
        self.chance = chance
        self.secret = secret
        self.session_id = "s"
        self.seq = 0
        self.is_kept = False
        self.is_pinned = False

    async def say(self, messages: Sequence[Message]) -> None:
        await self.memory.save_history(self.session_id, messages, user_id=USER)

    async def talk(self, turns: int) -> None:
        for _ in range(turns):
            number = self.chance.randrange(1000, 9999)
            asked = Message.user(f"Order {number} is for table {number}.")
            await self.say([asked, Message.assistant(f"Order {number} it is.")])

    async def tell(self, *, is_answered: bool) -> None:
        """The secret."""
        fields: dict[str, Any] = {"visibility": "agent", "author_id": OTHER} if self.is_kept else {}
        await self.say([Message.user(f"My locker code is {self.secret}. I park outside.", **fields)])
        self.seq = (await self.memory.get_session(self.session_id, user_id=USER)).last_seq
        if is_answered:
            await self.say([Message.assistant("Thank you, that is noted.")])

    async def settle(self) -> None:
        await self.memory.drain()
        if self.memory.container.settings().history.strategy == "progressive":
            await self.memory.tiers.summarize(self.session_id, user_id=USER)
        await self.memory.summarize(self.session_id, user_id=USER)
        await self.memory.drain()


def read_talk(messages: Sequence[Message]) -> Extraction:
    """The codes and orders, each with the sentence that says it; a narrative of all of it."""
    facts: list[Fact] = []
    for message in messages:
        sentence, seq = message.content.split(". ")[0].rstrip("."), message.seq or 0
        if " is for table " in sentence:
            number = sentence.split()[1]
            facts.append(Fact(anchor=f"order {number}", key="table", value=number, source_seq=seq))
        elif sentence.startswith("My locker code is "):
            code = sentence.removeprefix("My locker code is ")
            facts.append(Fact(anchor=FACT[0], key=FACT[1], value=code, category="STATE", source_seq=seq))
        elif not sentence.startswith("You said"):
            continue
        facts.append(Fact(anchor=f"said #{seq}", key="said", value=sentence, salience=60, source_seq=seq))
    told = [message.content for message in messages if message.role == "user"]
    return Extraction(facts=tuple(facts), narrative=" ".join(told), headline=told[0] if told else "")


class Model(ScriptedCondenser):
    """Reads talk, and condenses it to what users said."""

    def __init__(self) -> None:
        super().__init__(default=read_talk)

    async def condense(self, messages: Sequence[Message], *, prompt: str, max_tokens: int) -> Condensed:
        return Condensed(text=" ".join(each.content for each in messages if each.role in ("user", "summary", "system")))


# -- the ways ---------------------------------------------------------------------------------------------------------


class Way(NamedTuple):
    """`may_tell`: the sources that still tell what left. `is_newest`: only the newest message can go. `is_kept`: the
    message is kept by its author from the start.
    """

    leave: Callable[[Scene], Awaitable[None]]
    may_tell: frozenset[str]
    is_newest: bool = False
    is_kept: bool = False


WAYS: dict[str, Way] = {}

AS_SAID = frozenset(
    {
        "context: window",
        "studio context: window",
        "studio context: current",
        "log",
        "archived log",
        "message search",
        "chat memory: originals",
    }
)
"""Messages stay as they were said."""

AS_SEEN = frozenset({"replay"})
"""What the model saw of the past."""

ON_REQUEST = frozenset({"facts: everything", "explain: facts"})
"""What the caller asks for by what was removed."""

PINS = frozenset({"pins", "context: pins", "studio context: pins"})

MADE = PINS | {
    *("context: facts", "context: narrative", "context: compressed", "context: condensed"),
    *("studio context: facts", "studio context: narrative", "studio context: compressed", "studio context: condensed"),
    *("facts", "facts: traced", "segments", "summary", "explain: lines", "studio: facts"),
    *("chat memory: full", "chat memory: effective", "chat memory: originals"),
}
"""What is made of messages: archiving leaves it, and the summaries of chat memory."""

OF_STATEMENTS = (
    AS_SAID
    | AS_SEEN
    | ON_REQUEST
    | {
        "chat memory: full",
        "chat memory: effective",
        "studio: messages",
        "studio context: window",
        "studio context: current",
    }
)


def way(name: str, may_tell: frozenset[str] = frozenset(), **kind: bool) -> Callable[[Any], Any]:
    def register(leave: Callable[[Scene], Awaitable[None]]) -> Callable[[Scene], Awaitable[None]]:
        WAYS[name] = Way(leave, may_tell, **kind)
        return leave

    return register


@way("retract", OF_STATEMENTS)
async def retract(scene: Scene) -> None:
    await scene.memory.facts.retract(scene.session_id, fact=FACT, user_id=USER)


@way("correct", OF_STATEMENTS)
async def correct(scene: Scene) -> None:
    await scene.memory.facts.correct(scene.session_id, fact=FACT, value="unknown", user_id=USER)


@way("mute a thing", OF_STATEMENTS | PINS)
async def mute_anchor(scene: Scene) -> None:
    assert await scene.memory.facts.mute(scene.session_id, anchor=FACT[0], user_id=USER)


@way("mute a category", OF_STATEMENTS | PINS)
async def mute_category(scene: Scene) -> None:
    assert await scene.memory.facts.mute(scene.session_id, category="STATE", user_id=USER)


@way("archive", MADE | AS_SEEN | ON_REQUEST | {"archived log", "message search", "studio: messages"})
async def archive(scene: Scene) -> None:
    await scene.memory.archive(scene.session_id, user_id=USER)


@way("clear", AS_SEEN | {"archived log", "chat memory: originals", "studio: messages"})
async def clear(scene: Scene) -> None:
    await scene.memory.archive(scene.session_id, clear=True, user_id=USER)


@way("withdraw", is_newest=True)
async def withdraw(scene: Scene) -> None:
    await scene.memory.withdraw(scene.session_id, user_id=USER)


@way("erase")
async def erase(scene: Scene) -> None:
    await scene.memory.erasure.erase(scene.session_id, seq=scene.seq, user_id=USER)


@way("delete the session")
async def delete(scene: Scene) -> None:
    await scene.memory.delete(scene.session_id, user_id=USER)


@way("erase the user")
async def erase_user(scene: Scene) -> None:
    await scene.memory.erasure.erase_user(USER)


@way("fork before it")
async def fork(scene: Scene) -> None:
    scene.session_id = (await scene.memory.fork(scene.session_id, at_seq=scene.seq, user_id=USER)).session_id


@way(
    "keep it to oneself",
    AS_SEEN
    | {"log", "archived log", "message search", "studio: messages", "studio context: window", "studio context: current"}
    | {"chat memory: originals", "chat memory: full", "chat memory: effective"},
    is_kept=True,
)
async def keep(scene: Scene) -> None:
    """Another agent reads."""


# -- the sources ------------------------------------------------------------------------------------------------------

Told = dict[str, str]
"""What each source tells, by its name."""

SOURCES: list[Callable[[Scene], Awaitable[Told]]] = []


def source(tell: Callable[[Scene], Awaitable[Told]]) -> Callable[[Scene], Awaitable[Told]]:
    SOURCES.append(tell)
    return tell


def text_of(value: object) -> str:
    return msgspec.json.encode(value).decode()


@source
async def contexts(scene: Scene) -> Told:
    told: Told = {}
    loads: Sequence[dict[str, Any]] = (
        {"budget": 300},
        {"budget": 3000},
        {"budget": 300, "query": "locker code"},
        {"budget": 3000, "summaries": "always"},
        {"message": QUESTION},
        {},
    )
    for options in loads:
        load = scene.memory.load_history(scene.session_id, user_id=USER, reader_id=READER, **options)
        context = await load
        await scene.memory.drain()
        for message, part in zip(context.messages, context.report.parts, strict=True):
            told[f"context: {part}"] = told.get(f"context: {part}", "") + text_of(message)
    return told


@source
async def explanations(scene: Scene) -> Told:
    found = await scene.memory.explain(scene.session_id, user_id=USER, budget=300)
    return {"explain: lines": text_of(found.lines), "explain: facts": text_of(found.facts)}


@source
async def facts(scene: Scene) -> Told:
    of_session = scene.memory.facts
    return {
        "facts": text_of(await of_session.list(scene.session_id, user_id=USER)),
        "facts: traced": text_of(await of_session.trace(scene.session_id, user_id=USER)),
        "facts: everything": text_of(await of_session.trace(scene.session_id, user_id=USER, everything=True)),
        "segments": text_of(await of_session.segments(scene.session_id, user_id=USER)),
        "summary": text_of(await scene.memory.get_summary(scene.session_id, user_id=USER)),
    }


@source
async def searches(scene: Scene) -> Told:
    wanted = MessageSearch(text="locker code", user_id=USER, conversation_ids=(scene.session_id,))
    return {
        "recall": text_of(await scene.memory.recall(scene.session_id, QUESTION, user_id=USER)),
        "message search": text_of((await scene.memory.search.search(wanted)).hits),
    }


@source
async def logs(scene: Scene) -> Told:
    read = scene.memory.read_messages
    return {
        "log": text_of(await read(scene.session_id, user_id=USER)),
        "archived log": text_of(await read(scene.session_id, user_id=USER, archived=True)),
    }


@source
async def chat_memory(scene: Scene) -> Told:
    views: Sequence[Any] = ("full", "effective", "originals")
    get = scene.memory.chat_memory.get_messages
    return {f"chat memory: {view}": text_of(await get(scene.session_id, view=view, user_id=USER)) for view in views}


@source
async def pins(scene: Scene) -> Told:
    return {"pins": text_of(await scene.memory.pins.list(scene.session_id, user_id=USER))}


@source
async def replay(scene: Scene) -> Told:
    last = (await scene.memory.get_session(scene.session_id, user_id=USER)).last_seq
    return {"replay": text_of((await scene.memory.replay(scene.session_id, seq=last, user_id=USER)).messages)}


@source
async def studio(scene: Scene) -> Told:
    nothing: Any = None
    pages = Pages(store="memory://", writes=False, differences=())
    app = create_app(Studio(memory=scene.memory, pages=pages, writes=False, evaluations=nothing))
    transport = httpx.ASGITransport(app=cast("Any", app))
    async with httpx.AsyncClient(transport=transport, base_url="http://studio") as client:
        page = (await client.get("/session", params={"id": scene.session_id, "show": "facts"})).text
        context = (await client.get("/context", params={"id": scene.session_id, "budget": 300})).text
    before, _, aside = page.partition('<aside id="aside"')
    head, *parts = context.split('<li class="part part-edge-')
    told = {"studio: messages": before, "studio: facts": aside, "studio context": head}
    for part in parts:
        name = "studio context: " + part.split('"')[0]
        told[name] = told.get(name, "") + part
    return told


# -- as documented ----------------------------------------------------------------------------------------------------

COLUMNS: dict[str, frozenset[str]] = {
    "memory": MADE - PINS - {"chat memory: full", "chat memory: effective", "chat memory: originals"},
    "recall": frozenset({"context: recalled", "recall"}),
    "pins": PINS,
    "window": frozenset({"context: window"}),
    "log": frozenset({"log"}),
    "log, archived too": frozenset({"archived log"}),
    "search": frozenset({"message search"}),
    "facts, everything": ON_REQUEST,
    "replay": AS_SEEN,
}
"""The columns of the table in docs/erasing.md, each with the sources that it speaks of."""
