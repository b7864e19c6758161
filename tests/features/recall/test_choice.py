"""What comes back for a question: lines before turns, the best first, never more than there is room for."""

from __future__ import annotations

from math import ceil

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reactor_memory.features.recall.choice import (
    FRAME_TOKENS,
    LINE_SHARE,
    MAX_QUERY_TERMS,
    MAX_TURN_MESSAGES,
    Recalled,
    VisibleContext,
    choose,
    query_terms,
    wanted,
)
from reactor_memory.features.recall.entries import fact_entries, message_entries
from reactor_memory.features.recall.gate import names
from reactor_memory.features.recall.ranking import Postings, scored
from reactor_memory.models import LARGEST, Message, ToolCall
from reactor_memory.models.index_requests import IndexAnswer
from reactor_memory.models.ledger import Fact
from reactor_memory.text.analyzer import WHOLE

NOTHING_SHOWN = VisibleContext(lines=frozenset(), window=(), first_safe=LARGEST)


def turn(number: int, question: str, answer: str) -> tuple[Message, Message]:
    return Message.user(question, seq=2 * number - 1), Message.assistant(answer, seq=2 * number)


def fact(anchor: str, value: str, seq: int, key: str = "name") -> Fact:
    return Fact(anchor=anchor, key=key, value=value, source_seq=seq, verified=True)


LOG = (
    *turn(1, "I would like a table at the Blue Door", "Booked for seven"),
    *turn(2, "What is the weather?", "It rains"),
    *turn(3, "And a taxi to the Blue Door please", "On its way"),
    *turn(4, "What is the weather tomorrow?", "Sun"),
)
FACTS = (
    fact("bookTable #2", "Blue Door", 2),
    fact("bookTable #2", "seven", 2, "time"),
    fact("taxi #6", "Blue Door", 6),
)


def recalled(
    query: str,
    *,
    room: int = 1000,
    shown: VisibleContext = NOTHING_SHOWN,
    log: tuple[Message, ...] = LOG,
    facts: tuple[Fact, ...] = FACTS,
) -> Recalled:
    postings = Postings()
    postings.add([*message_entries(log), *fact_entries(facts)])
    named = names(query)
    found, frequencies = postings.find(query_terms(query, named), last=1000)
    findings = scored(IndexAnswer(found=tuple(found), frequencies=frequencies, total=len(log)))
    turns, anchors = wanted(findings, named, shown, room)
    messages = [message for message in log if any(first <= (message.seq or 0) <= last for first, last in turns)]
    about = [each for each in facts if each.anchor in anchors]
    return choose(findings, named, shown, about, messages, room, count=lambda _: 10, count_text=len)


def seqs(found: Recalled) -> list[int | None]:
    return [message.seq for message in found.messages]


def test_turns_come_whole_and_the_best_first() -> None:
    found = recalled("a taxi to the blue door", facts=())
    assert seqs(found)[:2] == [5, 6]
    assert set(seqs(found)[:4]) == {1, 2, 5, 6}
    assert seqs(recalled("a taxi to the blue door", room=20, facts=())) == [5, 6]


def test_a_turn_beside_an_answer_comes_whole_or_not() -> None:
    log = (*turn(1, "Any plans?", "I paint"), *turn(2, "walrus", "why?"), *turn(3, "Because", "I see"))
    assert seqs(recalled("walrus", log=log, facts=())) == [3, 4, 1, 2]
    long_before = (Message.user("go", seq=1), *(Message.assistant("so", seq=n) for n in (2, 3)))
    assert seqs(recalled("walrus", log=(*long_before, Message.user("walrus", seq=4)), facts=())) == [4]


def test_names_that_most_messages_hold_tell_nothing_apart() -> None:
    talk = [
        Message(role="user" if n % 2 else "assistant", content=f"Hello number{n}", name="Ann Lee", seq=n)
        for n in range(1, 60)
    ]
    log = (*talk, Message.user("The walrus sleeps", name="Bob", seq=60), Message.user("Hi there Ann Lee", seq=61))
    assert seqs(recalled("What did Ann Lee say of the walrus?", log=log, facts=()))[0] == 60


def test_who_said_it_and_when_are_found() -> None:
    may, june = 1_683_550_000_000_000, 1_686_250_000_000_000
    log = (
        Message.user("I sold the boat", name="Ann", created_at=may, seq=1),
        Message.user("I sold the boat", name="Bob", created_at=may, seq=2),
        Message.user("I sold the boat", name="Bob", created_at=june, seq=3),
    )
    assert seqs(recalled("the boat of ann", log=log, facts=()))[0] == 1
    assert seqs(recalled("did bob sell a boat in May 2023", log=log, facts=()))[0] == 2
    assert seqs(recalled("did bob sell a boat on 8 June", log=log, facts=()))[0] == 3


def test_lines_come_too_and_take_their_part_of_room_first() -> None:
    found = recalled("When is the table at Blue Door?", facts=FACTS)
    assert [line.text for line in found.lines] == ["bookTable: Blue Door; time=seven", "taxi: Blue Door"]
    tight = recalled(
        "When is the table at Blue Door?",
        room=ceil((FRAME_TOKENS + len("\nbookTable: Blue Door; time=seven")) / LINE_SHARE),
    )
    assert [line.text for line in tight.lines] == ["bookTable: Blue Door; time=seven"]


def test_a_query_without_a_hit_recalls_nothing() -> None:
    assert recalled("Zürich") == Recalled()
    assert recalled("Blue Door", log=(), facts=()) == Recalled()


def test_what_holds_whole_name_wins_over_what_shares_more_words() -> None:
    log = (
        *turn(1, "weather for the trip to the north with the weather map", "Fine weather, a trip, a map"),
        *turn(2, "weather at North Map", "fine"),
    )
    assert seqs(recalled("weather map for the trip north at North Map", log=log, facts=(), room=20)) == [3, 4]


def test_a_line_of_the_block_comes_after_older_ones_only() -> None:
    shown = VisibleContext(lines=frozenset({"bookTable: Blue Door; time=seven"}), window=(), first_safe=LARGEST)
    found = recalled("the table at Blue Door", shown=shown)
    assert [line.text for line in found.lines] == ["bookTable: Blue Door; time=seven", "taxi: Blue Door"]
    assert found.answering == {"bookTable: Blue Door; time=seven"}


def test_beside_an_answer_in_the_window_the_rest_stays_away() -> None:
    window = turn(5, "The table at Blue Door at seven for six people named Smith", "yes")
    shown = VisibleContext(lines=frozenset(), window=window, first_safe=9)
    log = (*turn(1, "people like the weather", "yes"), *LOG[2:4], *window)
    assert (
        recalled("Is the table at Blue Door at seven for six people named Smith?", shown=shown, log=log, facts=())
        == Recalled()
    )


def test_facts_of_the_window_are_told_last_but_not_recalled() -> None:
    shown = VisibleContext(lines=frozenset(), window=LOG[4:], first_safe=5)
    lines = recalled("Blue Door", shown=shown).lines
    assert [line.text for line in lines] == [
        "bookTable: Blue Door; time=seven",
        "the user: And a taxi to the Blue Door please",
    ]
    assert lines[-1].source_seqs == (5,)


def test_a_newer_shown_line_is_repeated_after_an_old_turn() -> None:
    shown = VisibleContext(lines=frozenset({"taxi: Blue Door"}), window=(), first_safe=LARGEST)
    log = LOG[:4]
    found = recalled("the Blue Door", shown=shown, log=log, facts=FACTS[2:])
    assert seqs(found) == [1, 2]
    assert [line.text for line in found.lines] == ["taxi: Blue Door"]


def test_a_returning_message_is_repeated_behind_lines_it_corrects() -> None:
    shown = VisibleContext(lines=frozenset(), window=LOG[4:], first_safe=LARGEST)
    found = recalled("the Blue Door", shown=shown)
    assert 5 in seqs(found)
    assert found.lines[-1].source_seqs == (5,)


def test_nothing_is_told_again_if_nothing_comes_back() -> None:
    shown = VisibleContext(lines=frozenset(), window=LOG[4:], first_safe=5)
    assert recalled("Blue Door", shown=shown, facts=(), room=9) == Recalled()


def test_an_endless_turn_is_not_read() -> None:
    long_turn = (Message.user("walrus", seq=1), *(Message.assistant("so", seq=seq) for seq in range(2, 60)))
    assert len(long_turn) > MAX_TURN_MESSAGES
    assert recalled("walrus", log=long_turn, facts=()) == Recalled()


def test_terms_of_names_come_first_function_words_only_inside_names() -> None:
    assert query_terms("What is the time of 'Let It Be'?", names("What is the time of 'Let It Be'?")) == (
        "let",
        "it",
        "be",
        "time",
        f"{WHOLE}time",
    )
    assert len(query_terms(" ".join(f"word{n}" for n in range(500)), ())) == MAX_QUERY_TERMS


@given(st.integers(0, 200), st.sampled_from(["Blue Door taxi", "weather", "the table at seven"]))
def test_never_more_than_the_room(room: int, query: str) -> None:
    found = recalled(query, room=room)
    lines = sum(line.tokens for line in found.lines) + FRAME_TOKENS * bool(found.lines)
    assert lines + 10 * len(found.messages) <= room or not (found.lines or found.messages)
    assert found == recalled(query, room=room)


def called(seq: int, **arguments: str) -> Message:
    return Message.assistant(seq=seq, tool_calls=(ToolCall(id=f"c{seq}", name="bookTable", arguments=arguments),))


def test_a_windows_call_is_repeated_and_what_failed_is_marked() -> None:
    window = (
        Message.user("A table at the Blue Door for 6 pm, please", seq=9),
        called(10, place="Blue Door", time="18:00"),
        Message.tool('{"success": false, "message": "full"}', tool_call_id="c10", seq=11),
        Message.assistant("18:00 is taken. How about 20:00 at the Blue Door?", seq=12),
        Message.user("Yes, please", seq=13),
        called(14, place="Blue Door", time="20:00"),
        Message.tool('{"success": true}', tool_call_id="c14", seq=15),
    )
    shown = VisibleContext(lines=frozenset(), window=window, first_safe=9)
    lines = recalled("When is the table at Blue Door?", shown=shown, log=(*LOG, *window)).lines
    assert lines[-1].text == "bookTable: Blue Door; 20:00"
    assert lines[-1].source_seqs == (14,)
    assert all("18:00" not in line.text or "(failed)" in line.text for line in lines if 10 in line.source_seqs)


def test_of_long_turn_only_the_parts_that_were_found_come() -> None:
    """A part beside them may begin behind the reasoning that led to it."""
    thought = {"type": "reasoning", "id": "r", "summary": []}
    log = (
        Message.user("go on", seq=1),
        *(Message.assistant("so", seq=seq) for seq in (2, 3)),
        Message.assistant(parts=(thought,), seq=4),
        Message.assistant("that is why", seq=5),
        Message.assistant("the walrus", seq=6),
        Message.assistant("and more", seq=7),
    )
    entries = [replace(each, turn=(6, 6) if each.seq == 6 else (1, 5)) for each in message_entries(log[:6])]
    postings = Postings()
    postings.add(entries)
    found, frequencies = postings.find(("walrus",), last=1000)
    findings = scored(IndexAnswer(found=tuple(found), frequencies=frequencies, total=len(log)))
    assert wanted(findings, (), NOTHING_SHOWN, 1000).turns == ((6, 6), (7, 9), (4, 5))
    chosen = choose(findings, (), NOTHING_SHOWN, (), log[3:], 1000, count=lambda _: 10, count_text=len)
    assert seqs(chosen) == [6]
