"""A quotation that stands in for a refused statement is stored as every quotation is."""

from __future__ import annotations

import pytest

from reactor_memory.features.facts.evidence import evidence_text, quote, verify_facts
from reactor_memory.features.facts.verification.proof import proven
from reactor_memory.models import Message
from reactor_memory.models.ledger import Fact


@pytest.mark.parametrize("filler", ["hello order table ", "and the red kettle\tthen ", "привет заказ ", "椅子と"])
def test_quotation_of_long_sentence_stands_at_its_span(filler: str) -> None:
    text = f"I am not allergic to latex {filler * 30}"
    message = Message(role="user", content=text, seq=4)
    claim = Fact(anchor="user", key="allergy", value="allergic to latex", source_seq=4)
    claimed, *quoted = proven(verify_facts([claim], [message]), [message])
    assert not claimed.verified
    assert quoted
    for fact in quoted:
        assert fact.value in " ".join(quote(fact, evidence_text(message)).split())
