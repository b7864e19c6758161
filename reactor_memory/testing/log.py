"""The log: append and read, what survives unchanged, owners, idempotency."""

from __future__ import annotations

import anyio
import pytest
from msgspec.structs import replace

from reactor_memory.core.ports import LedgerFold, MessageStore
from reactor_memory.errors import SessionNotFoundError, SessionOwnershipError, StoreClosedError
from reactor_memory.models import Message, Role, Session, ToolCall, Visibility
from reactor_memory.models.ledger import Summary
from reactor_memory.models.requests import Appended, AppendRequest, ContextQuery, step_key
from reactor_memory.testing.builders import append_messages, numbered, stored_form, wall_clock

nothing_left: LedgerFold = lambda ledger: Summary()  # noqa: E731


def seqs(messages: tuple[Message, ...]) -> list[int | None]:
    return [message.seq for message in messages]


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [message.content for message in messages]


class AppendAndRead:
    """Append-only, gap-free `seq` 1..n per session."""

    async def test_the_first_batch_creates_the_session(self, store: MessageStore) -> None:
        now = wall_clock()
        assert await append_messages(store, "s", numbered(3), user_id="u", now=now) == Appended(first_seq=1, last_seq=3)
        session = await store.get_session("s", "u")
        assert session is not None
        assert (session.session_id, session.group_id, session.owner_id, session.last_seq) == ("s", "s", "u", 3)
        assert [(part.conversation_id, part.start_seq, part.end_seq) for part in session.branch] == [("s", 1, None)]
        assert session.created_at == session.updated_at == now
        assert (session.forked_from_id, session.forked_at_seq, session.deleted_at) == (None, None, None)

    async def test_later_batches_continue_the_numbering(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(3), now=1_000)
        assert await append_messages(store, "s", numbered(2, start=4), now=2_000) == Appended(first_seq=4, last_seq=5)
        assert texts(await store.read("s", None)) == [f"message {number}" for number in range(1, 6)]
        session = await store.get_session("s", None)
        assert session is not None
        assert (session.last_seq, session.created_at, session.updated_at) == (5, 1_000, 2_000)

    async def test_sessions_are_numbered_apart(self, store: MessageStore) -> None:
        await append_messages(store, "one", numbered(4))
        await append_messages(store, "two", numbered(1))
        assert seqs(await store.read("two", None)) == [1]

    async def test_an_unknown_session_is_empty(self, store: MessageStore) -> None:
        assert await store.get_session("unknown", "u") is None
        assert await store.read("unknown", "u") == ()
        assert await store.get_session("unknown", "u") is None

    async def test_an_unknown_fork_cannot_begin(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(2))
        for session_id in ("s~unknown", "unknown~unknown"):
            with pytest.raises(SessionNotFoundError):
                await append_messages(store, session_id, numbered(1))
            assert await store.get_session(session_id, None) is None

    async def test_fifty_appends_at_once_leave_no_gap(self, store: MessageStore) -> None:
        answers: list[Appended] = []

        async def append(number: int) -> None:
            answers.append(await append_messages(store, "s", numbered(1 + number % 3, start=number * 10)))

        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(append, number)
        messages = await store.read("s", None)
        assert seqs(messages) == list(range(1, 1 + sum(1 + number % 3 for number in range(50))))
        taken = sorted(seq for answer in answers for seq in range(answer.first_seq, answer.last_seq + 1))
        assert taken == seqs(messages)

    async def test_a_batch_stays_together_under_concurrency(self, store: MessageStore) -> None:
        batches = {f"batch {number}": 1 + number % 4 for number in range(20)}

        async def append(name: str) -> None:
            await append_messages(store, "s", [Message.user(name)] * batches[name])

        async with anyio.create_task_group() as tasks:
            for name in batches:
                tasks.start_soon(append, name)
        found = texts(await store.read("s", None))
        runs = [name for position, name in enumerate(found) if position == 0 or found[position - 1] != name]
        assert sorted(runs) == sorted(batches)

    async def test_appends_to_many_sessions_at_once(self, store: MessageStore) -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(40):
                tasks.start_soon(append_messages, store, f"s{number % 8}", numbered(2))
        for number in range(8):
            assert seqs(await store.read(f"s{number}", None)) == list(range(1, 11))

    async def test_an_append_that_is_refused_does_not_fail_its_neighbours(self, store: MessageStore) -> None:
        await append_messages(store, "owned", numbered(1), user_id="owner")
        refused: list[str] = []

        async def append(session_id: str, user_id: str | None) -> None:
            try:
                await append_messages(store, session_id, numbered(1), user_id=user_id)
            except SessionOwnershipError:
                refused.append(session_id)

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(append, "owned", "stranger")
                tasks.start_soon(append, "open", None)
        assert refused == ["owned"] * 5
        assert seqs(await store.read("open", None)) == [1, 2, 3, 4, 5]
        assert seqs(await store.read("owned", "owner")) == [1]

    async def test_after_is_exclusive_and_until_inclusive(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(10))
        assert seqs(await store.read("s", None, after=3)) == [4, 5, 6, 7, 8, 9, 10]
        assert seqs(await store.read("s", None, until=3)) == [1, 2, 3]
        assert seqs(await store.read("s", None, after=3, until=5)) == [4, 5]
        assert seqs(await store.read("s", None, after=3, until=3)) == []
        assert seqs(await store.read("s", None, after=10)) == []
        assert seqs(await store.read("s", None, until=100)) == list(range(1, 11))

    async def test_last_gives_the_newest_and_limit_the_oldest(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(10))
        assert seqs(await store.read("s", None, last=3)) == [8, 9, 10]
        assert seqs(await store.read("s", None, last=3, until=6)) == [4, 5, 6]
        assert seqs(await store.read("s", None, last=3, after=8)) == [9, 10]
        assert seqs(await store.read("s", None, last=100)) == list(range(1, 11))
        assert seqs(await store.read("s", None, limit=3)) == [1, 2, 3]
        assert seqs(await store.read("s", None, limit=3, after=4)) == [5, 6, 7]
        assert seqs(await store.read("s", None, limit=3, after=4, until=6)) == [5, 6]

    async def test_pages_of_a_long_session(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(1000))
        found: list[int | None] = []
        while page := await store.read("s", None, after=found[-1] or 0 if found else 0, limit=300):
            assert len(page) <= 300
            found += seqs(page)
        assert found == list(range(1, 1001))

    async def test_background_reads_without_an_owner(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(10), user_id="owner")
        rows = await store.read_background("s", after=2, limit=4)
        assert rows.session == await store.get_session("s", "owner")
        assert seqs(rows.messages) == [3, 4, 5, 6]

    async def test_steps_are_known_by_the_turns_that_stored_them(self, store: MessageStore) -> None:
        """Two turns that run at once: what a message belongs to is known in contexts and in the background."""
        for batch, turn in ((1, None), (1, None), (2, 1), (1, 2), (3, 1), (1, 2)):
            key = None if turn is None else step_key(turn, len(await store.read("s", None)))
            await append_messages(store, "s", numbered(batch), idempotency_key=key)
        whole = {3: 1, 4: 1, 5: 2, 6: 1, 7: 1, 8: 1, 9: 2}
        for after, limit in ((0, 1000), (0, 4), (2, 6), (3, 2), (7, 5), (8, 1000)):
            rows = await store.read_background("s", after=after, limit=limit)
            known = {seq: rows.steps.get(seq or 0) for seq in seqs(rows.messages)}
            assert known == {seq: whole.get(seq or 0) for seq in known}, after
        rows = await store.read_context(ContextQuery(session_id="s", user_id=None, last_count=9))
        assert {seq: rows.steps.get(seq or 0) for seq in (3, 4, 5, 6, 8, 9)} == {3: 1, 4: 1, 5: 2, 6: 1, 8: 1, 9: 2}

    async def test_background_does_not_know_an_unknown_session(self, store: MessageStore) -> None:
        with pytest.raises(SessionNotFoundError):
            await store.read_background("unknown")

    async def test_a_cancelled_append_leaves_the_store_usable(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(1))
        for number in range(20):
            with anyio.move_on_after(number * 0.0001):
                await append_messages(store, "s", numbered(1))
        last = (await append_messages(store, "s", numbered(1))).last_seq
        assert seqs(await store.read("s", None)) == list(range(1, last + 1))

    async def test_check_finds_nothing_wrong_with_a_sound_store(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(3))
        health = await store.check()
        assert health.details
        assert health.problems == ()
        assert seqs(await store.read("s", None)) == [1, 2, 3]

    async def test_a_closed_store_says_so(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(1))
        await store.close()
        await store.close()
        with pytest.raises(StoreClosedError):
            await store.get_session("s", None)
        with pytest.raises(StoreClosedError):
            await append_messages(store, "s", numbered(1))


ZWJ_FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"

TEXTS = {
    "empty": "",
    "blank": "  \t\n\r\n ",
    "emoji": f"{ZWJ_FAMILY} \U0001f1f0\U0001f1f7 \u2764\ufe0f",
    "right to left": "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd \u202egnp\u202c \u200f",
    "cjk": "\u6f22\u5b57 \u304b\u306a \ud55c\uad6d\uc5b4 \U00020bb7",
    "not normalized": "e\u0301 \u00e9 \u212b",
    "controls": "bell \x07, escape \x1b[0m, unit \x1f, delete \x7f, bom \ufeff, line \u2028 \u2029, last \uffff",
    "quotes": "' \" ` \\ \\n \\u0041 %s {} $1 :name ?",
    "sql": "'; DROP TABLE messages; --",
    "json": '{"role": "system", "content": null}',
    "one megabyte": "0123456789abcde\n" * 65_536,
}

PARALLEL_CALLS = (
    ToolCall(id="call_1", name="get_weather", arguments={"city": "S\u00e3o Paulo", "days": 3, "units": None}),
    ToolCall(id="call_2", name="get_weather", arguments='{"city":  "Oslo",\n "days": 3}'),
    ToolCall(id="call_3", name="search", arguments='{"query": "unclosed'),
    ToolCall(id="call_4", name="ping", arguments=""),
    ToolCall(id="call_5", name="ping", arguments={}),
    ToolCall(id="toolu_\U0001f600", name="n", arguments={"deep": {"list": [1, [2, {"three": []}]]}}),
    ToolCall(id="call_7", name="n", arguments={}, metadata={"thought_signature": "CpcB+/=", "index": 0}),
)

VALUES: dict[str, object] = {
    "nested": {"a": {"b": [{"c": [[], {}, [None, True, False]]}]}},
    "floats": [0.1, 1.0, -0.0, 1e300, 5e-324, 2.5e-8, 123456789.123456789],
    "integers": [0, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**64, 10**30],
    "text": {"": "empty key", "emoji \U0001f600": ZWJ_FAMILY, "quote\"'": "\\", "line\n": "\u2028"},
    "kinds": {"1": 1, "1.0": 1.0, "true": True, "text": "1"},
}

PARTS = (
    {"type": "reasoning", "text": "", "signature": "EqoBCkgIARABGAIiQL+/=="},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo" * 100}},
    {"type": "file", "id": "file_1", "pages": [1, 2], "cache_control": None},
)


class RoundTrips:
    """Everything that a provider needs to replay a message survives unchanged."""

    async def check_round_trip(self, store: MessageStore, *messages: Message) -> tuple[Message, ...]:
        stored = tuple(stored_form(message, now=wall_clock()) for message in messages)
        await append_messages(store, "s", stored)
        found = await store.read("s", None)
        assert found == tuple(replace(message, seq=seq) for seq, message in enumerate(stored, start=1))
        return found

    @pytest.mark.parametrize("content", TEXTS.values(), ids=TEXTS.keys())
    async def test_text(self, store: MessageStore, content: str) -> None:
        await self.check_round_trip(store, Message.user(content), Message.tool(content, tool_call_id="call_1"))

    async def test_every_role_and_visibility(self, store: MessageStore) -> None:
        roles: tuple[Role, ...] = ("user", "assistant", "system", "tool", "agent", "summary")
        levels: tuple[Visibility, ...] = ("user", "agent", "system")
        messages = [Message(role=role, content=level, visibility=level) for role in roles for level in levels]
        await self.check_round_trip(store, *messages)

    async def test_every_field(self, store: MessageStore) -> None:
        message = Message(
            role="tool",
            content="content",
            parts=PARTS,
            tool_calls=PARALLEL_CALLS,
            tool_call_id="call_1",
            name="get_weather",
            metadata={"key": "value"},
            visibility="agent",
            author_id="author",
            created_at=1,
            message_id="01890a5d-ac96-774b-bcce-b302099a8057",
            token_count=123_456,
            tokenizer="o200k_base",
        )
        await self.check_round_trip(store, message)

    async def test_absent_differs_from_empty(self, store: MessageStore) -> None:
        await self.check_round_trip(
            store,
            Message(role="tool", tool_call_id="", name="", author_id=""),
            Message(role="tool", tool_call_id=None, name=None, author_id=None),
        )

    async def test_parallel_tool_calls_with_mappings_and_raw_text(self, store: MessageStore) -> None:
        (found,) = await self.check_round_trip(store, Message.assistant(tool_calls=PARALLEL_CALLS))
        kinds = [type(call.arguments) for call in found.tool_calls]
        assert kinds == [type(call.arguments) for call in PARALLEL_CALLS]

    @pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
    async def test_json_values_keep_their_kind(self, store: MessageStore, value: object) -> None:
        (found,) = await self.check_round_trip(
            store,
            Message.assistant(
                metadata={"value": value},
                parts=({"value": value},),
                tool_calls=[ToolCall(id="1", name="n", arguments={"value": value})],
            ),
        )
        for kept in (found.metadata, found.parts[0], found.tool_calls[0].arguments):
            assert repr(kept) == repr({"value": value})

    async def test_the_order_of_keys(self, store: MessageStore) -> None:
        unordered = {key: {"z": 1, "a": 2} for key in ("z", "a", "m", "10", "9")}
        (found,) = await self.check_round_trip(
            store, Message.assistant(metadata=unordered, tool_calls=[ToolCall(id="1", name="n", arguments=unordered)])
        )
        assert repr(found.metadata) == repr(found.tool_calls[0].arguments) == repr(unordered)

    async def test_large_parts_and_metadata(self, store: MessageStore) -> None:
        data = "iVBORw0KGgo=" * 100_000
        await self.check_round_trip(store, Message.user("", parts=({"data": data},), metadata={"data": data[:16_000]}))

    async def test_times_order_nothing(self, store: MessageStore) -> None:
        times = (5_000, 1_000, 3_000, -1, 0)
        found = await self.check_round_trip(store, *(Message.user(str(time), created_at=time) for time in times))
        assert [message.created_at for message in found] == list(times)

    async def test_a_time_may_be_unknown(self, store: MessageStore) -> None:
        undated = replace(stored_form(Message.user("then"), now=1_000), created_at=None)
        await store.append(AppendRequest(session_id="s", user_id=None, messages=(undated,), now=1_000))
        (found,) = await store.read("s", None)
        assert found == replace(undated, seq=1)

    async def test_what_the_store_sets_is_not_taken_from_the_caller(self, store: MessageStore) -> None:
        await append_messages(store, "s", [Message.user("first", seq=77)])
        assert seqs(await store.read("s", None)) == [1]

    async def test_no_caller_can_change_the_log(self, store: MessageStore) -> None:
        metadata = {"list": [1]}
        await append_messages(store, "s", [Message.user("", metadata=metadata)])
        metadata["list"].append(2)
        (found,) = await store.read("s", None)
        found.metadata["list"].append(3)
        assert (await store.read("s", None))[0].metadata == {"list": [1]}

    async def test_ids_in_many_scripts(self, store: MessageStore) -> None:
        for session_id in ("a b/c?d#e%20", "s" * 255, "\ud55c\uad6d\uc5b4-\U0001f600", "'; --", "S", "s", "A%", "A_"):
            await append_messages(store, session_id, [Message.user(session_id)], user_id=session_id[::-1])
            assert texts(await store.read(session_id, session_id[::-1])) == [session_id]


class Ownership:
    """A session with an owner answers that user only; one without answers everybody."""

    async def calls(self, store: MessageStore, session_id: str, user_id: str | None) -> None:
        """Every call that takes a user, each of which must be refused."""
        query = ContextQuery(session_id=session_id, user_id=user_id, last_count=5)
        fork_id = f"{session_id.partition('~')[0]}~new"
        for call in (
            lambda: append_messages(store, session_id, numbered(1), user_id=user_id),
            lambda: store.get_session(session_id, user_id),
            lambda: store.read(session_id, user_id),
            lambda: store.read_context(query),
            lambda: store.fork(session_id, user_id, at_seq=1, fork_id=fork_id, now=wall_clock()),
            lambda: store.withdraw(session_id, user_id, seq=None, now=wall_clock(), refold=nothing_left),
            lambda: store.delete(session_id, user_id, now=wall_clock(), purge=True),
        ):
            with pytest.raises(SessionOwnershipError):
                await call()

    @pytest.mark.parametrize("stranger", ["stranger", "", "OWNER", None])
    async def test_a_stranger_is_refused_by_every_call(self, store: MessageStore, stranger: str | None) -> None:
        await append_messages(store, "s", numbered(4), user_id="owner")
        before = await store.get_session("s", "owner")
        await self.calls(store, "s", stranger)
        assert await store.get_session("s", "owner") == before
        assert seqs(await store.read("s", "owner")) == [1, 2, 3, 4]

    async def test_a_stranger_is_refused_by_every_call_on_a_fork(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(4), user_id="owner")
        await store.fork("s", "owner", at_seq=3, fork_id="s~f", now=wall_clock())
        await append_messages(store, "s~f", numbered(1), user_id="owner")
        await self.calls(store, "s~f", "stranger")
        assert seqs(await store.read("s~f", "owner")) == [1, 2, 3]

    async def test_the_owner_is_fixed_by_the_first_batch(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(1), user_id="owner")
        await append_messages(store, "s", numbered(1), user_id="owner")
        with pytest.raises(SessionOwnershipError):
            await append_messages(store, "s", numbered(1), user_id="other")
        assert seqs(await store.read("s", "owner")) == [1, 2]

    async def test_an_open_session_stays_open(self, store: MessageStore) -> None:
        await append_messages(store, "s", numbered(1), user_id=None)
        await append_messages(store, "s", numbered(1), user_id="first")
        await append_messages(store, "s", numbered(1), user_id="second")
        for user_id in (None, "first", "second", "third"):
            session = await store.get_session("s", user_id)
            assert session is not None
            assert session.owner_id is None
            assert seqs(await store.read("s", user_id)) == [1, 2, 3]

    async def test_one_of_two_first_appends_becomes_the_owner(self, store: MessageStore) -> None:
        owners: list[str] = []

        async def append(user_id: str) -> None:
            try:
                await append_messages(store, "s", numbered(1), user_id=user_id)
            except SessionOwnershipError:
                return
            owners.append(user_id)

        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(append, f"user {number}")
        (owner,) = owners
        session: Session | None = await store.get_session("s", owner)
        assert session is not None
        assert (session.owner_id, session.last_seq) == (owner, 1)
