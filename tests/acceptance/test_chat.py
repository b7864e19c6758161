"""A chat without a terminal: every command, and what becomes of a turn."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from dependency_injector import providers

from reactor_memory import (
    Container,
    InvalidInputError,
    Message,
    SessionDeletedError,
    SessionOwnershipError,
    open_memory,
)
from reactor_memory.errors import ChatModelError, SessionNotFoundError, SummarizationError
from reactor_memory.features.chat import Chat, Reply
from reactor_memory.testing import ScriptedSummarizer
from tests.acceptance.scenes import USER, extract, save, scripted, settings, summarized_by, talk, texts

pytestmark = pytest.mark.anyio


class ScriptedModel:
    """Says what it is told to; None is where it fails. Keeps what it was asked."""

    name = "scripted"
    notice = "For tests."

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.systems: list[str | None] = []
        self.script: list[Sequence[str | None]] = []
        self.closed = 0

    async def stream(self, messages: Sequence[Message], *, system: str | None = None) -> AsyncGenerator[str]:
        self.asked.append(texts(messages))
        self.systems.append(system)
        try:
            for piece in self.script.pop(0) if self.script else ["fine"]:
                if piece is None:
                    raise ChatModelError("unavailable", "is not there")
                yield piece
        finally:
            self.closed += 1

    async def aclose(self) -> None:
        """Nothing is open."""


class Watching:
    """What a command says while it works. Then it is let go on."""

    def __init__(self, *, then: Callable[[], None]) -> None:
        self.announced: list[str] = []
        self.updates: list[str] = []
        self._then = then

    def announce(self, text: str) -> None:
        self.announced.append(text)

    def update(self, text: str) -> None:
        """Calls `then` at the first one."""
        self.updates.append(text)
        self._then()


class Scene:
    """An open chat in the session ``s`` of `USER`."""

    def __init__(self, container: Container, model: ScriptedModel) -> None:
        self.container, self.model = container, model
        self.manager = container.conversation_manager()
        self.chat: Chat = container.chat(session_id="s", user_id=USER)
        self.shown: list[str] = []

    async def say(self, line: str) -> str:
        self.shown.clear()
        await self.chat.say(line, self.shown.append)
        return "".join(self.shown)

    async def do(self, line: str) -> Reply:
        reply = await self.chat.handle(line)
        assert reply is not None
        return reply

    async def stored(self, session_id: str = "s") -> list[str]:
        return texts(await self.manager.read_messages(session_id, user_id=USER))


@asynccontextmanager
async def scene(summarizer: ScriptedSummarizer | None = None, **sections: Any) -> AsyncGenerator[Scene]:
    model = ScriptedModel()

    def configure(container: Container) -> None:
        summarized_by(summarizer or scripted())(container)
        container.chat_model.override(providers.Object(model))

    async with open_memory(settings("memory://", **sections), configure=configure) as opened:
        yield Scene(opened.container, model)


@pytest.fixture
async def talking() -> AsyncIterator[Scene]:
    """Four messages have been said."""
    async with scene() as scene_:
        await save(scene_.manager, "s", talk(4))
        yield scene_


# -- turns ------------------------------------------------------------------------------------------------------------


async def test_a_turn_gives_the_model_the_session_and_is_stored() -> None:
    async with scene(chat={"system": "Be kind."}) as s:
        s.model.script = [["I ", "am ", "fine"]]
        assert await s.say("how are you?") == "I am fine"
        assert s.shown == ["I ", "am ", "fine"]
        await s.say("and now?")
        assert s.model.asked[1] == ["how are you?", "I am fine", "and now?"]
        assert s.model.systems == ["Be kind.", "Be kind."]
        assert await s.stored() == ["how are you?", "I am fine", "and now?", "fine"]


async def test_without_a_system_prompt_none_is_sent(talking: Scene) -> None:
    await talking.say("hello")
    assert talking.model.systems == [None]


async def test_when_the_model_fails_what_the_person_said_is_kept() -> None:
    async with scene() as s:
        s.model.script = [["I am", None]]
        with pytest.raises(ChatModelError):
            await s.say("how are you?")
        assert s.shown == ["I am"]
        assert await s.stored() == ["how are you?"]
        await s.say("again")
        assert s.model.asked[1] == ["how are you?", "again"]


async def test_when_answer_is_stopped_what_the_person_said_is_kept(talking: Scene) -> None:
    def stop(_: str) -> None:
        scope.cancel()

    talking.model.script = [["I ", "am "]]
    with anyio.CancelScope() as scope:
        await talking.chat.say("how are you?", stop)
        await anyio.sleep_forever()
    assert talking.model.closed == 1
    assert (await talking.stored())[4:] in (["how are you?"], ["how are you?", "I am "])


async def test_the_model_is_stopped_when_nobody_can_see_its_answer(talking: Scene) -> None:
    def break_(_: str) -> None:
        raise BrokenPipeError

    talking.model.script = [["I ", "am "]]
    with pytest.raises(BrokenPipeError):
        await talking.chat.say("how are you?", break_)
    assert talking.model.closed == 1
    assert (await talking.stored())[4:] == ["how are you?"]


async def test_an_empty_answer_is_none(talking: Scene) -> None:
    talking.model.script = [[""]]
    assert await talking.say("how are you?") == ""
    assert (await talking.stored())[4:] == ["how are you?"]


async def test_a_text_that_cannot_be_stored_never_reaches_the_model(talking: Scene) -> None:
    with pytest.raises(InvalidInputError, match="NUL"):
        await talking.say("nul \x00")
    assert talking.model.asked == []


@pytest.mark.parametrize(("line", "said"), [("//etc", "/etc"), ("  // a", "/ a"), ("a // b", "a // b"), (" a ", " a ")])
async def test_a_text_may_begin_with_a_slash(talking: Scene, line: str, said: str) -> None:
    assert await talking.chat.handle(line) is None
    await talking.say(line)
    assert talking.model.asked[0][-1] == said


# -- how a chat begins ------------------------------------------------------------------------------------------------


async def test_a_chat_says_who_answers_and_what_there_is(talking: Scene) -> None:
    assert await talking.chat.begin() == "s · 4 messages · scripted\nFor tests.\n/help lists the commands."
    other: Chat = talking.container.chat(session_id="other", user_id=USER)
    assert (await other.begin()).startswith("other · new · scripted\n")


async def test_session_that_cannot_be_used_is_refused_at_the_beginning(talking: Scene) -> None:
    with pytest.raises(SessionOwnershipError):
        await talking.container.chat(session_id="s", user_id="mallory").begin()
    with pytest.raises(SessionNotFoundError):
        await talking.container.chat(session_id="s~none", user_id=USER).begin()
    await talking.manager.delete("s", user_id=USER)
    with pytest.raises(SessionDeletedError):
        await talking.chat.begin()


# -- commands ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("/sumarize", "did you mean /summarize?"),
        ("/STATUS", "did you mean /stats?"),
        ("/", "/help lists the commands."),
        ("/etc/passwd is what?", "/help lists the commands."),
        ("  /x", "/help lists the commands."),
    ],
)
async def test_an_unknown_command_is_consumed_with_a_hint(talking: Scene, line: str, hint: str) -> None:
    reply = await talking.do(line)
    assert reply.failed
    assert hint in reply.text
    assert "It was not sent to the model" in reply.text
    assert (talking.model.asked, len(await talking.stored())) == ([], 4)


async def test_a_hint_does_not_repeat_a_text_of_any_length(talking: Scene) -> None:
    assert len((await talking.do("/" + "x" * 100_000)).text) < 300


async def test_the_help_names_every_command_and_each_exists(talking: Scene) -> None:
    text = (await talking.do("/help")).text
    names = [line.split()[0] for line in text.splitlines()]
    assert {"/summarize", "/stats", "/context", "/facts", "/pin", "/fork", "/delete", "/help", "/quit"} <= set(names)
    for name in names:
        reply = await talking.do(name)
        assert "there is no command" not in reply.text
        await talking.do("/help" if not reply.asks else "no")
    assert (await talking.do("/quit")).ends


@pytest.mark.parametrize(
    "command", ["/summarize", "/stats", "/context", "/facts", "/pin", "/pin 1", "/unpin 1", "/fork", "/delete"]
)
async def test_an_empty_session_informs(command: str) -> None:
    async with scene() as s:
        reply = await s.do(command)
    assert (reply.text, reply.failed, reply.asks) == ("nothing has been said in this session yet", False, False)


async def test_what_takes_nothing_says_so(talking: Scene) -> None:
    for line in ("/stats now", "/delete s", "/quit please"):
        reply = await talking.do(line)
        assert (reply.failed, reply.asks, reply.ends) == (True, False, False)
        assert "takes nothing" in reply.text


async def test_the_context_is_shown_as_the_model_would_get_it(talking: Scene) -> None:
    reply = await talking.do("/context what now?")
    assert texts(reply.report.messages)[-2:] == ["noted, entry 4", "what now?"]
    head, *lines = reply.text.splitlines()
    assert head.startswith("5 messages, ")
    assert lines[-1] == "user: what now?"
    assert len(await talking.stored()) == 4


async def test_budget_of_chat_holds_for_its_contexts_and_its_turns(talking: Scene) -> None:
    await save(talking.manager, "s", talk(16, start=5))
    talking.chat = talking.container.chat(session_id="s", user_id=USER, budget=60)
    shown = (await talking.do("/context")).report
    assert shown.report.total_tokens <= 60
    await talking.say("hi")
    assert 1 < len(talking.model.asked[0]) < 20


async def test_pins_are_made_listed_and_taken_back(talking: Scene) -> None:
    assert (await talking.do("/pin")).text == "nothing is pinned"
    assert (await talking.do("/pin 1")).text == "pinned: message 1: my order number is A-0001"
    assert (await talking.do("/pin")).text == "message 1: my order number is A-0001"
    assert [pin.seq for pin in await talking.container.pins().list("s", user_id=USER)] == [1]
    assert (await talking.do("/unpin 1")).text == "unpinned"
    assert (await talking.do("/unpin 1")).text == "it was not pinned"


@pytest.mark.parametrize("line", ["/pin one two three", '/pin "open', "/pin last", "/unpin", "/unpin x"])
async def test_what_names_no_target_is_told_how(talking: Scene, line: str) -> None:
    reply = await talking.do(line)
    assert reply.failed
    assert reply.text.startswith(f"usage: {line.split()[0]} ")


async def test_a_pin_that_is_refused_changes_nothing(talking: Scene) -> None:
    reply = await talking.do("/pin 99")
    assert (reply.failed, reply.text) == (True, "seq: message 99 is not in this session: pin one of its messages")
    assert await talking.container.pins().list("s", user_id=USER) == ()


async def test_a_fork_is_where_the_chat_goes_on(talking: Scene) -> None:
    reply = await talking.do("/fork 3")
    fork = talking.chat.session_id
    assert reply.text == f"going on in {fork}: it shares 2 messages with s"
    await talking.say("another way")
    assert talking.model.asked == [["my order number is A-0001", "noted, entry 2", "another way"]]
    assert (await talking.stored(fork))[2:] == ["another way", "fine"]
    assert len(await talking.stored("s")) == 4


async def test_a_fork_without_a_place_shares_everything(talking: Scene) -> None:
    assert "it shares 4 messages with s" in (await talking.do("/fork")).text
    assert (await talking.do("/stats")).text.startswith(
        f"session {talking.chat.session_id}, owner alice, forked from s\n"
    )


@pytest.mark.parametrize("where", ["99", "0", "-1", "x", "²", "9" * 30])
async def test_a_fork_at_no_message_is_refused(talking: Scene, where: str) -> None:
    assert (await talking.do(f"/fork {where}")).failed
    assert talking.chat.session_id == "s"


@pytest.mark.parametrize("answer", ["no", "", "n", "yes please", "/help", "hello"])
async def test_a_deletion_that_is_not_confirmed_deletes_nothing(talking: Scene, answer: str) -> None:
    asked = await talking.do("/delete")
    assert asked.asks
    assert asked.text == "Delete s (4 messages) and its forks for ever? yes or no"
    reply = await talking.do(answer)
    assert (reply.text, reply.ends) == ("nothing was deleted", False)
    assert len(await talking.stored()) == 4
    assert await talking.chat.handle("yes") is None


@pytest.mark.parametrize("answer", ["yes", " Y "])
async def test_a_deletion_that_is_confirmed_ends_the_chat(talking: Scene, answer: str) -> None:
    await talking.do("/delete")
    reply = await talking.do(answer)
    assert (reply.text, reply.report, reply.ends) == ("deleted s", ("s",), True)
    with pytest.raises(SessionDeletedError):
        await talking.stored()


async def test_what_fault_prevents_is_told_and_the_chat_goes_on(talking: Scene) -> None:
    await talking.manager.delete("s", user_id=USER)
    reply = await talking.do("/stats")
    assert (reply.failed, reply.ends) == (True, False)
    assert reply.text == "session 's': was deleted; begin a new session under a new id"


# -- summaries --------------------------------------------------------------------------------------------------------


async def test_summaries_that_are_off_say_so() -> None:
    async with scene(summary={"enabled": False}) as s:
        await save(s.manager, "s", talk(40))
        reply = await s.do("/summarize")
        assert reply.text == "summaries are off: set summary.enabled to true (REACTOR_MEMORY_SUMMARY__ENABLED=true)"
        assert reply.report.outcome == "off"
        assert "off: set summary.enabled" in (await s.do("/stats")).text


async def test_nothing_to_summarize_is_said_with_counts(talking: Scene) -> None:
    watching = Watching(then=pytest.fail)
    reply = await talking.chat.handle("/summarize", watching)
    assert reply is not None
    assert reply.text == "no messages need a summary: 4 messages, all recent; summaries begin above 20"
    assert watching.announced == []


async def test_summarizing_says_its_plan_its_progress_and_its_result() -> None:
    summarizer = scripted()
    async with scene(summarizer) as s:
        await save(s.manager, "s", talk(30))
        await s.manager.drain()
        before = (await s.do("/stats")).report
        summarizer.hold()
        await save(s.manager, "s", talk(30, start=31))
        watching = Watching(then=summarizer.let_go)
        reply = await s.chat.handle("/summarize", watching)
        after = (await s.do("/stats")).report
    assert watching.announced == ["reading messages 31 to 60, in segments of about 10, with extractive"]
    assert watching.updates[0] == "30 of 60 messages covered"
    assert reply is not None
    assert reply.text == "summarised: messages covered 30 → 60 of 60, facts in memory 15 → 30"
    assert (before.covered, before.facts, after.covered, after.facts) == (30, 15, 60, 30)
    assert (after.messages, after.waiting, after.segments) == (60, 0, 6)


async def test_what_is_too_short_for_a_segment_is_recent() -> None:
    async with scene() as s:
        await save(s.manager, "s", talk(34))
        await s.manager.drain()
        reply = await s.do("/summarize")
        stats = (await s.do("/stats")).text
    assert reply.text == "no messages need a summary: 34 messages, 30 covered, 4 recent"
    assert (reply.report.outcome, reply.report.before, reply.report.after) == ("nothing", 30, 30)
    assert stats.splitlines() == [
        "session s, owner alice",
        "messages           34",
        "pins               0",
        "covered by memory  30",
        "not covered        4",
        "segments           3",
        "facts in memory    15",
        "threshold          above 20 messages: reached",
        "summarizer         extractive: 0 tokens read, 0 written",
    ]


async def test_summarizing_everything_again_says_so() -> None:
    summarizer = scripted()
    summarizer.hold()
    async with scene(summarizer, summary={"mode": "full"}) as s:
        await save(s.manager, "s", talk(30))
        watching = Watching(then=summarizer.let_go)
        reply = await s.chat.handle("/summarize", watching)
        assert reply is not None
        assert (await s.do("/summarize")).text == "no messages need a summary: 30 messages, 20 covered, 10 recent"
    assert watching.announced == ["reading messages 1 to 30, all but the newest 10 at once, with extractive"]
    assert reply.text == "summarised: messages covered 0 → 20 of 30, facts in memory 0 → 10"


async def test_a_summarizer_that_fails_leaves_everything_as_it_was() -> None:
    summarizer = scripted()
    async with scene(summarizer, background={"max_attempts": 1}) as s:
        await save(s.manager, "s", talk(30))
        await s.manager.drain()
        summarizer.then(*[SummarizationError("unavailable", "is away")] * 2)
        await save(s.manager, "s", talk(30, start=31))
        await s.manager.drain()
        reply = await s.do("/summarize")
        assert reply.failed
        assert "(unavailable)" in reply.text
        assert (reply.report.before, reply.report.after) == (30, 30)
        assert len(await s.stored()) == 60
        assert (await s.do("/summarize")).text.startswith("summarised: messages covered 30 → 60")


async def test_what_is_withdrawn_is_work_for_the_summarizer() -> None:
    async with scene(ScriptedSummarizer(default=extract)) as s:
        await save(s.manager, "s", talk(30))
        await s.manager.drain()
        await s.container.erasure().withdraw("s", user_id=USER)
        assert not (await s.do("/summarize")).failed


async def test_what_is_summarised_without_being_asked_for_is_told_once() -> None:
    async with scene() as s:
        await save(s.manager, "s", talk(18))
        await s.chat.begin()
        await s.say("one more")
        assert await s.chat.news() is None
        await s.say("and another")
        await s.manager.drain()
        assert await s.chat.news() == "summarised by itself: messages covered 0 → 20"
        assert await s.chat.news() is None


async def test_what_was_summarised_before_or_on_request_is_no_news() -> None:
    summarizer = scripted()
    async with scene(summarizer) as s:
        await save(s.manager, "s", talk(30))
        await s.manager.drain()
        await s.chat.begin()
        summarizer.hold()
        await save(s.manager, "s", talk(20, start=31))
        await s.chat.handle("/summarize", Watching(then=summarizer.let_go))
        assert await s.chat.news() is None
        await s.do("/fork 35")
        assert await s.chat.news() is None


# -- tiers ------------------------------------------------------------------------------------------------------------

TIERS = {"recent_count": 4, "condensed_count": 10, "auto_threshold": 30}


def tiered(**tiers: Any) -> Any:
    """A scene under the strategy ``progressive``."""
    return scene(history={"strategy": "progressive"}, summary={"enabled": False}, tiers={**TIERS, **tiers})


async def test_tiers_are_made_on_request() -> None:
    async with tiered() as s:
        await save(s.manager, "s", talk(24))
        watching = Watching(then=lambda: None)
        reply = await s.chat.handle("/summarize", watching)
        assert watching.announced == ["compressing 10, condensing 10, keeping 4"]
        assert reply is not None
        assert (reply.failed, reply.report.before, reply.report.after) == (False, 24, 6)
        assert reply.text.startswith("summarised: messages and summaries 24 → 6")
        assert (await s.do("/summarize")).text == "no messages need a summary: 24 messages, 4 recent"
        assert (await s.do("/stats")).text.splitlines() == [
            "session s, owner alice",
            "messages     24",
            "recent       4",
            "to condense  0",
            "to compress  0",
            "condensed    10",
            "compressed   10",
            "summaries    2",
            "threshold    above 30 not summarised: 4 now",
        ]
        assert len((await s.do("/context")).report.messages) == 6
        assert await s.chat.news() is None


async def test_tiers_that_are_off_or_idle_say_so() -> None:
    async with tiered(enabled=False) as s:
        await save(s.manager, "s", talk(24))
        assert "tiers.enabled: true" in (await s.do("/summarize")).text
        assert "tiers.enabled: true" in (await s.do("/stats")).text
    async with tiered(auto_summarize=False) as s:
        assert (await s.do("/summarize")).text == "nothing has been said in this session yet"
        await save(s.manager, "s", talk(4))
        assert (await s.do("/summarize")).text == "no messages need a summary: 4 messages, 4 recent"
        assert "none: tiers.auto_summarize is false" in (await s.do("/stats")).text


async def test_tiers_that_grow_by_themselves_are_told_once() -> None:
    async with tiered() as s:
        await s.chat.begin()
        await save(s.manager, "s", talk(30))
        assert await s.chat.news() is None
        await s.say("one more")
        await s.manager.drain()
        assert await s.chat.news() == "summarised by itself: messages covered 0 → 28"
        assert await s.chat.news() is None


async def test_tiers_that_cannot_be_made_leave_everything_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    async with tiered() as s:
        await save(s.manager, "s", talk(24))
        monkeypatch.setattr(s.container.tier_writer(), "write", _fails)
        reply = await s.do("/summarize")
        assert reply.failed
        assert reply.text.startswith("summarizing did not succeed (unavailable); ")
        assert len((await s.do("/context")).report.messages) == 24


async def _fails(*_: Any) -> None:
    raise SummarizationError("unavailable", "is away")
