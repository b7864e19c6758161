"""Prints what a report of coverage says of the checkout: percentages of lines and of branches."""

import json
import sys
from pathlib import Path

report = json.loads(Path(sys.argv[1]).read_text())
# Plug-ins that tests install elsewhere are packages of their own.
totals = [each["summary"] for name, each in report["files"].items() if not Path(name).is_absolute()]
for what, covered, of in (
    ("lines", "covered_lines", "num_statements"),
    ("branches", "covered_branches", "num_branches"),
):
    whole = sum(each[of] for each in totals)
    print(f"{what:<10}{100 * sum(each[covered] for each in totals) / whole:.2f} % of {whole}")
