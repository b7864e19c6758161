"""Processes that end without closing, and forked ones: nothing hangs, and nothing acknowledged is lost."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2
import pytest

from reactor_memory import sync
from tests.scenes.tables import each_row

ROOT = Path(__file__).parents[2]

OPEN = """
import sys
from reactor_memory import Message, sync
block = sync.open_memory(sys.argv[1])
memory = block.__enter__()
memory.save_history("s", ["hi"], user_id="u")
print("saved", flush=True)
"""

ENDINGS = {
    "of a script": OPEN,
    "without the block": OPEN.replace(
        "block = sync.open_memory(sys.argv[1])\nmemory = block", "memory = sync.open_memory(sys.argv[1])"
    ),
    "inside the block": OPEN.replace(
        "memory = block.__enter__()", "memory = block.__enter__()\nsys.modules['kept'] = memory"
    ),
    "by an exit": OPEN + "sys.exit(0)\n",
    "while a thread saves": OPEN
    + """
import threading
def go_on():
    try:
        while True:
            memory.save_history("t", ["again"], user_id="u")
    except Exception:
        pass
threading.Thread(target=go_on, daemon=True).start()
""",
    "in a turn": OPEN + "turn = memory.turn('s', 'and now?', user_id='u')\nturn.__enter__()\n",
}


def ended(command: list[str], folder: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, input=text, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.slow
@each_row("name", sorted(ENDINGS))
def test_a_program_that_closes_nothing_ends(name: str, tmp_path: Path) -> None:
    done = ended([sys.executable, "-c", ENDINGS[name], "sqlite:///memory.db"], tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "saved\n", "")
    assert saved_in(tmp_path) == "hi"


def saved_in(folder: Path) -> str:
    with sync.open_memory(f"sqlite:///{folder}/memory.db") as memory:
        return memory.read_messages("s", user_id="u")[0].content


MOST_SECONDS, ENDLESS_SECONDS = 1.0, 20
"""What the end of a program may take of the processor, and how long it may last on any machine."""


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="this system does not tell what a process took")
@pytest.mark.slow
def test_the_end_of_a_program_takes_no_second(tmp_path: Path) -> None:
    text = OPEN + "import time\nprint(time.process_time(), flush=True)\n"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", text, "sqlite:///memory.db"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "saved\n"
        at_the_end = float(process.stdout.readline())
        kill = threading.Timer(ENDLESS_SECONDS, process.kill)
        kill.start()
        _, status, used = os.wait4(process.pid, 0)
        kill.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        assert (process.returncode, process.stderr.read()) == (0, "")
    assert saved_in(tmp_path) == "hi"
    assert used.ru_utime + used.ru_stime - at_the_end < MOST_SECONDS


@pytest.mark.slow
def test_a_console_that_closes_nothing_ends(tmp_path: Path) -> None:
    done = ended(
        [sys.executable, "-i", "-c", OPEN, "memory.db"], tmp_path, "len(memory.read_messages('s', user_id='u'))\n"
    )
    assert done.returncode == 0
    assert done.stdout.split() == ["saved", "1"]
    assert "Traceback" not in done.stderr


WAYS = ("at once", "by leaving", "multiprocessing")

FORKS = """
import asyncio, multiprocessing, os, sys, time
from reactor_memory import Message, open_memory, sync
from reactor_memory.adapters.loop_bridge import Crossing
from reactor_memory.errors import OtherProcessError

url, way = sys.argv[1:]

def refused(call):
    began = time.monotonic()
    try:
        call()
    except OtherProcessError as error:
        assert "open it in this process" in str(error), error
        assert time.monotonic() - began < 5
    else:
        raise AssertionError("was not refused")

def in_child(memory, crossing):
    for call in (
        lambda: memory.load_history("s"), lambda: memory.save_history("s", ["x"]), lambda: memory.drain(),
        lambda: memory.pins.list("s"), lambda: memory.recall("s", "hi"), lambda: memory.turn("s", "hi").__enter__(),
        lambda: asyncio.run(memory.memory.load_history("s")), lambda: asyncio.run(memory.memory.drain()),
        lambda: asyncio.run(memory.memory.pins.list("s")), lambda: asyncio.run(memory.memory.facts.list("s")),
        lambda: crossing.call(lambda: memory.memory.load_history("s")),
        lambda: asyncio.run(crossing.acall(lambda: memory.memory.load_history("s"))),
        lambda: Crossing(memory.memory.loop).call(lambda: memory.memory.load_history("s")),
    ):
        refused(call)
    with sync.open_memory(url) as own:
        own.save_history(f"child {way}", ["from the child"])
        assert len(own.load_history(f"child {way}").messages) == 1

with sync.open_memory(url) as memory:
    memory.save_history(way, ["hi"])
    crossing = Crossing(memory.memory.loop)
    if way == "multiprocessing":
        child = multiprocessing.get_context("fork").Process(target=in_child, args=(memory, crossing))
        child.start()
        child.join(50)
        code = child.exitcode
    else:
        pid = os.fork()
        if pid == 0 and way == "at once":
            try:
                in_child(memory, crossing)
            except BaseException:
                import traceback
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        if pid == 0:
            in_child(memory, crossing)
            sys.exit(0)  # leaves the block of the parent
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code == 0, code
    for number in range(20):
        memory.save_history(way, [f"after {number}"])
    assert len(memory.read_messages(way, last=100)) == 21
    memory.drain()
print("parent is well")
"""


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def parent_stays_well(url: str, way: str, folder: Path) -> None:
    done = ended([sys.executable, "-W", "ignore", "-c", FORKS, url, way], folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "parent is well\n", "")


@needs_fork
@pytest.mark.slow
def test_a_fork_is_refused_and_its_parent_unharmed(tmp_path: Path) -> None:
    parent_stays_well("sqlite:///memory.db", "at once", tmp_path)


@pytest.mark.slow
@needs_fork
@each_row(("url", "way"), [(url, way) for url in ("sqlite:///memory.db", "memory://") for way in WAYS])
def test_every_way_to_fork_is_refused(url: str, way: str, tmp_path: Path) -> None:
    parent_stays_well(url, way, tmp_path)


@pytest.mark.slow
@pytest.mark.postgres
@needs_fork
@each_row("way", WAYS)
def test_a_fork_leaves_connections_of_its_parent_alone(way: str, postgres_dsn: str, tmp_path: Path) -> None:
    parent_stays_well(postgres_dsn, way, tmp_path)


PRELOADED = """
import os
from reactor_memory import sync
from reactor_memory.errors import OtherProcessError

block = sync.open_memory("memory.db")
memory = block.__enter__()
memory.save_history("parent", ["before the fork"])
own = None

def application(environ, start_response):
    global own
    try:
        memory.load_history("parent")
        said = "the memory of the parent answers"
    except OtherProcessError as error:
        said = str(error)
    if own is None:
        own = sync.open_memory("memory.db").__enter__()
    own.save_history(f"worker {os.getpid()}", ["from a worker"])
    body = f"{len(own.read_messages('parent'))} {said}".encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
"""


@pytest.mark.slow
@needs_fork
def test_workers_of_gunicorn_are_refused_what_was_preloaded(tmp_path: Path) -> None:
    installing = [sys.executable, "-m", "uv", "pip", "install", "-q", "--python", sys.executable]
    subprocess.run([*installing, "--target", str(tmp_path / "packages"), "gunicorn"], check=True)
    (tmp_path / "preloaded.py").write_text(PRELOADED)
    path = os.pathsep.join(map(str, (ROOT, tmp_path, tmp_path / "packages")))
    serving = ["-m", "gunicorn", "--preload", "--workers", "2", "--bind", f"unix:{tmp_path}/socket"]
    command = [sys.executable, *serving, "--pid", str(tmp_path / "pid"), "preloaded:application"]
    with subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}) as process:
        try:
            with httpx2.Client(transport=httpx2.HTTPTransport(uds=f"{tmp_path}/socket", retries=1)) as client:
                _wait_for(tmp_path / "socket", process)
                answers = {client.get("http://localhost/", headers={"Connection": "close"}).text for _ in range(8)}
        finally:
            process.terminate()
            assert process.wait(ENDLESS_SECONDS) == 0
    assert len(answers) == 1
    [answer] = answers
    assert answer.startswith("1 ")
    assert "open it in this process" in answer


def _wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    while not path.exists():
        assert process.poll() is None
        time.sleep(0.05)  # noqa: TID251 - another process makes it
