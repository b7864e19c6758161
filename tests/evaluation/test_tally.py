"""How contexts add up."""

from __future__ import annotations

import msgspec
import pytest

from reactor_memory.core.context.budget import assemble
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.draft import ContextLimits, Draft
from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.evaluation.metrics import TextCount
from reactor_memory.evaluation.pricing import Traffic
from reactor_memory.evaluation.probes import Probe
from reactor_memory.evaluation.scores import Scores
from reactor_memory.evaluation.tally import Tally
from reactor_memory.models import Message
from tests.evaluation.contexts import WordCounter

COUNTER = MessageCounter(WordCounter())
LATTE = Probe(question="Which drink?", anchor=("order 1",), value=("latte",))
MOCHA = Probe(question="Which drink?", anchor=("order 2",), value=("mocha",))


def context(*texts: str, current: str | None = None, budget: int = 100) -> Context:
    window = tuple(Message.user(text, seq=seq, message_id=f"m{seq}") for seq, text in enumerate(texts, start=1))
    return assemble(
        Draft(strategy="take_last", session_id="s", window=window),
        [] if current is None else [Message.user(current)],
        ContextLimits(budget=budget, overhead=0),
        count=COUNTER.of,
        count_text=COUNTER.of_text,
    )


@pytest.fixture
def tally() -> Tally:
    return Tally(TextCount(COUNTER))


def test_reuse_is_mean_over_turns_that_have_a_previous_one(tally: Tally) -> None:
    for session in (["a"], ["a", "b c d"]), (["x"], ["y"]):
        tally.begin_session()
        for texts in session:
            tally.add_turn(context(*texts), 0)
    measures = tally.measures()
    assert measures.prefix_reuse == pytest.approx((1 / 4 + 0) / 2)
    assert measures.prefix_reuse_weighted == pytest.approx(1 / 5)


def test_the_message_to_come_is_part_of_the_length(tally: Tally) -> None:
    tally.add_turn(context(current="a"), 0)
    tally.add_turn(context("a", current="b c d"), 0)
    assert tally.measures().prefix_reuse == pytest.approx(1 / 4)


def test_turn_is_paid_for_with_its_context_and_its_answer(tally: Tally) -> None:
    """Three turns: 2 and 4 tokens, the first 2 of them again, then another session with 3 of its own."""
    tally.begin_session()
    tally.add_turn(context("a b"), 0)
    tally.add_answer([Message.user("ignored"), Message.assistant("one two three"), Message.tool("x", tool_call_id="c")])
    tally.add_turn(context("a b", "c d"), 0)
    tally.begin_session()
    tally.add_turn(context("a b e"), 0)
    tally.add(context("a context in which a probe is looked for"), 0)
    assert tally.measures().traffic == Traffic(input_tokens=2 + 4 + 3, cached_tokens=2, output_tokens=3)


def test_survival_is_the_share_of_probes_found(tally: Tally) -> None:
    tally.look_for([LATTE, MOCHA], context("order 1: latte", "order 2: tea"))
    assert (tally.measures().survival, tally.measures().probes) == (0.5, 2)


def test_each_kind_of_probe_has_its_scores(tally: Tally) -> None:
    rule = msgspec.structs.replace(LATTE, kind="rule", evidence=(0,))
    moved = msgspec.structs.replace(MOCHA, kind="corrected", stale=("tea",))
    said = (Message.user("order 1: latte"), Message.user("order 2: tea"))
    tally.look_for([rule, moved, LATTE], context("order 1: latte", "order 2: tea"), said)
    measures = tally.measures()
    assert (measures.probes, measures.corrected, measures.stale, measures.evidence_recall) == (3, 1, 1, 1.0)
    assert measures.by_kind == {
        "corrected": Scores(probes=1, attributable=0.0, survival=0.0, corrected=1, stale=1),
        "rule": Scores(probes=1, attributable=1.0, survival=1.0, evidence_recall=1.0, any_gold=1.0, all_gold=1.0),
    }


def test_evidence_is_a_mean_over_probes(tally: Tally) -> None:
    said = tuple(map(Message.user, ("order 1: latte", "one", "two", "three")))
    whole, part = (msgspec.structs.replace(LATTE, evidence=evidence) for evidence in ((0,), (0, 1, 2, 3)))
    tally.look_for([whole, part], context("order 1: latte"), said)
    measures = tally.measures()
    assert measures.evidence_recall == pytest.approx((1 + 1 / 4) / 2)
    assert (measures.any_gold, measures.all_gold) == (1.0, 0.5)


def test_a_question_does_not_answer_itself(tally: Tally) -> None:
    tally.look_for([LATTE], context("hello", current="was order 1 a latte"))
    assert tally.measures().survival == 0


def test_broken_contexts_are_counted_and_named(tally: Tally) -> None:
    good = context("one", "two")
    tally.add(good, 0)
    assert tally.measures().violations == 0
    tally.add(Context(messages=good.messages[:1], report=good.report), 0)
    tally.add(Context(messages=[*good.messages[:1], Message.user("too much")], report=good.report), 0)
    measures = tally.measures()
    assert measures.violations >= 2
    assert measures.problems[0] == "parts: do not name a part for each message"


def test_the_digest_names_the_contexts_and_their_order(tally: Tally) -> None:
    contexts = [context("one"), context("two")]
    digests: set[str] = set()
    for order in (contexts, contexts[::-1]):
        other = Tally(TextCount(COUNTER))
        for each in order:
            other.add(each, 0)
        digests.add(other.measures().digest)
    for each in contexts:
        tally.add(each, 99)
    assert len(digests) == 2
    assert tally.measures().digest in digests


def test_without_anything_there_are_no_shares(tally: Tally) -> None:
    measures = tally.measures()
    assert (measures.survival, measures.prefix_reuse, measures.prefix_reuse_weighted) == (None, None, None)
    assert (measures.p50_us, measures.p99_us) == (0, 0)
