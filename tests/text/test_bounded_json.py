"""JSON is cut into its values wherever the pieces end, and refused before it takes more than its limits."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.text.bounded_files import UnreadableError
from reactor_memory.text.bounded_json import UNLIMITED, decoded, is_dense, most_values, values_of

ANY = msgspec.json.Decoder[Any]()
TEXTS = st.text(st.sampled_from('a"\\ ,[]{}é:\n'), max_size=8)
VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


class Pieces(io.BytesIO):
    """Gives so many bytes at once."""

    def __init__(self, text: bytes, size: int) -> None:
        super().__init__(text)
        self._size = size

    def read(self, size: int | None = -1) -> bytes:
        return super().read(self._size)


def cut(text: bytes, size: int = 1000, max_bytes: int = UNLIMITED) -> Iterator[Any]:
    return (decoded(value, ANY) for value in values_of(Pieces(text, size), max_bytes))


@given(st.lists(VALUES, max_size=4), st.integers(1, 9), st.booleans(), st.sampled_from([None, 1]))
def test_elements_are_those_of_the_array(values: list[Any], size: int, escaped: bool, indent: int | None) -> None:
    text = json.dumps(values, ensure_ascii=escaped, indent=indent).encode()
    assert list(cut(text, size)) == values


@given(st.lists(st.dictionaries(TEXTS, VALUES, max_size=3), min_size=1, max_size=3), st.integers(1, 9))
def test_objects_stand_beside_each_other(values: list[Any], size: int) -> None:
    assert list(cut("\n".join(map(json.dumps, values)).encode(), size)) == values


@given(st.lists(VALUES, max_size=4), st.integers(0, 10_000), st.sampled_from('"\\[]{},: x'), st.integers(1, 9))
def test_damaged_arrays_are_refused_as_a_decoder_does(values: list[Any], place: int, sign: str, size: int) -> None:
    text = json.dumps(values)
    place %= len(text)
    damaged = (text[:place] + sign + text[place + 1 :]).encode()
    if damaged.startswith((b"[", b" ")):
        assert outcome(lambda: list(cut(damaged, size))) == outcome(lambda: list_of(damaged))


def outcome(read: Any) -> Any:
    try:
        return read()
    except (UnreadableError, msgspec.DecodeError):
        return "refused"


def list_of(text: bytes) -> Any:
    value = msgspec.json.decode(text)
    if not isinstance(value, list):
        raise UnreadableError("no list")
    return cast("list[Any]", value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b'[{"a": "' + b"x" * 2000 + b'"}]', "more than 1000 bytes"),
        (b"[" + b" " * 9 + b"[" * 600 + b"]" * 600 + b"]", "nested too deeply"),
        (b'{"a": ' * 600, "nested too deeply"),
        (b"x", "not valid JSON"),
        (b'[{"a"', "not valid JSON"),
        (b'{"a": 1} {', "not valid JSON"),
    ],
)
def test_what_is_too_much_or_no_json(text: bytes, told: str) -> None:
    with pytest.raises(UnreadableError, match=told):
        list(values_of(io.BytesIO(text), 1000 if "1000" in told else 100_000))


@pytest.mark.parametrize("value", [b"[]", b"{}", b"0", b'""', b'{"":0}'])
def test_no_more_values_than_fit(value: bytes) -> None:
    most = most_values(0)
    text = b"[" + value + (b"," + value) * most + b"]"
    with pytest.raises(UnreadableError, match=f"more than {most} values"):
        decoded(text, ANY, 0)
    with pytest.raises(UnreadableError, match=f"more than {most} values"):
        [decoded(each, ANY, len(text)) for each in values_of(io.BytesIO(b"[" + text + b"]"), len(text))]


def test_signs_in_texts_are_no_values() -> None:
    text = json.dumps(['a, b: [c] {"d"}, \\' * 20_000]).encode()
    assert not is_dense(text, 0)
    assert decoded(text, ANY, 0)
