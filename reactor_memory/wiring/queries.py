"""The SQL of the log and of the features, and what features do when the log changes: in ``queries.sql`` and
``hooks.py`` of their folders, where they have some.
"""

from __future__ import annotations

from pathlib import Path

from reactor_memory.core import HOOK_MODULES
from reactor_memory.database.statements import Statements

_PACKAGE = Path(__file__).parents[1]
_FEATURES = _PACKAGE / "features"

QUERIES = Statements(_PACKAGE / "core" / "log" / "queries.sql", *sorted(_FEATURES.glob("*/queries.sql")))

HOOK_MODULES.extend(
    f"reactor_memory.features.{path.parent.name}.hooks" for path in sorted(_FEATURES.glob("*/hooks.py"))
)
