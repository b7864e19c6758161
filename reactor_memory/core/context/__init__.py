"""From what may be shown to a context.

Modules are imported when they are first used: most turns fit, most loads are of a session, and few reports are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactor_memory.lazy_names import modules_of

if TYPE_CHECKING:
    from reactor_memory.core.context import kept_context as kept_context
    from reactor_memory.core.context import own_history as own_history
    from reactor_memory.core.context import report_entries as report_entries
    from reactor_memory.core.context import running_context as running_context
    from reactor_memory.core.context import turn_clamp as turn_clamp
    from reactor_memory.core.context import window_fill as window_fill

__getattr__ = modules_of(__name__)
