"""Whatever a database keeps of a group arrives in another one as it was."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reactor_memory.core.log.walks import list_groups
from reactor_memory.errors import (
    CopyConflictError,
    IdempotencyConflictError,
    SessionDeletedError,
    SessionNotFoundError,
    SessionOwnershipError,
)
from reactor_memory.features.active_sessions import operations as active_rows
from reactor_memory.features.erasure import operations as erasure
from reactor_memory.features.facts import operations as fact_operations
from reactor_memory.features.items import operations as items
from reactor_memory.features.items.models import ItemChange
from reactor_memory.features.notes import operations as note_rows
from reactor_memory.features.notes.models import Notes
from reactor_memory.features.pins import operations as pin_operations
from reactor_memory.features.sharing.models import AuditRecord, Membership
from reactor_memory.features.tiers import operations as range_summaries
from reactor_memory.features.transfer import operations as transfer
from reactor_memory.features.transfer.copy import PAGE, SessionCopier
from reactor_memory.features.transfer.operations import StoredMessage, list_users
from reactor_memory.models import Message, ToolCall
from reactor_memory.models.ledger import FactCorrection, PostedSummary
from reactor_memory.models.requests import SUMMARIZE
from reactor_memory.testing.branching import fork, withdraw
from reactor_memory.testing.builders import append_messages, numbered, pin_of, stored_form, wall_clock
from reactor_memory.testing.log import seqs
from tests.conformance.suites.correcting import amending
from tests.conformance.suites.posting import post, ruling_in
from tests.conformance.suites.range_summaries import summarise
from tests.scenes.stores import SqlStore as Store


def ignore(done: int) -> None:
    """Nobody watches."""


def copier(source: Store, target: Store, *, owner_id: str | None = None) -> SessionCopier:
    return SessionCopier(source.database, target.database, clock=wall_clock, owner_id=owner_id)


async def contents(store: Store) -> list[object]:
    """All that can be moved out of a store. What is only marked as deleted counts as gone."""
    found: list[object] = []
    for group_id in await store.database.read(list_groups):
        for stored in await store.database.read(transfer.export_group, group_id):
            if stored.session.deleted_at is not None:
                found.append((stored.session.session_id, stored.session.owner_id, stored.session.last_seq))
                continue
            messages = await store.database.read(
                transfer.export_messages, stored.session.session_id, after=0, limit=10_000
            )
            found.append((stored, messages))
    return found


async def notes_of(store: Store) -> list[object]:
    return [
        await store.database.read(transfer.export_user, user_id) for user_id in await store.database.read(list_users)
    ]


async def note(store: Store, user_id: str, *texts: str, agent_name: str = "agent") -> None:
    """Append versions of notes."""
    for text in texts:
        last = (await store.database.read(note_rows.read_notes, user_id, agent_name)).version
        new = Notes(user_id=user_id, agent_name=agent_name, version=last + 1, text=text, author="a", created_at=last)
        assert await store.database.write(note_rows.put_notes, new)


async def correct(store: Store, session_id: str, value: str | None, *, source_seq: int) -> None:
    session = await store.get_session(session_id, "u")
    assert session is not None
    said = FactCorrection(
        anchor="user", key="seat", value=value, seq=session.last_seq, source_seq=source_seq, author_id="u", created_at=7
    )
    assert await store.database.write(fact_operations.put_correction, session, said, now=wall_clock(), refold=amending)


async def fill(store: Store) -> None:
    """One of everything that can become of sessions and messages."""
    call = ToolCall(id="c", name="find", arguments={"big": 2**70, "half": 0.5}, metadata={"signature": "s"})
    rich = Message(
        role="assistant",
        content="é\n",
        parts=({"type": "image", "data": [1, None]},),
        tool_calls=(call,),
        name="n",
        metadata={"deep": {"er": True}},
        visibility="agent",
        author_id="a",
        created_at=-5,
    )
    await append_messages(store, "owned", numbered(4), user_id="u", now=1_000, idempotency_key="k1", fingerprint="f1")
    await append_messages(store, "owned", [rich, Message.tool("", tool_call_id="c")], user_id="u", now=2_000)
    await store.fork("owned", "u", at_seq=4, fork_id="owned~b", now=3_000)
    await append_messages(store, "owned~b", numbered(3, start=4), user_id="u", idempotency_key="k1", fingerprint="f2")
    await store.fork("owned~b", "u", at_seq=6, fork_id="owned~a", now=4_000)
    await store.fork("owned", "u", at_seq=2, fork_id="owned~gone", now=4_000)
    await store.delete("owned~gone", "u", now=5_000, purge=False)
    await store.database.write(pin_operations.pin, "owned", "u", pin_of(2), max_pins=9, max_pin_tokens=99)
    await store.database.write(
        pin_operations.pin, "owned", "u", pin_of(3, fact=("order", "id")), max_pins=9, max_pin_tokens=99
    )
    for session_id, value, source in (("owned", "17", 2), ("owned", None, 5), ("owned~a", "18", 2)):
        await correct(store, session_id, value, source_seq=source)
    await append_messages(store, "open", numbered(12))
    await withdraw(store, "open")
    await summarise(store, "open", 1, 2, name="kept")
    await summarise(store, "open", 1, 4, name="archived", retention="archive")
    await summarise(store, "open", 5, 6, name="deleted", retention="delete")
    await post(store, "open", "It was said.", 3, title="said")
    await post(store, "open", "It was erased.", 4, key="k3")
    await store.database.write(erasure.erase, "open", None, ranges=[(14, 14)], now=7_000, refold=amending)
    await append_messages(store, "open", [Message.assistant("")])
    await withdraw(store, "open")
    await append_messages(store, "purged", numbered(2), user_id="u")
    await store.delete("purged", "u", now=6_000, purge=True)


class Copies:
    """Two empty stores; `target` may be of another kind."""

    async def test_everything_arrives_as_it_was(self, store: Store, target: Store) -> None:
        await fill(store)
        before = await contents(store)
        done = await copier(store, target).copy(ignore)
        assert (done.sessions, done.messages, done.copied) == (6, 6 + 3 + 0 + 15, 6 + 3 + 0 + 15)
        assert await contents(target) == before
        assert await contents(store) == before

    async def test_it_comes_back_as_it_went(self, store: Store, target: Store, back: Store) -> None:
        await fill(store)
        await copier(store, target).copy(ignore)
        await copier(target, back).copy(ignore)
        assert await contents(back) == await contents(store)

    async def test_copied_sessions_go_on(self, store: Store, target: Store) -> None:
        await fill(store)
        await copier(store, target).copy(ignore)
        for session_id, user_id in (("owned", "u"), ("owned~b", "u"), ("owned~a", "u"), ("open", None)):
            assert await target.read(session_id, user_id) == await store.read(session_id, user_id)
            session = await store.get_session(session_id, user_id)
            assert session is not None
            appended = await append_messages(target, session_id, numbered(1), user_id=user_id)
            assert appended.first_seq == session.last_seq + 1
        assert (await target.check()).problems == ()
        assert await target.database.write(range_summaries.restore_range_summary, "open", None, "archived", now=9_000)
        assert seqs(await target.read("open", None, until=4)) == [1, 2, 3, 4]

    async def test_posted_summaries_rule_in_the_target(self, store: Store, target: Store) -> None:
        await fill(store)
        await copier(store, target).copy(ignore)
        assert await ruling_in(target, "open") == PostedSummary(seq=13, until_seq=3, text="It was said.")
        again = await post(target, "open", "It was erased.", 4, key="k3")
        assert (again.seq, again.content) == (14, "")

    async def test_owners_tombstones_and_keys_hold_in_the_target(self, store: Store, target: Store) -> None:
        await fill(store)
        await copier(store, target).copy(ignore)
        with pytest.raises(SessionOwnershipError):
            await target.read("owned", "other")
        for session_id in ("owned~gone", "purged"):
            with pytest.raises(SessionDeletedError):
                await append_messages(target, session_id, numbered(1), user_id="u")
        again = await append_messages(target, "owned", numbered(4), user_id="u", idempotency_key="k1", fingerprint="f1")
        assert (again.first_seq, again.last_seq, again.replayed) == (1, 4, True)
        with pytest.raises(IdempotencyConflictError):
            await append_messages(target, "owned", numbered(4), user_id="u", idempotency_key="k1", fingerprint="f2")

    async def test_of_a_deleted_session_only_the_id_arrives(self, store: Store, target: Store) -> None:
        await append_messages(store, "s", numbered(3), user_id="u")
        await store.database.write(pin_operations.pin, "s", "u", pin_of(2), max_pins=9, max_pin_tokens=99)
        await store.delete("s", "u", now=5_000, purge=False)
        await copier(store, target).copy(ignore)
        (stored,) = await target.database.read(transfer.export_group, "s")
        assert (stored.session.owner_id, stored.session.last_seq, stored.session.deleted_at) == ("u", 3, 5_000)
        assert (
            stored.entries,
            stored.importing,
            await target.database.read(transfer.export_messages, "s", after=0, limit=9),
        ) == ((), False, ())
        assert await target.purge_deleted(before=wall_clock()) == 0

    async def test_background_work_begins_when_all_is_there(self, store: Store, target: Store) -> None:
        await fill(store)
        await copier(store, target).copy(ignore)
        due = (await target.summaries.due([SUMMARIZE], now=wall_clock() + 1))[SUMMARIZE]
        assert sorted(due) == ["open", "owned", "owned~a", "owned~b"]
        assert (await target.summaries.due(["copy"], now=wall_clock() + 1))["copy"] == ()

    async def test_many_messages_are_copied_page_by_page(self, store: Store, target: Store) -> None:
        await append_messages(store, "s", numbered(2 * PAGE + 1))
        advanced: list[int] = []
        done = await copier(store, target).copy(advanced.append)
        assert (done.messages, done.copied, sum(advanced)) == (2 * PAGE + 1,) * 3
        assert await contents(target) == await contents(store)

    async def test_only_what_one_user_owns(self, store: Store, target: Store) -> None:
        await fill(store)
        done = await copier(store, target, owner_id="u").copy(ignore)
        assert done.sessions == 5
        assert await target.database.read(list_groups) == ("owned", "purged")

    async def test_groups_are_listed_in_pages(self, store: Store, target: Store) -> None:
        for name in ("c", "a", "b"):
            await append_messages(store, name, numbered(1), user_id=name)
        assert await store.database.read(list_groups, limit=2) == ("a", "b")
        assert await store.database.read(list_groups, after="b", limit=2) == ("c",)
        assert await store.database.read(list_groups, owner_id="b") == ("b",)

    async def test_a_second_copy_changes_nothing(self, store: Store, target: Store) -> None:
        await fill(store)
        await copier(store, target).copy(ignore)
        before = await contents(target)
        done = await copier(store, target).copy(ignore)
        assert (done.copied, done.messages) == (0, 24)
        assert await contents(target) == before

    async def test_what_grew_in_the_source_follows(self, store: Store, target: Store) -> None:
        await fill(store)
        await copier(store, target).copy(ignore)
        await append_messages(store, "open", numbered(3))
        assert (await copier(store, target).copy(ignore)).copied == 3
        assert await target.read("open", None) == await store.read("open", None)

    async def test_what_went_on_in_the_target_stays(self, store: Store, target: Store) -> None:
        await fill(store)
        await copier(store, target).copy(ignore)
        await append_messages(target, "open", numbered(3))
        await target.database.write(pin_operations.unpin, "owned", "u", 2)
        await target.delete("owned~b", "u", now=9_000, purge=True)
        before = await contents(target)
        assert (await copier(store, target).copy(ignore)).copied == 0
        assert await contents(target) == before

    async def test_another_session_of_the_same_id_is_not_touched(self, store: Store, target: Store) -> None:
        await fill(store)
        await append_messages(target, "owned", numbered(1), user_id="u")
        before = await contents(target)
        with pytest.raises(CopyConflictError, match="'owned'"):
            await copier(store, target).compare()
        with pytest.raises(CopyConflictError, match="'owned'"):
            await copier(store, target).copy_group("owned", ignore)
        assert await contents(target) == before

    async def test_the_same_messages_of_another_owner_are_another_session(self, store: Store, target: Store) -> None:
        messages = [stored_form(message, now=1_000) for message in numbered(2)]
        await append_messages(store, "s", messages, user_id="u", now=1_000)
        await append_messages(target, "s", messages, user_id="v", now=1_000)
        with pytest.raises(CopyConflictError):
            await copier(store, target).compare()

    async def test_a_session_that_went_on_in_both_is_not_touched(self, store: Store, target: Store) -> None:
        await append_messages(store, "s", numbered(2))
        await copier(store, target).copy(ignore)
        await append_messages(store, "s", numbered(2))
        await append_messages(target, "s", numbered(1))
        before = await contents(target)
        with pytest.raises(CopyConflictError):
            await copier(store, target).copy(ignore)
        assert await contents(target) == before

    async def test_an_unknown_group_is_none(self, store: Store, target: Store) -> None:
        with pytest.raises(SessionNotFoundError):
            await copier(store, target).copy_group("nothing", ignore)
        assert await store.database.read(transfer.export_group, "nothing") == ()
        assert await store.database.read(transfer.export_messages, "nothing", after=0, limit=5) == ()


class UserCopies:
    """What belongs to users travels with their sessions."""

    async def test_notes_and_active_sessions_arrive(self, store: Store, target: Store) -> None:
        await note(store, "u", "one", "two")
        await note(store, "u", "other", agent_name="b")
        await note(store, "v", "one")
        await store.database.write(active_rows.get_or_create_active, "u", "agent", "s1", now=1_000)
        await store.database.write(active_rows.get_or_create_active, "w", "agent", "s2", now=2_000)
        await store.database.write(active_rows.switch_active, "w", "agent", expected="s2", new=None, now=3_000)
        for user_id in ("", "x"):
            changes = [ItemChange(namespace="a.b", key=key, value={"is": [key, 0.5]}) for key in ("k", "l")]
            await store.database.write(items.change_items, user_id, changes, now=4_000)
            await store.database.write(items.change_items, user_id, changes[:1], now=5_000)
        assert (await copier(store, target).copy(ignore)).notes_copied == 4
        assert (
            (await target.database.read(transfer.export_user, "")).items
            == (await store.database.read(transfer.export_user, "")).items
            != ()
        )
        assert await notes_of(target) == await notes_of(store)
        assert (await copier(store, target).copy(ignore)).notes_copied == 0
        await note(target, "u", "three")

    async def test_those_of_one_user_only(self, store: Store, target: Store) -> None:
        await note(store, "u", "one")
        await note(store, "v", "one")
        await copier(store, target, owner_id="u").copy(ignore)
        assert await target.database.read(list_users) == ("u",)
        assert await store.database.read(list_users, after="u") == ("v",)
        assert await store.database.read(list_users, limit=1) == ("u",)

    async def test_new_versions_follow_and_notes_that_went_on_stay(self, store: Store, target: Store) -> None:
        await note(store, "u", "one")
        await note(store, "v", "one")
        await store.database.write(active_rows.get_or_create_active, "u", "agent", "s1", now=1_000)
        await copier(store, target).copy(ignore)
        await note(store, "u", "two", "three")
        await note(store, "v", "two", "three")
        await note(target, "v", "my own")
        await target.database.write(active_rows.switch_active, "u", "agent", expected="s1", new="mine", now=2_000)
        assert (await copier(store, target).copy(ignore)).notes_copied == 2
        assert (await target.database.read(transfer.export_user, "u")).entries == (
            await store.database.read(transfer.export_user, "u")
        ).entries
        assert [each.text for each in (await target.database.read(transfer.export_user, "v")).entries] == [
            "one",
            "my own",
        ]
        active = await target.database.read(active_rows.get_active, "u", "agent")
        assert active is not None
        assert active.session_id == "mine"

    async def test_notes_whose_beginning_is_gone_go_on(self, store: Store, target: Store) -> None:
        await note(store, "u", "one", "two")
        await store.database.write(erasure.forget_user, "u", now=9_000)
        await copier(store, target).copy(ignore)
        assert await notes_of(target) == await notes_of(store)
        await note(target, "u", "new")
        assert (await target.database.read(note_rows.read_notes, "u", "agent")).version == 4


class Imports:
    """One step at a time."""

    async def test_a_begun_conversation_is_marked_until_it_is_finished(self, store: Store, target: Store) -> None:
        await append_messages(store, "s", numbered(4))
        (stored,) = await store.database.read(transfer.export_group, "s")
        page = await store.database.read(transfer.export_messages, "s", after=0, limit=3)
        assert await target.database.write(transfer.import_conversation, stored)
        assert not await target.database.write(transfer.import_conversation, stored)
        assert await target.database.write(transfer.import_messages, "s", page)
        (begun,) = await target.database.read(transfer.export_group, "s")
        assert (begun.importing, begun.session.last_seq) == (True, 3)
        assert seqs(await target.read("s", None)) == [1, 2, 3]
        assert (await target.summaries.due([SUMMARIZE], now=wall_clock() + 1))[SUMMARIZE] == ()
        assert await target.database.write(
            transfer.import_messages, "s", await store.database.read(transfer.export_messages, "s", after=3, limit=3)
        )
        await target.database.write(transfer.finish_import, "s", due_at=None)
        assert await target.database.read(transfer.export_group, "s") == (stored,)
        assert (await target.summaries.due([SUMMARIZE], now=wall_clock() + 1))[SUMMARIZE] == ()

    async def test_messages_that_do_not_follow_are_refused(self, store: Store, target: Store) -> None:
        await append_messages(store, "s", numbered(4))
        (stored,) = await store.database.read(transfer.export_group, "s")
        page = await store.database.read(transfer.export_messages, "s", after=0, limit=9)
        await target.database.write(transfer.import_conversation, stored)
        assert not await target.database.write(transfer.import_messages, "s", page[1:])
        assert await target.database.write(transfer.import_messages, "s", page[:2])
        assert not await target.database.write(transfer.import_messages, "s", page[:2])
        assert await target.database.read(transfer.export_messages, "s", after=0, limit=9) == page[:2]

    async def test_a_deleted_conversation_takes_no_more_messages(self, store: Store, target: Store) -> None:
        await append_messages(store, "s", numbered(4))
        (stored,) = await store.database.read(transfer.export_group, "s")
        await target.database.write(transfer.import_conversation, stored)
        await target.delete("s", None, now=wall_clock(), purge=True)
        assert not await target.database.write(
            transfer.import_messages, "s", await store.database.read(transfer.export_messages, "s", after=0, limit=2)
        )
        assert (await copier(store, target).copy(ignore)).copied == 0
        assert await target.database.read(transfer.export_messages, "s", after=0, limit=9) == ()

    async def test_session_that_was_deleted_while_it_was_copied_is_told(self, store: Store, target: Store) -> None:
        await append_messages(store, "s", numbered(4))
        (stored,) = await store.database.read(transfer.export_group, "s")
        await target.database.write(transfer.import_conversation, stored)
        await store.delete("s", None, now=wall_clock(), purge=True)
        with pytest.raises(CopyConflictError):
            await copier(store, target).copy(ignore)
        await target.delete("s", None, now=wall_clock(), purge=True)
        assert (await copier(store, target).copy(ignore)).copied == 0

    async def test_all_members_and_records_of_a_shared_group_arrive(self, store: Store, target: Store) -> None:
        await append_messages(store, "s", numbered(2), user_id="u")
        (alone,) = await store.database.read(transfer.export_group, "s")
        shared = replace(
            alone,
            memberships=tuple(
                Membership(group_id="s", user_id=user_id, access_level="reader", created_at=1) for user_id in "abc"
            ),
            audit=tuple(
                AuditRecord(
                    record_id=f"r{number}",
                    group_id="s",
                    conversation_id="s",
                    actor_id="u",
                    action="share",
                    details={"number": number},
                    created_at=number,
                )
                for number in range(3)
            ),
        )
        assert await target.database.write(transfer.import_conversation, shared)
        (arrived,) = await target.database.read(transfer.export_group, "s")
        assert (arrived.memberships, arrived.audit) == (shared.memberships, shared.audit)

    async def test_messages_are_exported_in_pages(self, store: Store, target: Store) -> None:
        await append_messages(store, "s", numbered(5))
        assert [each.seq for each in await store.database.read(transfer.export_messages, "s", after=1, limit=3)] == [
            2,
            3,
            4,
        ]
        await fork(store, "s", "s~f", 3)
        await append_messages(store, "s~f", numbered(2, start=3))
        assert [each.seq for each in await store.database.read(transfer.export_messages, "s~f", after=0, limit=9)] == [
            3,
            4,
        ]

    async def test_a_copy_that_was_broken_off_goes_on(self, store: Store, target: Store) -> None:
        await fill(store)
        for stored in await store.database.read(transfer.export_group, "owned"):
            await target.database.write(transfer.import_conversation, stored)
            page = await store.database.read(transfer.export_messages, stored.session.session_id, after=0, limit=2)
            if page and stored.session.deleted_at is None:
                await target.database.write(transfer.import_messages, stored.session.session_id, page)
            break
        done = await copier(store, target).copy(ignore)
        assert done.copied == 24 - 2
        assert await contents(target) == await contents(store)

    async def test_what_arrived_otherwise_than_it_was_sent_is_noticed(self, store: Store, target: Store) -> None:
        await append_messages(store, "s", numbered(4))
        (stored,) = await store.database.read(transfer.export_group, "s")
        first, *_ = await store.database.read(transfer.export_messages, "s", after=0, limit=1)
        await target.database.write(transfer.import_conversation, stored)
        await target.database.write(transfer.import_messages, "s", [_with_text(first, "something else")])
        with pytest.raises(CopyConflictError):
            await copier(store, target).copy(ignore)
        (begun,) = await target.database.read(transfer.export_group, "s")
        assert begun.importing


def _with_text(stored: StoredMessage, text: str) -> StoredMessage:
    return replace(stored, message=replace(stored.message, content=text))


@pytest.mark.anyio
class TransferRules(Copies, UserCopies, Imports):
    """The fixtures `store`, `target` and `back` give opened, empty ones."""
