"""Which modules hold the hooks of the features: a list to extend before anything is run."""

from __future__ import annotations

HOOK_MODULES: list[str] = []
"""Each has its hook as ``HOOK``. No append or load needs one: they are imported when a hook is run."""
