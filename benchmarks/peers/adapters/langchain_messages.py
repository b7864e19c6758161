"""What LangChain and LangGraph share: messages, and trimming them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, trim_messages

from benchmarks.peers.contender import Said
from benchmarks.peers.trimming import OVERHEAD, count_tokens


def message_of(said: Said) -> BaseMessage:
    return HumanMessage(said.text) if said.role == "user" else AIMessage(said.text)


def count_messages(messages: list[BaseMessage]) -> int:
    return sum(count_tokens(message.text) + OVERHEAD for message in messages)


def trimmed(messages: Sequence[BaseMessage], budget: int, counter: Any = count_messages) -> Sequence[Any]:
    """`counter`: a function of a list, or ``approximate``, which `trim_messages` knows."""
    return trim_messages(messages, max_tokens=budget, strategy="last", token_counter=counter)
