"""The log: messages, forks, layouts, background work.

Modules are imported when they are first used: a turn appends and reads, and needs nothing of the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactor_memory.lazy_names import modules_of

if TYPE_CHECKING:
    from reactor_memory.core.log import background_work as background_work
    from reactor_memory.core.log import context_layouts as context_layouts
    from reactor_memory.core.log import deletion as deletion
    from reactor_memory.core.log import forks as forks
    from reactor_memory.core.log import health as health
    from reactor_memory.core.log import hot_heads as hot_heads
    from reactor_memory.core.log import last_budgets as last_budgets
    from reactor_memory.core.log import listing as listing
    from reactor_memory.core.log import operations as operations
    from reactor_memory.core.log import postgres_appends as postgres_appends
    from reactor_memory.core.log import postgres_contexts as postgres_contexts
    from reactor_memory.core.log import summaries as summaries
    from reactor_memory.core.log import withdrawals as withdrawals

__getattr__ = modules_of(__name__)
