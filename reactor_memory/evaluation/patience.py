"""Loads that wait for what is recalled as long as it takes."""

from __future__ import annotations

from typing import Any, cast

import msgspec
from dependency_injector import providers

from reactor_memory.wiring.container import Container

SECONDS = 90.0
"""A load of an agent waits 3: then it does without an embedder that is busy."""


def wait_for_recall(container: Container) -> None:
    """What is found must not depend on how busy a machine is. Call it before anything is made."""
    patient = msgspec.structs.replace(container.recall_options(), seconds=SECONDS)
    cast("Any", container.recall_options).override(providers.Object(patient))
