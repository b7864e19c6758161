"""Generated sessions are what they promise: the same for the same seed, answerable, and without a stale end."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter

import pytest

from reactor_memory.evaluation.generator import generate_sessions
from reactor_memory.evaluation.generator.details import Unused, other_than, time_of_day
from reactor_memory.evaluation.generator.script import sentence
from reactor_memory.evaluation.probes import find, shows_stale
from reactor_memory.evaluation.session_files import write_generated
from reactor_memory.evaluation.sessions import LabelledSession, without_tools
from reactor_memory.evaluation.units import message_unit

KINDS = {"planted", "corrected", "failed", "cancelled", "negation", "rule"}


@pytest.fixture(scope="module")
def sessions() -> list[LabelledSession]:
    return list(generate_sessions(6, seed=4))


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_the_same_seed_gives_the_same_bytes_in_every_process(hash_seed: str) -> None:
    program = "import sys; from reactor_memory.evaluation.session_files import write_generated as w; "
    program += "sys.stdout.buffer.writelines(w(2, 4))"
    command = [sys.executable, "-c", program]
    made = subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": hash_seed}, capture_output=True, check=True)
    here = b"".join(write_generated(2, 4))
    assert hashlib.sha256(made.stdout).digest() == hashlib.sha256(here).digest()


def test_another_seed_gives_other_sessions_and_more_change_none(sessions: list[LabelledSession]) -> None:
    assert next(generate_sessions(1, seed=5)).messages != sessions[0].messages
    assert list(generate_sessions(2, seed=4)) == sessions[:2]


@pytest.mark.slow
def test_whole_sessions_answer_every_probe_and_leave_nothing_stale(sessions: list[LabelledSession]) -> None:
    for session in sessions:
        for variant in (session, without_tools(session)):
            units = [message_unit(message) for message in variant.messages]
            for probe in variant.probes:
                assert find(probe, units) is not None, probe
                assert not shows_stale(probe, units), probe


def test_before_it_was_corrected_the_stale_value_was_said(sessions: list[LabelledSession]) -> None:
    corrected = [(session, probe) for session in sessions for probe in session.probes if probe.kind == "corrected"]
    before = 0
    for session, probe in corrected:
        units = [message_unit(message) for message in session.messages[: min(probe.evidence)]]
        before += shows_stale(probe, units)
    assert before > 0.9 * len(corrected) > 10


def test_the_evidence_states_the_detail(sessions: list[LabelledSession]) -> None:
    for session in sessions:
        for probe in session.probes:
            units = [message_unit(session.messages[position]) for position in probe.evidence]
            assert find(probe, units) is not None, probe


def test_every_kind_of_detail_and_of_traffic_is_there(sessions: list[LabelledSession]) -> None:
    kinds = Counter(probe.kind for session in sessions for probe in session.probes)
    assert set(kinds) == KINDS
    assert min(kinds.values()) >= 10
    results = [message.content for session in sessions for message in session.messages if message.role == "tool"]
    assert any("error" in text.lower() for text in results)
    assert any(not text.startswith(("{", "[")) for text in results)
    tools = {call.name for session in sessions for message in session.messages for call in message.tool_calls}
    assert len(tools) > 40
    for session in sessions:
        assert len(without_tools(session).probes) > 0.9 * len(session.probes)
        assert 300 < len(session.messages) < 900


def test_results_follow_their_calls_in_order(sessions: list[LabelledSession]) -> None:
    for session in sessions:
        waiting: list[str] = []
        for message in session.messages:
            if message.role == "tool":
                assert message.tool_call_id == waiting.pop(0)
            else:
                assert not waiting
                waiting = [call.id for call in message.tool_calls]
        assert any(len(message.tool_calls) > 1 for message in session.messages)


def test_times_go_forward(sessions: list[LabelledSession]) -> None:
    for session in sessions:
        times = [message.created_at or 0 for message in session.messages]
        assert times == sorted(times)
        assert times[0] > 0


def test_what_is_drawn_once_is_not_drawn_again() -> None:
    from random import Random

    unused = Unused(Random(1))
    assert len({unused.draw(time_of_day).written for _ in range(30)}) == 30
    drawn = time_of_day(Random(1))
    assert other_than(drawn, time_of_day, Random(1)) != drawn


def test_sentences_begin_with_a_capital() -> None:
    assert sentence("there is a change. it is at 4 p.m. now. ok?") == "There is a change. It is at 4 p.m. now. Ok?"
