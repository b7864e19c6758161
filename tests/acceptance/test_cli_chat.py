"""`chat` in a real terminal of 80 columns, and through a pipe."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pexpect
import pytest
from anyio.from_thread import start_blocking_portal

from reactor_memory.models import Message
from tests.acceptance.conftest import CHECKOUT, Finished, Run, write_sessions
from tests.doubles.fake_gemini import FakeGemini
from tests.doubles.fake_gemini import speaks as gemini_speaks
from tests.doubles.fake_openai import FakeOpenAI
from tests.doubles.fake_openai import speaks as openai_speaks
from tests.doubles.fake_provider import FakeProvider, hangs, replies

PATIENCE_SECONDS = 200
"""Generous, for a machine that is busy: nothing here is about time."""

KEYS = re.compile(r"\x1b\[\?2004[hl]\r?")
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b5n\u202egnp.exe\r\x08done"

Talk: TypeAlias = Callable[..., "Terminal"]
Pipe: TypeAlias = Callable[..., Finished]


class Terminal:
    """A person at a terminal."""

    def __init__(self, process: pexpect.spawn[str]) -> None:
        self.process = process
        self.banner = self.until_prompt()

    def until_prompt(self, prompt: str = "> ") -> str:
        """What is printed until the prompt."""
        self.process.expect(rf"(?<=\n)(?:\x1b\[\?2004h)?{re.escape(prompt)}")
        return _seen(self.process.before or "")

    def until(self, text: str) -> None:
        self.process.expect_exact(text)

    def type(self, line: str, *, prompt: str = "> ") -> str:
        """What is printed between a line and the next prompt."""
        self.process.sendline(line)
        return _without_echo(self.until_prompt(prompt), line)

    def press(self, key: str) -> None:
        self.process.sendcontrol(key)

    def ended(self) -> tuple[int | None, str]:
        """The exit code, and what was printed before."""
        self.process.expect(pexpect.EOF)
        self.process.wait()
        self.process.close()
        return self.process.exitstatus, _seen(self.process.before or "")


def _seen(text: str) -> str:
    return KEYS.sub("", text).replace("\r\n", "\n").replace("\r", "")


def _without_echo(text: str, line: str) -> str:
    return text.partition(f"{line}\n")[2] if f"{line}\n" in text else text


@pytest.fixture
def talk(folder: Path) -> Iterator[Talk]:
    """Starts `chat` in a terminal; it is killed if it outlives the test."""
    processes: list[pexpect.spawn[str]] = []

    def talk(*arguments: str, **variables: str) -> Terminal:
        process = pexpect.spawn(
            sys.executable,
            ["-m", "reactor_memory", "chat", *arguments],
            env={**os.environ, "PYTHONPATH": str(CHECKOUT), "TERM": "xterm", "INPUTRC": os.devnull, **variables},
            dimensions=(24, 80),
            encoding="utf-8",
            timeout=PATIENCE_SECONDS,
        )
        processes.append(process)
        return Terminal(process)

    yield talk
    for process in processes:
        if process.isalive():
            process.kill(signal.SIGKILL)
            process.wait()
        process.close()


@pytest.fixture
def pipe(run: Run, monkeypatch: pytest.MonkeyPatch) -> Pipe:
    """Runs `chat` with these lines on stdin."""

    def pipe(lines: str, *arguments: str) -> Finished:
        monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
        return run("chat", *arguments)

    return pipe


@contextmanager
def _serving(kind: type[FakeProvider[Any]]) -> Generator[FakeProvider[Any]]:
    """A provider that answers in a thread of its own."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(kind.running()) as fake:
        yield fake


@pytest.fixture
def openai(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[FakeOpenAI]:
    """A model behind a server with OpenAI's chat completions."""
    with _serving(FakeOpenAI) as fake:
        assert isinstance(fake, FakeOpenAI)
        monkeypatch.setenv("REACTOR_MEMORY_CHAT__PROVIDER", "openai")
        monkeypatch.setenv("REACTOR_MEMORY_MODELS__OPENAI__MODEL", "a-model")
        monkeypatch.setenv("REACTOR_MEMORY_MODELS__OPENAI__BASE_URL", fake.base_url)
        yield fake


# -- a terminal -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_conversation_with_the_echo_goes_on_in_a_second_run(talk: Talk) -> None:
    first = talk("s1", "--user", "ann")
    assert "s1 · new · offline echo" in first.banner
    assert "No model is asked and nothing leaves this machine" in first.banner
    assert first.type("hello 日本 🦊") == "You said: hello 日本 🦊\n(offline echo, it was given 1 message)\n"
    assert first.type("and again").endswith("(offline echo, it was given 3 messages)\n")
    first.press("d")
    assert first.ended()[0] == 0
    second = talk("s1", "--user", "ann")
    assert "s1 · 4 messages · offline echo" in second.banner
    assert second.type("what now?").endswith("(offline echo, it was given 5 messages)\n")
    second.process.sendline("/quit")
    assert second.ended()[0] == 0


@pytest.mark.slow
def test_what_was_acknowledged_survives_the_end_of_the_process(talk: Talk, run: Run) -> None:
    killed = talk("s1")
    killed.type("hello")
    killed.process.kill(signal.SIGKILL)
    killed.process.wait()
    assert [each["role"] for each in run("show", "s1", "--json").json["messages"]] == ["user", "assistant"]


@pytest.mark.slow
def test_what_is_typed_edited_or_pasted_arrives_whole(talk: Talk, run: Run) -> None:
    person = talk("s1")
    long = "0123456789" * 1000 + "end"
    person.process.sendline(long)
    person.until("it was given 1 message)")
    person.until_prompt()
    person.process.send("\x1b[200~first line\nsecond line\x1b[201~")
    person.process.sendline("")
    person.until("it was given 3 messages)")
    person.until_prompt()
    person.process.send("helo\x1b[D")
    person.process.sendline("l")
    person.until("it was given 5 messages)")
    person.until_prompt()
    person.process.send("\x1b[A")
    person.process.sendline("")
    person.until("it was given 7 messages)")
    person.until_prompt()
    asked = run("show", "s1", "--json").json["messages"][::2]
    assert [each["content"] for each in asked] == [long, "first line\nsecond line", "hello", "hello"]


@pytest.mark.slow
def test_every_command_answers_in_a_terminal(talk: Talk, run: Run) -> None:
    person = talk("s1", REACTOR_MEMORY_SUMMARY__ENABLED="false")
    hint = person.type("/sumarize")
    assert "error: there is no command /sumarize; did you mean /summarize?" in hint
    assert "You said" not in hint
    assert person.type("/stats") == "nothing has been said in this session yet\n"
    person.type("my order number is A-1042")
    assert "session s1, no owner\nmessages   2" in person.type("/stats")
    assert "summaries are off" in person.type("/summarize")
    assert "window · " in person.type("/context")
    assert person.type("/facts").startswith("no facts")
    assert person.type("/pin 1") == "pinned: message 1: my order number is A-1042\n"
    helped = person.type("/help")
    for name in ("summarize", "stats", "context", "facts", "pin", "fork", "delete", "help", "quit"):
        assert f"\n/{name} " in f"\n{helped}"
    went = person.type("/fork 2")
    fork = went.split()[3].rstrip(":")
    assert fork.startswith("s1~")
    person.type("in the fork")
    person.process.sendline("/quit")
    assert person.ended()[0] == 0
    assert run("show", fork, "--json").json["session"]["last_seq"] == 3
    assert run("show", "s1", "--json").json["session"]["last_seq"] == 2


@pytest.mark.slow
def test_a_deletion_is_asked_for_refused_and_confirmed(talk: Talk, run: Run) -> None:
    person = talk("s1")
    person.type("hello")
    assert "Delete s1 (2 messages) and its forks for ever?" in person.type("/delete", prompt="? ")
    assert person.type("no") == "nothing was deleted\n"
    assert "You said: yes" in person.type("yes")
    person.type("/delete", prompt="? ")
    person.process.sendline("yes")
    code, printed = person.ended()
    assert (code, "deleted s1" in printed) == (0, True)
    assert run("show", "s1").code == 2


def test_summary_that_is_made_by_itself_is_told_in_line(talk: Talk) -> None:
    prefix = "REACTOR_MEMORY_SUMMARY__"
    person = talk("s1", **{f"{prefix}TRIGGER_MESSAGE_COUNT": "4", f"{prefix}RECENT_MESSAGE_COUNT": "2"})
    printed = ""
    while "summarised by itself" not in printed:  # it is told between two turns, whenever it is done
        printed += person.type("my order number is A-1042")
    assert "summarised by itself: messages covered 0 → " in printed


@pytest.mark.slow
def test_summarizing_shows_what_it_does_and_did(talk: Talk, run: Run, folder: Path) -> None:
    orders = [make(f"my order number is A-{n}") for n in range(12) for make in (Message.user, Message.assistant)]
    run("import", write_sessions(folder / "f.jsonl", {"s1": orders}), "--no-memory")
    person = talk("s1")
    printed = person.type("/summarize")
    assert "reading messages 1 to 24, in segments of about 10, with extractive" in printed
    assert "summarised: messages covered 0 → 20 of 24" in printed
    assert "A-3" in person.type("/facts")
    assert "no messages need a summary: 24 messages, 20 covered, 4 recent" in person.type("/summarize")


@pytest.mark.slow
def test_ctrl_c_stops_an_answer_and_keeps_what_was_said(talk: Talk, openai: FakeOpenAI, run: Run) -> None:
    openai.script(
        openai_speaks("It begins and", finish=None, then=hangs()), openai_speaks("Fine."), openai_speaks("Unseen.")
    )
    person = talk("s1")
    assert "a-model" in person.banner
    person.process.sendline("tell me a story")
    person.until("It begins and")
    person.press("c")
    assert "stopped; what you said is kept" in person.until_prompt()
    assert person.type("something else") == "Fine.\n"
    assert [message["content"] for message in openai.questions[1].body["messages"]] == [
        "tell me a story",
        "something else",
    ]
    person.press("c")
    assert person.ended()[0] == 130
    assert [each["content"] for each in run("show", "s1", "--json").json["messages"]] == [
        "tell me a story",
        "something else",
        "Fine.",
    ]


@pytest.mark.slow
def test_ctrl_c_at_the_prompt_leaves_what_is_typed_unsaid(talk: Talk, run: Run) -> None:
    person = talk("s1")
    person.type("hello")
    person.process.send("half a line")
    person.until("half a line")
    person.press("c")
    assert person.ended()[0] == 130
    assert run("show", "s1", "--json").json["session"]["last_seq"] == 2


def test_model_that_fails_is_told_and_the_chat_goes_on(talk: Talk, openai: FakeOpenAI) -> None:
    openai.script(replies({"error": {}}, status=500), openai_speaks("Fine."))
    person = talk("s1")
    assert "error: chat model: the provider answered with status 500 (unavailable)" in person.type("hello")
    assert person.type("hello?") == "Fine.\n"


def test_what_a_model_says_does_not_steer_the_terminal(talk: Talk, openai: FakeOpenAI) -> None:
    openai.script(openai_speaks(*HOSTILE))
    person = talk("s1")
    person.process.sendline("hello")
    person.until("done")
    answer = _without_echo(person.process.before or "", "hello\r\n")
    answer = KEYS.sub("", answer)
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e]", answer)
    assert "red" in answer
    person.until_prompt()
    for command in ("/context", "/facts", "/pin 2", "/pin"):
        assert "\x1b]0;" not in person.type(command)
    assert person.type("/pin 2").count("\u202e") == 0


@pytest.mark.slow
def test_gemini_answers_with_a_key(talk: Talk, folder: Path) -> None:
    with _serving(FakeGemini) as fake:
        fake.script(gemini_speaks("Of ", "course."))
        person = talk(
            "s1",
            GEMINI_API_KEY="a-key",
            REACTOR_MEMORY_SUMMARY__PROVIDER="gemini",
            REACTOR_MEMORY_MODELS__GEMINI__BASE_URL=fake.url,
            REACTOR_MEMORY_CHAT__SYSTEM="Be kind.",
        )
        assert "gemini-3.5-flash-lite" in person.banner
        assert "What you say is sent to http://127.0.0.1" in person.banner
        assert person.type("will you answer?") == "Of course.\n"
        [question] = fake.questions
    assert question.headers["x-goog-api-key"] == "a-key"
    assert question.instruction == "Be kind."


# -- a pipe -----------------------------------------------------------------------------------------------------------


def test_lines_come_through_a_pipe(pipe: Pipe) -> None:
    done = pipe("hello\n\n  \nhow are you?", "s1")
    assert done == Finished(
        0,
        "You said: hello\n(offline echo, it was given 1 message)\n"
        "You said: how are you?\n(offline echo, it was given 3 messages)\n",
        "",
    )
    assert pipe("", "s1") == Finished(0, "", "")


def test_commands_come_through_pipe_and_failure_is_an_exit_code(pipe: Pipe) -> None:
    done = pipe("hello\n/pin 1\n/pin 9\n/delete\nno\n/delete\nyes\nnever read\n", "s1")
    assert done.code == 1
    assert done.err == "error: seq: message 9 is not in this session: pin one of its messages\n"
    assert done.out.splitlines()[2:] == [
        "pinned: message 1: hello",
        "Delete s1 (2 messages) and its forks for ever? yes or no",
        "nothing was deleted",
        "Delete s1 (2 messages) and its forks for ever? yes or no",
        "deleted s1",
    ]


def test_an_empty_answer_is_named(pipe: Pipe, openai: FakeOpenAI, run: Run) -> None:
    openai.script(openai_speaks())
    assert pipe("hello\n", "s1") == Finished(0, "", "(no answer)\n")
    assert run("show", "s1", "--json").json["session"]["last_seq"] == 1


def test_tiers_come_through_a_pipe(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_HISTORY__STRATEGY", "progressive")
    monkeypatch.setenv("REACTOR_MEMORY_TIERS__RECENT_COUNT", "2")
    monkeypatch.setenv("REACTOR_MEMORY_TIERS__CONDENSED_COUNT", "2")
    done = pipe("one\ntwo\nthree\n/summarize\n/stats\nfour\n", "s1")
    lines = done.out.splitlines()
    assert lines[6] == "summarised: messages and summaries 6 → 4"
    assert [line.split()[-1] for line in lines if line.startswith(("condensed", "compressed", "summaries"))] == list(
        "222"
    )
    assert lines[-1] == "(offline echo, it was given 5 messages)"


def test_the_end_of_a_pipe_is_no_confirmation(pipe: Pipe, run: Run) -> None:
    pipe("hello\n", "s1")
    assert pipe("/delete\n", "s1").code == 0
    assert run("show", "s1").code == 0


@pytest.mark.slow
def test_bytes_that_are_no_text_are_no_reason_to_end(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "reactor_memory", "chat", "s1"],
        input=b"caf\xe9\nnul \x00 here\nlast",
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONIOENCODING": "utf-8"},
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 1
    assert "You said: caf\N{REPLACEMENT CHARACTER}\n" in done.stdout.decode()
    assert "You said: last\n" in done.stdout.decode()
    assert "NUL" in done.stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["s1~none"], "session 's1~none': does not exist"),
        (["a\nb"], "session_id: contains a control character"),
        (["s1", "--budget", "0"], "Invalid value for '--budget'"),
    ],
)
def test_what_cannot_be_talked_in_is_refused(pipe: Pipe, arguments: list[str], problem: str) -> None:
    done = pipe("hello\n", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {problem}")


def test_a_session_of_somebody_else_is_refused(pipe: Pipe) -> None:
    pipe("hello\n", "s1", "--user", "ann")
    done = pipe("hello\n", "s1", "--user", "bob")
    assert done == Finished(2, "", "error: session 's1': belongs to another user\n")


def test_a_provider_without_a_key_is_refused_by_name(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_MEMORY_CHAT__PROVIDER", "gemini")
    done = pipe("hello\n", "s1")
    assert (done.code, done.err) == (
        2,
        "error: models.gemini.api_key: is not set: set it, GEMINI_API_KEY or GOOGLE_API_KEY\n",
    )
    monkeypatch.setenv("REACTOR_MEMORY_CHAT__PROVIDER", "parrot")
    assert pipe("hello\n", "s1").err.startswith(
        "error: chat.provider: no chat_model is called 'parrot'; there are: auto"
    )
