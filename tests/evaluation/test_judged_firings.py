"""Fifty firings of the default recall in small talk, as a reader judged them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path


def test_fifty_firings_were_judged() -> None:
    rows = Path(__file__).with_name("judged_firings.tsv").read_text("utf-8").splitlines()
    found = Counter(row.split("\t")[2] for row in rows if not row.startswith("#"))
    assert found == {"right": 2, "unneeded": 48}
