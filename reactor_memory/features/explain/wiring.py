"""How explanations are wired."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reactor_memory.features.explain.explainer import Explainer


def explainer(**parts: Any) -> Explainer:
    from reactor_memory.features.explain.explainer import Explainer

    return Explainer(**parts)
