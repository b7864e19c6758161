"""Pins: kept word for word, limited, one for each thing, gone with what they show."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import anyio
import pytest
from msgspec.structs import replace

from reactor_memory.errors import InvalidInputError, LimitExceededError, SessionNotFoundError
from reactor_memory.features.entries.operations import recount as recount_entries
from reactor_memory.features.pins import operations as pin_operations
from reactor_memory.features.recounting.recounting import recount
from reactor_memory.models import Message, Pin
from reactor_memory.models.requests import ContextQuery, ContextRows
from reactor_memory.testing.branching import fork, withdraw
from reactor_memory.testing.builders import append_messages, numbered, pin_of, wall_clock
from reactor_memory.testing.log import TEXTS
from tests.scenes.stores import SqlStore as Store

FACT = ("order #2", "number")


async def keep(
    store: Store, session_id: str, *pins: Pin, max_pins: int = 20, max_pin_tokens: int = 2_000_000
) -> list[Pin]:
    return [
        await store.database.write(
            pin_operations.pin, session_id, None, pin, max_pins=max_pins, max_pin_tokens=max_pin_tokens
        )
        for pin in pins
    ]


async def pinned(store: Store, session_id: str) -> list[str]:
    """The texts of the pins, which a load gives, too."""
    pins = await store.database.read(pin_operations.read_pins, session_id, None)
    for trigger in (None, 0):
        assert (await load(store, session_id, trigger)).pins == pins
    return [pin.text for pin in pins]


async def load(store: Store, session_id: str, trigger: int | None) -> ContextRows:
    query = ContextQuery(
        session_id=session_id,
        user_id=None,
        last_count=2,
        trigger_message_count=trigger,
        max_messages=3,
        max_tokens=1_000,
    )
    return await store.read_context(query)


class Pins:
    """What a caller pinned comes back with every load, as it was pinned, until it is unpinned."""

    async def test_a_pin_comes_back_as_it_was_kept(self, store: Store) -> None:
        await append_messages(store, "s", numbered(5))
        of_message, of_fact = pin_of(3, tokens=7), pin_of(2, "Pinned Fact:\norder: 17", fact=FACT, tokens=9)
        kept = await keep(store, "s", of_message, of_fact)
        assert [pin.ordinal for pin in kept] == [1, 2]
        assert list(await store.database.read(pin_operations.read_pins, "s", None)) == kept
        for pin, given in zip(kept, (of_message, of_fact), strict=True):
            assert pin == replace(given, ordinal=pin.ordinal)
        assert await pinned(store, "s") == ["message 3", "Pinned Fact:\norder: 17"]

    @pytest.mark.parametrize(
        "text", [text for text in TEXTS.values() if text], ids=[name for name in TEXTS if TEXTS[name]]
    )
    async def test_any_text_byte_for_byte(self, store: Store, text: str) -> None:
        await append_messages(store, "s", [Message.user(text)])
        await keep(store, "s", pin_of(1, text), pin_of(1, text, fact=(text[:200], text[-200:])))
        assert await pinned(store, "s") == [text, text]
        assert (await store.database.read(pin_operations.read_pins, "s", None))[1].fact == (text[:200], text[-200:])

    async def test_pins_change_neither_messages_nor_other_sessions(self, store: Store) -> None:
        await append_messages(store, "s", numbered(5))
        await append_messages(store, "other", numbered(5))
        before = await store.get_session("s", None), await store.read("s", None)
        await keep(store, "s", pin_of(1), pin_of(5))
        assert (await store.get_session("s", None), await store.read("s", None)) == before
        assert (await load(store, "s", None)).messages == before[1][-2:]
        assert (await load(store, "s", 0)).messages == before[1][-3:]
        assert await pinned(store, "other") == []

    async def test_they_stand_in_the_order_in_which_they_were_made(self, store: Store) -> None:
        await append_messages(store, "s", numbered(12))
        await keep(store, "s", *(pin_of(seq) for seq in (7, 2, 12, 11, 1, 3, 10, 4, 9, 5, 8, 6)))
        seqs = [7, 2, 12, 11, 1, 3, 10, 4, 9, 5, 8, 6]
        assert await pinned(store, "s") == [f"message {seq}" for seq in seqs]
        await store.database.write(pin_operations.unpin, "s", None, 12)
        await keep(store, "s", pin_of(12))
        seqs.remove(12)
        assert await pinned(store, "s") == [f"message {seq}" for seq in (*seqs, 12)]

    async def test_pinning_again_changes_nothing(self, store: Store) -> None:
        await append_messages(store, "s", numbered(3))
        kept = await keep(store, "s", pin_of(1), pin_of(2, fact=FACT), max_pins=2, max_pin_tokens=2)
        again = [replace(pin, created_at=pin.created_at + 1, ordinal=0) for pin in kept]
        assert await keep(store, "s", *again, max_pins=2, max_pin_tokens=2) == kept
        assert list(await store.database.read(pin_operations.read_pins, "s", None)) == kept

    async def test_a_message_and_the_facts_in_it_are_pinned_apart(self, store: Store) -> None:
        await append_messages(store, "s", numbered(3))
        await keep(store, "s", pin_of(2, "m"), pin_of(2, "f1", fact=("a", "k1")), pin_of(2, "f2", fact=("a", "k2")))
        assert await pinned(store, "s") == ["m", "f1", "f2"]
        assert await store.database.write(pin_operations.unpin, "s", None, ("a", "k1"))
        assert await store.database.write(pin_operations.unpin, "s", None, 2)
        assert await pinned(store, "s") == ["f2"]

    async def test_fact_that_reads_differently_takes_the_place_of_its_pin(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        await keep(store, "s", pin_of(1), pin_of(2, "order: 17", fact=FACT), pin_of(3))
        (kept,) = await keep(store, "s", pin_of(4, "order: 18", fact=FACT), max_pins=3)
        assert (kept.ordinal, kept.seq) == (2, 4)
        assert await pinned(store, "s") == ["message 1", "order: 18", "message 3"]

    async def test_unpinning(self, store: Store) -> None:
        await append_messages(store, "s", numbered(3))
        await keep(store, "s", pin_of(1), pin_of(2))
        assert await store.database.write(pin_operations.unpin, "s", None, 1) is True
        assert await store.database.write(pin_operations.unpin, "s", None, 1) is False
        assert await store.database.write(pin_operations.unpin, "s", None, 3) is False
        assert await store.database.write(pin_operations.unpin, "s", None, ("a", "k")) is False
        assert await pinned(store, "s") == ["message 2"]

    async def test_no_more_pins_than_the_limit(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        await keep(store, "s", pin_of(1), pin_of(2), max_pins=2)
        with pytest.raises(LimitExceededError) as raised:
            await keep(store, "s", pin_of(3), max_pins=2)
        assert (raised.value.actual, raised.value.limit, raised.value.setting) == (3, 2, "context.max_pins")
        assert await pinned(store, "s") == ["message 1", "message 2"]

    async def test_no_more_tokens_than_the_limit(self, store: Store) -> None:
        await append_messages(store, "s", numbered(4))
        await keep(store, "s", pin_of(1, tokens=60), pin_of(2, tokens=40, fact=FACT), max_pin_tokens=100)
        with pytest.raises(LimitExceededError) as raised:
            await keep(store, "s", pin_of(3, tokens=1), max_pin_tokens=100)
        assert (raised.value.actual, raised.value.limit, raised.value.setting) == (101, 100, "context.max_pin_tokens")
        await keep(store, "s", pin_of(4, "less", tokens=30, fact=FACT), pin_of(3, tokens=10), max_pin_tokens=100)
        assert await pinned(store, "s") == ["message 1", "less", "message 3"]

    async def test_the_limits_hold_for_pins_made_at_once(self, store: Store) -> None:
        await append_messages(store, "s", numbered(20))
        refused: list[int] = []

        async def try_to_keep(seq: int) -> None:
            try:
                await keep(store, "s", pin_of(seq), max_pins=5)
            except LimitExceededError:
                refused.append(seq)

        async with anyio.create_task_group() as tasks:
            for seq in range(1, 21):
                tasks.start_soon(try_to_keep, seq)
        assert len(refused) == 15
        assert len(await pinned(store, "s")) == 5

    async def test_only_what_is_in_view_can_be_pinned(self, store: Store) -> None:
        await append_messages(store, "s", numbered(3))
        await withdraw(store, "s")
        for seq in (0, 3, 4):
            for fact in (None, FACT):
                with pytest.raises(InvalidInputError):
                    await keep(store, "s", pin_of(seq, fact=fact))
        assert await pinned(store, "s") == []

    async def test_an_unknown_session_has_no_pins(self, store: Store) -> None:
        for call in (
            partial(keep, store, "s", pin_of(1)),
            partial(store.database.write, pin_operations.unpin, "s", None, 1),
        ):
            with pytest.raises(SessionNotFoundError):
                await call()
        with pytest.raises(SessionNotFoundError):
            await store.database.read(pin_operations.read_pins, "s", None)

    async def test_a_withdrawn_message_takes_its_pins_along(self, store: Store) -> None:
        await append_messages(store, "s", numbered(3))
        await keep(store, "s", pin_of(3), pin_of(2), pin_of(3, "of a fact", fact=FACT))
        await withdraw(store, "s")
        assert await pinned(store, "s") == ["message 2"]

    async def test_a_withdrawn_message_is_pinned_in_no_branch(self, store: Store) -> None:
        await append_messages(store, "s", numbered(3))
        await keep(store, "s", pin_of(3))
        await fork(store, "s", "s~behind", 4, own=["b4"])
        await fork(store, "s", "s~apart", 3, own=["a3"])
        await keep(store, "s~apart", pin_of(3, "a3"))
        await keep(store, "s~behind", pin_of(3, "of a fact", fact=FACT), pin_of(4, "b4"))
        await withdraw(store, "s")
        assert await pinned(store, "s") == []
        assert await pinned(store, "s~behind") == ["b4"]
        assert await pinned(store, "s~apart") == ["a3"]

    async def test_pin_made_while_its_message_is_withdrawn_does_not_stay(self, store: Store) -> None:
        async def try_to_keep(seq: int) -> None:
            with suppress(InvalidInputError):
                await keep(store, "s", pin_of(seq))

        for seq in range(1, 11):
            await append_messages(store, "s", numbered(1, start=seq))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(try_to_keep, seq)
                tasks.start_soon(withdraw, store, "s")
            assert await pinned(store, "s") == []

    async def test_a_fork_begins_with_the_pins_of_what_it_shares(self, store: Store) -> None:
        await append_messages(store, "s", numbered(5))
        await keep(store, "s", pin_of(4), pin_of(2, "of a fact", fact=FACT), pin_of(3))
        await fork(store, "s", "s~f", 4, own=["f4"])
        assert await pinned(store, "s~f") == ["of a fact", "message 3"]
        assert await pinned(store, "s") == ["message 4", "of a fact", "message 3"]

    async def test_fork_of_a_fork_takes_along_what_its_parent_pinned(self, store: Store) -> None:
        await append_messages(store, "s", numbered(5))
        await fork(store, "s", "s~a", 4, own=["a4"])
        await keep(store, "s~a", pin_of(2), pin_of(4, "a4"))
        await fork(store, "s~a", "s~b", 3)
        await fork(store, "s~a", "s~c", 5)
        assert await pinned(store, "s~b") == ["message 2"]
        assert await pinned(store, "s~c") == ["message 2", "a4"]

    async def test_branches_pin_apart(self, store: Store) -> None:
        await append_messages(store, "s", numbered(5))
        await keep(store, "s", pin_of(1), pin_of(2))
        await fork(store, "s", "s~f", 4, own=["f4"])
        await keep(store, "s~f", pin_of(4, "f4"), pin_of(3))
        await keep(store, "s", pin_of(5))
        assert await store.database.write(pin_operations.unpin, "s~f", None, 1)
        assert await store.database.write(pin_operations.unpin, "s", None, 2)
        assert await pinned(store, "s") == ["message 1", "message 5"]
        assert await pinned(store, "s~f") == ["message 2", "f4", "message 3"]

    async def test_a_deletion_takes_the_pins_of_its_branches(self, store: Store) -> None:
        await append_messages(store, "s", numbered(3))
        await keep(store, "s", pin_of(1))
        await fork(store, "s", "s~f", 3, own=["f3"])
        await store.delete("s~f", None, now=wall_clock(), purge=True)
        assert await pinned(store, "s") == ["message 1"]

    async def test_pins_are_counted_again_with_their_session(self, store: Store) -> None:
        await append_messages(store, "s", numbered(3))
        await keep(store, "s", pin_of(1), pin_of(2, "of a fact", fact=FACT, tokens=5))
        assert (
            await recount(store.database, "doubling", lambda message: 2 * len(message.content), also=[recount_entries])
            == 3
        )
        pins = await store.database.read(pin_operations.read_pins, "s", None)
        assert [(pin.token_count, pin.tokenizer) for pin in pins] == [(18, "doubling"), (18, "doubling")]
        assert await pinned(store, "s") == ["message 1", "of a fact"]
