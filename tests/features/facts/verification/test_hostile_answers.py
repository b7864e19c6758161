"""Of what a hostile model claims nothing counts, and what is true is told: every kind in every language."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from reactor_memory.features.facts.evidence import verify_facts
from reactor_memory.features.facts.merge import fold
from reactor_memory.features.facts.verification.claim_words import judged_languages
from reactor_memory.features.facts.verification.narrative_proof import proven_narrative
from reactor_memory.features.facts.verification.proof import proven
from reactor_memory.models.ledger import Fact
from tests.scenes.hostile_answers import HostileAnswer, hostile_answers
from tests.scenes.tables import each_row

ANSWERS = list(hostile_answers())
LEAST = 200


def test_every_kind_is_tried_in_every_language() -> None:
    assert len(ANSWERS) >= LEAST
    assert {each.language for each in ANSWERS} == judged_languages()
    assert len(set(Counter(each.kind for each in ANSWERS).values())) == 1


@each_row("each", ANSWERS)
def test_none_counts_and_what_is_true_is_told(each: HostileAnswer) -> None:
    messages = [replace(message, seq=seq) for seq, message in enumerate(each.messages, start=1)]
    claims = [Fact(**claim) for claim in each.facts]
    held = fold(fact for fact in proven(verify_facts(claims, messages), messages) if fact.verified)
    assert [fact for fact in held if not fact.salience] == []
    assert proven_narrative(each.answer["narrative"], messages) == each.told
    told = " ".join(fact.value for fact in held)
    cited = {claim["source_seq"] for claim in each.facts} & {m.seq for m in messages if m.role == "user"}
    assert all(text in told for text in each.true if any(m.seq in cited and text in m.content for m in messages))
