"""Dialogues of public corpora become sessions with probes. The dialogues here are made up, in the corpora's formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from benchmarks.corpora.__main__ import main
from reactor_memory.evaluation.probes import find
from reactor_memory.evaluation.transcripts import Line, read_lines
from reactor_memory.evaluation.units import message_unit

SCHEMA = [
    {
        "service_name": "Saunas_1",
        "description": "Saunas",
        "slots": [
            {"name": "sauna", "description": "Name of the sauna", "is_categorical": False, "possible_values": []},
            {"name": "hour", "description": "Hour of the visit", "is_categorical": False, "possible_values": []},
            {"name": "private", "description": "Whether it is private", "is_categorical": True},
        ],
        "intents": [
            {
                "name": "ReserveSauna",
                "description": "Reserve a sauna",
                "is_transactional": True,
                "required_slots": ["hour", "sauna"],
                "optional_slots": {"private": "False"},
            },
            {"name": "FindSauna", "description": "Find", "is_transactional": False, "required_slots": ["sauna"]},
        ],
    }
]


def frame(**fields: Any) -> dict[str, Any]:
    return {"service": "Saunas_1", "actions": [], "slots": [], **fields}


def sauna(number: int, *results: dict[str, str], method: str = "ReserveSauna") -> dict[str, Any]:
    call = {"method": method, "parameters": {"hour": "18:00", "private": "True", "sauna": "Löyly"}}
    state = {"active_intent": method, "requested_slots": [], "slot_values": {"hour": ["6 pm", "six"]}}
    return {
        "dialogue_id": f"1_{number:05}",
        "services": ["Saunas_1"],
        "turns": [
            {"speaker": "USER", "utterance": "Löyly at 6 pm, so six.", "frames": [frame(state=state)]},
            {
                "speaker": "SYSTEM",
                "utterance": "It is reserved.",
                "frames": [frame(service_call=call, service_results=list(results))],
            },
        ],
    }


def order(number: int, *items: str, finished: bool = True) -> dict[str, Any]:
    def called(name: str, request: object, response: object) -> list[dict[str, str]]:
        text = request if isinstance(request, str) else json.dumps(request)
        pieces = [("api_call", name), ("request", text), ("api_response", name), ("response", json.dumps(response))]
        return [{"name": kind, "value": value, "context": "c"} for kind, value in pieces]

    details = {"order_id": str(number), "menu_items": [{"menu_item_name": item} for item in items]}
    annotations = [
        *called("get_menu_items", "{malformed", {"menu_items": []}),
        *called("get_order_details", {"order_id": str(number)}, details),
        *(called("finish_order", {"order_id": str(number)}, {"success": True}) if finished else []),
    ]
    return {
        "conversation_id": f"dlg-{number}",
        "vertical": "Coffee",
        "instructions": None,
        "utterances": [
            {"index": 0, "speaker": "user", "text": "A tea.", "segments": [], "annotations": annotations},
            {"index": 1, "speaker": "assistant", "text": "It is ready.", "segments": [], "annotations": []},
        ],
    }


@pytest.fixture
def build(tmp_path: Path) -> Any:
    def build(corpus: str, dialogues: object, *options: str, out: str = "out.jsonl") -> tuple[Result, list[Line]]:
        (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
        (tmp_path / "dialogues_001.json").write_text(json.dumps(dialogues))
        schema = ["--schema", f"{tmp_path}/schema.json"] if corpus == "schema-guided" else []
        files = [f"{tmp_path}/dialogues_001.json", "--out", f"{tmp_path}/{out}"]
        result = CliRunner().invoke(main, [corpus, *schema, *files, *options])
        return result, list(read_lines(tmp_path / out)) if result.exit_code == 0 else []

    return build


def test_service_calls_become_calls_and_their_parameters_probes(build: Any) -> None:
    dialogues = [sauna(0, {"sauna": "Löyly"}), sauna(1), sauna(2, {"sauna": "Löyly"}, method="FindSauna")]
    result, (line,) = build("schema-guided", dialogues, "--per-session", "3")
    assert "CC BY-SA 4.0" in result.output
    assert line.session_id == "sgd-000"
    assert [message.role for message in line.messages] == ["user", "assistant", "tool", "assistant"] * 3
    assert len({call.id for message in line.messages for call in message.tool_calls}) == 3
    (probe,) = line.probes()
    assert probe.question == "Reserve a sauna (Löyly): Hour of the visit?"
    assert (probe.anchor, probe.value, probe.canonical) == (("Löyly",), ("18:00", "6 pm", "six"), "18:00")
    assert find(probe, [message_unit(line.messages[position]) for position in probe.evidence]) == 0


def test_finished_orders_of_one_item_become_probes(build: Any) -> None:
    dialogues = [order(11, "Tea"), order(12, "Tea", "Milk"), order(13, "Mocha", finished=False), order(14, "Mate")]
    result, lines = build("taskmaster", dialogues, "--per-session", "2", out="out.jsonl.gz")
    assert "CC BY 4.0" in result.output
    assert [[(probe.anchor, probe.value) for probe in line.probes()] for line in lines] == [
        [(("11",), ("Tea",))],
        [(("14",), ("Mate",))],
    ]
    assert lines[0].messages[1].tool_calls[0].arguments == "{malformed"
    for line in lines:
        for probe in line.probes():
            assert find(probe, [message_unit(line.messages[position]) for position in probe.evidence]) == 0


def test_same_files_give_same_bytes_with_times_that_go_forward(build: Any, tmp_path: Path) -> None:
    made: list[bytes] = []
    for options in ((), (), ("--seed", "1")):
        _, (line,) = build("taskmaster", [order(1, "Tea"), order(2, "Tea")], "--per-session", "2", *options)
        made.append((tmp_path / "out.jsonl").read_bytes())
        times = [message.created_at or 0 for message in line.messages]
        assert times == sorted(set(times))
    assert made[0] == made[1] != made[2]


def test_a_wrong_file_is_refused_by_name_and_place(build: Any) -> None:
    result, _ = build("taskmaster", [{"conversation_id": "a"}])
    assert result.exit_code == 1
    assert "dialogues_001.json: Object missing required field `utterances` - at `$[0]`" in result.output
    result, _ = build("schema-guided", [sauna(0)])
    assert "hold fewer than 24 dialogues" in result.output
