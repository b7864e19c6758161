"""How recall is wired."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from reactor_memory.database.database import Database
from reactor_memory.wiring.asked_models import VECTOR_SECONDS, new_breaker
from reactor_memory.wiring.settings import Settings

if TYPE_CHECKING:
    from reactor_memory.core.ports import Embedder, RecallIndex
    from reactor_memory.features.recall.recaller import RecallOptions


def no_recall_index(settings: Settings) -> RecallIndex:
    from reactor_memory.features.recall.database_index import NoRecallIndex

    return NoRecallIndex()


def recall_of(
    words: RecallIndex,
    where: str,
    database: Database,
    embedder: Callable[[], Embedder | None],
    options: RecallOptions,
    settings: Settings,
) -> RecallIndex:
    """What a load asks: the index, and meanings too if that is in the database, which keeps the vectors. An embedder
    that is too slow for a load may be good for all else, so whether to ask it is decided apart.
    """
    known = embedder() if where == "database" and settings.search.enabled else None
    if known is None:
        return words
    from reactor_memory.features.recall.guarded_embedder import GuardedEmbedder
    from reactor_memory.features.redaction import unredacted
    from reactor_memory.features.search.hybrid_recall import MeaningIndex

    search = settings.search
    seconds = min(options.seconds / 3, settings.model(search.embedder).timeout_seconds or VECTOR_SECONDS)
    patient = GuardedEmbedder(known, redactor=unredacted, breaker=new_breaker(), timeout_seconds=seconds)
    return MeaningIndex(
        words, database=database, embedder=patient, min_similarity=search.min_similarity, seconds=options.seconds / 2
    )


def recall_options(settings: Settings) -> RecallOptions:
    from reactor_memory.features.recall.recaller import RecallOptions

    return RecallOptions(default=settings.recall.default, overhead=settings.tokens.overhead_per_message)
