"""What is made from the key of a request is the same each time, and nobody else's."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from reactor_memory.features.sharing.principals import Principal
from reactor_memory.features.sharing.repeated_requests import batch_key, new_id

PRINCIPALS = st.builds(Principal, user_id=st.sampled_from(["ann", "bob"]), client_id=st.sampled_from([None, "a", "b"]))
KEYS = st.text(min_size=1, max_size=20)


@given(PRINCIPALS, KEYS, PRINCIPALS, KEYS)
def test_only_the_same_caller_with_the_same_key_meets_itself(
    one: Principal, key: str, other: Principal, other_key: str
) -> None:
    same = (one, key) == (other, other_key)
    assert (batch_key(one, key) == batch_key(other, other_key)) == same
    assert (new_id(one, key, "x") == new_id(other, other_key, "x")) == same
    assert new_id(one, key, "x") != new_id(one, key, "y")


@given(PRINCIPALS, KEYS)
def test_an_id_is_a_uuid_of_an_own_rule(principal: Principal, key: str) -> None:
    made = UUID(new_id(principal, key, "x"))
    assert (made.version, made.variant) == (8, "specified in RFC 4122")


def test_without_a_key_every_request_is_a_new_one() -> None:
    ann = Principal(user_id="ann")
    assert batch_key(ann, None) is None
    assert new_id(ann, None) != new_id(ann, None)
