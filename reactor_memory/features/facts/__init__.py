"""Facts and narrative: extracted once, verified, merged by rule, and laid out beside the window.

How memory is laid out is imported when a window first moves: most turns of a session show what stood there before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactor_memory.lazy_names import modules_of

if TYPE_CHECKING:
    from reactor_memory.features.facts import memory_layout as memory_layout

__getattr__ = modules_of(__name__)
