"""Prints what a report of coverage says in all: percentages of lines and of branches."""

import json
import sys
from pathlib import Path

totals = json.loads(Path(sys.argv[1]).read_text())["totals"]
for what, covered, of in (
    ("lines", totals["covered_lines"], totals["num_statements"]),
    ("branches", totals["covered_branches"], totals["num_branches"]),
):
    print(f"{what:<10}{100 * covered / of:.2f} % of {of}")
