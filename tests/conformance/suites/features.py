"""What a database promises beside the ports: everything that features keep with the log."""

from __future__ import annotations

import pytest

from tests.conformance.suites.correcting import Corrections, Outdated
from tests.conformance.suites.entries import Entries
from tests.conformance.suites.pinning import Pins
from tests.conformance.suites.posting import Posted, PostedInForks, PostedThenErased, RandomlyPosted
from tests.conformance.suites.pruning import IdleGroups
from tests.conformance.suites.random_histories import RandomHistories
from tests.conformance.suites.recounting import Recounting
from tests.conformance.suites.session_prefixes import SessionPrefixes
from tests.conformance.suites.spending import SpendingNoted
from tests.conformance.suites.troubled_work import TroubledWork


@pytest.mark.anyio
class FeatureRules(
    Entries,
    Pins,
    IdleGroups,
    SessionPrefixes,
    RandomHistories,
    Recounting,
    Corrections,
    Outdated,
    Posted,
    PostedInForks,
    PostedThenErased,
    RandomlyPosted,
    SpendingNoted,
    TroubledWork,
):
    """The fixture `store` gives an opened, empty log in a database."""
