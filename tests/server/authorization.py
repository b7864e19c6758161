"""Who may do what: the table that the service is held against, and how each operation is asked.

A row is an operation at what it is asked of: a conversation (`own`), a fork of it, one that was deleted, one that never
was (`absent`), or nothing in particular (`-`). A column is who asks. An operation of the interface that has no row here
fails the tests.
"""

from __future__ import annotations

from typing import Any, NamedTuple

WHO = (
    "nobody",  # no credential
    "expired",  # a token of the owner that is over
    "revoked",  # the key of an agent that was revoked
    "namesake",  # the owner's name, from another issuer
    "stranger",  # no member
    "removed",  # was a member
    "reader",
    "writer",
    "manager",
    "former",  # gave the conversation away, and is a manager since
    "owner",
    "agent",  # a key that may do everything with the conversations of this agent
    "foreign-agent",  # a key for the conversations of other agents
    "for-reader",  # the key of `agent`, with the token of the reader
    "names-writer",  # the key of `agent`, on behalf of the writer by name
    "for-stranger",  # the key of `agent`, with the token of a stranger
    "for-foreign",  # the key of `foreign-agent`, with the token of the owner
    "limited",  # a key that may only read, with the token of the owner
)

TABLE = """
getHealth                -               200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200
getReadiness             -               200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200 200
listConversations        -               401 401 401 200 200 200 200 200 200 200 200 403 403 200 200 200 200 200
createConversation       -               401 401 401 201 201 201 201 201 201 201 201 403 403 201 201 201 403 403
getConversation          own,fork        401 401 401 404 404 404 200 200 200 200 200 403 403 200 200 404 403 200
getConversation          deleted,absent  401 401 401 404 404 404 404 404 404 404 404 403 403 404 404 404 404 404
deleteConversation       own,fork        401 401 401 404 404 404 403 403 204 204 204 403 403 403 403 404 403 403
deleteConversation       deleted,absent  401 401 401 404 404 404 404 404 404 404 404 403 403 404 404 404 404 403
updateConversation       own,fork        401 401 401 404 404 404 403 200 200 200 200 403 403 403 200 404 403 403
updateConversation       deleted,absent  401 401 401 404 404 404 404 404 404 404 404 403 403 404 404 404 404 403
forkConversation         own,fork        401 401 401 404 404 404 403 201 201 201 201 403 403 403 201 404 403 403
forkConversation         deleted,absent  401 401 401 404 404 404 404 404 404 404 404 403 403 404 404 404 404 403
listTierSummaries        own,fork        401 401 401 404 404 404 200 200 200 200 200 403 403 200 200 404 403 200
listTierSummaries        deleted,absent  401 401 401 404 404 404 404 404 404 404 404 403 403 404 404 404 404 404
listForks                own,fork        401 401 401 404 404 404 200 200 200 200 200 403 403 200 200 404 403 200
listForks                deleted,absent  401 401 401 404 404 404 404 404 404 404 404 403 403 404 404 404 404 404
restoreConversation      own,fork        401 401 401 404 404 404 403 403 403 403 200 403 403 403 403 404 403 403
restoreConversation      deleted         401 401 401 404 404 404 404 404 403 403 200 403 403 404 404 404 403 403
restoreConversation      absent          401 401 401 404 404 404 404 404 404 404 404 403 403 404 404 404 404 403
listMessages             own,fork        401 401 401 404 404 404 200 200 200 200 200 403 403 200 200 404 403 200
listMessages             deleted,absent  401 401 401 404 404 404 404 404 404 404 404 403 403 404 404 404 404 404
appendMessage            own,fork        401 401 401 404 404 404 403 201 201 201 201 403 403 403 201 404 403 403
appendMessage            deleted,absent  401 401 401 404 404 404 404 404 404 404 404 403 403 404 404 404 404 403
listAudit                own,fork        401 401 401 404 404 404 403 403 200 200 200 403 403 403 403 404 403 200
listAudit                deleted,absent  401 401 401 404 404 404 404 404 404 404 404 403 403 404 404 404 404 404
listMemberships          own,fork        401 401 401 404 404 404 200 200 200 200 200 403 403 200 200 404 403 200
listMemberships          deleted,absent  401 401 401 404 404 404 404 404 404 404 404 403 403 404 404 404 404 404
shareConversation        own,fork        401 401 401 404 404 404 403 403 201 201 201 403 403 403 403 404 403 403
shareConversation        deleted,absent  401 401 401 404 404 404 404 404 404 404 404 403 403 404 404 404 404 403
removeMembership         own,fork        401 401 401 404 404 404 403 403 204 204 204 403 403 403 403 404 403 403
removeMembership         deleted,absent  401 401 401 404 404 404 404 404 404 404 404 403 403 404 404 404 404 403
updateMembership         own,fork        401 401 401 404 404 404 403 403 200 200 200 403 403 403 403 404 403 403
updateMembership         deleted,absent  401 401 401 404 404 404 404 404 404 404 404 403 403 404 404 404 404 403
transferOwnership        own,fork        401 401 401 404 404 404 403 403 403 403 202 403 403 403 403 404 403 403
transferOwnership        deleted,absent  401 401 401 404 404 404 404 404 404 404 404 403 403 404 404 404 404 403
acceptOwnershipTransfer  -               401 401 401 404 404 404 404 404 204 404 404 403 403 404 404 404 403 403
declineOwnershipTransfer -               401 401 401 404 404 404 404 404 204 404 204 403 403 404 404 404 403 403
listOwnershipTransfers   -               401 401 401 200 200 200 200 200 200 200 200 403 403 200 200 200 200 200
refuseOwnershipTransfer  -               401 401 401 404 404 404 404 404 204 404 204 403 403 404 404 404 403 403
listAgentMessages        own,fork        401 401 401 403 403 403 403 403 403 403 403 200 404 200 200 404 403 200
listAgentMessages        deleted,absent  401 401 401 403 403 403 403 403 403 403 403 404 404 404 404 404 404 404
appendAgentMessages      own,fork        401 401 401 403 403 403 403 403 403 403 403 201 404 403 201 404 403 403
appendAgentMessages      deleted,absent  401 401 401 403 403 403 403 403 403 403 403 404 404 404 404 404 404 403
createSummary            own,fork        401 401 401 403 403 403 403 403 403 403 403 201 404 403 201 404 403 403
createSummary            deleted,absent  401 401 401 403 403 403 403 403 403 403 403 404 404 404 404 404 404 403
getContext               own,fork        401 401 401 403 403 403 403 403 403 403 403 200 404 200 200 404 403 200
getContext               deleted,absent  401 401 401 403 403 403 403 403 403 403 403 404 404 404 404 404 404 404
getResponse              own,fork        401 401 401 404 404 404 200 200 200 200 200 403 403 200 200 404 403 200
getResponse              deleted,absent  401 401 401 404 404 404 404 404 404 404 404 403 403 404 404 404 404 404
listResponses            own,fork        401 401 401 404 404 404 200 200 200 200 200 403 403 200 200 404 403 200
listResponses            deleted,absent  401 401 401 404 404 404 404 404 404 404 404 403 403 404 404 404 404 404
stopResponse             own,fork        401 401 401 404 404 404 403 202 202 202 202 403 403 403 202 404 403 403
stopResponse             deleted,absent  401 401 401 404 404 404 404 404 404 404 404 403 403 404 404 404 404 403
streamResponseEvents     own,fork        401 401 401 404 404 404 200 200 200 200 200 403 403 200 200 404 403 200
streamResponseEvents     deleted,absent  401 401 401 404 404 404 404 404 404 404 404 403 403 404 404 404 404 404
listRunningResponses     -               401 401 401 200 200 200 200 200 200 200 200 403 403 200 200 200 403 200
appendResponseChunks     own,fork        401 401 401 403 403 403 403 403 403 403 403 200 404 403 200 404 403 403
appendResponseChunks     deleted,absent  401 401 401 403 403 403 403 403 403 403 403 404 404 404 404 404 404 403
finishResponse           own,fork        401 401 401 403 403 403 403 403 403 403 403 200 404 403 200 404 403 403
finishResponse           deleted,absent  401 401 401 403 403 403 403 403 403 403 403 404 404 404 404 404 404 403
getAgentResponse         own,fork        401 401 401 403 403 403 403 403 403 403 403 200 404 200 200 404 403 403
getAgentResponse         deleted,absent  401 401 401 403 403 403 403 403 403 403 403 404 404 404 404 404 404 403
startResponse            own,fork        401 401 401 403 403 403 403 403 403 403 403 201 404 403 201 404 403 403
startResponse            deleted,absent  401 401 401 403 403 403 403 403 403 403 403 404 404 404 404 404 404 403
searchMessages           -               401 401 401 200 200 200 200 200 200 200 200 403 403 200 200 200 200 200
"""


class Question(NamedTuple):
    """What is sent, beside the path."""

    body: Any = None
    query: str = ""


QUESTIONS: dict[str, Question] = {
    "createConversation": Question({"title": "New", "agentName": "travel"}),
    "updateConversation": Question({"title": "Renamed"}),
    "forkConversation": Question({"newMessage": {"content": "otherwise"}}),
    "appendMessage": Question({"content": "said"}),
    "shareConversation": Question({"userId": "{newcomer}", "accessLevel": "reader"}),
    "updateMembership": Question({"accessLevel": "writer"}),
    "transferOwnership": Question({"newOwnerUserId": "member"}),
    "appendAgentMessages": Question({"messages": [{"role": "assistant", "content": "said"}]}),
    "createSummary": Question(
        {
            "title": "A trip",
            "summary": "They talked.",
            "untilMessageId": "{messageId}",
            "summarizedAt": "2026-01-01T00:00:00Z",
        }
    ),
    "startResponse": Question({"producer": "worker-1"}),
    "appendResponseChunks": Question({"fence": "{fence}", "firstEvent": 1, "texts": ["They"]}),
    "finishResponse": Question({"fence": "{fence}"}),
    "searchMessages": Question({"query": "second"}),
    "listRunningResponses": Question(query="?conversationIds={own}"),
}
"""What is sent to operations that take something."""

SPOIL = {
    "deleteConversation",
    "restoreConversation",
    "removeMembership",
    "transferOwnership",
    "acceptOwnershipTransfer",
    "declineOwnershipTransfer",
    "refuseOwnershipTransfer",
    "startResponse",
    "finishResponse",
}
"""Operations that succeed once: whoever is next needs a conversation of their own."""


class Cell(NamedTuple):
    """What somebody is told who asks for an operation at something."""

    operation: str
    target: str
    who: str
    status: int


def cells() -> list[Cell]:
    """The table, one cell after the other."""
    found: list[Cell] = []
    for line in filter(None, TABLE.splitlines()):
        operation, targets, *statuses = line.split()
        assert len(statuses) == len(WHO), line
        for target in targets.split(","):
            found += [Cell(operation, target, who, int(status)) for who, status in zip(WHO, statuses, strict=True)]
    return found
