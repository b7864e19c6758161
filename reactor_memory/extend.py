"""For those who write plug-ins: all that a strategy, a source, a summarizer or a store is made of, in one place.

What stands here stays as it is when the inside of the library moves; docs/extending.md names each.
A name is imported when it is first used, so that announcing a plug-in costs next to nothing. What proves a
part is in `reactor_memory.testing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactor_memory.lazy_names import names_of

if TYPE_CHECKING:
    from reactor_memory.cli.invocation import Invocation as Invocation
    from reactor_memory.cli.invocation import with_common_options as with_common_options
    from reactor_memory.core.context.blocks import Block as Block
    from reactor_memory.core.context.blocks import Frame as Frame
    from reactor_memory.core.context.blocks import Verbatim as Verbatim
    from reactor_memory.core.context.draft import ContextLimits as ContextLimits
    from reactor_memory.core.context.draft import Draft as Draft
    from reactor_memory.core.context.draft import with_block as with_block
    from reactor_memory.core.context.strategy import Missing as Missing
    from reactor_memory.core.context.strategy import Plan as Plan
    from reactor_memory.core.context.strategy import PlanRequest as PlanRequest
    from reactor_memory.core.context.strategy import Strategy as Strategy
    from reactor_memory.core.context.strategy import take_last as take_last
    from reactor_memory.core.load_requests import LoadRequest as LoadRequest
    from reactor_memory.core.ports import Clock as Clock
    from reactor_memory.core.ports import Condenser as Condenser
    from reactor_memory.core.ports import Embedder as Embedder
    from reactor_memory.core.ports import LedgerFold as LedgerFold
    from reactor_memory.core.ports import MessageStore as MessageStore
    from reactor_memory.core.ports import RecallIndex as RecallIndex
    from reactor_memory.core.ports import RecordStore as RecordStore
    from reactor_memory.core.ports import Redactor as Redactor
    from reactor_memory.core.ports import Summarizer as Summarizer
    from reactor_memory.core.ports import SummaryStore as SummaryStore
    from reactor_memory.core.ports import TokenCounter as TokenCounter
    from reactor_memory.core.sources import Asked as Asked
    from reactor_memory.core.sources import Source as Source
    from reactor_memory.errors import ChatModelError as ChatModelError
    from reactor_memory.errors import ConfigurationError as ConfigurationError
    from reactor_memory.errors import EmbeddingError as EmbeddingError
    from reactor_memory.errors import IdempotencyConflictError as IdempotencyConflictError
    from reactor_memory.errors import InvalidInputError as InvalidInputError
    from reactor_memory.errors import ReactorMemoryError as ReactorMemoryError
    from reactor_memory.errors import SessionDeletedError as SessionDeletedError
    from reactor_memory.errors import SessionNotFoundError as SessionNotFoundError
    from reactor_memory.errors import SessionOwnershipError as SessionOwnershipError
    from reactor_memory.errors import StoreClosedError as StoreClosedError
    from reactor_memory.errors import StoreError as StoreError
    from reactor_memory.errors import StoreUnavailableError as StoreUnavailableError
    from reactor_memory.errors import SummarizationError as SummarizationError
    from reactor_memory.features.chat.chat_model import ChatModel as ChatModel
    from reactor_memory.features.chat_memory.memory_management import (
        MemoryManagementStrategy as MemoryManagementStrategy,
    )
    from reactor_memory.features.facts.frames import FACTS as FACTS
    from reactor_memory.features.facts.frames import NARRATIVE as NARRATIVE
    from reactor_memory.features.facts.plain_text import plain as plain
    from reactor_memory.features.facts.plain_text import unforged as unforged
    from reactor_memory.features.facts.prose import render_narrative as render_narrative
    from reactor_memory.features.facts.rendering import render_facts as render_facts
    from reactor_memory.features.responses.models import ResponseStore as ResponseStore
    from reactor_memory.features.sharing.access import check_granted as check_granted
    from reactor_memory.features.sharing.access import user_of as user_of
    from reactor_memory.features.sharing.principals import Principal as Principal
    from reactor_memory.memory import Memory as Memory
    from reactor_memory.models import BranchRange as BranchRange
    from reactor_memory.models import Message as Message
    from reactor_memory.models import Session as Session
    from reactor_memory.models import ToolCall as ToolCall
    from reactor_memory.models.block_lines import BlockLine as BlockLine
    from reactor_memory.models.block_lines import Layout as Layout
    from reactor_memory.models.index_requests import IndexAnswer as IndexAnswer
    from reactor_memory.models.index_requests import IndexPart as IndexPart
    from reactor_memory.models.index_requests import RecallQuery as RecallQuery
    from reactor_memory.models.leases import Lease as Lease
    from reactor_memory.models.leases import WorkState as WorkState
    from reactor_memory.models.ledger import NOTHING_KNOWN as NOTHING_KNOWN
    from reactor_memory.models.ledger import Condensed as Condensed
    from reactor_memory.models.ledger import Extraction as Extraction
    from reactor_memory.models.ledger import Fact as Fact
    from reactor_memory.models.ledger import Known as Known
    from reactor_memory.models.ledger import Ledger as Ledger
    from reactor_memory.models.ledger import SealedSegment as SealedSegment
    from reactor_memory.models.ledger import Segment as Segment
    from reactor_memory.models.ledger import Summary as Summary
    from reactor_memory.models.ledger import SummaryHead as SummaryHead
    from reactor_memory.models.requests import Ahead as Ahead
    from reactor_memory.models.requests import Appended as Appended
    from reactor_memory.models.requests import AppendRequest as AppendRequest
    from reactor_memory.models.requests import BackgroundRows as BackgroundRows
    from reactor_memory.models.requests import ContextQuery as ContextQuery
    from reactor_memory.models.requests import ContextRows as ContextRows
    from reactor_memory.models.requests import ErasedBranch as ErasedBranch
    from reactor_memory.models.requests import StoreHealth as StoreHealth
    from reactor_memory.models.requests import Withdrawn as Withdrawn
    from reactor_memory.models.session_pages import SessionPage as SessionPage
    from reactor_memory.models.session_pages import SessionPreview as SessionPreview
    from reactor_memory.server.chat_agents import ChatAgent as ChatAgent
    from reactor_memory.server.parameters import Caller as Caller
    from reactor_memory.server.problems import not_found as not_found
    from reactor_memory.settings.settings import Settings as Settings
    from reactor_memory.wiring.container import Container as Container
    from reactor_memory.wiring.plugins import Given as Given
    from reactor_memory.wiring.plugins import Plugin as Plugin

_NAMES = {
    "cli.invocation": "Invocation with_common_options",
    "core.context.blocks": "Block Frame Verbatim",
    "core.context.draft": "ContextLimits Draft with_block",
    "core.context.strategy": "Missing Plan PlanRequest Strategy take_last",
    "core.load_requests": "LoadRequest",
    "core.ports": (
        "Clock Condenser Embedder LedgerFold MessageStore RecallIndex RecordStore Redactor "
        "Summarizer SummaryStore TokenCounter"
    ),
    "core.sources": "Asked Source",
    "errors": (
        "ChatModelError ConfigurationError EmbeddingError IdempotencyConflictError "
        "InvalidInputError ReactorMemoryError SessionDeletedError SessionNotFoundError "
        "SessionOwnershipError StoreClosedError StoreError StoreUnavailableError "
        "SummarizationError"
    ),
    "features.chat.chat_model": "ChatModel",
    "features.chat_memory.memory_management": "MemoryManagementStrategy",
    "features.facts.frames": "FACTS NARRATIVE",
    "features.facts.plain_text": "plain unforged",
    "features.facts.prose": "render_narrative",
    "features.facts.rendering": "render_facts",
    "features.responses.models": "ResponseStore",
    "features.sharing.access": "check_granted user_of",
    "features.sharing.principals": "Principal",
    "memory": "Memory",
    "models": "BranchRange Message Session ToolCall",
    "models.block_lines": "BlockLine Layout",
    "models.index_requests": "IndexAnswer IndexPart RecallQuery",
    "models.leases": "Lease WorkState",
    "models.ledger": ("Condensed Extraction Fact Known Ledger NOTHING_KNOWN SealedSegment Segment Summary SummaryHead"),
    "models.requests": (
        "Ahead AppendRequest Appended BackgroundRows ContextQuery ContextRows ErasedBranch StoreHealth Withdrawn"
    ),
    "models.session_pages": "SessionPage SessionPreview",
    "server.chat_agents": "ChatAgent",
    "server.parameters": "Caller",
    "server.problems": "not_found",
    "wiring.container": "Container",
    "wiring.plugins": "Given Plugin",
    "settings.settings": "Settings",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}


__getattr__ = names_of(__name__, _HOME, below="reactor_memory")


def __dir__() -> list[str]:
    return sorted(_HOME)
