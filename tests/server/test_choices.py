"""Whoever sends a value that there is not is told which there are."""

from __future__ import annotations

from typing import Literal

import msgspec
import pytest

from reactor_memory.features.sharing import bodies
from reactor_memory.server.choices import choices
from reactor_memory.server.problems import ProblemError
from reactor_memory.server.request_bodies import decode


def test_the_values_of_a_type_of_few_values() -> None:
    assert set(choices(Literal["a", "b"] | None)) == {"a", "b"}
    assert choices(str) == ()


@pytest.mark.parametrize(
    ("model", "body", "says"),
    [
        (bodies.ShareConversationRequest, b'{"userId": "bob", "accessLevel": "king"}', "manager, reader, writer"),
        (bodies.SearchMessagesRequest, b'{"query": "x", "searchType": "king"}', "auto, keyword, semantic"),
        (
            bodies.CreateAgentMessagesRequest,
            b'{"messages": [{"role": "king", "content": "x"}]}',
            "agent, assistant, system, tool, user",
        ),
    ],
)
def test_body_with_another_value_is_told_those_that_there_are(model: type, body: bytes, says: str) -> None:
    with pytest.raises(ProblemError) as refused:
        decode(body, msgspec.json.Decoder(model))
    (problem,) = refused.value.errors
    assert problem.problem == f"must be one of {says}"
    assert "king" not in refused.value.detail
