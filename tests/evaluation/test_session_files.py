"""Files of public benchmarks become sessions; wrong ones are refused by name and place."""

from __future__ import annotations

import gzip
import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from reactor_memory.errors import ImportFormatError
from reactor_memory.evaluation.session_files import Format, reader
from reactor_memory.evaluation.transcripts import Line

LOCOMO: list[Any] = [
    {
        "sample_id": "talk-1",
        "conversation": {
            "speaker_a": "Ida",
            "speaker_b": "Ben",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ida", "dia_id": "D1:1", "text": "Hi Ben!"},
                {"speaker": "Ben", "dia_id": "D1:2", "text": "I painted.", "blip_caption": "a lighthouse at dusk"},
            ],
            "session_10_date_time": "9:05 am on 1 June, 2023",
            "session_10": [{"speaker": "Ida", "dia_id": "D10:1", "text": "I moved to Porto."}],
            "session_2_date_time": "12:00 am on 9 May, 2023",
            "session_2": [{"speaker": "Ben", "dia_id": "D2:1", "text": "My exam is in June."}],
            "session_11_date_time": "9:05 am on 2 June, 2023",
        },
        "qa": [
            {"question": "Where does Ida live?", "answer": "Porto", "evidence": ["D10:1"], "category": 4},
            {"question": "When?", "answer": 2023, "evidence": ["D1:1; D2:01", "D2:1", "D9:9"], "category": 2},
            {"question": "What sank?", "adversarial_answer": "a ship", "evidence": ["D1:2"], "category": 5},
        ],
    }
]
LONGMEMEVAL: list[Any] = [
    {
        "question_id": "q1",
        "question_type": "knowledge-update",
        "question": "How many lamps do I own?",
        "question_date": "2023/06/01 (Thu) 10:00",
        "answer": 4,
        "haystack_session_ids": ["b", "a"],
        "answer_session_ids": ["b"],
        "haystack_dates": ["2023/05/30 (Tue) 23:40", "2023/05/20 (Sat) 02:21"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "I bought a lamp, now I have 4.", "has_answer": True},
                {"role": "assistant", "content": "Nice.", "has_answer": False},
            ],
            [{"role": "user", "content": "I own 3 lamps."}, {"role": "assistant", "content": "Good."}],
        ],
    },
    {
        "question_id": "q2_abs",
        "question_type": "multi-session",
        "question": "What is my cat called?",
        "answer": "You did not say.",
        "haystack_dates": ["2023/05/20 (Sat) 02:21"],
        "haystack_sessions": [[{"role": "user", "content": "I have a dog."}]],
    },
]


def written(folder: Path, value: object) -> Path:
    path = folder / "file.json"
    path.write_text(json.dumps(value, indent=1))
    return path


def read(path: Path, format: Format = "auto") -> list[Line]:  # noqa: A002
    return list(reader(format)(path))


@pytest.mark.parametrize("format", ["auto", "locomo"])
def test_a_conversation_of_locomo_is_one_session(tmp_path: Path, format: Format) -> None:  # noqa: A002
    (line,) = read(written(tmp_path, LOCOMO), format)
    assert line.session_id == "talk-1"
    assert [(message.role, message.content) for message in line.messages] == [
        ("user", "Ida: Hi Ben!"),
        ("assistant", "Ben: I painted. [picture: a lighthouse at dusk]"),
        ("assistant", "Ben: My exam is in June."),
        ("user", "Ida: I moved to Porto."),
    ]
    assert line.messages[0].created_at == 1_683_554_160_000_000
    times = [message.created_at or 0 for message in line.messages]
    assert times == sorted(times)


def test_a_sitting_of_locomo_may_have_no_date(tmp_path: Path) -> None:
    (line,) = read(written(tmp_path, _changed(LOCOMO, 0, "conversation", "session_2_date_time")))
    assert [message.created_at is None for message in line.messages] == [False, False, True, False]


def test_questions_of_locomo_have_the_messages_they_name_as_evidence(tmp_path: Path) -> None:
    (line,) = read(written(tmp_path, LOCOMO))
    assert [(probe.question, probe.anchor, probe.value, probe.kind, probe.evidence) for probe in line.probes()] == [
        ("Where does Ida live?", (), ("Porto",), "single-hop", (3,)),
        ("When?", (), ("2023",), "temporal", (0, 2)),
    ]


@pytest.mark.parametrize("format", ["auto", "longmemeval"])
def test_entry_of_longmemeval_is_session_in_order_of_its_dates(tmp_path: Path, format: Format) -> None:  # noqa: A002
    (line,) = read(written(tmp_path, LONGMEMEVAL), format)
    assert line.session_id == "q1"
    assert [message.content for message in line.messages][0::2] == ["I own 3 lamps.", "I bought a lamp, now I have 4."]
    assert line.messages[0].created_at == 1_684_549_260_000_000
    (probe,) = line.probes()
    assert (probe.value, probe.kind, probe.evidence) == (("4",), "knowledge-update", (2,))


def test_packed_files_and_single_samples_are_read(tmp_path: Path) -> None:
    path = tmp_path / "file.json.gz"
    path.write_bytes(gzip.compress(json.dumps(LOCOMO).encode()))
    assert len(read(path)) == 1
    assert len(read(written(tmp_path, LOCOMO[0]), "locomo")) == 1


def test_our_own_format_is_told_from_theirs(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text('\n{"id": "s1", "messages": [{"role": "user", "content": "a"}]}\n')
    assert read(path)[0].where == f"{path}:2"


def _changed(value: list[Any], *path: Any, to: object = None) -> list[Any]:
    """A copy with one thing changed, or taken out."""
    copy = deepcopy(value)
    place: Any = copy
    for key in path[:-1]:
        place = place[key]
    if to is None:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return copy


@pytest.mark.parametrize(
    ("value", "format", "problem"),
    [
        ([], "auto", ": is an array, but of neither LoCoMo"),
        ([{"a": 1}], "auto", ": is an array, but of neither LoCoMo"),
        ([1], "auto", "[0]: Expected `object`, got `int`; expected objects"),
        (_changed(LOCOMO, 0, "qa"), "auto", "[0]: Object missing required field `qa`; expected a sample of LoCoMo"),
        (_changed(LOCOMO, 0, "qa", 1, "question", to=7), "auto", "[0]: qa[1].question: Expected `str`, got `int`"),
        (
            _changed(LOCOMO, 0, "conversation", "session_2_date_time", to="yesterday"),
            "auto",
            "[0]: conversation.session_2_date_time: must be a time such as '1:56 pm on 8 May, 2023'",
        ),
        (_changed(LOCOMO, 0, "conversation", "session_2", to="hm"), "auto", "[0]: conversation.session_2: Expected"),
        (_changed(LOCOMO, 0, "conversation", to={"speaker_a": "Ida"}), "auto", "[0]: conversation: holds no session_1"),
        (_changed(LOCOMO, 0, "conversation", "speaker_a"), "auto", "[0]: conversation: holds no speaker_a"),
        (LONGMEMEVAL, "locomo", "[0]: Object missing required field `conversation`; expected a sample of LoCoMo"),
        (
            _changed(LONGMEMEVAL, 0, "haystack_dates", to=[]),
            "auto",
            "[0]: haystack_dates: has 0 entries, haystack_sessions has 2: they must match",
        ),
        (
            _changed(LONGMEMEVAL, 0, "haystack_dates", 1, to="2023/02/30 (Sat) 02:21"),
            "auto",
            "[0]: haystack_dates[1]: must be a time such as '2023/04/10 (Mon) 17:50'",
        ),
        (
            _changed(LONGMEMEVAL, 0, "haystack_sessions", 0, 0, "role", to="robot"),
            "auto",
            "[0]: haystack_sessions[0][0].role: is none of the values allowed; expected an entry of LongMemEval",
        ),
        (_changed(LONGMEMEVAL, 0, "haystack_sessions", to=[[], []]), "auto", "[0]: haystack_sessions: holds no turn"),
    ],
)
def test_a_wrong_file_is_refused_by_name_and_place(tmp_path: Path, value: Any, format: Format, problem: str) -> None:  # noqa: A002
    path = written(tmp_path, value)
    with pytest.raises(ImportFormatError) as refused:
        read(path, format)
    assert str(refused.value).startswith(f"{path}{problem}")


@pytest.mark.parametrize("format", ["auto", "longmemeval"])
def test_what_cannot_be_read_is_refused(tmp_path: Path, format: Format) -> None:  # noqa: A002
    broken = tmp_path / "broken.json"
    broken.write_text("[[,")
    with pytest.raises(ImportFormatError, match=r"broken.json: is not valid JSON"):
        read(broken, format)
    damaged = tmp_path / "damaged.json.gz"
    damaged.write_bytes(gzip.compress(json.dumps(LOCOMO).encode())[:-12])
    with pytest.raises(ImportFormatError, match="damaged or not complete"):
        read(damaged, format)
    with pytest.raises(ImportFormatError, match=r"none.json: cannot be read: No such file"):
        read(tmp_path / "none.json", format)
