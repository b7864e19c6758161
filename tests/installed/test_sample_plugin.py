"""A third party's package, built and installed: found, conditioned, used and shut down."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.installed.conftest import CHECKOUT, Run

CONVERSATION = """
import json, logging, sys
import anyio
from reactor_memory import Message, open_container

logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(name)s %(message)s")

async def main():
    async with open_container() as container:
        manager = container.conversation_manager()
        for text in ("we met by the river", "we walked along it", "we went home"):
            await manager.save_history("s1", [Message.user(text), Message.assistant("I see")], user_id="u1")
        await manager.drain()
        context = await manager.load_history("s1", user_id="u1")
    return [message.content for message in context.messages]

print(json.dumps(anyio.run(main)))
"""

SHOW_CONDITIONS = """
import json, sys
from reactor_memory.wiring.plugins import discover, evaluate
from reactor_memory.settings.settings import Settings

report = evaluate(discover(), Settings())
print(json.dumps([[each.plugin, each.selected, each.reason] for each in report.conditions]))
print(any(name.startswith("sample_plugin.") for name in sys.modules))
"""

SWITCHED_ON = {"REACTOR_MEMORY_PLUGINS__OPTIONS": '{"sample": {"enabled": true, "sign": "?!"}}'}

SELECTED = {
    "REACTOR_MEMORY_STORE__URL": "sample:///sample.jsonl",
    "REACTOR_MEMORY_SUMMARY__ENABLED": "true",
    "REACTOR_MEMORY_SUMMARY__PROVIDER": "shouting",
    "REACTOR_MEMORY_SUMMARY__TRIGGER_MESSAGE_COUNT": "4",
    "REACTOR_MEMORY_SUMMARY__RECENT_MESSAGE_COUNT": "2",
    "REACTOR_MEMORY_SUMMARY__SEGMENT_MESSAGE_COUNT": "2",
}


@pytest.fixture(scope="session")
def path(build_wheel: Callable[[Path], Path], install: Callable[[Path], Path]) -> list[Path]:
    return [install(build_wheel(CHECKOUT / "tests" / "sample_plugin")), CHECKOUT]


@pytest.mark.slow
def test_a_conversation_uses_what_the_package_adds(path: list[Path], run_python: Run) -> None:
    done = run_python(path, "-c", CONVERSATION, **SWITCHED_ON, **SELECTED)
    assert done.returncode == 0, done.stderr
    memory, *window = json.loads(done.stdout)
    assert memory.startswith("Conversation Summary:")
    assert memory.splitlines()[-2:] == ["I SEE?!", "I SEE?!"]
    assert window == ["we went home", "I see"]
    lines = [
        line.removeprefix("sample_plugin") for line in done.stderr.splitlines() if line.startswith("sample_plugin")
    ]
    assert lines == [".store open", ".store close", " closed"]
    again = run_python(path, "-c", CONVERSATION, **SWITCHED_ON, **SELECTED)
    assert json.loads(again.stdout)[0].splitlines()[-3:] == ["I SEE?!"] * 3, again.stderr


@pytest.mark.parametrize(
    ("environment", "condition"),
    [
        ({}, [False, "needs plugins.options.sample.enabled: true"]),
        (SWITCHED_ON, [True, "conditions met"]),
        ({**SWITCHED_ON, "REACTOR_MEMORY_PLUGINS__DISABLED": "sample"}, [False, "named in plugins.disabled"]),
        ({**SWITCHED_ON, "REACTOR_MEMORY_PLUGINS__ENABLED": "false"}, [False, "plugins.enabled is false"]),
    ],
)
def test_the_report_says_why(
    path: list[Path], run_python: Run, environment: dict[str, str], condition: list[object]
) -> None:
    done = run_python(path, "-c", SHOW_CONDITIONS, **environment)
    assert done.returncode == 0, done.stderr
    conditions, imported = done.stdout.splitlines()
    assert json.loads(conditions) == [["sample", *condition]]
    assert imported == "False"


@pytest.mark.slow
def test_the_name_of_a_missing_package_is_refused_with_reason(path: list[Path], run_python: Run) -> None:
    done = run_python(path, "-c", CONVERSATION, **SELECTED)
    assert done.returncode == 1
    assert "ConfigurationError: store.url: no database is called 'sample'" in done.stderr
    assert "plug-in sample: needs plugins.options.sample.enabled: true" in done.stderr


@pytest.mark.slow
def test_the_container_overrides_a_plug_in(path: list[Path], run_python: Run) -> None:
    program = """
import anyio
from pathlib import Path
from dependency_injector import providers
from reactor_memory import Message, Settings, open_container
from sample_plugin.store import LinesStore

def configure(container):
    other = Settings(store={"url": "sample:///other.jsonl"})
    container.record_store.override(providers.Singleton(LinesStore, other))

async def main():
    async with open_container(configure=configure) as container:
        manager = container.conversation_manager()
        await manager.save_history("s1", [Message.user("hello")])
    print(*sorted(path.name for path in Path().glob("*.jsonl")))

anyio.run(main)
"""
    done = run_python(path, "-c", program, **SWITCHED_ON, **SELECTED)
    assert done.stdout.split() == ["other.jsonl"], done.stderr
