"""Who calls: a user, or an agent by its key, alone or on behalf of a user."""

from __future__ import annotations

from typing import Literal, TypeAlias

from reactor_memory.models import Value

Operation: TypeAlias = Literal["read", "append", "instruct", "summarize", "respond", "on-behalf-of"]
"""What a key may be granted. ``read``: contexts, messages, search. ``instruct``: append messages that are system text
or that users do not see. ``on-behalf-of``: name a user without a token.
"""

OPERATIONS: tuple[Operation, ...] = ("read", "append", "instruct", "summarize", "respond", "on-behalf-of")

ANY_AGENT = "*"
"""As an agent name in a grant: conversations of every agent, and of none."""


class Grant(Value, frozen=True, kw_only=True):
    """What a key may do: these operations, in conversations of these agents."""

    agent_names: tuple[str, ...] = ()
    operations: tuple[Operation, ...] = ()

    def allows(self, operation: Operation) -> bool:
        return operation in self.operations

    def covers(self, agent_name: str | None) -> bool:
        return ANY_AGENT in self.agent_names or (agent_name is not None and agent_name in self.agent_names)


class Principal(Value, frozen=True, kw_only=True):
    """`user_id` alone is a user; `client_id` an agent, with a `user_id` on behalf of this user, who is then checked as
    if they asked themselves.
    """

    user_id: str | None = None
    client_id: str | None = None
    grant: Grant | None = None

    @property
    def is_agent(self) -> bool:
        return self.client_id is not None

    @property
    def principal_id(self) -> str:
        """Names the caller in rate limits, page tokens and answered requests; users and agents never share one."""
        if self.client_id is None:
            return f"user:{self.user_id}"
        return f"agent:{self.client_id}" + ("" if self.user_id is None else f":user:{self.user_id}")


class ApiKey(Value, frozen=True, kw_only=True):
    """A key of an agent as a store keeps it. The secret itself is shown once, when it is made."""

    key_prefix: str
    client_id: str
    secret_hash: str
    grant: Grant
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None


class AnsweredRequest(Value, frozen=True, kw_only=True):
    """A request that came with an idempotency key. Without a `status` somebody works on it until `lease_until`.

    The answer may tell of messages, so it goes when anything of `group_id` is erased, and with the user.
    """

    principal_id: str
    request_key: str
    fingerprint: str
    user_id: str | None = None
    group_id: str | None = None
    status: int | None = None
    body: str | None = None
    lease_until: int
    created_at: int
