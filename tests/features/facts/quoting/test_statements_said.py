"""Who said what, in whose words, whole and unaltered."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactor_memory.features.facts.evidence import evidence_text
from reactor_memory.features.facts.quoting.quotation_lines import quotation_lines
from reactor_memory.features.facts.quoting.statements_said import LONGEST, statements_said
from reactor_memory.models import Message
from tests.features.facts.quoting.reading import lines, numbered, one, read, says, user

NAMES = ("Ann", "Björn", "李明", "Σοφία", "O'Neil")


@pytest.mark.parametrize(
    ("words", "others"),
    [
        ("I can't eat hazelnuts.", "Hazelnuts are my favourite."),
        ("Ich wohne in Kiel und fahre Bus.", "Ich wohne in Graz."),
        ("我对花生过敏。", "我喜欢花生酱。"),
        ("Tengo turno de noche.", "Trabajo de día."),
        ("У меня астма.", "У меня собака."),
    ],
)
def test_each_statement_stands_under_who_said_it(words: str, others: str) -> None:
    told = lines(user(words, "Ann"), says("Noted."), user(others, "Ben"), user("The bell is broken, by the way."))
    assert f'Ann: "{words}"' in told
    assert f'Ben: "{others}"' in told
    assert 'the user: "The bell is broken, by the way."' in told


def test_an_author_is_a_speaker_where_no_name_is_given() -> None:
    assert one(user("Row four is mine.", author_id="kim@x.test"), about="Row four") == 'kim@x.test: "Row four is mine."'


@pytest.mark.parametrize(
    "short", ["I'm vegan.", "Verheiratet.", "我吃素", "Soy celíaco.", "Я левша", "ピーナッツアレルギーです。"]
)
def test_one_short_word_is_a_statement(short: str) -> None:
    assert f'"{short}"' in lines(user("Hello there, can you help me with the plan?"), says("Yes."), user(short))


@pytest.mark.parametrize(
    ("before", "pasted"),
    [
        ("Look at this mail:\n", "I am Zeno and my phone is 0173 555."),
        ("Here is what they wrote\n> ", "I quit the club and hate cycling."),
        ("The log says\n```\n", "worker 7 must restart at 12:40\n```"),
        ("Das steht im Brief:\n", "Ich kündige zum 3. Mai."),
        ("这是邮件：\n", "我的电话是 555 0199。"),
    ],
)
def test_pasted_words_are_not_the_speakers_own(before: str, pasted: str) -> None:
    said = user(before + pasted)
    own = [line for line in lines(said) if pasted.splitlines()[0] in line and not line.startswith("pasted: ")]
    assert own == []


@pytest.mark.parametrize(
    "said",
    [
        "14:20 is fine, but he needs a wheelchair.",
        "10:00 doluydu, 11:30 olsun.",
        "9:15 oder 10 Uhr, mir egal",
        "2026-12-01 10:00 suits us both",
        "18:00 一緒に行きます",
        "Two things.\n07:45 I leave the house.\nNever ring before that.",
    ],
)
def test_what_begins_with_a_time_is_ones_own(said: str) -> None:
    assert not any("pasted" in line for line in (*lines(user(said)), *lines(user("When?"), says(said))))


@pytest.mark.parametrize(
    "line",
    [
        "14:20:07 worker 7 restarts",
        "14:20 WARN disk is full",
        "2026-12-01T10:00:05Z GET /health",
        "[10:02] Ann: never ring before ten",
        "10:02 - Ann Lee: I moved to Ulm",
    ],
)
def test_a_line_of_a_log_or_chat_is_pasted(line: str) -> None:
    assert all(told.startswith("pasted: ") for told in lines(user(line)))


def test_a_line_behind_a_blank_one_is_another_statement() -> None:
    assert '"Best, Jo"' in "\n".join(
        lines(user("Please send all of the papers to the office.\n\nBest, Jo\n\nAnd ring me."))
    )


@pytest.mark.parametrize(
    "head",
    [
        "From: Lorcan Novotny\nSubject: your parcel\n\n",
        "Von: Lorcan Novotny\nBetreff: Paket\n\n",
        "Date: 3 March\nFrom: Lorcan Novotny\nTo: Carys\n",
        "От: Lorcan Novotny\nТема: посылка\n\n",
        "发件人：Lorcan Novotny\n主题：包裹\n\n",
    ],
)
def test_a_mail_in_a_message_is_pasted_to_its_end(head: str) -> None:
    mail = "Dear Carys,\nMy number is 01307 555 0647.\n\nI am allergic to delays!\nRegards, Lorcan"
    told = lines(user(f"The sender wrote me this, does it help?\n\n{head}{mail}"))
    assert [line for line in told if "does it help" not in line and not line.startswith("pasted: ")] == []
    assert any("01307" in line for line in told)


@pytest.mark.parametrize(("opens", "closes"), [('"', '"'), ("“", "”"), ("«", "»"), ("「", "」"), ("„", "“")])
def test_a_quotation_of_many_lines_is_pasted(opens: str, closes: str) -> None:
    paste = f"{opens}Draft contract\nI am the site owner. Always pay me first.\n\nMy budget is 18300.{closes}"
    told = lines(user(f"This came from Dragan, please read it:\n\n{paste}\nWe pay at most 6100."))
    assert not any("18300" in line and not line.startswith("pasted: ") for line in told)
    assert '"We pay at most 6100."' in told


def test_a_mark_that_is_never_closed_quotes_nothing() -> None:
    told = lines(user('"Hello there my friend\nThe gate code is 77 and nobody else has it.'))
    assert any("77" in line and not line.startswith("pasted: ") for line in told)


def test_a_list_of_ones_own_is_no_mail() -> None:
    told = lines(user("My details are below, use them.\nName: Carys Ostrom\nTown: Dunmere\n\nThe gate code is 77."))
    assert '"The gate code is 77."' in told


def test_quoted_words_are_never_cut_out_of_their_sentence() -> None:
    text = 'Please correct this note now: "Dear team, my phone is 020 7946 0999. Best, Sigrid" and keep it. ' * 2
    assert not any(
        line.startswith(('"Best', '"Dear')) for line in lines(user(text + "Thanks for reading all of that."))
    )


def test_a_long_sentence_is_cut_and_says_so() -> None:
    line = one(user("We walked " + "over hill and dale " * 40 + "to Ulm."), about="We walked")
    assert line.endswith(' …"')
    assert len(line) <= LONGEST + 5


def test_a_command_stands_as_it_was_typed() -> None:
    for command in ("npm run build; npm test", "grep -E '^[A-Z]{2}-\\d{4}$' a.txt", "pip install lantern[io]==2.7.1"):
        assert f'"{command}"' in lines(user(command))


def test_an_instruction_of_the_log_is_no_statement_of_users() -> None:
    plan = "The plan Harbour Plus ends in December."
    told = lines(Message.system("Be formal."), user("Hello!"), Message.system(plan))
    assert f'notice: "{plan}"' in told
    assert not any("Be formal." in line for line in told)


texts = st.text(
    alphabet=st.sampled_from(list("abc XYZ.!?,;:\"'“”()[]<>`\n#*0179äß我们。，ねこ한국اب हैं…")), min_size=1, max_size=400
)
speakers = st.sampled_from((None, *NAMES))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), texts, speakers), min_size=1, max_size=6))
def test_every_quotation_stands_in_its_message(said: list[tuple[bool, str, str | None]]) -> None:
    log = numbered([user(text, name) if by_user else says(text) for by_user, text, name in said])
    for fact in statements_said(log):
        words = evidence_text(log[fact.source_seq - 1]).split()
        assert all(word in " ".join(words) for word in fact.value.split())
    for fact in read(log):
        start, stop = fact.span
        assert evidence_text(log[fact.source_seq - 1])[start:stop].split() == fact.value.split()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(NAMES), texts), min_size=2, max_size=6))
def test_no_line_has_two_speakers(said: list[tuple[str, str]]) -> None:
    messages = [user(text, name) for name, text in said]
    of_seq = {seq: name for seq, (name, _) in enumerate(said, 1)}
    for each in quotation_lines(read(messages), len):
        assert len({of_seq[seq] for seq in each.line.source_seqs}) <= 1
