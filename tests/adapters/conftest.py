"""With `DETECT_BLOCKING=1` every test of an adapter runs under a detector of blocking calls, as graphs do in the
development server of LangGraph: what our package does on a thread of an event loop may not block it.
"""

import os
from collections.abc import Iterator

import pytest

if os.environ.get("DETECT_BLOCKING"):
    from blockbuster import blockbuster_ctx

    @pytest.fixture(autouse=True)
    def detector(request: pytest.FixtureRequest) -> Iterator[None]:
        if request.node.get_closest_marker("blocking"):
            yield
            return
        with blockbuster_ctx("reactor_memory"):
            yield
