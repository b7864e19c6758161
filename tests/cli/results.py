"""A row of results."""

from __future__ import annotations

from typing import Any

from reactor_memory.cli.eval_run import Result
from reactor_memory.evaluation.pricing import Traffic
from reactor_memory.models.ledger import Usage


def result(**fields: Any) -> Result:
    row: dict[str, Any] = {
        "file": "f.jsonl",
        "strategy": "hierarchical",
        "variant": "tools",
        "questions": "off",
        "budget": 1000,
        "attributable": 0.97654,
        "survival": 0.98765,
        "probes": 81,
        "read_amplification": 1.0,
        "prefix_reuse": None,
        "prefix_reuse_weighted": 0.5,
        "violations": 0,
        "problems": (),
        "behind": 0,
        "cost": 0.012345,
        "summary_cost": 0.001,
        "summary_usage": Usage(tokens_read=10, tokens_written=1),
        "traffic": Traffic(input_tokens=100, cached_tokens=50, output_tokens=10),
        "p50_us": 1234,
        "p99_us": 5678,
        "digest": "d" * 64,
    }
    return Result(**{**row, **fields})
