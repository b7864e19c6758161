"""A question to a language model, and its answer."""

from __future__ import annotations

from typing import Any, NamedTuple

from reactor_memory.errors import SummarizationError
from reactor_memory.models import Value
from reactor_memory.models.ledger import Usage


class Request(Value, frozen=True, kw_only=True):
    """One question to a model: the instruction, the JSON document that it is about, and the schema of the answer."""

    instruction: str
    document: str
    schema: dict[str, Any]


class Reply(NamedTuple):
    """What a model said, and what that cost; zeros where the provider does not tell.

    `failure` says why the text is of no use, though it was paid for.
    """

    text: str
    usage: Usage
    failure: SummarizationError | None = None
