"""Sources: what brings lines to contexts, by one door, in two phases.

Before the window is laid out, a source brings what the strategy leaves room for, a block or messages that stand as they
are. For the question it may add to the draft, in the order of the sources. The loader knows no feature, only these.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, NamedTuple, Protocol

import msgspec

from reactor_memory.core.context.blocks import FIRST_SHARE, Block, Verbatim
from reactor_memory.core.context.context import Context
from reactor_memory.core.context.draft import Draft, with_block
from reactor_memory.core.load_requests import LoadRequest
from reactor_memory.models import Message, SearchHit, Session, Value
from reactor_memory.models.requests import ContextRows


class Views(NamedTuple):
    """`context` gives the context of a draft with the turn so far; `moved` the draft whose window has given up about so
    many tokens for good, None if it stays where it is.
    """

    context: Callable[[Draft], Awaitable[Context]]
    moved: Callable[[int], Awaitable[Draft | None]]


class Asked(NamedTuple):
    """A load whose window is laid out. `has_memory`: the strategy shows memory. `is_cut`: messages are left out of
    which none tells, although they may have been summarized by hand.
    """

    request: LoadRequest
    session: Session
    has_memory: bool
    is_cut: bool
    views: Views


class Source:
    """What a feature brings to contexts, whatever the strategy. Each phase brings nothing unless it is overridden.

    A source whose rows are damaged is left out of a context, and its `name` stands among the remarks.
    """

    name: ClassVar[str]

    async def before_window(self, request: LoadRequest, rows: ContextRows) -> Block | Verbatim | None:
        """A block with its `tokens`, or what stands verbatim; None if there is nothing to show. `rows` is what was read
        of the log, and names the session if there is one.
        """
        return None

    async def for_question(self, draft: Draft, asked: Asked) -> Draft:
        """The draft with what is added to it; the same draft if there is nothing."""
        return draft

    # A source that most loads need not await tells before whether it may bring something.

    def stands(self, rows: ContextRows) -> bool:
        """Whether `before_window` may bring something."""
        return True

    def answers(self, request: LoadRequest, session: Session, *, has_memory: bool, is_cut: bool) -> bool:
        """Whether `for_question` may add something. The arguments are those of `Asked`."""
        return True


class Recall(Protocol):
    """Finds passages of a session."""

    async def search(self, text: str, session: Session, user_id: str | None, *, limit: int) -> tuple[SearchHit, ...]:
        """The passages that answer `text`, best first. Raises `StoreError` and `RedactionError`."""
        ...


class Brought(Value, frozen=True, kw_only=True):
    """What sources brought before the window."""

    blocks: tuple[Block, ...] = ()
    verbatim: tuple[Verbatim, ...] = ()
    damaged: tuple[str, ...] = ()

    @property
    def messages(self) -> list[Message]:
        return [message for verbatim in self.verbatim for message in verbatim.messages]

    def planned(self, budget: int) -> int:
        """The tokens that a strategy leaves to the blocks."""
        return min(sum(block.tokens or 0 for block in self.blocks), int(FIRST_SHARE * budget))

    def added_to(self, draft: Draft) -> Draft:
        for block in self.blocks:
            draft = with_block(draft, block)
        remarks = (*(f"damaged, left out: {each}" for each in self.damaged), *_damages_of(self.verbatim))
        return msgspec.structs.replace(draft, verbatim=self.verbatim, remarks=(*draft.remarks, *remarks))


NOTHING = Brought()


def _damages_of(verbatim: Sequence[Verbatim]) -> list[str]:
    return [f"damaged, left out: {each}" for part in verbatim for each in part.damaged]
