"""Copy the tables of the studies from benchmarks/results into the documentation.

A table stands between ``<!-- table: NAME -->`` and ``<!-- end -->``; NAME is that of a study.

    python -m benchmarks.pages            write them
    python -m benchmarks.pages --check    fail where a page differs from the results
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from benchmarks.tables import format_lines

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
PLACE = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n).*?(\n<!-- end -->)", re.DOTALL)


def filled(text: str) -> str:
    """Return a page with its tables as the results have them."""

    def table(place: re.Match[str]) -> str:
        results = ROOT / "benchmarks" / "results" / f"{place['name']}.json"
        return place[1] + "\n" + format_lines(json.loads(results.read_text())) + "\n" + place[3]

    return PLACE.sub(table, text)


def main() -> int:
    check = "--check" in sys.argv
    stale = [page for page in PAGES if filled(page.read_text()) != page.read_text()]
    for page in stale:
        print(page.name, "differs from benchmarks/results" if check else "rewritten")
        if not check:
            page.write_text(filled(page.read_text()))
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
