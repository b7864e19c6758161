"""A long turn told message by message: what becomes a stub, what a line of the log, and what stays."""

from __future__ import annotations

import json

from reactor_memory.core.context.message_counter import MessageCounter
from reactor_memory.core.context.running_turn import CompactionOptions, RunningTurn
from reactor_memory.models import Message, ToolCall
from reactor_memory.tokens.estimate import EstimateCounter

counter = MessageCounter(EstimateCounter())


def cost(message: Message) -> int:
    return counter.counted(message) + 4


def exchange(number: int, result: str, said: str = "", tool: str = "read_file", **arguments: object) -> list[Message]:
    call = ToolCall(id=f"c{number}", name=tool, arguments=arguments or {"path": f"src/file_{number}.py"})
    return [Message.assistant(said, tool_calls=[call]), Message.tool(result, tool_call_id=call.id)]


def told(room: int, *messages: Message, reading_tool: str | None = "memory_read") -> RunningTurn:
    turn = RunningTurn(room, cost, reading_tool=reading_tool)
    for seq, message in enumerate(messages, 1):
        turn.add(message, seq)
    return turn


def long_result(number: int, size: int = 800) -> str:
    body = "".join(f"line {line} of no value\n" for line in range(size // 20))
    return f"first of {number}\n{body}port = 80{number:02d}\nlast of {number}"


def steps(count: int, size: int = 800) -> list[Message]:
    made = [exchange(number, long_result(number, size)) for number in range(count)]
    return [Message.user("Find the port of file 3."), *(message for pair in made for message in pair)]


def texts(turn: RunningTurn) -> list[str]:
    return [step.shown.content for step in turn.live]


def test_nothing_is_touched_before_the_room_is_full() -> None:
    messages = steps(5)
    turn = told(sum(map(cost, messages)), *messages)
    assert [step.shown for step in turn.live] == messages
    assert turn.batches == []


def test_one_batch_makes_room_and_its_stubs_never_change() -> None:
    messages = steps(40)
    turn = RunningTurn(2_000, cost)
    stubs: dict[int, Message] = {}
    for seq, message in enumerate(messages, 1):
        turn.add(message, seq)
        for step in turn.live:
            assert (
                stubs.setdefault(step.place, step.shown) == step.shown
                or step.place not in stubs
                or (step.state == "stub" and not stubs[step.place].content.startswith("[cleared"))
            )
            stubs[step.place] = step.shown
    assert 1 < len(turn.batches) < 12
    assert all(batch.saved >= 400 for batch in turn.batches)
    assert turn.tokens <= 2_000


def test_the_newest_exchange_is_whole_and_the_user_verbatim() -> None:
    messages = steps(60)
    turn = told(2_000, *messages)
    assert [step.shown for step in turn.live][-2:] == messages[-2:]
    assert turn.live[0].shown == messages[0]


def test_a_stub_says_size_ends_used_lines_fault_and_handle() -> None:
    result = "opened\nline\nport = 8123\nmore\nValueError: no such host\n" + "x\n" * 400 + "closed"
    messages = [
        Message.user("go"),
        *exchange(1, result),
        *exchange(2, "ok", said="the port is 8123"),
        *(message for number in range(3, 12) for message in exchange(number, long_result(number))),
    ]
    stub = next(text for text in texts(told(1_800, *messages)) if "opened" in text)
    assert stub.splitlines()[0] == f"[cleared: {len(result):,} characters, 406 lines; memory_read(3) shows all]"
    assert stub.splitlines()[1:5] == ["opened", "port = 8123", "ValueError: no such host", "closed"]


def test_a_stub_keeps_values_that_nothing_else_shows() -> None:
    result = "begin\nticket QX-7781 and /var/lib/x.db\n" + "x\n" * 900 + "end"
    messages = [Message.user("go"), *exchange(1, result), *steps(6)[1:]]
    stub = next(text for text in texts(told(1_500, *messages)) if text.startswith("[cleared") and "begin" in text)
    assert "| also: QX-7781 var/lib/x.db" in stub or "QX-7781" in stub


def test_without_reading_tool_the_handle_is_a_place() -> None:
    turn = told(1_500, *steps(12), reading_tool=None)
    stubs = [text for text in texts(turn) if text.startswith("[cleared")]
    assert stubs
    assert all("; message " in text and "memory_read" not in text for text in stubs)


def test_large_results_show_head_and_tail_when_they_come() -> None:
    result = "".join(f"row {row}\n" for row in range(4_000))
    turn = told(2_000, Message.user("go"), *exchange(1, result))
    shown = turn.live[-1]
    assert shown.cost <= 600
    assert shown.shown.content.startswith("row 0\n")
    assert shown.shown.content.endswith("row 3999\n")
    assert "memory_read(3) shows all" in shown.shown.content


def test_several_large_results_at_once_are_cut_to_fit() -> None:
    calls = [ToolCall(id=f"c{number}", name="read", arguments={}) for number in range(8)]
    results = [Message.tool("word " * 5_000, tool_call_id=call.id) for call in calls]
    turn = told(2_000, Message.user("go"), Message.assistant(tool_calls=calls), *results)
    assert turn.tokens <= 2_000
    assert len(turn.live) == 10


def test_long_arguments_are_cut_to_json_of_the_same_keys() -> None:
    written = {"path": "a.py", "content": "x = 1\n" * 500, "lines": list(range(600)), "mode": "w"}
    as_text = json.dumps({"path": "b.py", "content": "y" * 3_000})
    messages = [
        Message.user("go"),
        *exchange(1, "written " * 40, tool="write_file", **written),
        Message.assistant(tool_calls=[ToolCall(id="t", name="write_file", arguments=as_text)]),
        Message.tool("written " * 40, tool_call_id="t"),
        *steps(6)[1:],
    ]
    calls = [call for step in told(3_000, *messages).live for call in step.shown.tool_calls]
    first, second = calls[0].arguments, json.loads(calls[1].arguments)  # type: ignore[arg-type]
    assert isinstance(first, dict)
    assert first.keys() == written.keys()
    assert second.keys() == {"path", "content"}
    assert (first["path"], first["mode"], second["path"]) == ("a.py", "w", "b.py")
    assert len(json.dumps(first)) < 800


def test_signed_calls_and_reasoning_are_never_rewritten() -> None:
    long = {"content": "x" * 3_000}
    signed = ToolCall(id="s", name="write", arguments=long, metadata={"thought_signature": "abc"})
    thinking = ({"type": "thinking", "thinking": "hm", "signature": "sig"},)
    kept = [
        Message.assistant(tool_calls=[signed]),
        Message.assistant(parts=thinking, tool_calls=[ToolCall(id="r", name="write", arguments=long)]),
    ]
    results = [Message.tool("done " * 60, tool_call_id="s"), Message.tool("done " * 60, tool_call_id="r")]
    messages = [Message.user("go"), kept[0], results[0], kept[1], results[1], *steps(18)[1:]]
    turn = told(5_000, *messages)
    assert turn.batches
    assert all(message in [step.shown for step in turn.live] for message in kept)


def test_oldest_exchanges_fold_to_a_log_of_one_line() -> None:
    failed = exchange(
        0, "Traceback\nPermissionError: denied for /etc/x", said="I look at it.", tool="bash", cmd="cat x"
    )
    turn = told(1_000, Message.user("go"), *failed, *steps(60)[1:])
    assert turn.log[0].text.startswith('#2 I look at it. [bash {"cmd":"cat x"}] => PermissionError: denied for /etc/x')
    assert turn.log[0].source_seqs == (2, 3)
    block = turn.block()
    assert block is not None
    assert "older steps are not listed" in block.frame.notice
    assert (block.tokens or 0) <= 250


def test_the_newest_plan_stays_whole() -> None:
    plan = exchange(0, "plan stored " * 30, tool="TodoWrite", todos=[{"content": f"step {each}"} for each in range(60)])
    turn = told(3_000, Message.user("go"), *plan, *steps(60)[1:])
    assert [step.shown for step in turn.live][1:3] == plan


def test_what_was_asked_again_is_cleared_first() -> None:
    again = [exchange(number, long_result(number), path="same.py") for number in range(2)]
    others = [exchange(number, long_result(number)) for number in range(2, 4)]
    messages = [message for pair in (*others, *again) for message in pair]
    turn = told(820, Message.user("go"), *messages)
    cleared = [step.message.tool_call_id for step in turn.live if step.state == "stub"]
    assert cleared[0] in ("c2", "c0")
    assert "c0" in cleared


def test_what_is_shown_follows_from_messages_and_room_alone() -> None:
    """Another process that is told the same shows the same bytes, however often somebody looked."""
    messages = steps(50)
    once, watched = told(1_500, *messages), RunningTurn(1_500, cost)
    for seq, message in enumerate(messages, 1):
        watched.add(message, seq)
        watched.block()
    assert [step.shown for step in once.live] == [step.shown for step in watched.live]
    assert once.block() == watched.block()


def test_words_of_the_user_stay_while_they_fit() -> None:
    words = Message.user("By the way: never touch production. " * 3)
    turn = told(1_500, *steps(20), words, *steps(30)[1:])
    assert words in [step.shown for step in turn.live]


def test_options_give_a_large_room_a_deeper_target() -> None:
    options = CompactionOptions()
    assert (options.target_of(8_000), options.target_of(32_000)) == (5_600, 16_000)


def test_a_list_that_a_stub_would_hardly_shorten_stays() -> None:
    names = [f"image_{number * 7919:08d}.jpg" for number in range(24)]
    results = [
        json.dumps({"files": names}),
        "\n".join(f"src/part_{number}/index.ts" for number in range(24)),
        " ".join(f"ORD-{number}" for number in range(40)),
        "permission denied: /srv/data/a.db (uid 1000)",
        "| id | name |\n" + "\n".join(f"| {number} | n{number} |" for number in range(12)),
    ]
    small = [message for number, text in enumerate(results, 90) for message in exchange(number, text)]
    turn = told(5_000, Message.user("go"), *small, *steps(12, 2_000)[1:])
    assert [step.shown.content for step in turn.live if step.asked and step.message.content in results] == results
    assert any(step.state == "stub" for step in turn.live)


def test_what_was_read_again_is_compacted_like_other_results() -> None:
    """What a stub of it names is the result that was asked for then: a later message, under its own number."""
    messages = [Message.user("Find the port of file 3.")]
    for number, tool in enumerate(["memory_read", "memory_search"] * 12):
        messages += exchange(number, long_result(number), tool=tool, seq=number + 1)
    turn = told(2_000, *messages)
    assert turn.tokens <= 2_000
    shown = [step for step in turn.live if step.message.role == "tool"]
    assert {step.state for step in shown} == {"whole", "stub"}
    assert all(f"memory_read({step.handle})" in step.shown.content for step in shown if step.state == "stub")
    assert turn.batches
