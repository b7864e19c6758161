"""What of a model's facts the messages prove, and what is told instead."""

from __future__ import annotations

from typing import Any

from reactor_memory.features.facts.evidence import verify_facts
from reactor_memory.features.facts.quoting.language_packs import language_packs
from reactor_memory.features.facts.verification.claim_words import judged_languages
from reactor_memory.features.facts.verification.proof import judged, left_out, proven
from reactor_memory.models import Message, ToolCall
from reactor_memory.models.ledger import Fact
from tests.scenes.tables import each_row


def claim(value: str, seq: int = 1, anchor: str = "user", key: str = "statement", **fields: Any) -> Fact:
    return Fact(anchor=anchor, key=key, value=value, source_seq=seq, **fields)


def found(fact: Fact, *messages: Message) -> tuple[list[str], list[str]]:
    """The values that count as records, and those that are told as quotations."""
    facts = proven(verify_facts([fact], messages), messages)
    verified = [each for each in facts if each.verified]
    return [each.value for each in verified if not each.salience], [each.value for each in verified if each.salience]


def test_languages_are_some_of_the_reader() -> None:
    """Of a language whose words of claims are not known the quotation stands."""
    assert judged_languages() < set(language_packs())


def test_what_is_not_covered_is_told_in_its_own_words() -> None:
    said = Message.user("I am not allergic to latex.", seq=1)
    assert found(claim("allergic to latex"), said) == ([], ["I am not allergic to latex."])
    assert found(claim("I am not allergic to latex"), said) == (["I am not allergic to latex"], [])


@each_row(
    "text",
    [
        "Am I allergic to latex?",
        "I am allergic to latex. Not really!",
        "I am allergic to latex. Just kidding.",
        'Marit said: "I am allergic to latex."',
        "I never touch this:\n- I am allergic to latex",
        "> I am allergic to latex",
        "He told me „I am allergic to latex“.",
    ],
)
def test_words_that_the_speaker_does_not_mean_are_quoted(text: str) -> None:
    records, quoted = found(claim("allergic to latex"), Message.user(text, seq=1))
    assert records == []
    assert "latex" in " ".join(quoted)


def test_who_spoke_decides_whose_statement_it_is() -> None:
    ann = Message(role="user", name="Ann", content="I am allergic to latex.", seq=1)
    ben = Message(role="user", name="Ben", content="I sing.", seq=2)
    assert found(claim("allergic to latex", anchor="Ann"), ann, ben)[0] == ["allergic to latex"]
    assert found(claim("allergic to latex", anchor="Ben"), ann, ben)[0] == []
    assert found(claim("allergic to latex"), ann, ben)[0] == []
    assert found(claim("allergic to latex"), ann)[0] == ["allergic to latex"]


def test_an_outcome_is_that_of_the_log() -> None:
    call = Message.assistant("", tool_calls=[ToolCall(id="c", name="pay", arguments={"amount": "5 EUR"})], seq=1)
    declined = Message.tool('{"error": "card declined"}', tool_call_id="c", seq=2)
    paid = Message.tool('{"state": "paid"}', tool_call_id="c", seq=2)
    given = claim("5 EUR", anchor="payment", key="amount")
    for result, failed in ((declined, True), (paid, False)):
        for said in (True, False):
            (fact, *_) = proven(
                verify_facts([claim("5 EUR", 1, "payment", "amount", failed=said)], [call, result]), [call, result]
            )
            assert (fact.verified, fact.failed) == (True, failed)
    assert given.failed is False
    said_so = Message.user("I paid 5 EUR.", seq=1)
    assert found(claim("I paid 5 EUR", failed=True), said_so)[0] == []


def test_a_model_makes_no_quotation_of_its_own() -> None:
    said = Message.user("I am not allergic to latex.", seq=1)
    records, quoted = found(claim("allergic to latex", anchor="Ann #1", key="quote.own.1"), said)
    assert (records, quoted) == ([], ["I am not allergic to latex."])


def test_quotations_of_a_reader_stay_as_they_are() -> None:
    said = Message.user("I am not allergic to latex.", seq=1)
    kept = claim("I am not allergic to latex.", anchor="the user #1", key="quote.own.1", salience=50)
    assert found(kept, said) == ([], ["I am not allergic to latex."])


def test_each_refused_fact_has_its_reason() -> None:
    said = Message.user("I am not allergic to latex.", seq=1)
    facts = verify_facts([claim("allergic to latex"), claim("allergic to wool")], [said])
    assert [(each.fact.verified, each.verdict.reason) for each in judged(facts, [said])] == [
        (False, "negation"),
        (False, "missing"),
    ]


def test_quotations_are_left_out_for_what_says_the_same() -> None:
    def quotation(value: str) -> Fact:
        return claim(value, anchor="the user #1", key="quote.own.1", salience=50)

    told = [claim("allergic to latex", verified=True)]
    assert list(left_out([quotation("I am allergic to latex.")], told)) == []
    for value in ("I am not allergic to latex.", "I am allergic to latex and wool.", "Ann is allergic to latex."):
        assert list(left_out([quotation(value)], told)) == [quotation(value)]
    assert list(left_out([quotation("I am allergic to latex.")], [claim("allergic to latex")])) != []
