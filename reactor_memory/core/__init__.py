"""What every turn runs. Features take part by hooks and blocks."""

from __future__ import annotations

HOOK_MODULES: list[str] = []
"""Which modules hold the hooks of the features, each as ``HOOK``: a list to extend before anything is run. No append or
load needs one, so they are imported when a hook is run.
"""
