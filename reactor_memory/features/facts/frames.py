"""The blocks of a context that are made of facts and of what happened."""

from __future__ import annotations

from reactor_memory.core.context.blocks import Frame

FACTS = Frame(part="facts", header="Conversation Facts:", rank=3)
NARRATIVE = Frame(part="narrative", header="Conversation Summary:", rank=1)
