"""Whatever is asked, and by whom, the service answers as it describes itself, and it never fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proofs.schema_runs import ON_BEHALF, ROLES, opened, run

pytestmark = pytest.mark.slow

LEAST = 1_450
"""Requests of each of the seven roles: more than 10,000 in all."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("role", ROLES)
def test_every_answer_is_as_described(role: str, tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/log.db") as app:
        found = run(app, role, examples=12, scenarios=60)
    assert found.problems == []
    assert found.cases >= LEAST


def test_a_few_answers_are_as_described(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/log.db") as app:
        found = run(app, ON_BEHALF, examples=1, scenarios=0)
    assert found.problems == []
    assert found.cases > 30
