"""Settings that hold for every test."""

import gc
import os
import shutil
import signal
import ssl
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase
from hypothesis import settings as hypothesis_settings

from tests.doubles.fake_gemini import FakeGemini
from tests.doubles.fake_openai import FakeOpenAI
from tests.scenes.counts import counts

pytest_plugins = [
    "tests.scenes.fixtures_postgres",
    "tests.scenes.fixtures_stores",
    "tests.scenes.processor_time",
    "tests.scenes.fast_suite",
]

PROVEN = "proven: "
"""What begins the name of a property of a test that tells what it tried."""

MEMORY = Path("/dev/shm")
ENOUGH_BYTES = 4 * 2**30

# Tests would wait for a disk longer than they compute. Whoever wants them on one names it in TMPDIR.
if (
    "TMPDIR" not in os.environ
    and MEMORY.is_dir()
    and os.access(MEMORY, os.W_OK)
    and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    and shutil.disk_usage(MEMORY).free > ENOUGH_BYTES
):
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None

# A shell starts what runs in its background deaf to Ctrl-C, and every process of a test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Clients read whom the world trusts when they are made, which takes 30 ms of processor time, and 90 for Gemini. No test
# reaches the world from this process; a certificate of its own is read, and a file that is not there is missed.
BUNDLE_BYTES = 100_000
_read_certificates = ssl.SSLContext.load_verify_locations


def _read_own_certificates(context: ssl.SSLContext, cafile: Any = None, capath: Any = None, cadata: Any = None) -> None:
    file = Path(os.fsdecode(cafile or ""))
    if not file.is_file() or file.stat().st_size < BUNDLE_BYTES:
        _read_certificates(context, cafile, capath, cadata)


ssl.SSLContext.load_verify_locations = _read_own_certificates  # type: ignore[method-assign]
ssl.SSLContext.load_default_certs = lambda *_: None  # type: ignore[method-assign]

# A slow machine is no failure. The full run of checks uses the same examples every time; elsewhere they vary. Tests
# that need more examples than others ask for a multiple, so that the long proofs (`make test-slow`) try more of each.
for name, max_examples in (("reactor-memory", 15), ("thorough", 100)):
    hypothesis_settings.register_profile(
        name,
        deadline=None,
        derandomize="CI" in os.environ,
        max_examples=max_examples,
        suppress_health_check=[HealthCheck.too_slow],
    )
hypothesis_settings.register_profile(  # for code that was changed: that a test fails is all there is to know
    "mutants",
    hypothesis_settings.get_profile("reactor-memory"),
    derandomize=True,
    database=None,
    max_examples=10,
    phases=(Phase.explicit, Phase.generate),
)
hypothesis_settings.load_profile("reactor-memory")

# Collecting makes a million objects that live as long as the process. Without this, the collector of garbage would walk
# through all of them while they are made, and again in every test that asks for a full collection.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)  # after every 700 new objects it would take a tenth of the time of all tests
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """What the test counted goes with its report, from whichever process."""
    if call.when == "call" and counts:
        item.user_properties += [(PROVEN + what, number) for what, number in counts.items()]
        counts.clear()
    return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How much the proofs tried that held; of a proof that failed, nothing is said here."""
    proven: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", ()):
        for name, number in report.user_properties if report.when == "call" else ():
            if name.startswith(PROVEN):
                proven[name.removeprefix(PROVEN)] += number
    if proven:
        terminalreporter.section("proven")
        for what, number in sorted(proven.items()):
            terminalreporter.write_line(f"{number:>10,} {what}")


@pytest.fixture
def anyio_backend() -> str:
    """The drivers speak asyncio, so the tests run on it."""
    return "asyncio"


@pytest.fixture
async def fake_gemini() -> AsyncIterator[FakeGemini]:
    """A local server that speaks the Gemini wire format."""
    async with FakeGemini.running() as server:
        yield server


@pytest.fixture
async def fake_openai() -> AsyncIterator[FakeOpenAI]:
    """A local server that speaks the wire format of OpenAI's chat completions."""
    async with FakeOpenAI.running() as server:
        yield server
