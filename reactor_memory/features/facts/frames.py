"""The frames of the two blocks: facts and narrative."""

from __future__ import annotations

from reactor_memory.core.context.blocks import Frame

FACTS = Frame(part="facts", header="Conversation Facts:", rank=3)
NARRATIVE = Frame(part="narrative", header="Conversation Summary:", rank=1)
